import type { Milliseconds } from './duration.ts';

/*
 * Each source has a budget for retries after failures at its fault: a retry takes one token when it is claimed, and waits while there
 * is none. So retries add little to the load of a source that fails. Both stores count tokens by these rules.
 */

/** How many tokens a full budget has. A source without a stored budget has a full one. */
export const FULL = 20;

/** How long it takes until one token is added. */
export const REFILL_EVERY: Milliseconds = 10_000;

/** How much a success adds. */
export const PER_SUCCESS = 0.1;

/** The tokens after some time, if none is taken. */
export function tokensAfter(tokens: number, elapsed: Milliseconds): number {
  return Math.min(FULL, tokens + elapsed / REFILL_EVERY);
}

/** How long until a token can be taken; 0 if it can be taken now. */
export function untilToken(tokens: number): Milliseconds {
  return tokens >= 1 ? 0 : Math.ceil((1 - tokens) * REFILL_EVERY);
}
