import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** A sleep that any call can end. A call while nothing sleeps ends the next sleep. */
export class Wakeup {
  readonly #clock: Clock;
  #called = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the next sleep will end at once. */
  get pending(): boolean {
    return this.#called;
  }

  /** Whether a sleep goes on that no call has ended. */
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
