import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** Calls back at each interval from its start until its stop. A beat that takes longer than the interval is not doubled. */
export class Heartbeat {
  readonly #clock: Clock;
  readonly #interval: Milliseconds;
  readonly #beat: () => Promise<void>;
  #cancel: (() => void) | undefined;
  #beating = false;

  /** `beat` does not reject. */
  constructor(clock: Clock, interval: Milliseconds, beat: () => Promise<void>) {
    this.#clock = clock;
    this.#interval = interval;
    this.#beat = beat;
  }

  /** Whether another beat is to come. */
  get going(): boolean {
    return this.#cancel !== undefined;
  }

  start(): void {
    if (!this.going) this.#beatIn(this.#interval);
  }

  /** If another beat is to come, it comes after this time, or after the interval. */
  moveNext(wait = this.#interval): void {
    if (!this.going) return;
    this.stop();
    this.#beatIn(wait);
  }

  #beatIn(wait: Milliseconds): void {
    this.#cancel = this.#clock.after(wait, () => {
      // The timer is set before the beat, not after it: a recovery that takes long must not delay the next renewal.
      this.#beatIn(this.#interval);
      void this.#once();
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #once(): Promise<void> {
    if (this.#beating) return;
    this.#beating = true;
    await this.#beat();
    this.#beating = false;
  }
}
