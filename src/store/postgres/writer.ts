import { StoreError } from '../../errors.ts';

interface Batch<Item, Answer> {
  readonly items: readonly Item[];
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A statement takes the items of this many calls at most, so that no transaction gets long. */
const MOST_CALLS = 500;

/**
 * Group commit for one verb: the calls that are made in one turn of the event loop, or while an earlier statement is under way,
 * share a statement. Nobody is answered before it is committed. Where a statement is refused, its calls are made one by one; where
 * the database is away they all hear of that, for the statement was repeated long enough, and may have been heard.
 */
export class Gathering<Item, Answer> {
  readonly #write: (items: readonly Item[]) => Promise<readonly Answer[]>;
  readonly #onWritten: (answers: readonly Answer[]) => void;
  #waiting: Batch<Item, Answer>[] = [];
  #flushing: Promise<void> | undefined;

  constructor(
    write: (items: readonly Item[]) => Promise<readonly Answer[]>,
    onWritten: (answers: readonly Answer[]) => void = () => {},
  ) {
    this.#write = write;
    this.#onWritten = onWritten;
  }

  call(items: readonly Item[]): Promise<readonly Answer[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items, resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Resolves when what was called has been answered. */
  async drained(): Promise<void> {
    await this.#flushing;
  }

  /** What waits, for a statement that somebody else is about to make. */
  takeWaiting(): readonly Batch<Item, Answer>[] {
    return this.#waiting.splice(0, MOST_CALLS);
  }

  async #flush(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) await this.answer(this.takeWaiting());
    this.#flushing = undefined;
  }

  /** Answers calls by one statement, or each by its own where that is refused. */
  async answer(
    batches: readonly Batch<Item, Answer>[],
    write: (items: readonly Item[]) => Promise<readonly Answer[]> = this.#write,
  ): Promise<void> {
    try {
      const answers = await write(batches.flatMap(({ items }) => items));
      this.#onWritten(answers);
      let from = 0;
      for (const { items, resolve } of batches) {
        resolve(answers.slice(from, from + items.length));
        from += items.length;
      }
    } catch (error) {
      const isAway = error instanceof StoreError && error.retryable;
      if (isAway || batches.length === 1) for (const { reject } of batches) reject(error);
      else for (const batch of batches) await this.answer([batch]);
    }
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
