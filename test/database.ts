import BetterSqlite from 'better-sqlite3';

/**
 * A connection to a SQLite file that a test opens beside the store: of better-sqlite3, or of Node's own SQLite where better-sqlite3 is not
 * built for this Node. Both have the methods of better-sqlite3 that the tests call.
 */
type Database = BetterSqlite.Database;

interface Options {
  readonly readonly?: boolean;
  readonly timeout?: number;
}

const isBuilt = (() => {
  try {
    new BetterSqlite(':memory:').close();
    return true;
  } catch {
    return false;
  }
})();

/** The package that a program of its own must import for the same. */
export const DATABASE_MODULE = isBuilt ? 'better-sqlite3' : 'node:sqlite';

const Database = isBuilt ? BetterSqlite : classOnNode();

export default Database;

/** What is used of `DatabaseSync`, whose types come with those of newer versions of Node. */
interface DatabaseSync {
  exec(sql: string): void;
  prepare(sql: string): StatementSync;
  readonly isTransaction: boolean;
  readonly isOpen: boolean;
  location(): string | null;
}
interface StatementSync {
  get(...values: unknown[]): Record<string, unknown> | undefined;
  all(...values: unknown[]): Record<string, unknown>[];
  setReadBigInts(on: boolean): void;
}

function classOnNode(): typeof BetterSqlite {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite' as 'node:fs') as unknown as {
    DatabaseSync: new (path: string, options: object) => DatabaseSync;
  };
  // A part of DatabaseSync, because `within` takes only what is one.
  return class extends DatabaseSync {
    readonly readonly: boolean;
    #bigInts = false;

    constructor(path: string, { readonly = false, timeout = 5_000 }: Options = {}) {
      super(path, { readOnly: readonly, timeout });
      this.readonly = readonly;
    }

    get inTransaction() {
      return this.isTransaction;
    }

    get open() {
      return this.isOpen;
    }

    get name() {
      return this.location();
    }

    override prepare(sql: string) {
      const statement = super.prepare(sql);
      if (this.#bigInts) statement.setReadBigInts(true);
      const first = (row: Record<string, unknown> | undefined) => row && Object.values(row)[0];
      const pluck = () => ({
        get: (...values: unknown[]) => first(statement.get(...values)),
        all: (...values: unknown[]) => statement.all(...values).map(first),
      });
      return Object.assign(statement, { pluck });
    }

    pragma(text: string, { simple = false } = {}) {
      const statement = this.prepare(`PRAGMA ${text}`);
      return simple ? statement.pluck().get() : statement.all();
    }

    defaultSafeIntegers(on = true) {
      this.#bigInts = on;
    }

    transaction<Args extends unknown[], Result>(act: (...args: Args) => Result) {
      const inOne =
        (begin: string) =>
        (...args: Args) => {
          this.exec(begin);
          try {
            const result = act(...args);
            this.exec('COMMIT');
            return result;
          } catch (error) {
            if (this.isTransaction) this.exec('ROLLBACK');
            throw error;
          }
        };
      return Object.assign(inOne('BEGIN'), { immediate: inOne('BEGIN IMMEDIATE') });
    }
  } as unknown as typeof BetterSqlite;
}
