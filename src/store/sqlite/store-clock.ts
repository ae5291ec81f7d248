import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import type { Sql } from './driver.ts';

/** The highest time that was given out is written down this often. */
const NOTED_EVERY_MS = 1_000;

interface Noted {
  readonly high: number;
  readonly ahead: number;
  readonly catalogue: number;
}

/**
 * The store's clock: the host's wall clock, but never running backwards, for all processes on the file together. When the
 * wall clock is set back, time goes on from where it was, at the pace of the monotonic clock, until the wall has caught up.
 */
export class StoreClock {
  readonly #clock: Clock;
  #ahead = 0;
  #last = 0;
  /** From here this process counts on by its monotonic clock while the wall clock is behind. */
  #anchor: { readonly now: number; readonly monotonic: Milliseconds } | undefined;
  #noted: Noted = { high: 0, ahead: 0, catalogue: 0 };
  /** Raised by whoever changes what others keep in memory: queues and lanes. */
  catalogue = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The time for a reader. */
  read(): number {
    return this.#go();
  }

  /** The time for the transaction that was just begun. */
  tick(sql: Sql): number {
    this.#noted = sql.get<Noted>('SELECT high, ahead, catalogue FROM hf_clock WHERE id = 1') as Noted;
    this.catalogue = this.#noted.catalogue;
    return this.#go();
  }

  /**
   * Writes the time down before a commit that writes something: always if it parted from the wall clock, else now and then.
   * A commit that writes nothing stays one, or two processes whose clocks differ would wake each other without end.
   */
  note(sql: Sql, wrote: boolean): void {
    const { high, ahead } = this.#noted;
    if (!wrote || (this.#ahead === ahead && this.#last - high < NOTED_EVERY_MS)) return;
    sql.run('UPDATE hf_clock SET high = ?, ahead = ? WHERE id = 1', this.#last, this.#ahead);
  }

  #go(): number {
    const wall = Math.floor(this.#clock.now());
    const monotonic = this.#clock.monotonic();
    const floor = Math.max(this.#last, this.#noted.high);
    if (wall >= floor) {
      this.#anchor = { now: wall, monotonic };
    } else if (!this.#anchor || this.#anchor.now + monotonic - this.#anchor.monotonic < this.#noted.high) {
      // Another process is further: what it noted says how far ahead of the wall clock it was.
      this.#anchor = { now: Math.max(floor, this.#anchor ? 0 : wall + this.#noted.ahead), monotonic };
    }
    this.#last = Math.max(floor, Math.floor(this.#anchor.now + monotonic - this.#anchor.monotonic));
    this.#ahead = this.#last - wall;
    return this.#last;
  }
}
