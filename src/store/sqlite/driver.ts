/** The part of a SQLite library that the store uses: small, so that several libraries can take each other's place. */
export interface Driver {
  exec(sql: string): unknown;
  prepare(sql: string): Statement;
  close(): unknown;
  readonly inTransaction: boolean;
}

export interface Statement {
  run(...values: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  /** From now on it returns each row as an array of its columns. */
  raw(): Statement;
  /** From now on it returns only the first column of each row. */
  pluck(): Statement;
}

export const SQLITE_DRIVERS = ['better-sqlite3', 'node:sqlite'] as const;
export type SqliteDriver = (typeof SQLITE_DRIVERS)[number];

/** A connection of the caller. */
export interface Handle extends Driver {
  readonly open: boolean;
  readonly readonly: boolean;
}

/** A SQLite library. A process uses one only: two copies undo each other's locks on a file, which can corrupt it. */
export interface Library {
  readonly name: SqliteDriver;
  /** Opens a file. Statements on a locked database fail at once: `busy-retry.ts` repeats them without blocking the event loop. */
  open(path: string): Driver;
  /** The rows of a query on a file that is opened for reading only. Integers may be bigints. */
  select(path: string, query: string): readonly object[];
  /** A connection of the caller; undefined if it is not of this library. Its statements return numbers, whatever it is set to. */
  adopt(given: unknown): Handle | undefined;
}

/** How many rows one statement inserts: the largest that fits. */
const AT_ONCE = [100, 32, 8, 1] as const;

/** From this number of rows on, equal values are bound once. */
const FEWEST_COMPARED = 8;

/** How many statements are kept that bind equal values once. Each is for other columns. When there are so many, further ones are not made. */
const MOST_COMPARED = 100;

/**
 * One connection with its prepared statements, each made at its first use. A statement is found by its text, so that the SQL can
 * be next to its caller.
 */
export class Sql {
  readonly #driver: Driver;
  readonly #statements = new Map<string, Statement>();
  readonly #insertions = new Map<string, Statement>();
  readonly #comparedInsertions = new Map<string, Statement>();
  readonly #raw = new Map<string, Statement>();
  readonly #plucked = new Map<string, Statement>();

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  get inTransaction(): boolean {
    return this.#driver.inTransaction;
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
      if (rows < FEWEST_COMPARED || !this.#insertCompared(into, columns, values, at, end, onConflict)) {
        const whole = at === 0 && end === values.length;
        this.#inserting(into, rows, columns, onConflict).run(whole ? values : values.slice(at, end));
      }
      this.changed += rows;
      at = end;
    }
  }

  /**
   * Inserts rows, and binds the value of a column only once if they all have the same there: most columns of rows that are written
   * together have, and binding takes half of the time. False if too many combinations of such columns have come before.
   */
  #insertCompared(
    into: string,
    columns: number,
    values: readonly unknown[],
    from: number,
    end: number,
    onConflict: string,
  ): boolean {
    const common: Record<string, unknown> = {};
    const own: number[] = [];
    let row = '';
    for (let column = 0; column < columns; column++) {
      const value = values[from + column];
      let at = from + column + columns;
      while (at < end && values[at] === value) at += columns;
      if (at >= end) common[`c${column}`] = value;
      else own.push(column);
      row += `${column === 0 ? '' : ','}${at < end ? '?' : `@c${column}`}`;
    }
    const statement = this.#compared(into, (end - from) / columns, row, onConflict);
    if (!statement) return false;
    const each: unknown[] = [];
    for (let at = from; at < end; at += columns) {
      for (const column of own) each.push(values[at + column]);
    }
    statement.run(each, common);
    return true;
  }

  /**
   * Inserts so many rows that are alike. `row(n)` is the SQL of the row with this number, whose names are members of `common`;
   * `@first` is the number of the first row. `own`: if a row has a `?`, its value for each row. Binding each value of each row would take
   * twice as long.
   */
  insertAlike(
    into: string,
    row: (n: number) => string,
    count: number,
    common: Readonly<Record<string, unknown>>,
    own?: readonly unknown[],
  ): void {
    for (let at = 0; at < count; ) {
      const rows = AT_ONCE.find((size) => at + size <= count) as number;
      const named = { ...common, first: (common.first as number) + at };
      const statement = this.#insertingAlike(into, row, rows);
      if (own) statement.run(rows === count ? own : own.slice(at, at + rows), named);
      else statement.run(named);
      this.changed += rows;
      at += rows;
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

  /** Undefined if there are too many statements of this kind. */
  #compared(into: string, rows: number, row: string, onConflict: string): Statement | undefined {
    const name = `${rows} ${row} ${into}${onConflict}`;
    let statement = this.#comparedInsertions.get(name);
    if (!statement) {
      if (this.#comparedInsertions.size >= MOST_COMPARED) return undefined;
      statement = this.#driver.prepare(
        `INSERT INTO ${into} VALUES ${Array(rows).fill(`(${row})`).join()} ${onConflict}`,
      );
      this.#comparedInsertions.set(name, statement);
    }
    return statement;
  }

  #insertingAlike(into: string, row: (n: number) => string, rows: number): Statement {
    const name = `${rows} alike ${into}`;
    let statement = this.#insertions.get(name);
    if (!statement) {
      const values = Array.from({ length: rows }, (_, n) => row(n)).join();
      statement = this.#driver.prepare(`INSERT INTO ${into} VALUES ${values}`);
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
