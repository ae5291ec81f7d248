import type { Milliseconds } from '../../duration.ts';
import { StoreError } from '../../errors.ts';
import { type Batch, BlockedCalls, type BlockedCallsOptions } from './blocked-calls.ts';
import { isBlocked } from './failures.ts';

/** A statement takes the items of this many calls at most, so that no transaction gets long. */
const MOST_CALLS = 500;

/** And of calls whose items are this large together, so that no message gets too long; of one call at least. */
const MOST_CHARACTERS = 64 * 1_048_576;

/** How long the statement of a single call waits for a lock of somebody's open transaction: it is soon made again. */
const SINGLE_PATIENCE_MS: Milliseconds = 50;

type Write<Item, Answer> = (items: readonly Item[], patience: Milliseconds) => Promise<readonly Answer[]>;

export interface GatheringOptions<Item, Answer>
  extends Omit<BlockedCallsOptions<Item, Answer>, 'write' | 'singlePatience'> {
  /** Fails, with nothing changed, where it waits longer than `patience` for a lock of somebody's open transaction. */
  readonly write: Write<Item, Answer>;
  /** How long a statement for several calls waits for such a lock. */
  readonly groupPatience: Milliseconds;
  /** How many characters an item adds to the statement, apart from a few. */
  readonly sizeOf: (item: Item) => number;
  /** Whether an item may meet such a lock. */
  readonly mayBeBlocked: (item: Item) => boolean;
  /** Whether the items of a call may be written one without the other: then a blocked call of several fails, to be made one by one. */
  readonly areIndependent: boolean;
}

interface SizedBatch<Item, Answer> extends Batch<Item, Answer> {
  /** How many characters its items add to a statement. */
  readonly size: number;
}

/**
 * Group commit for one verb: the calls that are made in one turn of the event loop, or while an earlier statement is under way,
 * share a statement. Nobody is answered before it is committed. Where a statement is refused, its calls are made one by one, and
 * where it is blocked, those that may be what blocks it; where the database is away they all hear of that, for the statement was
 * repeated long enough, and may have been carried out.
 */
export class Gathering<Item, Answer> {
  readonly #options: GatheringOptions<Item, Answer>;
  readonly #blocked: BlockedCalls<Item, Answer>;
  #waiting: SizedBatch<Item, Answer>[] = [];
  #flushing: Promise<void> | undefined;
  /** The statement under way: those that follow wait for it. */
  #underWay: Promise<unknown> | undefined;

  constructor(options: GatheringOptions<Item, Answer>) {
    this.#options = options;
    this.#blocked = new BlockedCalls({
      ...options,
      singlePatience: Math.min(SINGLE_PATIENCE_MS, options.groupPatience),
    });
  }

  call(items: readonly Item[]): Promise<readonly Answer[]> {
    return new Promise((resolve, reject) => {
      if (this.#blocked.includes(items)) {
        this.#blocked.add({ items, resolve, reject });
        return;
      }
      // Here a call whose size cannot be told fails alone.
      const size = items.reduce((sum, item) => sum + this.#options.sizeOf(item), 0);
      this.#waiting.push({ items, size, resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Resolves when what was called has been answered. */
  async drained(): Promise<void> {
    await this.#flushing;
    await this.#blocked.drained();
  }

  /** What waits, for a statement that somebody else is about to make. */
  takeWaiting(): readonly Batch<Item, Answer>[] {
    let total = 0;
    let count = 0;
    for (const { size } of this.#waiting) {
      total += size;
      if (count === MOST_CALLS || (count > 0 && total > MOST_CHARACTERS)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /**
   * Lets `make` answer the calls of this turn, if none of them can be blocked. Calls that come meanwhile wait, so that all are
   * written in their order. Undefined if `make` was not called, because there are none, or a statement is under way.
   */
  shared<Result>(make: (batches: readonly Batch<Item, Answer>[]) => Promise<Result>): Promise<Result> | undefined {
    const { mayBeBlocked } = this.#options;
    if (this.#waiting.length === 0 || this.#underWay) return undefined;
    if (this.#waiting.some(({ items, size }) => size > MOST_CHARACTERS || items.some(mayBeBlocked))) return undefined;
    const made = make(this.takeWaiting());
    this.#underWay = made.catch(() => {});
    return made;
  }

  async #flush(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    for (;;) {
      await this.#underWay;
      this.#underWay = undefined;
      if (this.#waiting.length === 0) break;
      this.#underWay = this.answer(this.takeWaiting());
    }
    this.#flushing = undefined;
  }

  /** Answers calls by one statement, or each by its own where that is refused. */
  async answer(
    batches: readonly Batch<Item, Answer>[],
    write: Write<Item, Answer> = this.#options.write,
  ): Promise<void> {
    try {
      const answers = await write(
        batches.flatMap(({ items }) => items),
        this.#options.groupPatience,
      );
      let from = 0;
      for (const { items, resolve } of batches) {
        resolve(answers.slice(from, from + items.length));
        from += items.length;
      }
    } catch (error) {
      if (isBlocked(error)) return this.answerBlocked(batches, error);
      const isAway = error instanceof StoreError && error.retryable;
      if (isAway || batches.length === 1) for (const { reject } of batches) reject(error);
      else for (const batch of batches) await this.answer([batch]);
    }
  }

  /** Answers calls whose statement was blocked: the others by one statement, and does not wait for those that may be what blocked it. */
  async answerBlocked(batches: readonly Batch<Item, Answer>[], error: unknown): Promise<void> {
    const { mayBeBlocked, areIndependent } = this.#options;
    const safe = batches.filter(({ items }) => !items.some(mayBeBlocked));
    // Where none of them can be known to be safe, any may be blocked.
    const isSplit = safe.length > 0 && safe.length < batches.length;
    for (const batch of batches) {
      if (isSplit && safe.includes(batch)) continue;
      if (areIndependent && batch.items.length > 1) batch.reject(error);
      else this.#blocked.add(batch);
    }
    if (isSplit) await this.answer(safe);
  }
}

/** An array as PostgreSQL writes it, of what needs no quotes. */
export function list(values: readonly (number | string)[]): string {
  return `{${values.join()}}`;
}

/** Names of schemas stand in statements as they are. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
