import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** Something that may run until a moment of the monotonic clock. */
export interface Limited {
  /** Infinity where there is no limit. It may move away while one waits for it. */
  readonly limitAt: Milliseconds;
  overLimit(): void;
}

export interface TimeLimitsOptions {
  readonly clock: Clock;
  readonly running: () => Iterable<Limited>;
  /** Called when the timer that was set for this moment fires, before any limit counts: it may move them away. */
  readonly onTimer: (dueAt: Milliseconds) => void;
}

/** Watches the time limits of all that runs with one timer, set for the earliest of them. */
export class TimeLimits {
  readonly #options: TimeLimitsOptions;
  #next: Milliseconds = Number.POSITIVE_INFINITY;
  #stop = () => {};

  constructor(options: TimeLimitsOptions) {
    this.#options = options;
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
    const { clock } = this.#options;
    this.#stop();
    this.#next = until;
    this.#stop = clock.after(until - clock.monotonic(), () => this.#letOthersEnd(until));
  }

  /**
   * Timers fire before the event loop reads what has arrived. Where the process was frozen or busy, that may be the end of what
   * is over its limit, so it is read first.
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
      else next = Math.min(next, one.limitAt);
    }
    if (Number.isFinite(next)) this.#wait(next);
  }
}
