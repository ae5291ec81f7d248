import type { TaskStore } from '../store/store.ts';

/** Calls to the store, counted while they are on their way. */
export class Asking {
  readonly tasks: TaskStore;
  #calls = 0;

  constructor(tasks: TaskStore) {
    this.tasks = tasks;
  }

  get underWay(): boolean {
    return this.#calls > 0;
  }

  async ask<T>(call: (tasks: TaskStore) => Promise<T>): Promise<T> {
    this.#calls += 1;
    try {
      return await call(this.tasks);
    } finally {
      this.#calls -= 1;
    }
  }
}
