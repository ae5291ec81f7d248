import type { Milliseconds } from '../duration.ts';
import type { Counted } from './insight.ts';
import type { Counters, Settlement } from './store.ts';

/** The shortest period. */
export const MINUTE: Milliseconds = 60_000;

export const HOUR: Milliseconds = 3_600_000;
const DAY: Milliseconds = 24 * HOUR;

/**
 * Counts are added up by period. A count that is older than `keptFor` is added to the next longer period. None is removed, so that
 * their sum never becomes less, which Prometheus would take for a restart.
 */
export const PERIODS: readonly { readonly span: Milliseconds; readonly keptFor: Milliseconds }[] = [
  { span: MINUTE, keptFor: 2 * HOUR },
  { span: HOUR, keptFor: 14 * DAY },
  { span: DAY, keptFor: 400 * DAY },
  { span: 400 * DAY, keptFor: Number.POSITIVE_INFINITY },
];

/** How many sources of a type are counted by name in a period of an hour or longer: the busiest. */
export const MOST_SOURCES = 100;

/** How many of these settlements are counted under each key. */
export function countsOf(settlements: Iterable<Settlement>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { countedAs } of settlements) {
    if (countedAs !== undefined) counts.set(countedAs, (counts.get(countedAs) ?? 0) + 1);
  }
  return counts;
}

/** The first day that begins at this time or later. */
export function dayFrom(time: number): number {
  return Math.ceil(Math.max(0, time) / DAY) * DAY;
}

/** What a store answers of rows with the first time of each. */
export function countersFrom<Row extends Counted>(
  rows: readonly (Row & { readonly firstAt: number })[],
): Counters<Row> {
  if (rows.length === 0) return { counts: [] };
  return {
    firstAt: rows.reduce((first, { firstAt }) => Math.min(first, firstAt), Number.POSITIVE_INFINITY),
    counts: rows,
  };
}
