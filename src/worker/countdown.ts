import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** At a shutdown handlers are left alone for this part of the grace; then their signals abort. */
const UNDISTURBED = 5 / 6;

/** The time after the grace for writing the last outcomes and for signing off. */
const LAST_WRITES: Milliseconds = 800;

/**
 * The time limits of a shutdown: first handlers run undisturbed, then their signals abort, then the grace ends, and then there is
 * a moment for the last writes. They can be shortened, but not extended.
 */
export class Countdown {
  readonly warned: Promise<void>;
  readonly over: Promise<void>;
  /** From now on, nothing waits for outcomes that are not written. */
  readonly final: Promise<void>;
  readonly #clock: Clock;
  #warn: () => void = () => {};
  #end: () => void = () => {};
  #leave: () => void = () => {};
  #endsAt = Number.POSITIVE_INFINITY;
  #timers: (() => void)[] = [];

  constructor(clock: Clock, grace: Milliseconds) {
    this.#clock = clock;
    this.warned = new Promise((resolve) => {
      this.#warn = resolve;
    });
    this.over = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.final = new Promise((resolve) => {
      this.#leave = resolve;
    });
    this.shorten(grace);
  }

  shorten(grace: Milliseconds): void {
    const endsAt = this.#clock.monotonic() + grace;
    if (endsAt >= this.#endsAt) return;
    this.#endsAt = endsAt;
    this.cancel();
    this.#timers = [this.#clock.after(grace + LAST_WRITES, this.#leave)];
    if (grace > 0) {
      this.#timers.push(this.#clock.after(grace * UNDISTURBED, this.#warn), this.#clock.after(grace, this.#end));
      return;
    }
    this.#warn();
    this.#end();
  }

  /** Clears its timers. */
  cancel(): void {
    for (const stop of this.#timers.splice(0)) stop();
  }
}
