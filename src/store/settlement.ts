import type { Decision } from '../failure/decide.ts';
import type { Settled, Settlement, SourceChange } from './store.ts';

export const SUCCEEDED: Settled = { answer: 'settled', state: 'succeeded' };

/** A success of a first execution without a note: it needs no history row and no facts. */
export function isPlain({ lease, decision, report }: Settlement): boolean {
  return decision.next === 'succeeded' && lease.execution === 1 && report.message === undefined;
}

/** It was decided when its source had no state, and does not change it. */
export const NO_SOURCE_STATE: SourceChange = { revision: 0 };

/** Whether it was decided when its source had no state, and does not change it. */
export function leavesSource({ source = NO_SOURCE_STATE }: Settlement): boolean {
  return source !== 'any' && source.revision === 0 && !source.change;
}

/**
 * Splits a call where a task comes for the second time, so that no part has a task twice. Each part is judged like a call of its
 * own: the second settlement of a task may depend on what the first one changed.
 */
export function partsOf(settlements: readonly Settlement[]): readonly (readonly Settlement[])[] {
  const parts: Settlement[][] = [[]];
  const seen = new Set<number>();
  for (const one of settlements) {
    if (seen.has(one.lease.task)) {
      parts.push([]);
      seen.clear();
    }
    seen.add(one.lease.task);
    (parts.at(-1) as Settlement[]).push(one);
  }
  return parts;
}

/** Null for a success. */
export function reasonOf(decision: Decision): string | null {
  return decision.next === 'succeeded' ? null : decision.reason;
}
