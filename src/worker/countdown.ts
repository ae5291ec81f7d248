import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** At a shutdown handlers are left alone for this part of the grace; then their signals abort. */
const UNDISTURBED = 5 / 6;

/** After the grace so much is left for writing what has become of the tasks, and for signing off. */
const LAST_WRITES: Milliseconds = 800;

/**
 * The time that a shutdown leaves: a part undisturbed, a warning, and an end; then a moment for the last writes. It can be
 * shortened, never prolonged.
 */
export class Countdown {
  readonly warned: Promise<void>;
  readonly over: Promise<void>;
  /** What is not written by now is not waited for. */
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

  /** Lets go of its timers. */
  cancel(): void {
    for (const stop of this.#timers.splice(0)) stop();
  }
}
