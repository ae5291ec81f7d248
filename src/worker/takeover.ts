import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** Looks again exactly when a lease that has run out may be taken over. */
export class Takeover {
  readonly #clock: Clock;
  readonly #look: () => void;
  #stop: (() => void) | undefined;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
  }

  /** Whether there is such a lease. */
  get awaited(): boolean {
    return this.#stop !== undefined;
  }

  /** Sets the time of the next look; undefined if there is no such lease. */
  expectIn(wait: Milliseconds | undefined): void {
    this.#stop?.();
    this.#stop =
      wait === undefined
        ? undefined
        : // Whole milliseconds: a fraction may be too small to move a clock, and the look would find nothing, without end.
          this.#clock.after(Math.max(1, Math.ceil(wait)), () => {
            this.#stop = undefined;
            this.#look();
          });
  }
}
