import type { Milliseconds } from '../duration.ts';
import { StoreError } from '../errors.ts';

/** The pauses between two tries: the first one, which doubles up to the longest. */
const FIRST_PAUSE_MS: Milliseconds = 250;
const LONGEST_PAUSE_MS: Milliseconds = 10_000;

/**
 * Workers that ended while the store could not be reached. Their process is still alive, so others would leave their tasks alone
 * although nobody works on them. So their rows are removed later, in the background, even after the store was closed. This keeps
 * no process alive.
 */
export class PendingLeaves {
  readonly #leave: (worker: number) => Promise<boolean>;
  readonly #due = new Set<number>();
  #underWay: Promise<void> | undefined;
  #closed = false;

  /** Tries `leave` until it succeeds; false or a rejection means that it is tried again. */
  constructor(leave: (worker: number) => Promise<boolean>) {
    this.#leave = leave;
  }

  add(worker: number): void {
    if (this.#closed && !this.#underWay) return;
    this.#due.add(worker);
    this.#underWay ??= this.#tellAll();
  }

  /** The row was removed in another way. */
  delete(worker: number): void {
    this.#due.delete(worker);
  }

  /** The store closes. Resolves when all rows are removed, for which it needs its connections; undefined if there are none. */
  close(): Promise<void> | undefined {
    this.#closed = true;
    return this.#underWay;
  }

  async #tellAll(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; this.#due.size > 0; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      await new Promise((resolve) => setTimeout(resolve, pause).unref());
      for (const worker of this.#due) if (await this.#isSignedOff(worker)) this.#due.delete(worker);
    }
    this.#underWay = undefined;
  }

  async #isSignedOff(worker: number): Promise<boolean> {
    try {
      return await this.#leave(worker);
    } catch (error) {
      // The file with its row does not exist any more, so no other process waits for it.
      return error instanceof StoreError && error.code === 'store_replaced';
    }
  }
}
