import type { Because } from '../../failure/decide.ts';
import { countsOf } from '../counters.ts';
import { sightingsOf } from '../failure-groups.ts';
import { isPlain, leavesSource } from '../settlement.ts';
import type { Settlement } from '../store.ts';
import { item, ranFor, saidJson, tokenOf } from './encoding.ts';
import { isRetry, retriesOf } from './retries.ts';
import { list } from './writer.ts';

/** A settlement, and the index of its answer. */
export interface Numbered {
  readonly settlement: Settlement;
  readonly i: number;
}

/** At most one settlement for each task, sorted by id. */
export type Round = ReadonlyMap<number, Numbered>;

export function roundOf(settlements: readonly Settlement[]) {
  return roundOfNumbered(settlements.map((settlement, i) => ({ settlement, i })));
}

/**
 * Of several settlements for one task, the first one is made now. The second one and all after it are made later, in their order,
 * because they may refund charges on which the second one depends.
 */
export function roundOfNumbered(settlements: readonly Numbered[]): {
  readonly round: Round;
  readonly later: readonly Numbered[];
} {
  const round = new Map<number, Numbered>();
  const later: Numbered[] = [];
  for (const one of settlements) {
    const { task } = one.settlement.lease;
    if (later.length > 0 || round.has(task)) later.push(one);
    else round.set(task, one);
  }
  return { round, later };
}

/** The arguments of the function `settle`, sorted by id, so that two statements cannot wait for each other. */
export function settleValues(round: Round): readonly unknown[] {
  const sorted = [...round.values()].sort((a, b) => a.settlement.lease.task - b.settlement.lease.task);
  const bare = sorted.filter(({ settlement }) => isBare(settlement));
  const plain = bare.map(({ settlement }) => settlement);
  const retries = sorted.filter(({ settlement }) => isRetry(settlement));
  const others = sorted.filter(({ settlement }) => !isBare(settlement) && !isRetry(settlement));
  const ordered = [...bare, ...retries, ...others].map(({ settlement }) => settlement);
  const seen = sightingsOf(ordered);
  const counts = [...countsOf(ordered)];
  const places = new Map(counts.map(([countedAs], i) => [countedAs, i + 1]));
  return [
    list(plain.map(({ lease }) => lease.task)),
    list(plain.map(tokenOfSettlement)),
    list(bare.map(({ settlement, i }) => (settlement.source === 'any' ? SAYS_NOTHING : i))),
    plain.some(({ result }) => result !== undefined) ? JSON.stringify(plain.map(({ result }) => result ?? null)) : null,
    plainText(plain),
    ...retriesOf(retries),
    list(others.map(({ settlement }) => settlement.lease.task)),
    others.length > 0 ? saidJson(others.map(({ settlement, i }) => item(settlement, i))) : null,
    others.some(({ settlement }) => settlement.source !== 'any' && !leavesSource(settlement)),
    counts.length > 0 ? saidJson(counts) : null,
    list(ordered.map(({ countedAs }) => (countedAs === undefined ? 0 : (places.get(countedAs) as number)))),
    seen ? saidJson(seen) : null,
  ];
}

/**
 * The explanations of plain successes and how long they ran, which are needed only if one cannot be settled as such: a list of the
 * different explanations, and of each success its place there and its time. Most have the same one.
 */
function plainText(plain: readonly Settlement[]): string {
  const places = new Map<Because, number>();
  const each = plain.flatMap(({ decision: { because }, report }) => {
    const place = places.get(because) ?? places.size;
    places.set(because, place);
    return [place, ranFor(report)];
  });
  return `[${JSON.stringify([...places.keys()].map((because) => JSON.stringify(because)))},[${each}]]`;
}

/** Used instead of its place in the call: it does not concern its source. */
const SAYS_NOTHING = -1;

/**
 * Whether it is a plain success of a first execution: it does not change its source, and was decided when its source had no
 * state, unless `source` is `any`.
 */
function isBare(settlement: Settlement): boolean {
  return isPlain(settlement) && (settlement.source === 'any' || leavesSource(settlement));
}

function tokenOfSettlement({ lease }: Settlement): string {
  return tokenOf(lease);
}
