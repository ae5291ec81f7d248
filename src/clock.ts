import type { Milliseconds } from './duration.ts';

/** Where time comes from. The testing kit brings one that stands still until it is moved. */
export interface Clock {
  /** Milliseconds of the epoch, as the host's wall clock has them: it may jump. */
  now(): number;
  /** Milliseconds that only go forward, from an arbitrary start. */
  monotonic(): Milliseconds;
  /** Calls `then` once after a delay of any length. Returns what calls it off. */
  after(delay: Milliseconds, then: () => void): () => void;
  /**
   * Calls `then` at each interval, with how much too late: for so long the process was stopped, or its event loop blocked. Keeps
   * no process alive. Returns what ends it. A clock that stands still calls when it was moved, and never late.
   */
  every(interval: Milliseconds, then: (late: Milliseconds) => void): () => void;
}

/** A timer of Node's fires at once when asked to wait longer than this. */
const LONGEST_TIMER: Milliseconds = 2 ** 31 - 1;

/** The host's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delay, then) {
    let timer: NodeJS.Timeout;
    const wait = (left: Milliseconds): void => {
      timer = setTimeout(
        () => (left > LONGEST_TIMER ? wait(left - LONGEST_TIMER) : then()),
        Math.min(left, LONGEST_TIMER),
      );
    };
    wait(delay);
    return () => clearTimeout(timer);
  },
  every(interval, then) {
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      const late = Math.max(0, now - last - interval);
      last = now;
      then(late);
    }, interval).unref();
    return () => clearInterval(timer);
  },
};
