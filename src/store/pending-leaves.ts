import type { Milliseconds } from '../duration.ts';
import { StoreError } from '../errors.ts';

/** The pauses between two tries: the first one, which doubles up to the longest. */
const FIRST_PAUSE_MS: Milliseconds = 250;
const LONGEST_PAUSE_MS: Milliseconds = 10_000;

/**
 * Workers that ended while the store could not be told. Their process lives on, so their leases would be respected although nobody
 * works on them: the store is told again and again, in the background, also after it was closed. Keeps no process alive.
 */
export class PendingLeaves {
  readonly #leave: (worker: number) => Promise<boolean>;
  readonly #due = new Set<number>();
  #underWay: Promise<void> | undefined;
  #closed = false;

  /** `leave` is tried once per call; false or a rejection means that it is tried again. */
  constructor(leave: (worker: number) => Promise<boolean>) {
    this.#leave = leave;
  }

  add(worker: number): void {
    if (this.#closed && !this.#underWay) return;
    this.#due.add(worker);
    this.#underWay ??= this.#tellAll();
  }

  /** The store was told otherwise. */
  delete(worker: number): void {
    this.#due.delete(worker);
  }

  /** The store closes. Resolves when it was told of all, for which it needs its connections; undefined where it was. */
  close(): Promise<void> | undefined {
    this.#closed = true;
    return this.#underWay;
  }

  async #tellAll(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; this.#due.size > 0; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      await new Promise((resolve) => setTimeout(resolve, pause).unref());
      for (const worker of this.#due) if (await this.#isTold(worker)) this.#due.delete(worker);
    }
    this.#underWay = undefined;
  }

  async #isTold(worker: number): Promise<boolean> {
    try {
      return await this.#leave(worker);
    } catch (error) {
      // The file that holds its row is not there any more, so nobody is kept waiting.
      return error instanceof StoreError && error.code === 'store_replaced';
    }
  }
}
