import { OTHER } from '../../frequent-names.ts';
import { countersFrom, dayFrom, HOUR, MINUTE, MOST_SOURCES, PERIODS } from '../counters.ts';
import type { CountedPeriods } from '../insight.ts';
import type { Counters } from '../store.ts';
import type { Database } from './database.ts';

/** Counts settlements: `settle` appends the counts of each call, and these are added up later. */
export class Counting {
  readonly #database: Database;
  /** Whether this process has settled anything that may not be gathered. */
  isPending = false;
  /** Whether this process has appended entries about failures since `takeSeen`. */
  hasSeen = false;

  constructor(database: Database) {
    this.#database = database;
  }

  takeSeen(): boolean {
    const had = this.hasSeen;
    this.hasSeen = false;
    return had;
  }

  async gather(): Promise<boolean> {
    if (!this.isPending) return false;
    this.isPending = false;
    const more = await this.#database.call<boolean>('gather_counts', [MINUTE]);
    this.isPending ||= more;
    return more;
  }

  /** Gathers some counts, or adds the counters of one old period to a longer one. Returns whether there may be more to do. */
  async tidy(): Promise<boolean> {
    if (await this.#database.call<boolean>('gather_counts', [MINUTE])) return true;
    return this.#database.call('roll_up_counters', [JSON.stringify(PERIODS), MOST_SOURCES, OTHER]);
  }

  async since(time: number): Promise<Counters> {
    const rows = await this.#database.call<readonly [countedAs: string, count: number, firstAt: number][] | null>(
      'read_counters',
      [time, MINUTE, SPANS.filter((span) => span !== HOUR), HOUR, dayFrom(time)],
    );
    return countersFrom((rows ?? []).map(([countedAs, count, firstAt]) => ({ countedAs, count, firstAt })));
  }

  async periodsSince(time: number): Promise<Counters<CountedPeriods>> {
    const rows = await this.#database.call<
      | readonly [string, span: number, count: number, firstAt: number, at: readonly number[], of: readonly number[]][]
      | null
    >('read_counter_periods', [time, MINUTE, SPANS]);
    return countersFrom(
      (rows ?? []).map(([countedAs, span, count, firstAt, at, counted]) => ({
        countedAs,
        span,
        count,
        firstAt,
        at,
        counted,
      })),
    );
  }
}

const SPANS = PERIODS.map(({ span }) => span);
