import type { Handle, Library, Statement } from './driver.ts';

/** What is used of `DatabaseSync` of node:sqlite, whose types come with those of newer versions of Node. */
interface DatabaseSync {
  exec(sql: string): void;
  prepare(sql: string): StatementSync;
  close(): void;
  readonly isTransaction: boolean;
  readonly isOpen: boolean;
}

interface StatementSync {
  run(...values: unknown[]): { readonly changes: number; readonly lastInsertRowid: number };
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  setReturnArrays(on: boolean): void;
  setReadBigInts(on: boolean): void;
  setAllowUnknownNamedParameters(on: boolean): void;
}

type DatabaseClass = new (path: string, options?: { readonly readOnly: boolean }) => DatabaseSync;

/** Node 22 reads a text up to its first NUL only, so none is stored. */
let cutsAtNul = false;

/** Node's own SQLite, and its version; undefined if this Node has none, or one without what is needed here. */
export function loadNodeSqlite(): (Library & { readonly version: string }) | undefined {
  const Database = classOfNode();
  if (Database === undefined) return undefined;
  const probe = new Database(':memory:');
  const statement = probe.prepare('SELECT sqlite_version() AS version, ? AS text');
  const isComplete = typeof statement.setReturnArrays === 'function' && typeof probe.isTransaction === 'boolean';
  const { version, text } = statement.get('a\0b') as { version: string; text: string };
  cutsAtNul = text === 'a';
  probe.close();
  if (!isComplete) return undefined;
  return {
    name: 'node:sqlite',
    version,
    open: (path) => translating(() => new NodeSqlite(new Database(path))),
    select(path, query) {
      const database = new Database(path, { readOnly: true });
      try {
        const statement = database.prepare(query);
        statement.setReadBigInts(true);
        return statement.all() as object[];
      } finally {
        database.close();
      }
    },
    adopt: (given) => (given instanceof Database ? new NodeSqlite(given) : undefined),
  };
}

/** Node warns at the first use that its SQLite may change. That is for whoever calls it, and a command has to be silent with -q. */
function classOfNode(): DatabaseClass | undefined {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    const builtin = process.getBuiltinModule('node:sqlite' as 'node:fs') as unknown;
    return (builtin as { DatabaseSync?: DatabaseClass } | undefined)?.DatabaseSync;
  } finally {
    process.emitWarning = emitWarning;
  }
}

class NodeSqlite implements Handle {
  readonly #database: DatabaseSync;
  /** Node does not tell. A write on such a handle is refused by SQLite. */
  readonly readonly = false;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  get open(): boolean {
    return this.#database.isOpen;
  }

  exec(sql: string): void {
    translating(() => this.#database.exec(sql));
  }

  prepare(sql: string): Statement {
    return new NodeStatement(translating(() => this.#database.prepare(sql)));
  }

  close(): void {
    this.#database.close();
  }
}

class NodeStatement implements Statement {
  readonly #statement: StatementSync;
  #plucks = false;

  constructor(statement: StatementSync) {
    this.#statement = statement;
    statement.setAllowUnknownNamedParameters(true);
    statement.setReadBigInts(false);
  }

  run(...values: unknown[]): { readonly changes: number; readonly lastInsertRowid: number } {
    return translating(() => this.#statement.run(...spread(values)));
  }

  get(...values: unknown[]): unknown {
    const row = translating(() => this.#statement.get(...spread(values)));
    return this.#plucks ? (row as unknown[] | undefined)?.[0] : row;
  }

  all(...values: unknown[]): unknown[] {
    const rows = translating(() => this.#statement.all(...spread(values)));
    return this.#plucks ? rows.map((row) => (row as unknown[])[0]) : rows;
  }

  raw(): Statement {
    this.#statement.setReturnArrays(true);
    return this;
  }

  pluck(): Statement {
    this.#plucks = true;
    return this.raw();
  }
}

/** The values may be given as one array, by name, or as an array and then by name. What is missing is NULL. */
function spread(values: unknown[]): unknown[] {
  const [first, second] = values;
  if (Array.isArray(first)) return second === undefined ? spread(first) : [...spread([second]), ...spread(first)];
  if (typeof first === 'object' && first !== null && !ArrayBuffer.isView(first)) {
    return [Object.fromEntries(Object.entries(first).map(([name, value]) => [name, bindable(value)]))];
  }
  return values.map(bindable);
}

function bindable(value: unknown): unknown {
  if (value === undefined) return null;
  return cutsAtNul && typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value;
}

/** The names of SQLite's codes that a caller distinguishes. */
const NAMES: Readonly<Record<number, string>> = {
  3: 'PERM',
  5: 'BUSY',
  6: 'LOCKED',
  8: 'READONLY',
  10: 'IOERR',
  11: 'CORRUPT',
  13: 'FULL',
  14: 'CANTOPEN',
  19: 'CONSTRAINT',
  26: 'NOTADB',
};

/** Errors get the `code` that better-sqlite3 gives them. Node has a number instead, whose last byte is the kind. */
function translating<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    const { errcode } = error as { errcode?: unknown };
    if (typeof errcode === 'number')
      Object.assign(error as object, { code: `SQLITE_${NAMES[errcode & 255] ?? 'ERROR'}` });
    throw error;
  }
}
