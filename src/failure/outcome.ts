import type { Milliseconds } from '../duration.ts';
import type { Json } from '../task.ts';

/** How a failure behaves when the same task runs again. */
export const FAILURE_KINDS = ['transient', 'rate_limited', 'permanent', 'unknown'] as const;
export type FailureKind = (typeof FAILURE_KINDS)[number];

/** Whether a name is that of a kind. Such a name is never read as a reason: a rule `permanent` or `unknown` is about the kind. */
export function isKind(name: string): name is FailureKind {
  return (FAILURE_KINDS as readonly string[]).includes(name);
}

const REASON = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;
const LONGEST_REASON = 64;

/** Whether a value has the form of a reason: a lower-case slug such as `fs.locked`, at most 64 characters. */
export function isReason(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_REASON && REASON.test(value);
}

/** Whether a value names a family of reasons, such as `fs.*`. A family is the first word of a reason: `fs.smb.*` would never match. */
export function isFamily(name: string): boolean {
  return name.endsWith('.*') && isReason(name.slice(0, -2)) && name.indexOf('.') === name.length - 2;
}

/** Who is at fault: the task, its source, the quota of the source, or the worker. */
export const FAULTS = ['task', 'source', 'quota', 'worker'] as const;
export type Fault = (typeof FAULTS)[number];

/** Where a task goes when its policy ends it. */
export const ENDS = ['dead', 'needs_manual'] as const;
export type End = (typeof ENDS)[number];

/** Which rule or family recognised a failure, and in which field it read the evidence, such as `cause.code`. */
export interface Evidence {
  readonly rule: string;
  readonly field?: string;
}

/** A classified error. Plain data: it can be stored, sent and decided about again. */
export interface Failure {
  readonly kind: FailureKind;
  /** A slug such as `fs.locked` or `http.429`; the part before the first dot is its family. */
  readonly reason: string;
  readonly fault: Fault;
  /** The effect may have happened although no answer came. */
  readonly ambiguous: boolean;
  /** The wait that the other side asked for, in milliseconds. 0 is a wait too. Absent if it asked for none. */
  readonly retryAfterMs?: Milliseconds;
  /** The application's own code, as it was thrown. */
  readonly code?: string;
  /** The class and message of the thrown value, without secrets and control characters, at most 8,192 characters. */
  readonly name: string;
  readonly message: string;
  readonly evidence: Evidence;
  /**
   * Made by `classify`. The same for failures that were thrown at the same place and whose messages differ only in ids, numbers, times,
   * paths and hosts.
   */
  readonly fingerprint?: string;
  /** Set if the handler decided what must follow; see `signals.ts`. */
  readonly word?: 'permanent' | 'needs_manual';
  /**
   * The frames of its stack, one a line, the innermost first: without the message and the frames of Node and of Holdfast, at most 4,096
   * characters. Absent if there are none.
   */
  readonly stack?: string;
  /** What the thrown value wraps, the outermost first: its causes and the members of an AggregateError, at most ten. */
  readonly causes?: readonly InnerError[];
}

/** An error inside a thrown value. Its message has at most 1,024 characters, and so have its frames. */
export interface InnerError {
  /** Where it was found, such as `cause`, `cause.cause` or `errors.0`. */
  readonly path: string;
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

/**
 * Whether no response came in time. Either the task took too long or its source hangs. The task is charged, and the outcome is no
 * evidence that the source works.
 */
export function hadNoAnswer({ fault, reason }: Failure): boolean {
  return fault === 'task' && (reason === 'timeout' || reason === 'abort');
}

/**
 * How a task was lost: it was the only one that ran in its process, or others ran beside it, or its worker had been told to
 * stop.
 */
export const LOSSES = ['alone', 'beside_others', 'while_stopping'] as const;
export type Loss = (typeof LOSSES)[number];

/** What the verify step of a type found out about an ambiguous failure or a loss. If the effect happened, the outcome is a success. */
interface VerifiedWith {
  readonly verified?: 'did_not_happen' | 'unknown';
}

/** What an execution ended with, as the worker or the recovery saw it. */
export type Outcome =
  | { readonly kind: 'success'; readonly result?: Json }
  | ({ readonly kind: 'failure'; readonly failure: Failure } & VerifiedWith)
  /** The handler asked to run later. This is not a failure. Without `after`, the policy's backoff gives the delay. */
  | { readonly kind: 'deferral'; readonly after?: Milliseconds; readonly reason: string; readonly message: string }
  /** A shutdown or a release handed it back. `started` tells whether its handler had begun. */
  | { readonly kind: 'interruption'; readonly started: boolean; readonly message: string }
  /** The lease ended, and its worker reported no outcome. */
  | ({ readonly kind: 'loss'; readonly worker: string; readonly how: Loss } & VerifiedWith)
  /** Its deadline passed while it waited. */
  | { readonly kind: 'expiry' }
  /** It waited to see whether its source is down, and that time is over. It ends with this reason unless its charge was refunded. */
  | { readonly kind: 'verdict'; readonly reason: string };

/** A success without a result. All have the same. */
export const SUCCESS: Outcome = { kind: 'success' };

/** Whether an execution reported the outcome. A hand-back before it began and a lost lease say nothing about the task. */
export function saysSomething(outcome: Outcome): boolean {
  if (outcome.kind === 'interruption') return outcome.started;
  return outcome.kind !== 'loss' && outcome.kind !== 'expiry' && outcome.kind !== 'verdict';
}
