import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import type { ClockRecord } from '../store.ts';
import { timelineOf } from '../timeline.ts';
import { uptimeOf } from '../uptime.ts';
import { bringBack } from './clock-reset.ts';
import type { Sql } from './driver.ts';
import { BELIEVED_AHEAD_MS, believable, DOUBTED_FOR_MS, type Doubt } from './wall-clock.ts';

/** How often the highest time that was given out is stored. */
const NOTED_EVERY_MS = 1_000;

/** If the clock is this much later after a boot, this is reported, and nothing is removed by age for a while. */
const LEAP_MS = 24 * 3_600_000;

/** How long nothing is removed after such a jump. */
const HELD_AFTER_LEAP_MS = 10 * 60_000;

interface Noted {
  readonly high: number;
  readonly ahead: number;
  readonly catalogue: number;
  /** Which boot `uptime` and the columns after it belong to. */
  readonly timeline: string | null;
  /** The time since the boot at which `high` was noted. */
  readonly uptime: number;
  readonly doubt_offset: number | null;
  readonly doubt_since: number | null;
  readonly leap: number | null;
  readonly leap_since: number | null;
  /** Rises with each reset by an operator. */
  readonly resets: number;
  readonly restrictions: number;
  readonly groups: number;
  readonly newly_restricted: number;
}

const NOTHING: Noted = {
  high: 0,
  ahead: 0,
  catalogue: 0,
  timeline: null,
  uptime: 0,
  doubt_offset: null,
  doubt_since: null,
  leap: null,
  leap_since: null,
  resets: 0,
  restrictions: 0,
  groups: 0,
  newly_restricted: 0,
};

/**
 * The store's clock: the host's wall clock, but it never runs backwards, and is the same for all processes that use the file.
 * When the wall clock is set back, the store's time continues with the monotonic clock until the wall clock has caught up. When
 * the wall clock jumps forward, and the time since the boot does not explain this, the store does not follow it for an hour.
 */
export class StoreClock {
  readonly #clock: Clock;
  readonly #timeline: string;
  #ahead = 0;
  #last = 0;
  /** While the wall clock is behind, this process continues from here with its monotonic clock. */
  #anchor: { readonly now: number; readonly monotonic: Milliseconds } | undefined;
  /** The last time that was given out while the store followed the wall clock. */
  #sound: { readonly now: number; readonly monotonic: Milliseconds } | undefined;
  #doubt: Doubt | undefined;
  #leap: { readonly by: Milliseconds; readonly since: Milliseconds } | undefined;
  #noted: Noted = NOTHING;
  /** Raised when queues or lanes change, which other processes cache. */
  catalogue = 0;
  /** Whether any source or queue may be restricted; false only if none is. */
  restrictions = true;
  /** Whether any task of a group is open. */
  groups = true;
  /** Rises with each source or queue that is restricted from then on, or has a state. */
  newlyRestricted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#timeline = timelineOf(clock);
  }

  /** The time for a reader. */
  read(): number {
    return this.#go();
  }

  /** The time for the transaction that was just begun. */
  tick(sql: Sql): number {
    this.learn(sql);
    return this.#go();
  }

  /** Reads what was noted. */
  learn(sql: Sql): void {
    const before = this.#noted;
    this.#noted = sql.get<Noted>('SELECT * FROM hf_clock WHERE id = 1') as Noted;
    this.catalogue = this.#noted.catalogue;
    this.restrictions = this.#noted.restrictions === 1;
    this.groups = this.#noted.groups === 1;
    this.newlyRestricted = this.#noted.newly_restricted;
    if (before !== NOTHING && before.resets !== this.#noted.resets) this.#forget();
  }

  /**
   * Stores the time before a commit that writes something: always if the store does not follow the wall clock, otherwise now and
   * then. A commit without writes stays without writes; otherwise two processes with different clocks would wake each other for
   * ever.
   */
  note(sql: Sql, wrote: boolean): void {
    const { high, ahead, timeline, doubt_since } = this.#noted;
    const isNews = timeline !== this.#timeline || (this.#doubt?.since ?? null) !== doubt_since;
    if (!wrote || (this.#ahead === ahead && !isNews && this.#last - high < NOTED_EVERY_MS)) return;
    this.#write(sql);
  }

  /** The condition of the clock. */
  describe(): ClockRecord {
    const now = this.#go();
    const wall = Math.floor(this.#clock.now());
    const uptime = uptimeOf(this.#clock) ?? 0;
    const heldFor = this.#leap ? this.#leap.since + HELD_AFTER_LEAP_MS - uptime : 0;
    return {
      now,
      wall,
      ...(this.#doubt && { believedIn: Math.max(0, this.#doubt.since + DOUBTED_FOR_MS - uptime) }),
      ...(this.#leap && heldFor > 0 && { leapt: this.#leap.by, removesIn: heldFor }),
    };
  }

  /**
   * An operator says that the wall clock is right. From now on, the store's time is that of the wall clock, even if that is
   * earlier. Returns whether stored times were moved back.
   */
  set(sql: Sql): boolean {
    const before = this.#go();
    this.#forget();
    this.#noted = { ...this.#noted, high: 0, timeline: null, resets: this.#noted.resets + 1 };
    const now = this.#go();
    this.#leap = undefined;
    this.#write(sql);
    sql.run('UPDATE hf_clock SET resets = ? WHERE id = 1', this.#noted.resets);
    if (before <= now) return false;
    bringBack(sql, now, before - now);
    return true;
  }

  #write(sql: Sql): void {
    sql.run(
      `UPDATE hf_clock SET high = ?, ahead = ?, timeline = ?, uptime = ?, doubt_offset = ?, doubt_since = ?, leap = ?, leap_since = ?
       WHERE id = 1`,
      this.#last,
      this.#ahead,
      this.#timeline,
      Math.floor(uptimeOf(this.#clock) ?? 0),
      this.#doubt?.offset ?? null,
      this.#doubt?.since ?? null,
      this.#leap?.by ?? null,
      this.#leap?.since ?? null,
    );
  }

  #forget(): void {
    this.#last = 0;
    this.#anchor = undefined;
    this.#sound = undefined;
    this.#doubt = undefined;
    this.#leap = undefined;
  }

  #go(): number {
    const monotonic = this.#clock.monotonic();
    const wall = this.#believed(monotonic);
    const floor = Math.max(this.#last, this.#noted.high);
    if (wall >= floor) {
      this.#anchor = { now: wall, monotonic };
    } else if (!this.#anchor || this.#anchor.now + monotonic - this.#anchor.monotonic < this.#noted.high) {
      // Another process is ahead. Its stored time shows how far it was ahead of the wall clock.
      this.#anchor = { now: Math.max(floor, this.#anchor ? 0 : wall + this.#noted.ahead), monotonic };
    }
    this.#last = Math.max(floor, Math.floor(this.#anchor.now + monotonic - this.#anchor.monotonic));
    this.#ahead = this.#last - wall;
    return this.#last;
  }

  /** The wall clock's time, or, after a jump, the time that it should have. */
  #believed(monotonic: Milliseconds): number {
    const wall = Math.floor(this.#clock.now());
    const sound = this.#sound;
    if (sound && wall - sound.now - (monotonic - sound.monotonic) <= BELIEVED_AHEAD_MS) {
      this.#doubt = undefined;
      this.#sound = { now: Math.max(wall, sound.now), monotonic };
      return wall;
    }
    const uptime = uptimeOf(this.#clock);
    const {
      high,
      timeline,
      uptime: notedUptime,
      doubt_offset: offset,
      doubt_since: since,
      leap,
      leap_since,
    } = this.#noted;
    if (uptime === undefined) return wall;
    if (high === 0 || timeline !== this.#timeline) {
      // It is not known how long the machine was off, so the store follows the clock.
      if (timeline !== null && wall - high > LEAP_MS) this.#leap ??= { by: wall - high, since: Math.floor(uptime) };
      this.#sound = { now: wall, monotonic };
      return wall;
    }
    if (leap !== null && leap_since !== null) this.#leap = { by: leap, since: leap_since };
    const noted = offset === null || since === null ? undefined : { offset, since };
    const known = { time: high, uptime: notedUptime };
    const { time, doubt } = believable({ wall, uptime: Math.floor(uptime), known, doubt: noted ?? this.#doubt });
    this.#doubt = doubt;
    this.#sound = doubt ? undefined : { now: time, monotonic };
    return time;
  }
}
