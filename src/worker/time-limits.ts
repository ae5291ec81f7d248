import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** Something that may run until a moment of the monotonic clock. */
export interface Limited {
  /** Infinity where there is no limit. It may move away while one waits for it. */
  readonly limitAt: Milliseconds;
  overLimit(): void;
}

/** Watches the time limits of all that runs with one timer, set for the earliest of them. */
export class TimeLimits {
  readonly #clock: Clock;
  readonly #running: () => Iterable<Limited>;
  #next: Milliseconds = Number.POSITIVE_INFINITY;
  #stop = () => {};

  constructor(clock: Clock, running: () => Iterable<Limited>) {
    this.#clock = clock;
    this.#running = running;
  }

  /** Somebody began to run. */
  watch({ limitAt }: Limited): void {
    if (limitAt < this.#next) this.#wait(limitAt);
  }

  /** Nothing runs: no timer is left behind. */
  rest(): void {
    this.#stop();
    this.#stop = () => {};
    this.#next = Number.POSITIVE_INFINITY;
  }

  #wait(until: Milliseconds): void {
    this.#stop();
    this.#next = until;
    this.#stop = this.#clock.after(until - this.#clock.monotonic(), () => this.#look());
  }

  #look(): void {
    this.rest();
    const now = this.#clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const one of this.#running()) {
      if (one.limitAt <= now) one.overLimit();
      else next = Math.min(next, one.limitAt);
    }
    if (Number.isFinite(next)) this.#wait(next);
  }
}
