import { StoreError } from '../../errors.ts';
import { storeError } from './failures.ts';

/** The part of a SQLite library that the store uses: small, so that another library can take better-sqlite3's place. */
export interface Driver {
  exec(sql: string): unknown;
  prepare(sql: string): Statement;
  close(): unknown;
  readonly inTransaction: boolean;
}

interface Statement {
  run(...values: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  /** From now on it returns each row as an array of its columns. */
  raw(): Statement;
  /** From now on it returns only the first column of each row. */
  pluck(): Statement;
}

/** How many rows one statement inserts: the largest that fits. */
const AT_ONCE = [32, 8, 1] as const;

/**
 * SQLite's own wait for a locked database would block the event loop, so steps on a busy database are repeated by
 * `busy-retry.ts`.
 */
const NEVER_WAIT = 0;

/** Older ones can corrupt a WAL database that two connections write and checkpoint at once (fixed in 3.51.3). */
const OLDEST_SQLITE = [3, 51, 3] as const;

/** Opens the library's connection. Nothing about the file is trusted or changed yet. */
export async function connect(path: string): Promise<Driver> {
  const Database = await load();
  try {
    return new Database(path, { timeout: NEVER_WAIT });
  } catch (error) {
    throw isMissingBinary(error) ? notBuilt(error) : storeError(error, path);
  }
}

/** @throws StoreError if the SQLite inside the library is older than 3.51.3. */
export function refuseOldSqlite(version: string): void {
  const parts = version.split('.').map(Number);
  const first = OLDEST_SQLITE.findIndex((part, i) => part !== parts[i]);
  if (first < 0 || (parts[first] ?? 0) > (OLDEST_SQLITE[first] as number)) return;
  throw new StoreError(
    'store_unsupported',
    `This SQLite is ${version}, and Holdfast needs ${OLDEST_SQLITE.join('.')}: before that, two connections that write and ` +
      'checkpoint at once can corrupt the file. Update better-sqlite3 to 12.11 or later.',
  );
}

/**
 * One connection with its prepared statements, each made at its first use. A statement is found by its text, so that the SQL can
 * be next to its caller.
 */
export class Sql {
  readonly #driver: Driver;
  readonly #statements = new Map<string, Statement>();
  readonly #insertions = new Map<string, Statement>();
  readonly #raw = new Map<string, Statement>();
  readonly #plucked = new Map<string, Statement>();

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  get inTransaction(): boolean {
    return this.#driver.inTransaction;
  }

  /** Whether this is a connection of the same copy of the library as ours. */
  isOfSameLibrary<Handle extends Driver>(handle: unknown): handle is Handle {
    return handle instanceof this.#driver.constructor;
  }

  /** The number of rows that were changed through `run` and `insertAll`. */
  changed = 0;

  exec(script: string): void {
    this.#driver.exec(script);
  }

  run(text: string, ...values: unknown[]): { readonly changes: number; readonly id: number } {
    const { changes, lastInsertRowid } = this.#prepare(text).run(...values);
    this.changed += changes;
    return { changes, id: Number(lastInsertRowid) };
  }

  /** The first row. The caller gives its type, because the schema is ours. */
  get<Row>(text: string, ...values: unknown[]): Row | undefined {
    return this.#prepare(text).get(...values) as Row | undefined;
  }

  all<Row>(text: string, ...values: unknown[]): Row[] {
    return this.#prepare(text).all(...values) as Row[];
  }

  /**
   * Inserts many rows with few calls: all their values one after the other. `into` names the table and its columns; what
   * follows the values may be `onConflict`.
   */
  insertAll(into: string, columns: number, values: readonly unknown[], onConflict = ''): void {
    for (let at = 0; at < values.length; ) {
      const rows = AT_ONCE.find((size) => at + size * columns <= values.length) as number;
      const end = at + rows * columns;
      const whole = at === 0 && end === values.length;
      this.#inserting(into, rows, columns, onConflict).run(whole ? values : values.slice(at, end));
      this.changed += rows;
      at = end;
    }
  }

  /** Every row as an array of its columns, which costs half of an object. */
  rows<Row extends readonly unknown[]>(text: string, ...values: unknown[]): Row[] {
    let statement = this.#raw.get(text);
    if (!statement) {
      statement = this.#driver.prepare(text).raw();
      this.#raw.set(text, statement);
    }
    return statement.all(...values) as Row[];
  }

  /** The first column of every row. */
  column<Value>(text: string, ...values: unknown[]): Value[] {
    let statement = this.#plucked.get(text);
    if (!statement) {
      statement = this.#driver.prepare(text).pluck();
      this.#plucked.set(text, statement);
    }
    return statement.all(...values) as Value[];
  }

  close(): void {
    this.#driver.close();
  }

  #inserting(into: string, rows: number, columns: number, onConflict: string): Statement {
    const name = `${rows} ${into}${onConflict}`;
    let statement = this.#insertions.get(name);
    if (!statement) {
      const row = `(${Array(columns).fill('?').join()})`;
      statement = this.#driver.prepare(`INSERT INTO ${into} VALUES ${Array(rows).fill(row).join()} ${onConflict}`);
      this.#insertions.set(name, statement);
    }
    return statement;
  }

  #prepare(text: string): Statement {
    let statement = this.#statements.get(text);
    if (!statement) {
      statement = this.#driver.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }
}

type Constructor = new (path: string, options: { timeout: number }) => Driver;

async function load(): Promise<Constructor> {
  try {
    // Imported through a variable, so that users can compile without the package and its types.
    const name: string = 'better-sqlite3';
    return ((await import(name)) as { default: Constructor }).default;
  } catch (error) {
    throw notBuilt(error);
  }
}

function isMissingBinary(error: unknown): boolean {
  return error instanceof Error && /bindings file|NODE_MODULE_VERSION|\.node\b/.test(error.message);
}

function notBuilt(cause: unknown): StoreError {
  return new StoreError(
    'store_unsupported',
    'The SQLite library better-sqlite3 is not built for this Node. Its install script has to run once: ' +
      'npm install-scripts approve better-sqlite3 && npm rebuild better-sqlite3',
    { cause },
  );
}
