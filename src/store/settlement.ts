import type { Decision } from '../failure/decide.ts';
import type { Settled, Settlement } from './store.ts';

export const SUCCEEDED: Settled = { answer: 'settled', state: 'succeeded' };

/** A first execution that succeeded and has nothing to say: it needs no row of history, and no facts. */
export function isPlain({ lease, decision, report }: Settlement): boolean {
  return decision.next === 'succeeded' && lease.execution === 1 && report.message === undefined;
}

/** Null for a success. */
export function reasonOf(decision: Decision): string | null {
  return decision.next === 'succeeded' ? null : decision.reason;
}
