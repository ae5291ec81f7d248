import type { Clock } from '../../src/clock.ts';
import type { Milliseconds } from '../../src/duration.ts';
import type { World } from '../../src/store/store.ts';
import { dice } from '../../src/testing/dice.ts';

/** Midday, on a day without a change of summer time anywhere. */
const START = Date.UTC(2026, 0, 15, 12);

/** A clock that stands still until it is moved. Wall and monotonic time go together, or one of them alone. */
class VirtualClock implements Clock {
  /** Of the machine's present boot. */
  timeline = 'boot 1';
  #wall = START;
  #monotonic: Milliseconds = 1_000;
  #timers: Timer[] = [];
  #slept: Milliseconds = 0;
  /** Absent until `tellUptime`: not every system tells it. */
  uptime?: () => Milliseconds;

  now(): number {
    return this.#wall;
  }

  monotonic(): Milliseconds {
    return this.#monotonic;
  }

  after(delay: Milliseconds, then: () => void): () => void {
    const timer = { at: this.#monotonic + Math.max(0, delay), then };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  every(interval: Milliseconds, then: (late: Milliseconds) => void): () => void {
    let stop = () => {};
    const wait = () => {
      stop = this.after(interval, () => {
        wait();
        then(0);
      });
    };
    wait();
    return () => stop();
  }

  /** Time passes. Timers that fall due run in order, each at its own moment. */
  advance(by: Milliseconds): void {
    this.#pass(by, (step) => {
      this.#wall += step;
    });
  }

  /** The wall clock is set, forward or back, or the machine slept: no other time passes. */
  jumpWall(by: Milliseconds): void {
    this.#wall += by;
  }

  /** From now on it tells the time since the boot, so that a jump of the wall clock can be told from a sleep. */
  tellUptime(): void {
    this.uptime = () => this.#monotonic + this.#slept;
  }

  /** The machine sleeps: its monotonic time stands, and the time since the boot goes on. */
  sleep(by: Milliseconds): void {
    this.#wall += by;
    this.#slept += by;
  }

  /** Time passes while the wall clock stands. */
  advanceMonotonic(by: Milliseconds): void {
    this.#pass(by, () => {});
  }

  /** The machine starts anew: its monotonic time begins again, and no timer is left. */
  reboot(): void {
    this.#timers = [];
    this.#monotonic = 1_000;
    this.timeline = `boot ${Number(this.timeline.slice(5)) + 1}`;
  }

  #pass(by: Milliseconds, alongside: (step: Milliseconds) => void): void {
    const end = this.#monotonic + by;
    const stepTo = (moment: Milliseconds): void => {
      alongside(moment - this.#monotonic);
      this.#monotonic = moment;
    };
    for (let next = this.#firstUntil(end); next; next = this.#firstUntil(end)) {
      const due = next;
      this.#timers = this.#timers.filter((each) => each !== due);
      stepTo(Math.max(due.at, this.#monotonic));
      due.then();
    }
    stepTo(end);
  }

  #firstUntil(end: Milliseconds): Timer | undefined {
    return this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
  }
}

interface Timer {
  readonly at: Milliseconds;
  readonly then: () => void;
}

export interface VirtualWorld extends World {
  readonly clock: VirtualClock;
}

/** A world of its own, or, given a clock, another process in the same one. */
export function virtualWorld(seed = 1, clock = new VirtualClock()): VirtualWorld {
  return { clock, random: dice(seed) };
}
