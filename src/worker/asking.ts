import type { Milliseconds } from '../duration.ts';
import type { TaskStore } from '../store/store.ts';

/** After so long without a successful call it is said that the store does not answer. */
const NO_ANSWER_FOR: Milliseconds = 5_000;
/** If the event loop was blocked, answers that have arrived are read first. */
const UNTIL_READ: Milliseconds = 200;

export interface StoreWatch {
  /** Called once the store has not answered for a while. */
  onNoAnswer(): void;
  /** Called when it answers again, with how long it did not. */
  onAnswer(after: Milliseconds): void;
  readonly noAnswerFor?: Milliseconds;
}

/** Calls to the store, counted while they are on their way, and whether they are answered. In real time: a database is as slow as it is. */
export class Asking {
  readonly tasks: TaskStore;
  readonly #watch: StoreWatch | undefined;
  #calls = 0;
  /** Since when no call has succeeded, though one was made. */
  #since: Milliseconds | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isReported = false;

  constructor(tasks: TaskStore, watch?: StoreWatch) {
    this.tasks = tasks;
    this.#watch = watch;
  }

  get underWay(): boolean {
    return this.#calls > 0;
  }

  async ask<T>(call: (tasks: TaskStore) => Promise<T>): Promise<T> {
    this.#calls += 1;
    this.#since ??= performance.now();
    if (this.#watch) this.#timer ??= this.#lookIn(this.#watch, this.#noAnswerFor);
    try {
      const answer = await call(this.tasks);
      if (this.#isReported) this.#watch?.onAnswer(performance.now() - this.#since);
      this.#isReported = false;
      this.#since = this.#calls > 1 ? performance.now() : undefined;
      return answer;
    } finally {
      this.#calls -= 1;
    }
  }

  get #noAnswerFor(): Milliseconds {
    return this.#watch?.noAnswerFor ?? NO_ANSWER_FOR;
  }

  /** One timer for all calls, so that a call costs none of its own. */
  #lookIn(watch: StoreWatch, time: Milliseconds, overdueSince?: Milliseconds): NodeJS.Timeout {
    return setTimeout(() => {
      this.#timer = undefined;
      if (this.#since === undefined || this.#isReported) return;
      const left = this.#since + this.#noAnswerFor - performance.now();
      if (left > 0) this.#timer = this.#lookIn(watch, left);
      else if (overdueSince !== this.#since) this.#timer = this.#lookIn(watch, UNTIL_READ, this.#since);
      else {
        this.#isReported = true;
        watch.onNoAnswer();
      }
    }, time).unref();
  }
}
