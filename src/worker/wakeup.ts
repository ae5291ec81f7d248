import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** One sleeper that anything may wake. A call that comes while nobody sleeps is kept for the next sleep. */
export class Wakeup {
  readonly #clock: Clock;
  #called = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the next sleep will be over at once. */
  get pending(): boolean {
    return this.#called;
  }

  /** Whether somebody sleeps whom nothing has woken yet. */
  get asleep(): boolean {
    return this.#wake !== undefined && !this.#called;
  }

  /** Ends the sleep, or the next one. */
  call(): void {
    this.#called = true;
    this.#wake?.();
  }

  /** Sleeps until called, or for as long as given. */
  async sleep(longest?: Milliseconds): Promise<void> {
    if (!this.#called) {
      await new Promise<void>((resolve) => {
        const stop = longest === undefined ? () => {} : this.#clock.after(longest, resolve);
        this.#wake = () => {
          stop();
          resolve();
        };
      });
      this.#wake = undefined;
    }
    this.#called = false;
  }
}
