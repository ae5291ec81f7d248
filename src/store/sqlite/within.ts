import { realpathSync } from 'node:fs';
import { ClosedError, InvalidInputError, StoreError } from '../../errors.ts';
import { show } from '../../show.ts';
import type { Enqueuer, NewTask, Receipt, World } from '../store.ts';
import { Catalogue } from './catalogue.ts';
import type { StoreClock } from './clock.ts';
import { type Handle, type Library, Sql } from './driver.ts';
import { Enqueuing } from './enqueue.ts';
import { FactsTable } from './facts.ts';
import { isBusy, storeError } from './failures.ts';
import { Groups } from './groups.ts';
import { Lanes } from './lanes.ts';
import { refuseOldSqlite } from './library.ts';
import type { OpenFiles } from './open-files.ts';
import { Places } from './places.ts';
import { refuseTooNew } from './schema.ts';
import { Uniques } from './uniques.ts';

interface Parts {
  /** The store's own connection. */
  readonly sql: Sql;
  readonly library: Library;
  readonly path: string;
  readonly files: OpenFiles;
  readonly clock: StoreClock;
  readonly random: World['random'];
  readonly isClosed: () => boolean;
}

/**
 * Enqueues on handles of the caller, inside its transactions. Nothing that was read on such a handle is cached for the next call,
 * because it may have been rolled back, and the caches of the store's own connection are not used.
 */
export class Within {
  readonly #parts: Parts;
  readonly #borrowed = new WeakMap<object, Borrowed>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @throws InvalidInputError for a handle on which a task would be lost, or would be in another store. */
  of(given: unknown): Enqueuer {
    if (this.#parts.isClosed()) throw new ClosedError('The store');
    let borrowed = this.#borrowed.get(Object(given));
    if (!borrowed) {
      const handle = this.#handleFrom(given);
      this.#refuseOtherFile(handle);
      borrowed = new Borrowed(handle, this.#parts);
      this.#borrowed.set(Object(given), borrowed);
    }
    borrowed.refuseUnsafe();
    return borrowed;
  }

  #handleFrom(given: unknown): Handle {
    const { library } = this.#parts;
    const adopted = library.adopt(given);
    if (adopted) return adopted;
    const wanted = library.name === 'node:sqlite' ? 'DatabaseSync of node:sqlite' : 'Database of better-sqlite3';
    if (typeof Object(given).prepare !== 'function') {
      throw new InvalidInputError(`within takes an open ${wanted} on the store's file, got ${show(given)}.`);
    }
    const copies = library.name === 'node:sqlite' ? '' : ': `npm ls better-sqlite3` shows the copies';
    throw new InvalidInputError(
      `This handle is no ${wanted}, which Holdfast itself uses here. Two copies of SQLite in one process undo each other's locks on ` +
        `a file, which can corrupt it. Open it with that very library${copies}.`,
    );
  }

  #refuseOtherFile(handle: Handle): void {
    refuseClosed(handle);
    const own = fileOf(this.#parts.sql);
    if (own === undefined) {
      throw new InvalidInputError(
        'A store in memory cannot be reached by another handle, so nothing can be enqueued inside its transactions. Open the store on a file.',
      );
    }
    const file = fileOf(new Sql(handle));
    if (file === own) return;
    throw new InvalidInputError(
      `This handle is open on ${file ?? 'a database in memory'}, and the store is ${own}. One transaction holds for one file: ` +
        'keep both in the same one, and open the handle on it (an attached database does not count).',
    );
  }
}

/** One handle, with what is needed to enqueue on it. */
class Borrowed {
  readonly waits = false;
  readonly #handle: Handle;
  readonly #parts: Parts;
  readonly #sql: Sql;
  readonly #lanes: Lanes;
  readonly #enqueuing: Enqueuing;

  constructor(handle: Handle, parts: Parts) {
    this.#handle = handle;
    this.#parts = parts;
    const sql = new Sql(handle);
    const catalogue = new Catalogue(sql, parts.clock);
    const lanes = new Lanes(sql, catalogue, parts.random);
    const places = new Places(sql, lanes, new FactsTable(sql));
    this.#sql = sql;
    this.#lanes = lanes;
    this.#enqueuing = new Enqueuing(sql, catalogue, places, new Uniques(sql), new Groups(sql, catalogue));
    const version = sql.get<{ version: string }>('SELECT sqlite_version() AS version')?.version ?? 'unknown';
    refuseOldSqlite(version, parts.library.name);
  }

  /** Checks what may change between calls: whether it is open, and how durable its commits are. */
  refuseUnsafe(): void {
    if (this.#parts.isClosed()) throw new ClosedError('The store');
    refuseClosed(this.#handle);
    if (this.#handle.readonly) {
      throw new InvalidInputError('This handle was opened for reading only, so nothing can be enqueued on it.');
    }
    const wanted = synchronousOf(this.#parts.sql);
    const found = synchronousOf(this.#sql);
    if (found < wanted) {
      const name = NAMES[wanted];
      const pragma = `synchronous = ${name}`;
      const call = this.#parts.library.name === 'node:sqlite' ? `exec('PRAGMA ${pragma}')` : `pragma('${pragma}')`;
      throw new InvalidInputError(
        `This handle commits with synchronous=${NAMES[found]} and the store with ${name}: a task enqueued on it could be lost when the power ` +
          `goes, after it was acknowledged. Run db.${call} right after opening it, outside of a transaction.`,
      );
    }
  }

  enqueue(tasks: readonly NewTask[]): readonly Receipt[] {
    this.refuseUnsafe();
    const inside = this.#sql.inTransaction;
    try {
      this.#sql.run(inside ? 'SAVEPOINT holdfast' : 'BEGIN IMMEDIATE');
      const receipts = this.#write(tasks);
      this.#parts.files.checkCommitted();
      this.#sql.run(inside ? 'RELEASE holdfast' : 'COMMIT');
      if (!inside) this.#parts.files.checkCommitted();
      return receipts;
    } catch (error) {
      // Only our own part is undone. The rest of the transaction belongs to the caller.
      if (this.#sql.inTransaction) this.#sql.exec(inside ? 'ROLLBACK TO holdfast; RELEASE holdfast' : 'ROLLBACK');
      throw isBusy(error) ? locked(error, this.#parts.path) : storeError(error, this.#parts.path);
    }
  }

  #write(tasks: readonly NewTask[]): readonly Receipt[] {
    const { clock, path } = this.#parts;
    // The first statement is a write. A transaction that reads first keeps its snapshot, and cannot write after another commit.
    this.#sql.run('UPDATE hf_clock SET high = high WHERE id = 1');
    refuseTooNew(this.#sql, path);
    this.#lanes.forget();
    const now = clock.tick(this.#sql);
    const receipts = this.#enqueuing.enqueue(tasks, now);
    this.#lanes.flush();
    clock.note(this.#sql, true);
    return receipts;
  }
}

function refuseClosed(handle: Handle): void {
  if (!handle.open) throw new InvalidInputError('This handle is closed. within takes one that is open.');
}

/** Of `PRAGMA synchronous`, by its number. */
const NAMES = ['OFF', 'NORMAL', 'FULL', 'EXTRA'];

function synchronousOf(sql: Sql): number {
  return Number(sql.get<{ synchronous: number }>('PRAGMA synchronous')?.synchronous);
}

/** The real path of a connection's main database; undefined for one in memory. */
function fileOf(sql: Sql): string | undefined {
  const main = sql.all<{ name: string; file: string }>('PRAGMA database_list').find(({ name }) => name === 'main');
  if (!main?.file) return undefined;
  try {
    return realpathSync(main.file);
  } catch {
    // Moved or removed since it was opened.
    return main.file;
  }
}

function locked(cause: unknown, path: string): StoreError {
  return new StoreError(
    'store_busy',
    `${path} was being written by another connection, so this one could not, and nothing was enqueued. Begin the transaction ` +
      'with BEGIN IMMEDIATE (better-sqlite3: `db.transaction(…).immediate()`) on a handle with a `timeout`, and run it again.',
    { cause, retryable: true },
  );
}
