import type { Milliseconds } from '../../duration.ts';
import { isBlocked } from './failures.ts';

/** A call: its items are written together or not at all. */
export interface Batch<Item, Answer> {
  readonly items: readonly Item[];
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** The pause between two rounds over all blocked calls. */
const PAUSE_MS: Milliseconds = 100;

/** The shortest time that a statement waits for a lock: 0 would mean without end. */
const LEAST_PATIENCE_MS: Milliseconds = 2;

export interface BlockedCallsOptions<Item, Answer> {
  /** Makes a call that fails if it waits longer than `patience` for a lock. */
  readonly write: (items: readonly Item[], patience: Milliseconds) => Promise<readonly Answer[]>;
  /** How long the statement of a single call waits for a lock if no other call is blocked. */
  readonly singlePatience: Milliseconds;
  /** The locks of an item that are known before it is written: a key of a task. */
  readonly locksOf: (item: Item) => readonly string[];
  /** How long a call is repeated before its caller gets the error that says what blocks it. */
  readonly patience: Milliseconds;
  /** Makes the error for the caller. */
  readonly explain: (error: unknown) => Promise<unknown>;
}

interface Blocked<Item, Answer> extends Batch<Item, Answer> {
  readonly since: Milliseconds;
  /** Its locks, once it is known to be blocked. */
  locks: readonly string[];
}

/**
 * Calls that wait for a lock of an open transaction of a user. They are repeated one by one, each in its own statement, so that
 * other calls of the same group need not wait for that transaction. All of them use one connection.
 */
export class BlockedCalls<Item, Answer> {
  readonly #options: BlockedCallsOptions<Item, Answer>;
  readonly #calls = new Set<Blocked<Item, Answer>>();
  /** Calls that came since the present round began. They are tried first, because they may not be blocked. */
  readonly #fresh: Blocked<Item, Answer>[] = [];
  /** The locks of the blocked calls. */
  #locks = new Set<string>();
  #trying: Promise<void> | undefined;

  constructor(options: BlockedCallsOptions<Item, Answer>) {
    this.#options = options;
  }

  /** Whether a call would wait for the same lock as a blocked call. */
  includes(items: readonly Item[]): boolean {
    if (this.#locks.size === 0) return false;
    return items.some((item) => this.#options.locksOf(item).some((lock) => this.#locks.has(lock)));
  }

  add(batch: Batch<Item, Answer>): void {
    const since = performance.now();
    if (this.includes(batch.items)) {
      this.#calls.add({ ...batch, since, locks: batch.items.flatMap(this.#options.locksOf) });
    } else this.#fresh.push({ ...batch, since, locks: [] });
    this.#trying ??= this.#tryAll();
  }

  /** Resolves when all have been answered. */
  async drained(): Promise<void> {
    await this.#trying;
  }

  async #tryAll(): Promise<void> {
    while (this.#fresh.length + this.#calls.size > 0) {
      // If one call waits for a lock, calls that need only this lock wait too.
      const met = new Set<string>();
      for (const call of this.#calls) {
        await this.#tryFresh();
        const lock = call.locks.length === 1 ? call.locks[0] : undefined;
        const isMet = lock !== undefined && met.has(lock);
        if (isMet && performance.now() - call.since < this.#options.patience) continue;
        if (await this.#try(call)) this.#calls.delete(call);
        else if (lock !== undefined) met.add(lock);
      }
      await this.#tryFresh();
      this.#locks = new Set([...this.#calls].flatMap(({ locks }) => locks));
      if (this.#calls.size > 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    this.#trying = undefined;
  }

  async #tryFresh(): Promise<void> {
    for (let call = this.#fresh.shift(); call; call = this.#fresh.shift()) {
      if (await this.#try(call)) continue;
      this.#calls.add(call);
      for (const lock of call.locks) this.#locks.add(lock);
    }
  }

  /** False if it is still blocked. */
  async #try(call: Blocked<Item, Answer>): Promise<boolean> {
    const { write, locksOf, singlePatience, patience, explain } = this.#options;
    // If many calls are blocked, they share the time, so that each is tried soon.
    const share = Math.floor(singlePatience / (1 + this.#fresh.length + this.#calls.size));
    try {
      const answers = await write(call.items, Math.max(LEAST_PATIENCE_MS, share));
      call.resolve(answers);
    } catch (error) {
      if (isBlocked(error) && performance.now() - call.since < patience) {
        call.locks = call.items.flatMap(locksOf);
        return false;
      }
      call.reject(isBlocked(error) ? await explain(error) : error);
    }
    return true;
  }
}
