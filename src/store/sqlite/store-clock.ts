import type { Clock } from '../../clock.ts';
import type { Sql } from './driver.ts';

/** The highest time that was given out is written down this often. */
const NOTED_EVERY_MS = 1_000;

/**
 * The store's clock: the host's wall clock, but never running backwards, for all processes on the file together. When the
 * wall clock is set back, the difference is kept (`ahead`) and time goes on at its usual pace, until the wall has caught up.
 */
export class StoreClock {
  readonly #clock: Clock;
  #ahead = 0;
  #last = 0;
  /** Raised by whoever changes what others keep in memory: the orders of queues. */
  catalogue = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The time for a reader. */
  read(): number {
    return this.#go(this.#last, this.#ahead);
  }

  /** The time for the transaction that is open now. */
  tick(sql: Sql): number {
    const noted = sql.get<{ high: number; ahead: number; catalogue: number }>(
      'SELECT high, ahead, catalogue FROM hf_clock WHERE id = 1',
    ) as { high: number; ahead: number; catalogue: number };
    const now = this.#go(Math.max(noted.high, this.#last), noted.ahead);
    if (this.#ahead !== noted.ahead || now - noted.high >= NOTED_EVERY_MS) {
      sql.run('UPDATE hf_clock SET high = ?, ahead = ? WHERE id = 1', now, this.#ahead);
    }
    this.catalogue = noted.catalogue;
    return now;
  }

  #go(high: number, ahead: number): number {
    const wall = Math.floor(this.#clock.now());
    this.#ahead = wall >= high ? 0 : Math.max(ahead, high - wall);
    this.#last = wall + this.#ahead;
    return this.#last;
  }
}
