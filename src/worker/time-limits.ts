import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** Something that may run until a time of the monotonic clock. */
export interface Limited {
  /** Infinity if there is no limit. It may become later while the timer runs. */
  readonly limitAt: Milliseconds;
  /** Aborts it, so that it has no limit any more, or gives it a later one. */
  overLimit(): void;
}

export interface TimeLimitsOptions {
  readonly clock: Clock;
  readonly running: () => Iterable<Limited>;
  /** Called when the timer that was set for this moment fires, before any limit is checked. It may make limits later. */
  readonly onTimer: (dueAt: Milliseconds) => void;
}

/** Watches all time limits with one timer, which is set for the earliest of them. */
export class TimeLimits {
  readonly #options: TimeLimitsOptions;
  #next: Milliseconds = Number.POSITIVE_INFINITY;
  #stop = () => {};

  constructor(options: TimeLimitsOptions) {
    this.#options = options;
  }

  /** An execution has begun. */
  watch({ limitAt }: Limited): void {
    if (limitAt < this.#next) this.#wait(limitAt);
  }

  /** Nothing runs, so the timer is cleared. */
  rest(): void {
    this.#stop();
    this.#stop = () => {};
    this.#next = Number.POSITIVE_INFINITY;
  }

  #wait(until: Milliseconds): void {
    const { clock } = this.#options;
    this.#stop();
    this.#next = until;
    this.#stop = clock.after(until - clock.monotonic(), () => this.#letOthersEnd(until));
  }

  /**
   * Timers fire before the event loop reads what has arrived. If the process was frozen or busy, an execution over its limit may
   * have ended, so that is read first.
   */
  #letOthersEnd(dueAt: Milliseconds): void {
    this.#options.onTimer(dueAt);
    const next = setImmediate(() => this.#look());
    this.#stop = () => clearImmediate(next);
  }

  #look(): void {
    this.rest();
    const now = this.#options.clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const one of this.#options.running()) {
      if (one.limitAt <= now) one.overLimit();
      next = Math.min(next, one.limitAt);
    }
    if (Number.isFinite(next)) this.#wait(next);
  }
}
