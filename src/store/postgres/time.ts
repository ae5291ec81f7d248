import type { Clock } from '../../clock.ts';
import { systemClock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import type { PgPoolClient } from './client.ts';

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
