import type { Clock } from '../clock.ts';
import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { show } from '../show.ts';

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly then: () => void;
}

interface Pulse {
  readonly interval: Milliseconds;
  readonly then: (late: Milliseconds) => void;
  last: number;
}

let clocks = 0;

/** A clock that stands still until it is moved. */
export class VirtualClock implements Clock {
  readonly timeline = `virtual clock ${++clocks} of process ${process.pid}`;
  readonly #timers = new Set<Timer>();
  readonly #pulses = new Set<Pulse>();
  readonly #start: number;
  #now: number;
  #order = 0;
  #sleepers = 0;

  constructor(start: Date) {
    this.#start = start.getTime();
    this.#now = this.#start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): Milliseconds {
    return this.#now - this.#start;
  }

  after(delay: Milliseconds, then: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, delay), order: this.#order++, then };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Called at most once for each move, so that a year passes as quickly as a second; `nextTimer` does not name it. */
  every(interval: Milliseconds, then: (late: Milliseconds) => void): () => void {
    const pulse = { interval, then, last: this.#now };
    this.#pulses.add(pulse);
    return () => this.#pulses.delete(pulse);
  }

  /** For handlers under test: sleeps in virtual time. The clock then knows that the handler waits only for it. */
  async sleep(time: DurationInput, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.#sleepers += 1;
    try {
      await new Promise<void>((resolve, reject) => {
        const abort = () => {
          stop();
          reject(signal?.reason as Error);
        };
        const stop = this.after(duration(time, 'time'), () => {
          signal?.removeEventListener('abort', abort);
          resolve();
        });
        signal?.addEventListener('abort', abort, { once: true });
      });
    } finally {
      this.#sleepers -= 1;
    }
  }

  /** How many are in `sleep` now. */
  get sleepers(): number {
    return this.#sleepers;
  }

  /** When the next timer fires, or undefined if none is set. */
  get nextTimer(): number | undefined {
    return this.#first()?.at;
  }

  /** Moves to a time and fires the timers that are due by then, in order. Timers that these set wait for the next move. */
  moveTo(time: number): void {
    if (!(Number.isFinite(time) && time >= this.#now)) {
      throw new InvalidInputError(`A virtual clock goes forward only, from ${this.#now}, got ${show(time)}.`);
    }
    const newest = this.#order;
    for (let timer = this.#first(); timer && timer.at <= time && timer.order < newest; timer = this.#first()) {
      this.#timers.delete(timer);
      this.#now = Math.max(this.#now, timer.at);
      timer.then();
    }
    this.#now = time;
    for (const pulse of [...this.#pulses]) this.#beat(pulse, 0);
  }

  /**
   * Time passes as if the process were stopped or its event loop blocked: no timer fires before the end, then all that are due.
   */
  freeze(time: DurationInput): void {
    const stopped = duration(time, 'time');
    this.#now += stopped;
    for (const pulse of [...this.#pulses]) this.#beat(pulse, Math.max(0, this.#now - pulse.last - pulse.interval));
    this.moveTo(this.#now);
  }

  #beat(pulse: Pulse, late: Milliseconds): void {
    if (!this.#pulses.has(pulse) || this.#now - pulse.last < pulse.interval) return;
    pulse.last = this.#now;
    pulse.then(late);
  }

  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer;
    }
    return first;
  }
}
