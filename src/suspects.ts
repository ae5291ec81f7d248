import type { Milliseconds } from './duration.ts';

/*
 * A task that was lost with its worker is a suspect until one of its executions reports anything. Suspects run by these rules, so
 * that a task that ends its worker is found, and other tasks are not charged.
 */

/** A task that was lost this often in a row must run alone. Only then is it known which task ended the process. */
const ALONE_FROM = 2;

/** Whether a suspect must run alone, or may run beside others. */
export function mustRunAlone(lostInARow: number): boolean {
  return lostInARow >= ALONE_FROM;
}

const FIRST_PROBATION: Milliseconds = 10_000;
const LONGEST_PROBATION: Milliseconds = 3_600_000;

/** How long a worker starts no other task beside one that must run alone: 10 s, doubling with each loss up to 1 h. */
export function probationOf(lostInARow: number): Milliseconds {
  return Math.min(FIRST_PROBATION * 2 ** Math.max(0, lostInARow - ALONE_FROM), LONGEST_PROBATION);
}
