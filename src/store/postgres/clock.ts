import type { Clock } from '../../clock.ts';
import { systemClock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { uptimeOf } from '../uptime.ts';
import type { PgPoolClient } from './client.ts';

/**
 * The database's clock, which is the only one that counts. Here, only its last answer is known, and how long ago that was: enough
 * to show times to people.
 */
export interface Time {
  now(): number;
  /** Notes the time that the database just returned. */
  learn(now: number): void;
  /** For how long no task is removed by age, because the database's clock jumped forward. */
  removesIn(): Milliseconds | undefined;
  /** Only for the clock of the testing kit: sets the database's clock before each statement. */
  set?(client: Pick<PgPoolClient, 'query'>, within: Milliseconds): Promise<void>;
}

/** If the server's clock is this far behind the expected time, it was set back. */
const SET_BACK_MS: Milliseconds = 60_000;

/** If the server's clock is this far ahead of the expected time, it was set forward, or another server took over. */
const SET_FORWARD_MS: Milliseconds = 5 * 60_000;

/** For how long no task is removed after that. */
const HELD_AFTER_JUMP_MS: Milliseconds = 3_600_000;

/** The database's own clock. */
class ServerTime implements Time {
  readonly #clock: Clock;
  #said: { readonly now: number; readonly at: Milliseconds } | undefined;
  /** The last answer of the database, with the time since the boot, which goes on while the machine sleeps. */
  #known: { readonly now: number; readonly uptime: Milliseconds } | undefined;
  #jumpedAt: Milliseconds | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    const said = this.#said;
    return said ? Math.floor(said.now + this.#clock.monotonic() - said.at) : Math.floor(this.#clock.now());
  }

  /** An answer is older than it looks, because its way here takes time. So the latest estimate is kept. */
  learn(now: number): void {
    this.#notice(now);
    const at = this.#clock.monotonic();
    const expected = this.#said ? this.#said.now + at - this.#said.at : now;
    if (!this.#said || now > expected || now < expected - SET_BACK_MS) this.#said = { now, at };
  }

  removesIn(): Milliseconds | undefined {
    const uptime = uptimeOf(this.#clock);
    if (uptime === undefined || this.#jumpedAt === undefined) return undefined;
    const left = this.#jumpedAt + HELD_AFTER_JUMP_MS - uptime;
    return left > 0 ? left : undefined;
  }

  #notice(now: number): void {
    const uptime = uptimeOf(this.#clock);
    if (uptime === undefined) return;
    const known = this.#known;
    if (known && now - known.now - (uptime - known.uptime) > SET_FORWARD_MS) this.#jumpedAt = uptime;
    this.#known = { now, uptime };
  }
}

/** A clock that the testing kit moves. The database's clock follows it, and never runs backwards. */
class VirtualTime implements Time {
  readonly #clock: Clock;
  readonly #statement: string;
  #last = 0;
  /** While the wall clock is behind, time continues from here with the monotonic clock. */
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

  removesIn(): undefined {
    return undefined;
  }

  async set(client: Pick<PgPoolClient, 'query'>, within: Milliseconds): Promise<void> {
    const { rows } = await client.query({ text: this.#statement, values: [this.now()], query_timeout: within });
    this.learn(Number((rows[0] as { answer: string }).answer));
  }
}

export function timeFor(clock: Clock, schema: string): Time {
  return clock === systemClock ? new ServerTime(clock) : new VirtualTime(clock, schema);
}
