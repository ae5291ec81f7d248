import { StoreError } from '../../errors.ts';
import { loadBetterSqlite } from './better-sqlite.ts';
import type { Driver, Library, SqliteDriver } from './driver.ts';
import { storeError } from './failures.ts';
import { loadNodeSqlite } from './node-sqlite.ts';

/** Older ones can corrupt a WAL database that two connections write and checkpoint at once (fixed in 3.51.3). */
const OLDEST_SQLITE = [3, 51, 3] as const;

let usual: Promise<Library> | undefined;

/**
 * The library of that name. Without a name: better-sqlite3, or Node's own SQLite where better-sqlite3 is not installed or not built.
 * @throws StoreError if there is none.
 */
export function libraryOf(driver?: SqliteDriver): Promise<Library> {
  if (driver !== undefined) return named(driver);
  usual ??= named('better-sqlite3').catch((error: unknown) => {
    const own = loadNodeSqlite();
    if (own === undefined || isOldSqlite(own.version)) throw error;
    return own;
  });
  return usual;
}

async function named(driver: SqliteDriver): Promise<Library> {
  if (driver === 'node:sqlite') {
    const own = loadNodeSqlite();
    if (own) return own;
    throw new StoreError(
      'store_unsupported',
      `Node ${process.versions.node} has no node:sqlite. Use Node 24, or the driver better-sqlite3.`,
    );
  }
  try {
    return await loadBetterSqlite();
  } catch (error) {
    throw notBuilt(error);
  }
}

/** Opens a connection. Nothing about the file is trusted or changed yet. */
export function connect(path: string, library: Library): Driver {
  try {
    return library.open(path);
  } catch (error) {
    throw storeError(error, path);
  }
}

/** @throws StoreError if the SQLite inside the library is older than 3.51.3. */
export function refuseOldSqlite(version: string, driver: SqliteDriver): void {
  if (!isOldSqlite(version)) return;
  throw new StoreError(
    'store_unsupported',
    `This SQLite is ${version}, and Holdfast needs ${OLDEST_SQLITE.join('.')}: before that, two connections that write and ` +
      `checkpoint at once can corrupt the file. Update ${driver === 'node:sqlite' ? 'Node, or install better-sqlite3' : 'better-sqlite3 to 12.11 or later'}.`,
  );
}

function isOldSqlite(version: string): boolean {
  const parts = version.split('.').map(Number);
  const first = OLDEST_SQLITE.findIndex((part, i) => part !== parts[i]);
  return first >= 0 && !((parts[first] ?? 0) > (OLDEST_SQLITE[first] as number));
}

function notBuilt(cause: unknown): StoreError {
  return new StoreError(
    'store_unsupported',
    'The SQLite library better-sqlite3 is not built for this Node. Its install script has to run once: ' +
      'npm install-scripts approve better-sqlite3 && npm rebuild better-sqlite3. Node 24 needs no library: it has SQLite itself.',
    { cause },
  );
}
