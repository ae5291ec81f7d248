import type { Clock } from '../../clock.ts';
import { systemClock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { uptimeOf } from '../uptime.ts';
import type { PgPoolClient } from './client.ts';

/**
 * The database's clock, which is the only one that counts. What is known of it here is what it said last, and how long ago that
 * was: enough to show times to people.
 */
export interface Time {
  now(): number;
  /** Learns what the database just said. */
  learn(now: number): void;
  /** For how long nothing is removed by age, because the database's clock jumped forward. */
  removesIn(): Milliseconds | undefined;
  /** Of a clock that is the testing kit's: sets the database's, before each statement. */
  set?(client: Pick<PgPoolClient, 'query'>, within: Milliseconds): Promise<void>;
}

/** A server whose clock is so far behind what was expected was set back. */
const SET_BACK_MS: Milliseconds = 60_000;

/** A server whose clock is so far ahead of what was expected was set forward, or another server took its place. */
const SET_FORWARD_MS: Milliseconds = 5 * 60_000;

/** So long nothing is removed after that. */
const HELD_AFTER_JUMP_MS: Milliseconds = 3_600_000;

/** The database's own clock. */
class ServerTime implements Time {
  readonly #clock: Clock;
  #said: { readonly now: number; readonly at: Milliseconds } | undefined;
  /** What the database said last, by the time since the boot, which goes on while the machine sleeps. */
  #known: { readonly now: number; readonly uptime: Milliseconds } | undefined;
  #jumpedAt: Milliseconds | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    const said = this.#said;
    return said ? Math.floor(said.now + this.#clock.monotonic() - said.at) : Math.floor(this.#clock.now());
  }

  /** An answer is older than it looks by its way here, so the latest time that any of them allows is kept. */
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
