import type { Milliseconds } from '../duration.ts';
import type { RateLimit } from '../failure/classify/quotas.ts';
import { type Failure, hadNoAnswer, type Outcome } from '../failure/outcome.ts';
import type { Policy, SourceSwitches } from '../failure/policy.ts';

/**
 * What an execution shows about its source. `success` and `task_failure`: the source answered. `rate_limited`: it answered that
 * there is too much work. `no_answer`: it took too long; a probe has failed then, and any other execution shows nothing.
 * `inconclusive`: it shows nothing, because the failure is unknown or the worker's, or the handler asked to run later.
 */
export const OBSERVED = [
  'success',
  'task_failure',
  'rate_limited',
  'source_failure',
  'permanent_source_failure',
  'no_answer',
  'inconclusive',
] as const;
export type Observed = (typeof OBSERVED)[number];

/** The execution that was observed. */
export interface About {
  readonly task: number;
  readonly execution: number;
  /** How long ago it started. */
  readonly startedAgo: Milliseconds;
  /** It was the probe of its source. */
  readonly probe: boolean;
  /** No other ready task of its source was left when it was claimed. */
  readonly drained: boolean;
  /** The rate limit in the source's answer, even if that was a success. */
  readonly rateLimit?: RateLimit;
}

export interface Observation extends About {
  readonly kind: Observed;
  /** The reason of the failure; empty for a success. */
  readonly reason: string;
  readonly message: string;
  /** The wait that the source asked for. */
  readonly retryAfter?: Milliseconds;
  /** A longer wait needs a person. */
  readonly maxRetryAfter: Milliseconds;
  readonly switches: SourceSwitches;
}

/** What an outcome shows about its source. Undefined if there was no execution, or if it was interrupted or lost. */
export function observationOf(outcome: Outcome, policy: Policy, about: About): Observation | undefined {
  const kind = observedOf(outcome);
  if (kind === undefined) return undefined;
  const { maxRetryAfter, source: switches } = policy;
  const common = { ...about, kind, maxRetryAfter, switches };
  if (outcome.kind === 'deferral') return { ...common, reason: outcome.reason, message: cut(outcome.message) };
  if (outcome.kind !== 'failure') return { ...common, reason: '', message: '' };
  const { reason, message, retryAfterMs: retryAfter } = outcome.failure;
  return { ...common, reason, message: cut(message), ...(retryAfter !== undefined && { retryAfter }) };
}

/** Whether an outcome tells something of its source, and yet leaves nothing to remember of one in its normal state. */
export function leavesNormal(outcome: Outcome): boolean {
  const kind = observedOf(outcome);
  return kind !== undefined && changesNothing(kind);
}

/** Of a source in its normal state, such an outcome leaves nothing to remember, unless it told of a limit. */
export function changesNothing(kind: Observed): boolean {
  return kind === 'success' || kind === 'task_failure' || kind === 'no_answer' || kind === 'inconclusive';
}

function observedOf(outcome: Outcome): Observed | undefined {
  switch (outcome.kind) {
    case 'success':
      return 'success';
    case 'deferral':
      return 'inconclusive';
    case 'failure':
      return observedOfFailure(outcome.failure);
    case 'interruption':
    case 'loss':
    case 'expiry':
    case 'verdict':
      return undefined;
  }
}

function observedOfFailure(failure: Failure): Observed {
  const { kind, fault, word } = failure;
  if (word === 'needs_manual' || fault === 'worker') return 'inconclusive';
  if (kind === 'rate_limited' || fault === 'quota') return 'rate_limited';
  if (fault === 'source') return kind === 'permanent' ? 'permanent_source_failure' : 'source_failure';
  if (hadNoAnswer(failure)) return 'no_answer';
  return kind === 'unknown' ? 'inconclusive' : 'task_failure';
}

const LONGEST_MESSAGE = 200;

function cut(message: string): string {
  return message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE - 1)}…`;
}
