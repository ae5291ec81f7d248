import type { Milliseconds } from '../duration.ts';
import type { Condition } from '../source/trouble.ts';
import type { Answer } from './server.ts';

export type SourceCondition = 'normal' | Condition;

/** What happened in one interval of time. */
export interface Sample {
  /** Its end, counted from the beginning of the outage. */
  readonly at: Milliseconds;
  readonly lasted: Milliseconds;
  readonly calls: Readonly<Record<Answer, number>>;
  /** At its end: tasks that arrived and are neither done nor given up. */
  readonly waiting: number;
  /** Of the source, at its end. Absent where nothing is remembered of sources. */
  readonly condition?: SourceCondition;
}

interface Arrival {
  readonly at: number;
  /** When it succeeded, or Infinity where it was given up. */
  end?: number;
}

/** Counts calls, and follows each task from its arrival to its end. */
export class Tally {
  readonly #downFrom: number;
  readonly #downUntil: number;
  readonly #arrivals: Arrival[] = [];
  readonly #samples: Sample[] = [];
  readonly #seconds = new Map<number, number>();
  #calls = noCalls();
  #sampledAt: number;
  #uselessCalls = 0;
  #throttledAfter = 0;
  #givenUp = 0;
  #waiting = 0;
  /** Of those that arrived before the end of the outage: how many wait. */
  #backlog = 0;
  /** When the last of them ended. */
  #backlogEndedAt = 0;

  constructor(start: number, downFrom: number, downUntil: number) {
    this.#sampledAt = start;
    this.#downFrom = downFrom;
    this.#downUntil = downUntil;
  }

  /** Returns its number, which its end names. */
  arrived(now: number): number {
    this.#waiting += 1;
    if (now < this.#downUntil) this.#backlog += 1;
    return this.#arrivals.push({ at: now }) - 1;
  }

  called(now: number, answer: Answer): void {
    this.#calls[answer] += 1;
    if (answer === 'down') this.#uselessCalls += 1;
    if (now < this.#downUntil) return;
    if (answer === 'throttled') this.#throttledAfter += 1;
    const second = Math.floor(now / 1_000);
    this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + 1);
  }

  succeeded(arrival: number, now: number): void {
    this.#ended(arrival, now, now);
  }

  gaveUp(arrival: number, now: number): void {
    this.#givenUp += 1;
    this.#ended(arrival, Number.POSITIVE_INFINITY, now);
  }

  /** Ends an interval. */
  sample(now: number, condition?: SourceCondition): void {
    this.#samples.push({
      at: now - this.#downFrom,
      lasted: now - this.#sampledAt,
      calls: this.#calls,
      waiting: this.#waiting,
      ...(condition !== undefined && { condition }),
    });
    this.#sampledAt = now;
    this.#calls = noCalls();
  }

  /** When nothing waited any more of what arrived before the end of the outage. Infinite while some of it waits. */
  get drainedAt(): number {
    return this.#backlog > 0 ? Number.POSITIVE_INFINITY : Math.max(this.#downUntil, this.#backlogEndedAt);
  }

  get uselessCalls(): number {
    return this.#uselessCalls;
  }

  get throttledAfter(): number {
    return this.#throttledAfter;
  }

  get givenUp(): number {
    return this.#givenUp;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get arrivals(): number {
    return this.#arrivals.length;
  }

  get samples(): readonly Sample[] {
    return this.#samples;
  }

  /** The most calls in one second after the outage. */
  get peak(): number {
    return Math.max(0, ...this.#seconds.values());
  }

  get arrivedInOutage(): number {
    return this.#arrivals.filter(({ at }) => at >= this.#downFrom && at < this.#downUntil).length;
  }

  /** Of tasks that arrived after the outage, while older ones waited: the median time to success. Infinite where most have none. */
  get freshWait(): Milliseconds {
    const until = this.drainedAt;
    const waits = this.#arrivals
      .filter(({ at }) => at >= this.#downUntil && at <= until)
      .map(({ at, end = Number.POSITIVE_INFINITY }) => end - at)
      .sort((a, b) => a - b);
    return waits[Math.floor(waits.length / 2)] ?? 0;
  }

  #ended(number: number, end: number, now: number): void {
    const arrival = this.#arrivals[number] as Arrival;
    arrival.end = end;
    this.#waiting -= 1;
    if (arrival.at >= this.#downUntil) return;
    this.#backlog -= 1;
    this.#backlogEndedAt = now;
  }
}

function noCalls(): Record<Answer, number> {
  return { served: 0, down: 0, throttled: 0 };
}
