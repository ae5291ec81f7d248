import type { Milliseconds } from './duration.ts';

/** The source of time. The testing kit has one that stands still until it is moved. */
export interface Clock {
  /** Milliseconds since 1970, from the host's wall clock. It may jump. */
  now(): number;
  /** Milliseconds that only go forward, from an arbitrary start. */
  monotonic(): Milliseconds;
  /**
   * Names the start of `monotonic`: clocks with the same timeline can be compared, also between processes. Absent for the host's
   * clock, which all processes of one boot share.
   */
  readonly timeline?: string;
  /** Milliseconds since the boot of the machine, including sleep. Absent for the host's clock, for which the system is asked. */
  uptime?(): Milliseconds;
  /** Calls `then` once after a delay of any length. Returns a function that cancels it. */
  after(delay: Milliseconds, then: () => void): () => void;
  /**
   * Calls `then` at each interval, with how late the call is: for that time the process was stopped, or its event loop was blocked.
   * It does not keep the process alive. Returns a function that ends it. A clock that stands still calls when it is moved, never late.
   */
  every(interval: Milliseconds, then: (late: Milliseconds) => void): () => void;
}

/** Node's timers fire at once for a longer delay than this. */
export const LONGEST_TIMER: Milliseconds = 2 ** 31 - 1;

/** The difference between the system's monotonic clock and `performance.now()`. */
let processStart: Milliseconds | undefined;

/** The host's clock. On Linux its monotonic time is CLOCK_MONOTONIC, which all processes of one boot share. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic() {
    processStart ??= Number(process.hrtime.bigint()) / 1e6 - performance.now();
    return processStart + performance.now();
  },
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
