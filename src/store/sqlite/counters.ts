import { OTHER } from '../../frequent-names.ts';
import { countersFrom, countsOf, dayFrom, HOUR, MINUTE, MOST_SOURCES, PERIODS } from '../counters.ts';
import { sightingsOf } from '../failure-groups.ts';
import type { CountedPeriods } from '../insight.ts';
import type { Counters, Settled, Settlement } from '../store.ts';
import type { Sql } from './driver.ts';
import type { Writer } from './writer.ts';

/** How many settle calls one transaction adds to the counters. */
const AT_ONCE = 500;

/**
 * Counts settlements. Each settle call appends one row with its counts, in its own transaction, because many keys would be slow to
 * update there. Later these rows are added to the counters of their minutes, and old counters to those of longer periods.
 */
export class Counting {
  readonly #sql: Sql;
  readonly #writer: Writer;
  /** Whether this process has settled anything that may not be gathered. */
  #isPending = false;
  #hasSeen = false;

  constructor(sql: Sql, writer: Writer) {
    this.#sql = sql;
    this.#writer = writer;
  }

  /** Counts those that were written. */
  add(settlements: readonly Settlement[], answers: readonly Settled[], now: number): void {
    const written = settlements.filter((_, i) => answers[i]?.answer === 'settled');
    const seen = sightingsOf(written);
    if (seen) {
      this.#sql.run('INSERT INTO hf_failure_entries (at, seen) VALUES (?, ?)', now, JSON.stringify(seen));
      this.#hasSeen = true;
    }
    const counts = countsOf(written);
    if (counts.size === 0) return;
    const text = JSON.stringify(Object.fromEntries(counts));
    this.#sql.run('INSERT INTO hf_counter_entries (at, counts) VALUES (?, ?)', now, text);
    this.#isPending = true;
  }

  /** Whether it has appended entries about failures since this was last asked. */
  takeSeen(): boolean {
    const had = this.#hasSeen;
    this.#hasSeen = false;
    return had;
  }

  async gather(): Promise<boolean> {
    if (!this.#isPending) return false;
    this.#isPending = false;
    const more = await this.#writer.write(() => this.#gatherSome());
    this.#isPending ||= more;
    return more;
  }

  /** Gathers some counts, or adds the counters of one old period to a longer one. Returns 0 if nothing was left to do. */
  tidy(now: number): number {
    return this.#gatherSome() || PERIODS.some((_, i) => this.#rollUp(i, now)) ? 1 : 0;
  }

  /** Whether there are more. */
  #gatherSome(): boolean {
    const [last] = this.#sql.column<number>(
      'SELECT max(id) FROM (SELECT id FROM hf_counter_entries ORDER BY id LIMIT ?)',
      AT_ONCE,
    );
    if (last == null) return false;
    this.#sql.run(
      `INSERT INTO hf_counters (span, at, counted_as, count, first_at)
       SELECT :span, e.at - e.at % :span AS minute, c.key, sum(c.value), min(e.at)
       FROM hf_counter_entries e, json_each(e.counts) c WHERE e.id <= :last GROUP BY minute, c.key ${ADDED}`,
      { span: MINUTE, last },
    );
    return this.#sql.run('DELETE FROM hf_counter_entries WHERE id <= ?', last).changes === AT_ONCE;
  }

  /** Adds the oldest counters of a period to those of the next longer one, if that is over and they are old enough. */
  #rollUp(index: number, now: number): boolean {
    const { span, keptFor } = PERIODS[index] as (typeof PERIODS)[number];
    const longer = PERIODS[index + 1]?.span;
    const [oldest] = this.#sql.column<number>('SELECT min(at) FROM hf_counters WHERE span = ?', span);
    if (longer === undefined || oldest == null) return false;
    const at = oldest - (oldest % longer);
    if (at + longer > now - keptFor) return false;
    this.#sql.run(
      `INSERT INTO hf_counters (span, at, counted_as, count, first_at)
       SELECT :longer, :at, ${ROLLED_UP} ${ADDED}`,
      { longer, at, most: MOST_SOURCES, other: OTHER, span },
    );
    this.#sql.run('DELETE FROM hf_counters WHERE span = ? AND at < ?', span, at + longer);
    return true;
  }
}

const ADDED = `ON CONFLICT (span, at, counted_as)
  DO UPDATE SET count = count + excluded.count, first_at = min(first_at, excluded.first_at)`;

/** The counters of one period without the names of sources that are not among the busiest. */
const ROLLED_UP = `CASE WHEN place > :most THEN json_set(counted_as, '$[1]', :other) ELSE counted_as END AS name, sum(count), min(first_at)
  FROM (SELECT *, dense_rank() OVER (PARTITION BY counted_as ->> 0 ORDER BY total DESC, counted_as ->> 1) AS place
    FROM (SELECT *, sum(count) OVER (PARTITION BY counted_as ->> 0, counted_as ->> 1) AS total
      FROM hf_counters WHERE span = :span AND at >= :at AND at < :at + :longer))
  WHERE true GROUP BY name`;

const SPANS = JSON.stringify(PERIODS.map(({ span }) => span));
const SPANS_BUT_HOURS = JSON.stringify(PERIODS.map(({ span }) => span).filter((span) => span !== HOUR));

const PENDING = `SELECT e.at - e.at % ${MINUTE} AS at, ${MINUTE} AS span, c.key AS counted_as, c.value AS count, e.at AS first_at
  FROM hf_counter_entries e, json_each(e.counts) c WHERE e.at - e.at % ${MINUTE} + ${MINUTE} > :since`;

const SINCE = `SELECT k.at, k.span, k.counted_as, k.count, k.first_at
    FROM json_each('${SPANS}') p CROSS JOIN hf_counters k ON k.span = p.value AND k.at > :since - p.value
  UNION ALL ${PENDING}`;

/** The same counts in fewer rows: of days that began since then, not their hours are read, but what these have in all. */
const SUMS_SINCE = `SELECT k.counted_as, k.count, k.first_at
    FROM json_each('${SPANS_BUT_HOURS}') p CROSS JOIN hf_counters k ON k.span = p.value AND k.at > :since - p.value
  UNION ALL SELECT counted_as, count, first_at FROM hf_counters WHERE span = ${HOUR} AND at > :since - ${HOUR} AND at < :day
  UNION ALL SELECT counted_as, count, first_at FROM hf_counter_days WHERE at >= :day
  UNION ALL SELECT counted_as, count, first_at FROM (${PENDING})`;

/** The counters since a time, with what is not gathered yet. */
export function readCounters(sql: Sql, since: number): Counters {
  const rows = sql.all<{ countedAs: string; count: number; firstAt: number }>(
    `SELECT counted_as AS countedAs, sum(count) AS count, min(first_at) AS firstAt FROM (${SUMS_SINCE}) GROUP BY counted_as`,
    { since, day: dayFrom(since) },
  );
  return countersFrom(rows);
}

/** The same by the periods of the counters. */
export function readCounterPeriods(sql: Sql, since: number): Counters<CountedPeriods> {
  const rows = sql.all<{
    countedAs: string;
    count: number;
    firstAt: number;
    span: number;
    at: string;
    counted: string;
  }>(
    `SELECT counted_as AS countedAs, sum(count) AS count, min(first_at) AS firstAt, span, json_group_array(at) AS at,
       json_group_array(count) AS counted FROM (${SINCE}) GROUP BY counted_as, span`,
    { since },
  );
  // Most keys are counted in the same periods.
  const periods = new Map<string, readonly number[]>();
  const periodsFrom = (text: string) => {
    const known = periods.get(text) ?? (JSON.parse(text) as readonly number[]);
    periods.set(text, known);
    return known;
  };
  return countersFrom(
    rows.map(({ countedAs, count, firstAt, span, at, counted }) => ({
      countedAs,
      count,
      firstAt,
      span,
      at: periodsFrom(at),
      counted: JSON.parse(counted) as readonly number[],
    })),
  );
}
