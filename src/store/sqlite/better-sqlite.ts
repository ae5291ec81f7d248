import type { Driver, Handle, Library } from './driver.ts';

/** What is used of the class of better-sqlite3, which ships no types. */
type Database = new (path: string, options: object) => Handle;

interface WithSafeIntegers {
  safeIntegers(on?: boolean): { all(): object[] };
}

/** The library better-sqlite3. Rejects if it is not installed, or not built for this Node. */
export async function loadBetterSqlite(): Promise<Library> {
  // Imported through a variable, so that users can compile without the package and its types.
  const name: string = 'better-sqlite3';
  const { default: Database } = (await import(name)) as { default: Database };
  // The compiled part is loaded by the first connection.
  new Database(':memory:', {}).close();
  return {
    name: 'better-sqlite3',
    open: (path) => new Database(path, { timeout: 0 }),
    select(path, query) {
      const database = new Database(path, { readonly: true, fileMustExist: true });
      try {
        return (database.prepare(query) as unknown as WithSafeIntegers).safeIntegers().all();
      } finally {
        database.close();
      }
    },
    adopt: (given) => (given instanceof Database ? plain(given) : undefined),
  };
}

/** Its statements return numbers, whatever the default of the caller's handle is. */
function plain(handle: Handle): Handle {
  return {
    exec: (text) => handle.exec(text),
    prepare(text) {
      const statement = handle.prepare(text);
      // Before version 7 there is none.
      if ('safeIntegers' in statement) (statement as unknown as WithSafeIntegers).safeIntegers(false);
      return statement;
    },
    close: () => {},
    get inTransaction() {
      return handle.inTransaction;
    },
    get open() {
      return handle.open;
    },
    get readonly() {
      return handle.readonly;
    },
  } satisfies Driver & Handle;
}
