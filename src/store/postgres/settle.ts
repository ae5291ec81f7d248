import { isPlain } from '../settlement.ts';
import type { Settlement } from '../store.ts';
import { item, ranFor, saidJson, tokenOf } from './encoding.ts';
import { list } from './writer.ts';

/** A settlement, and where its answer belongs. */
export interface Numbered {
  readonly settlement: Settlement;
  readonly i: number;
}

/** At most one settlement for each task, by its id. */
export type Round = ReadonlyMap<number, Numbered>;

export function roundOf(settlements: readonly Settlement[]) {
  return roundOfNumbered(settlements.map((settlement, i) => ({ settlement, i })));
}

/** Of several words about one lease the first one counts: the others come later. */
export function roundOfNumbered(settlements: readonly Numbered[]): {
  readonly round: Round;
  readonly later: readonly Numbered[];
} {
  const round = new Map<number, Numbered>();
  const later: Numbered[] = [];
  for (const one of settlements) {
    const { task } = one.settlement.lease;
    if (round.has(task)) later.push(one);
    else round.set(task, one);
  }
  return { round, later };
}

/** What the function `settle` takes: by id, so that no two statements wait for each other. */
export function settleValues(round: Round): readonly unknown[] {
  const sorted = [...round.values()].map(({ settlement }) => settlement).sort((a, b) => a.lease.task - b.lease.task);
  const plain = sorted.filter(isPlain);
  const others = sorted.filter((settlement) => !isPlain(settlement));
  return [
    list(plain.map(({ lease }) => lease.task)),
    list(plain.map(tokenOfSettlement)),
    plain.some(({ result }) => result !== undefined) ? JSON.stringify(plain.map(({ result }) => result ?? null)) : null,
    JSON.stringify(plain.map(({ decision, report }) => [JSON.stringify(decision.because), ranFor(report)])),
    list(others.map(({ lease }) => lease.task)),
    others.length > 0 ? saidJson(others.map(item)) : null,
  ];
}

function tokenOfSettlement({ lease }: Settlement): string {
  return tokenOf(lease);
}
