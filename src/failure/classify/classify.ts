import type { Failure, FailureKind, Outcome } from '../outcome.ts';
import { parseSignal, type Signal } from '../signals.ts';
import { clean, describe } from './describe.ts';
import { byHttpStatus } from './http.ts';
import { levels, read, readText } from './inspect.ts';
import { bySystemError } from './system.ts';
import type { Family, Verdict } from './verdict.ts';

export interface ClassifyContext {
  /** The time against which dates in the error are read, in milliseconds of the epoch. */
  readonly now: number;
}

/**
 * The families that are asked, in this order, about each error of a chain. A family is one small file that knows errors by
 * their shape, codes and status, never by `instanceof` of a library's class.
 */
const FAMILIES: readonly Family[] = [
  { name: 'http.status', recognise: byHttpStatus },
  { name: 'system.code', recognise: bySystemError },
  { name: 'abort', recognise: byAbort },
];

const LONGEST_CODE = 128;

const UNKNOWN: Verdict = { reason: 'unknown', kind: 'unknown', fault: 'task' };

/**
 * What kind of failure a thrown value is. Never throws, whatever was thrown; takes bounded time; reads no clock.
 * Evidence, in order: a signal thrown on purpose, the families (through `cause` and `errors`), else `unknown`.
 */
export function classify(thrown: unknown, context: ClassifyContext): Failure {
  const found = levels(thrown);
  const text = describe(thrown);
  const signal = findSignal(found);
  if (signal) return failureFrom(signal, text);
  for (const errors of found) {
    const recognised = mildest(errors.flatMap((error) => recognise(error, context.now)));
    if (recognised) return failure(recognised.verdict, recognised.rule, text, codeOf(recognised.error));
  }
  return failure(UNKNOWN, 'none', text, codeOf(thrown));
}

/** The outcome of an execution whose handler threw: "later" is a deferral, everything else a failure. */
export function outcomeOf(thrown: unknown, context: ClassifyContext): Outcome {
  const signal = findSignal(levels(thrown));
  if (signal?.signal !== 'later') return { kind: 'failure', failure: classify(thrown, context) };
  const { message } = describe(thrown);
  return {
    kind: 'deferral',
    reason: signal.reason,
    message,
    ...(signal.after !== undefined && { after: signal.after }),
  };
}

function byAbort(error: unknown): Verdict | undefined {
  switch (readText(error, 'name')) {
    case 'TimeoutError':
      return { reason: 'timeout', kind: 'transient', fault: 'task', ambiguous: true, field: 'name' };
    case 'AbortError':
      return { reason: 'abort', kind: 'transient', fault: 'task', ambiguous: true, field: 'name' };
    default:
      return undefined;
  }
}

/** A wrapper does not hide what was said on purpose: the outermost signal counts. */
function findSignal(found: readonly (readonly unknown[])[]): Signal | undefined {
  for (const error of found.flat()) {
    const signal = parseSignal(error);
    if (signal) return signal;
  }
  return undefined;
}

interface Recognised {
  readonly error: unknown;
  readonly rule: string;
  readonly verdict: Verdict;
}

function recognise(error: unknown, now: number): Recognised[] {
  for (const family of FAMILIES) {
    const verdict = family.recognise(error, now);
    if (verdict) return [{ error, rule: family.name, verdict }];
  }
  return [];
}

const MILDEST_FIRST: readonly FailureKind[] = ['rate_limited', 'transient', 'unknown', 'permanent'];

/**
 * Of several errors that were thrown together, the one with the most hope speaks: a retry too many costs little, a wrong
 * "permanent" loses the task. But if one of them may have had its effect, so may the whole.
 */
function mildest(recognised: readonly Recognised[]): Recognised | undefined {
  const hope = ({ verdict }: Recognised) => MILDEST_FIRST.indexOf(verdict.kind);
  const [first] = recognised.toSorted((a, b) => hope(a) - hope(b) || waitOf(b) - waitOf(a));
  if (!first) return undefined;
  const ambiguous = recognised.some(({ verdict }) => verdict.ambiguous);
  return ambiguous ? { ...first, verdict: { ...first.verdict, ambiguous } } : first;
}

function waitOf({ verdict }: Recognised): number {
  return verdict.retryAfterMs ?? -1;
}

function failureFrom(signal: Signal, text: { name: string; message: string }): Failure {
  switch (signal.signal) {
    case 'permanent':
      return { ...spoken(signal, text), kind: 'permanent', fault: 'task', word: 'permanent' };
    case 'needs_manual':
      return { ...spoken(signal, text), kind: 'unknown', fault: 'task', word: 'needs_manual' };
    case 'failed':
      return { ...spoken(signal, text), kind: signal.kind, fault: 'task' };
    case 'later':
    case 'rate_limited': {
      const wait = signal.after === undefined ? {} : { retryAfterMs: signal.after };
      return { ...spoken(signal, text), kind: 'rate_limited', fault: 'quota', ...wait };
    }
  }
}

function spoken(signal: Signal, text: { name: string; message: string }) {
  const code = 'code' in signal && signal.code !== undefined ? { code: clean(signal.code, LONGEST_CODE) } : {};
  return {
    ...text,
    reason: signal.reason,
    ambiguous: false,
    evidence: { rule: 'signal', field: signal.signal },
    ...code,
  };
}

function failure(verdict: Verdict, rule: string, text: { name: string; message: string }, code?: string): Failure {
  const { field, ambiguous = false, ...rest } = verdict;
  return {
    ...text,
    ...rest,
    ambiguous,
    evidence: { rule, ...(field !== undefined && { field }) },
    ...(code !== undefined && { code }),
  };
}

function codeOf(error: unknown): string | undefined {
  const code = read(error, 'code');
  return typeof code === 'string' || typeof code === 'number' ? clean(String(code), LONGEST_CODE) : undefined;
}
