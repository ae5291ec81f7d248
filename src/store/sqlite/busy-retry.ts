import { isBusy, isDamage } from './failures.ts';

/** How long a busy database is asked again before the caller hears of it. */
const RETRY_FOR_MS = 30_000;

/** The pauses between two asks grow from 1 ms to this; each is drawn anew, because SQLite itself does not serve in turn. */
const LONGEST_PAUSE_MS = 25;

/**
 * Asks a database again while another connection holds it, and once more where it seems damaged: SQLite says that too of a read
 * that failed. The event loop goes on meanwhile.
 */
export class BusyRetry {
  readonly #started = performance.now();
  #longest = 1;
  #seemedDamaged = false;

  /** Whether to try again after this error. */
  allows(error: unknown): boolean {
    if (isDamage(error) && !this.#seemedDamaged) {
      this.#seemedDamaged = true;
      return true;
    }
    return isBusy(error) && performance.now() - this.#started <= RETRY_FOR_MS;
  }

  async pause(): Promise<void> {
    const ms = Math.random() * this.#longest;
    this.#longest = Math.min(this.#longest * 2, LONGEST_PAUSE_MS);
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

/** Runs a step again while the database is busy, for at most 30 s. */
export async function retryWhileBusy<T>(step: () => T): Promise<T> {
  const retry = new BusyRetry();
  for (;;) {
    try {
      return step();
    } catch (error) {
      if (!retry.allows(error)) throw error;
    }
    await retry.pause();
  }
}
