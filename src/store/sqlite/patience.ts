import { isBusy } from './failures.ts';

/** How long a busy database is asked again before the caller hears of it. */
const PATIENCE_MS = 30_000;

/** The pauses between two asks grow from 1 ms to this; each is drawn anew, because SQLite itself does not serve in turn. */
const LONGEST_PAUSE_MS = 25;

/** Asks a database again while another connection holds it. The event loop goes on meanwhile. */
export class Patience {
  readonly #started = performance.now();
  #longest = 1;

  /** Whether to try again after this error. False for what is no lock, and when the patience has ended. */
  allows(error: unknown): boolean {
    return isBusy(error) && performance.now() - this.#started <= PATIENCE_MS;
  }

  async pause(): Promise<void> {
    const ms = Math.random() * this.#longest;
    this.#longest = Math.min(this.#longest * 2, LONGEST_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

/** Runs a step until it is done, asking again while the database is busy. */
export async function patiently<T>(step: () => T): Promise<T> {
  const patience = new Patience();
  for (;;) {
    try {
      return step();
    } catch (error) {
      if (!patience.allows(error)) throw error;
    }
    await patience.pause();
  }
}
