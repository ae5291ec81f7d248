import { isPlain, leavesSource } from '../settlement.ts';
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
  const sorted = [...round.values()].sort((a, b) => a.settlement.lease.task - b.settlement.lease.task);
  const bare = sorted.filter(({ settlement }) => isBare(settlement));
  const plain = bare.map(({ settlement }) => settlement);
  const others = sorted.filter(({ settlement }) => !isBare(settlement));
  return [
    list(plain.map(({ lease }) => lease.task)),
    list(plain.map(tokenOfSettlement)),
    list(bare.map(({ settlement, i }) => (settlement.source === 'any' ? SAYS_NOTHING : i))),
    plain.some(({ result }) => result !== undefined) ? JSON.stringify(plain.map(({ result }) => result ?? null)) : null,
    JSON.stringify(plain.map(({ decision, report }) => [JSON.stringify(decision.because), ranFor(report)])),
    list(others.map(({ settlement }) => settlement.lease.task)),
    others.length > 0 ? saidJson(others.map(({ settlement, i }) => item(settlement, i))) : null,
    others.some(({ settlement }) => settlement.source !== 'any' && !leavesSource(settlement)),
  ];
}

/** Instead of its place in the call: it says nothing of its source. */
const SAYS_NOTHING = -1;

/** Whether it says nothing but that a first execution succeeded, and, unless it is `any`, that its source had no state. */
function isBare(settlement: Settlement): boolean {
  return isPlain(settlement) && (settlement.source === 'any' || leavesSource(settlement));
}

function tokenOfSettlement({ lease }: Settlement): string {
  return tokenOf(lease);
}
