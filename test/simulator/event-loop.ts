import { dice } from '../../src/testing/dice.ts';

/** Something that happens at a time, in whatever unit the model uses. It may set further events. */
type Event = (now: number) => void;

/** A simulation of events in the order of their times; those of the same time in the order in which they were set. */
export class EventLoop {
  readonly #heap: { readonly at: number; readonly order: number; readonly event: Event }[] = [];
  #order = 0;
  now = 0;

  at(time: number, event: Event): void {
    const heap = this.#heap;
    heap.push({ at: time, order: this.#order++, event });
    for (let child = heap.length - 1; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!this.#isBefore(child, parent)) return;
      this.#swap(child, parent);
      child = parent;
    }
  }

  /** Until nothing is left, or until a time. */
  run(until = Number.POSITIVE_INFINITY): void {
    for (let first = this.#heap[0]; first && first.at <= until; first = this.#heap[0]) {
      this.#removeFirst();
      this.now = first.at;
      first.event(first.at);
    }
  }

  #removeFirst(): void {
    const heap = this.#heap;
    this.#swap(0, heap.length - 1);
    heap.pop();
    for (let parent = 0; ; ) {
      let least = parent;
      for (const child of [2 * parent + 1, 2 * parent + 2]) {
        if (child < heap.length && this.#isBefore(child, least)) least = child;
      }
      if (least === parent) return;
      this.#swap(least, parent);
      parent = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [
      this.#heap[a] as { at: number; order: number },
      this.#heap[b] as { at: number; order: number },
    ];
    return one.at < other.at || (one.at === other.at && one.order < other.order);
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap as { at: number; order: number; event: Event }[];
    [heap[a], heap[b]] = [heap[b] as (typeof heap)[number], heap[a] as (typeof heap)[number]];
  }
}

/** Numbers at random, the same for the same seed. */
export interface Chance {
  /** At least 0 and below 1. */
  readonly roll: () => number;
  exponential(mean: number): number;
  normal(mean: number, deviation: number): number;
}

export function chance(seed: number): Chance {
  const roll = dice(seed);
  return {
    roll,
    exponential: (mean) => -mean * Math.log(1 - roll()),
    normal: (mean, deviation) =>
      mean + deviation * Math.sqrt(-2 * Math.log(1 - roll())) * Math.cos(2 * Math.PI * roll()),
  };
}
