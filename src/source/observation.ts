import type { Milliseconds } from '../duration.ts';
import type { RateLimit } from '../failure/classify/quotas.ts';
import { type Failure, hadNoAnswer, type Outcome } from '../failure/outcome.ts';
import type { Policy, SourceSwitches } from '../failure/policy.ts';

/**
 * What an execution tells of its source. `success` and `task_failure`: it answered. `rate_limited`: it answered that there is too much
 * work. `no_answer`: it took too long, so a probe has failed, and any other execution tells nothing. `inconclusive`: it tells nothing,
 * because the failure is unknown or the worker's, or the handler asked to run later.
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

/** Which execution it was. */
export interface About {
  readonly task: number;
  readonly execution: number;
  /** How long ago it started. */
  readonly startedAgo: Milliseconds;
  /** It was the probe of its source. */
  readonly probe: boolean;
  /** When it was claimed, no other ready task of its source was left. */
  readonly drained: boolean;
  /** What the source said of its limit in its answer, also where that was a success. */
  readonly rateLimit?: RateLimit;
}

export interface Observation extends About {
  readonly kind: Observed;
  /** Of the failure; empty for a success. */
  readonly reason: string;
  readonly message: string;
  /** How long the source asked to wait. */
  readonly retryAfter?: Milliseconds;
  /** A longer wait needs a person. */
  readonly maxRetryAfter: Milliseconds;
  readonly switches: SourceSwitches;
}

/** What an outcome tells of its source, or undefined for an outcome that is none of an execution, or of one that was cut off. */
export function observationOf(outcome: Outcome, policy: Policy, about: About): Observation | undefined {
  const { maxRetryAfter, source: switches } = policy;
  const common = { ...about, maxRetryAfter, switches };
  switch (outcome.kind) {
    case 'success':
      return { ...common, kind: 'success', reason: '', message: '' };
    case 'deferral':
      return { ...common, kind: 'inconclusive', reason: outcome.reason, message: cut(outcome.message) };
    case 'failure': {
      const { reason, message, retryAfterMs } = outcome.failure;
      const seen = { ...common, kind: kindOf(outcome.failure), reason, message: cut(message) };
      return retryAfterMs === undefined ? seen : { ...seen, retryAfter: retryAfterMs };
    }
    case 'interruption':
    case 'loss':
    case 'expiry':
    case 'verdict':
      return undefined;
  }
}

function kindOf(failure: Failure): Observed {
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
