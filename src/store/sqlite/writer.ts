import { LONGEST_TIMER } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { ClosedError, StoreError } from '../../errors.ts';
import type { ClaimRequest } from '../store.ts';
import { BusyRetry } from './busy-retry.ts';
import type { StoreClock } from './clock.ts';
import type { Sql } from './driver.ts';
import { isBusy, storeError } from './failures.ts';
import type { OpenFiles } from './open-files.ts';

/** What must be written before the end of a part of a transaction, and forgotten if the part is rolled back. */
export interface Cached {
  flush(): void;
  forget(): void;
}

interface Call {
  readonly items: readonly unknown[];
  readonly resolve: (answers: never) => void;
  readonly reject: (error: unknown) => void;
}

/** An operation and its calls of one turn of the event loop. It may be run again if its transaction failed. */
interface Operation {
  /** `next`: what the next operation of the transaction claims, if it is a claim, and nothing has failed before. */
  readonly run: (items: readonly unknown[], now: number, next?: ClaimRequest) => readonly unknown[];
  /** What it claims, if it is a claim. */
  readonly claims?: ClaimRequest | undefined;
  /** Called with the answers when they are durable, before the callers get them. */
  readonly onDurable?: (answers: readonly unknown[]) => void;
  readonly calls: Call[];
  begun: boolean;
}

export interface WriterParts {
  readonly sql: Sql;
  readonly clock: StoreClock;
  readonly path: string;
  readonly files: OpenFiles;
  readonly cached: Cached;
}

/** A transaction takes this many calls at most, so that other processes get their turn. */
const MOST_AT_ONCE = 500;

/**
 * Group commit: all calls of one turn of the event loop share a transaction, and the calls of one operation share its statements.
 * No caller gets an answer before the commit is durable. If a call fails, the transaction is repeated with a savepoint for each
 * operation, so that the failing call does not undo the others.
 */
export class Writer {
  readonly #sql: Sql;
  readonly #clock: StoreClock;
  readonly #path: string;
  readonly #files: OpenFiles;
  readonly #cached: Cached;
  #waiting: Operation[] = [];
  #flushing: Promise<void> | undefined;
  #closed = false;
  #gaveUp = false;

  constructor({ sql, clock, path, files, cached }: WriterParts) {
    this.#sql = sql;
    this.#clock = clock;
    this.#path = path;
    this.#files = files;
    this.#cached = cached;
  }

  /** Runs one operation in the next transaction. `claims`: what it claims, which the operation before it may give it. */
  async write<T>(run: (now: number) => T, claims?: ClaimRequest): Promise<T> {
    const [answer] = await this.#call({ run: (_, now) => [run(now)], claims, calls: [], begun: false }, [undefined]);
    return answer as T;
  }

  /**
   * An operation on items: the calls of one turn are run together, and each gets the answers of its own items. `onAsked` is
   * called for the first of them, `onDurable` before they get their answers.
   */
  gathering<Item, Answer>(
    run: (items: readonly Item[], now: number, next?: ClaimRequest) => readonly Answer[],
    onDurable: (answers: readonly Answer[]) => void,
    onAsked = () => {},
  ): (items: readonly Item[]) => Promise<readonly Answer[]> {
    let open: Operation | undefined;
    return (items) => {
      if (!open || open.begun || open.calls.length >= MOST_AT_ONCE) {
        onAsked();
        open = {
          run: run as Operation['run'],
          onDurable: onDurable as NonNullable<Operation['onDurable']>,
          calls: [],
          begun: false,
        };
      }
      return this.#call(open, items) as Promise<readonly Answer[]>;
    };
  }

  /**
   * Runs one operation in its own transaction, at once and without repeats, even after the writer was closed. False while other
   * calls wait to be written, because these come first.
   */
  tryNow(run: (now: number) => void): boolean {
    if (this.#flushing) return false;
    try {
      this.#attempt([{ run: (_, now) => [run(now)], calls: [], begun: true }], false);
      return true;
    } catch (error) {
      this.#rollBack();
      throw storeError(error, this.#path);
    }
  }

  /** Whether a call is not written yet. */
  get isBusy(): boolean {
    return this.#waiting.length > 0;
  }

  /** After this time, a busy database is not tried again. */
  async giveUpAfter(time: Milliseconds): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Math.min(time, LONGEST_TIMER)).unref());
    this.#gaveUp = true;
  }

  /** Waits until all calls are written, and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#flushing;
  }

  #call(operation: Operation, items: readonly unknown[]): Promise<readonly unknown[]> {
    if (this.#closed) return Promise.reject(new ClosedError('The store'));
    return new Promise((resolve, reject) => {
      if (operation.calls.length === 0) this.#waiting.push(operation);
      operation.calls.push({ items, resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  async #flush(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) await this.#commit(this.#next());
    this.#flushing = undefined;
  }

  #next(): Operation[] {
    let calls = 0;
    const most = this.#waiting.findIndex((operation) => {
      calls += operation.calls.length;
      return calls > MOST_AT_ONCE;
    });
    const batch = this.#waiting.splice(0, most < 0 ? this.#waiting.length : Math.max(1, most));
    for (const operation of batch) operation.begun = true;
    return batch;
  }

  async #commit(batch: readonly Operation[]): Promise<void> {
    const retry = new BusyRetry();
    // Failures are rare, so savepoints are made only after one, to find the call that fails.
    let guarded = false;
    for (;;) {
      try {
        for (const answer of this.#attempt(batch, guarded)) answer();
        return;
      } catch (error) {
        this.#rollBack();
        // After the file was replaced, the calls must not be repeated.
        if (!guarded && !isBusy(error) && !(error instanceof StoreError)) {
          guarded = true;
          continue;
        }
        if (this.#gaveUp || !retry.allows(error)) {
          const failure = storeError(error, this.#path);
          for (const { reject } of batch.flatMap(({ calls }) => calls)) reject(failure);
          return;
        }
      }
      await retry.pause();
    }
  }

  /** Runs a transaction, and returns the answers to give once it is known to be durable. */
  #attempt(batch: readonly Operation[], guarded: boolean): (() => void)[] {
    this.#sql.run('BEGIN IMMEDIATE');
    const now = this.#clock.tick(this.#sql);
    const before = this.#sql.changed;
    const answers = batch.flatMap((operation, at) =>
      guarded
        ? this.#runApart(operation, operation.calls, now)
        : [this.#run(operation, operation.calls, now, batch[at + 1]?.claims)],
    );
    this.#clock.note(this.#sql, this.#sql.changed !== before);
    this.#files.check();
    this.#sql.run('COMMIT');
    this.#files.checkCommitted();
    return answers;
  }

  /** Runs the calls of a verb together. */
  #run(operation: Operation, calls: readonly Call[], now: number, next?: ClaimRequest): () => void {
    const all = operation.run(itemsOf(calls), now, next);
    this.#cached.flush();
    return () => {
      operation.onDurable?.(all);
      if (calls.length === 1) {
        (calls[0] as Call).resolve(all as never);
        return;
      }
      let from = 0;
      for (const { items, resolve } of calls) {
        resolve(all.slice(from, from + items.length) as never);
        from += items.length;
      }
    };
  }

  /** Runs the calls of a verb together; if that fails, one by one, to find the one that cannot be done. */
  #runApart(operation: Operation, calls: readonly Call[], now: number): (() => void)[] {
    try {
      return [this.#guarded(() => this.#run(operation, calls, now))];
    } catch (error) {
      // A busy, full or failing disk ends the whole transaction, and SQLite may have undone it already.
      if (isBusy(error) || !this.#sql.inTransaction) throw error;
      const [only, ...others] = calls;
      if (others.length > 0) return calls.flatMap((call) => this.#runApart(operation, [call], now));
      const failure = storeError(error, this.#path);
      return [() => only?.reject(failure)];
    }
  }

  #guarded<T>(run: () => T): T {
    this.#sql.run('SAVEPOINT operation');
    try {
      const value = run();
      this.#sql.run('RELEASE operation');
      return value;
    } catch (error) {
      this.#cached.forget();
      if (this.#sql.inTransaction) {
        this.#sql.run('ROLLBACK TO operation');
        this.#sql.run('RELEASE operation');
      }
      throw error;
    }
  }

  #rollBack(): void {
    this.#cached.forget();
    if (this.#sql.inTransaction) this.#sql.run('ROLLBACK');
  }
}

/** The items of all calls; faster than `flatMap`, which most calls with one item would spend their time in. */
function itemsOf(calls: readonly Call[]): readonly unknown[] {
  if (calls.length === 1) return (calls[0] as Call).items;
  const all: unknown[] = [];
  for (const { items } of calls) {
    for (const item of items) all.push(item);
  }
  return all;
}
