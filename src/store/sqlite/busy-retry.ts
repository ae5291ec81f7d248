import { isBusy, isDamage } from './failures.ts';

/** How long a step on a busy database is repeated before the caller gets the error. */
const RETRY_FOR_MS = 30_000;

/**
 * The pauses between two tries grow from 1 ms to this. Each is random, because SQLite does not serve its callers in their order.
 */
const LONGEST_PAUSE_MS = 25;

/**
 * Repeats a step while another connection has the database locked, and once if the database seems damaged, because SQLite also
 * says that after a failed read. It does not block the event loop.
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

/** Repeats a step while the database is busy, for at most 30 s. */
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
