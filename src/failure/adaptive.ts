import { formatDuration, type Milliseconds } from '../duration.ts';
import { type Backoff, ceiling } from './backoff.ts';
import type { Roll } from './jitter.ts';

/** What retries for one reason at one source did after about the same wait. */
export interface ObservedRetries {
  /** The waits of the round for this reason, added up: a power of two of a second. */
  readonly waited: Milliseconds;
  readonly retries: number;
  readonly succeeded: number;
}

/** Fewer observed retries than this change nothing. */
const LEAST_OBSERVED = 20;

/** The share after a wait is known if so many retries were observed after it. */
const LEAST_AFTER_ONE_WAIT = 5;

/** The share of retries that keep the policy's delay, to notice when shorter waits succeed again. */
const KEPT = 0.1;

/** A failed retry costs as much as ten first delays, and the last attempt as much as ten of the longest delays. */
const PRICE = 10;

/** How many delays are compared at most. */
const MOST_DELAYS = 64;

/** The class of a total wait: the power of two of a second that is nearest. */
export function waitClass(waited: Milliseconds): number {
  return Math.round(Math.log2(Math.max(waited, 1) / 1_000));
}

export function waitOfClass(exponent: number): Milliseconds {
  return Math.round(1_000 * 2 ** exponent);
}

/** A retry that must be given a delay. */
interface NextRetry {
  readonly backoff: Backoff;
  /** Counted from 1: without observations it waits as long as this retry does. */
  readonly count: number;
  /** The retries that are left, this one included. */
  readonly left: number;
  /** The waits of the round for its reason until now. */
  readonly waited: Milliseconds;
  readonly observed: readonly ObservedRetries[];
}

/**
 * Which delay of the backoff the next retry waits: its own, or a later and longer one if that costs less. Retries after it wait
 * the delays that follow. So every delay is one of the policy's own. `words` has the inputs.
 */
export function adaptedRetry(next: NextRetry, roll: Roll): { readonly retry: number; readonly words: string } {
  const { count, observed } = next;
  const all = observed.reduce((sum, { retries }) => sum + retries, 0);
  if (all < LEAST_OBSERVED) {
    return { retry: count, words: `not adapted: ${all} of the ${LEAST_OBSERVED} retries that it takes were observed` };
  }
  // Digits of the random number that the jitter hardly depends on.
  if ((roll * 1_000) % 1 >= 1 - KEPT) return { retry: count, words: 'not adapted, as one retry in ten' };
  const retry = cheapest(next);
  const shares = observed.map(
    ({ waited, retries, succeeded }) => `${succeeded} of ${retries} after ${formatDuration(waited)}`,
  );
  const which = retry === count ? 'not adapted' : `adapted to delay ${retry}`;
  return { retry, words: `${which}: of retries for this reason succeeded ${shares.join(', ')}` };
}

function cheapest(next: NextRetry): number {
  const { backoff, count } = next;
  let best = count;
  let least = costOf(next, count);
  for (let retry = count + 1; retry < count + MOST_DELAYS; retry++) {
    if (ceiling(backoff, retry) <= ceiling(backoff, retry - 1)) break;
    const cost = costOf(next, retry);
    if (cost >= least) continue;
    best = retry;
    least = cost;
  }
  return best;
}

/** The expected waits and failed retries from this delay of the backoff on. */
function costOf({ backoff, left, waited, observed }: NextRetry, first: number): number {
  const price = PRICE * ceiling(backoff, 1);
  let failing = 1;
  let cost = 0;
  let all = waited;
  for (let i = 0; i < Math.min(left, MOST_DELAYS); i++) {
    const delay = ceiling(backoff, first + i);
    all += delay;
    cost += failing * delay;
    failing *= 1 - shareAt(observed, all);
    cost += failing * price;
  }
  return cost + failing * PRICE * ceiling(backoff, first + MOST_DELAYS);
}

/** The share of retries that succeeded after this wait in all. Where too few were observed, the next shorter wait counts. */
function shareAt(observed: readonly ObservedRetries[], all: Milliseconds): number {
  const longest = waitOfClass(waitClass(all));
  let nearest: ObservedRetries | undefined;
  for (const one of observed) {
    if (one.retries < LEAST_AFTER_ONE_WAIT || one.waited > longest) continue;
    if (one.waited >= (nearest?.waited ?? 0)) nearest = one;
  }
  // One more failure than was observed, so that a single success does not count as certain.
  return nearest === undefined ? 0 : nearest.succeeded / (nearest.retries + 1);
}
