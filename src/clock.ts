import type { Milliseconds } from './duration.ts';

/** Where time comes from. The testing kit brings one that stands still until it is moved. */
export interface Clock {
  /** Milliseconds of the epoch, as the host's wall clock has them: it may jump. */
  now(): number;
  /** Milliseconds that only go forward, from an arbitrary start. */
  monotonic(): Milliseconds;
  /**
   * Names that start: what clocks with the same timeline say can be compared, also between processes. Absent for the host's
   * clock, which all processes of one boot share.
   */
  readonly timeline?: string;
  /** Milliseconds since the machine was started, sleep included. Absent for the host's clock, whose system is asked. */
  uptime?(): Milliseconds;
  /** Calls `then` once after a delay of any length. Returns what calls it off. */
  after(delay: Milliseconds, then: () => void): () => void;
  /**
   * Calls `then` at each interval, with how much too late: for so long the process was stopped, or its event loop blocked. Keeps
   * no process alive. Returns what ends it. A clock that stands still calls when it was moved, and never late.
   */
  every(interval: Milliseconds, then: (late: Milliseconds) => void): () => void;
}

/** A timer of Node's fires at once when asked to wait longer than this. */
export const LONGEST_TIMER: Milliseconds = 2 ** 31 - 1;

/** What `performance.now()` is behind the system's own monotonic clock, from which it is counted. */
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
