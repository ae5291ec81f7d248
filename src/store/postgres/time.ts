import type { Clock } from '../../clock.ts';
import { systemClock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { StoreError } from '../../errors.ts';
import type { PgPoolClient } from './client.ts';
import type { Database } from './database.ts';
import { isThere } from './migrate.ts';

/**
 * The database's clock, which is the only one that counts. What is known of it here is what it said last, and how long ago that
 * was: enough to show times to people.
 */
export interface Time {
  now(): number;
  /** Learns what the database just said. */
  learn(now: number): void;
  /** Of a clock that is the testing kit's: sets the database's, before each statement. */
  set?(client: Pick<PgPoolClient, 'query'>, within: Milliseconds): Promise<void>;
}

/** A server whose clock is so far behind what was expected was set back. */
const SET_BACK_MS: Milliseconds = 60_000;

/** The database's own clock. */
class ServerTime implements Time {
  readonly #clock: Clock;
  #said: { readonly now: number; readonly at: Milliseconds } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    const said = this.#said;
    return said ? Math.floor(said.now + this.#clock.monotonic() - said.at) : Math.floor(this.#clock.now());
  }

  /** An answer is older than it looks by its way here, so the latest time that any of them allows is kept. */
  learn(now: number): void {
    const at = this.#clock.monotonic();
    const expected = this.#said ? this.#said.now + at - this.#said.at : now;
    if (!this.#said || now > expected || now < expected - SET_BACK_MS) this.#said = { now, at };
  }
}

/** A clock that the testing kit moves: the database's follows it, and as any store's it never runs backwards. */
class VirtualTime implements Time {
  readonly #clock: Clock;
  readonly #statement: string;
  #last = 0;
  /** From here time goes on by the monotonic clock while the wall clock is behind. */
  #anchor: { readonly now: number; readonly at: Milliseconds } | undefined;

  constructor(clock: Clock, schema: string) {
    this.#clock = clock;
    this.#statement = `SELECT ${schema}.set_now($1)::text AS answer`;
  }

  now(): number {
    const wall = Math.floor(this.#clock.now());
    const at = this.#clock.monotonic();
    const gone = this.#anchor ? Math.floor(this.#anchor.now + at - this.#anchor.at) : wall;
    if (wall >= Math.max(this.#last, gone)) this.#anchor = { now: wall, at };
    this.#last = Math.max(this.#last, gone, wall);
    return this.#last;
  }

  learn(now: number): void {
    if (now <= this.now()) return;
    this.#anchor = { now, at: this.#clock.monotonic() };
    this.#last = now;
  }

  async set(client: Pick<PgPoolClient, 'query'>, within: Milliseconds): Promise<void> {
    const { rows } = await client.query({ text: this.#statement, values: [this.now()], query_timeout: within });
    this.learn(Number((rows[0] as { answer: string }).answer));
  }
}

export function timeFor(clock: Clock, schema: string): Time {
  return clock === systemClock ? new ServerTime(clock) : new VirtualTime(clock, schema);
}

/** Replaces the database's clock by one that stands where it was set. */
function virtualClock(schema: string): string {
  return `
CREATE TABLE ${schema}.testing_clock (id integer PRIMARY KEY CHECK (id = 1), now bigint NOT NULL);
INSERT INTO ${schema}.testing_clock VALUES (1, 0);
CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT now FROM ${schema}.testing_clock);
END $$;
CREATE FUNCTION ${schema}.set_now(p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint;
BEGIN
  UPDATE ${schema}.testing_clock SET now = p_now WHERE now < p_now;
  SELECT now INTO now_ FROM ${schema}.testing_clock;
  RETURN now_;
END $$`;
}

/**
 * Gives a database the clock of the testing kit, unless it has it.
 * @throws StoreError where there are tasks: they would be left with a clock that stands still.
 */
export async function installVirtualClock(database: Database): Promise<void> {
  const { schema, where } = database;
  await database.session(async (query) => {
    if (await isThere(query, `${schema}.testing_clock`)) return;
    const tasks = await query(
      `SELECT 1 FROM ${schema}.live UNION ALL SELECT 1 FROM ${schema}.ended UNION ALL SELECT 1 FROM ${schema}.succeeded LIMIT 1`,
    );
    if (tasks.length > 0) {
      throw new StoreError(
        'store_unsupported',
        `${where} has tasks, and a test's clock would replace the database's for them. Give the test a schema of its own: postgres(url, { schema: 'holdfast_test' }).`,
      );
    }
    await query(virtualClock(schema));
  });
}
