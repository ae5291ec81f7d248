/**
 * The store in one SQLite file.
 * @module holdfast/sqlite
 */

import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { ClosedError, InvalidInputError, StoreError } from '../../errors.ts';
import { oneOf, refuseUnknown } from '../../options.ts';
import { show } from '../../show.ts';
import { PendingLeaves } from '../pending-leaves.ts';
import type { News, Store, StoreOpener, World } from '../store.ts';
import { backUp } from './backup.ts';
import { retryWhileBusy } from './busy-retry.ts';
import { Catalogue } from './catalogue.ts';
import { Chores } from './chores.ts';
import { StoreClock } from './clock.ts';
import { Counting } from './counters.ts';
import { type Library, SQLITE_DRIVERS, Sql, type SqliteDriver } from './driver.ts';
import { Enqueuing } from './enqueue.ts';
import { FactsTable } from './facts.ts';
import { SqliteFailures } from './failure-groups.ts';
import { isDamage, readOnly, storeError } from './failures.ts';
import { Groups } from './groups.ts';
import { Lanes } from './lanes.ts';
import { LeaseCache } from './lease-cache.ts';
import { connect, libraryOf, refuseOldSqlite } from './library.ts';
import { Moving } from './move.ts';
import { identify, OpenFiles, refuseHardLink } from './open-files.ts';
import { Places } from './places.ts';
import { Pruning } from './prune.ts';
import { QueueLimits } from './queue-limits.ts';
import { reader, SqliteRecords } from './records.ts';
import { LostLeases } from './recover.ts';
import { SqliteRedrives } from './redrives.ts';
import { Restricted } from './restricted.ts';
import { SqliteSchedules } from './schedules.ts';
import { COUNT_REMOVED, migrate, refuseTooNew, SCHEMA } from './schema.ts';
import { SharedTexts } from './shared-texts.ts';
import { SourceStates } from './source-states.ts';
import { SqliteSources } from './sources.ts';
import { spaceOf } from './space.ts';
import { SqliteTasks } from './tasks.ts';
import { Uniques } from './uniques.ts';
import { brokenInvariants } from './verify.ts';
import { Wake } from './wake.ts';
import { Walk } from './walk.ts';
import { Within } from './within.ts';
import { Writer } from './writer.ts';

export interface SqliteOptions {
  /**
   * What an acknowledged write survives. `full` (default): any crash, and a power cut, because each commit waits for the disk.
   * `process`: any crash or kill of processes. But after a power cut or a crash of the operating system, the last moments may be
   * lost: a task that was just enqueued is gone, a task that was just settled runs again, and an operator's last action is
   * undone. The file stays sound. The option applies to this connection; other processes use their own.
   */
  readonly durability?: Durability;
  /**
   * The SQLite library: `better-sqlite3`, or `node:sqlite`, which Node 24 has (and 22 from 22.23 on), so that nothing is compiled.
   * Default: better-sqlite3, and Node's own if that is not installed or not built. All libraries use the same file. But one process must
   * not open a file with two of them: they undo each other's locks.
   */
  readonly driver?: SqliteDriver;
}

/** SQLite's `synchronous` for each durability. With NORMAL, a WAL is synced to the disk only now and then, not at each commit. */
const SYNCHRONOUS = { full: { name: 'FULL', number: 2 }, process: { name: 'NORMAL', number: 1 } } as const;
type Durability = keyof typeof SYNCHRONOUS;
/** By the number that the pragma answers. */
const SYNCHRONOUS_NAMES = ['OFF', 'NORMAL', 'FULL', 'EXTRA'];

/**
 * A store in one SQLite file, shared by any number of processes of one host. The file is made if it does not exist; its folder
 * must exist. `':memory:'` is a store that ends with its process. It is opened only when Holdfast opens it.
 * @throws InvalidInputError for an invalid path or option.
 */
export function sqlite(path: string, options: SqliteOptions = {}): StoreOpener {
  if (typeof path !== 'string' || path === '') {
    throw new InvalidInputError(`sqlite needs the path of a file, or ':memory:', got ${show(path)}.`);
  }
  if (/^postgres(ql)?:/i.test(path)) {
    throw new InvalidInputError(
      "sqlite takes the path of a file, got the address of a server. Use postgres('postgres://…') of holdfast/postgres.",
    );
  }
  if (/^file:/i.test(path)) {
    throw new InvalidInputError(`sqlite takes the path of a file, got a URL: ${show(path)}. Write the path alone.`);
  }
  // The library would cut the path at a NUL and trim it, and so open another file than the one that is checked.
  if (path.includes('\0') || path.trim() !== path) {
    throw new InvalidInputError(`sqlite needs a path without NUL and without space at its ends, got ${show(path)}.`);
  }
  refuseUnknown(options, ['durability', 'driver'], 'sqlite');
  const { durability = 'full', driver } = options;
  oneOf(durability, Object.keys(SYNCHRONOUS), 'durability');
  if (driver !== undefined) oneOf(driver, SQLITE_DRIVERS, 'driver');
  return { kind: 'sqlite', open: (world) => openSqlite(path, { durability, driver }, world) };
}

interface Settings {
  readonly durability: Durability;
  readonly driver: SqliteDriver | undefined;
}

/** The log is cut back to this after a long transaction or a long read has made it grow. */
const WAL_KEPT_BYTES = 64 * 1024 * 1024;

async function openSqlite(path: string, { durability, driver }: Settings, world: World): Promise<Store> {
  const before = path === ':memory:' ? undefined : identify(path);
  if (before) {
    refuseReadOnly(path);
    if (before.isFile()) refuseHardLink(before, path);
  }
  // A library that was not built is noticed before there is a file.
  const library = await libraryOf(driver);
  if (path !== ':memory:' && !before) makePrivate(path);
  const sql = new Sql(connect(path, library));
  try {
    await retryWhileBusy(() => prepare(sql, path, durability, library));
    return build({ sql, library, path, files: OpenFiles.of(sql, path, before), world });
  } catch (error) {
    sql.close();
    throw storeError(isDamage(error) ? causeOfDamage(error, path, library) : error, path);
  }
}

/** A new store is its owner's alone, for inputs and results may hold secrets. SQLite gives its log beside it the same permissions. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // Another process has just made it, or it cannot be made, which SQLite says next.
  }
}

/**
 * SQLite would open it read-only, and make files beside it with the same permissions. These would prevent writes even after the
 * file was made writable.
 */
function refuseReadOnly(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw readOnly(error, path);
  }
}

/** SQLite reports a failing disk as a damaged schema. Reading only the file's header gives the real error. */
function causeOfDamage(damage: unknown, path: string, library: Library): unknown {
  const probe = connect(path, library);
  try {
    probe.exec('PRAGMA schema_version');
    return damage;
  } catch (error) {
    return error;
  } finally {
    probe.close();
  }
}

interface Opened {
  readonly sql: Sql;
  readonly library: Library;
  readonly path: string;
  readonly files: OpenFiles;
  readonly world: World;
}

function build({ sql, library, path, files, world }: Opened): Store {
  const clock = new StoreClock(world.clock);
  clock.learn(sql);
  const catalogue = new Catalogue(sql, clock);
  const lanes = new Lanes(sql, catalogue, world.random);
  const restricted = new Restricted(sql, lanes, catalogue);
  const queueLimits = new QueueLimits(sql);
  const walk = new Walk({ sql, catalogue, lanes, restricted, queueLimits });
  const facts = new FactsTable(sql);
  const places = new Places(sql, lanes, facts);
  const sourceStates = new SourceStates(sql, restricted, facts, places, catalogue);
  const texts = new SharedTexts(sql);
  const cached = {
    flush: () => lanes.flush(),
    forget() {
      lanes.forget();
      texts.forget();
    },
  };
  const writer = new Writer({ sql, clock, path, files, cached });
  const wake = new Wake(sql, path);
  const lostLeases = new LostLeases(sql, world.clock);
  let closed = false;
  const read = reader(sql, path, files, () => {
    if (closed) throw new ClosedError('The store');
  });
  const now = () => clock.read();
  const uniques = new Uniques(sql);
  const groups = new Groups(sql, catalogue);
  const enqueuing = new Enqueuing(sql, catalogue, places, uniques, groups);
  const moving = new Moving(sql, places, facts, uniques, groups);
  const leaseCache = new LeaseCache();
  const counting = new Counting(sql, writer);
  const pendingLeaves = new PendingLeaves(async (worker) =>
    writer.tryNow(() => {
      lostLeases.noteStopping(worker);
      lostLeases.dismiss(worker, now());
    }),
  );
  const parts = {
    sql,
    writer,
    catalogue,
    lanes,
    walk,
    places,
    facts,
    lostLeases,
    uniques,
    groups,
    enqueuing,
    moving,
    leaseCache,
    restricted,
    queueLimits,
    sourceStates,
    texts,
    read,
    now,
    pendingLeaves,
    counting,
  };
  const notify = (news: News) => wake.call(news);
  const tasks = new SqliteTasks(parts, notify);
  const pruning = new Pruning(sql, writer, read, clock);
  const chores = new Chores(parts);
  const within = new Within({ sql, library, path, files, clock, random: world.random, isClosed: () => closed });

  return {
    tasks,
    sources: new SqliteSources({ ...parts, notify }),
    redrives: new SqliteRedrives({ sql, writer, read, moving, now, notify }),
    schedules: new SqliteSchedules({ ...parts, notify }),
    failures: new SqliteFailures(parts),
    records: new SqliteRecords(read, () => clock.read()),
    within: (handle) => within.of(handle),
    upkeep: {
      describe: () => ({
        kind: 'sqlite',
        where: path,
        schema: SCHEMA,
        durability: synchronous(sql) === SYNCHRONOUS.full.number ? 'full' : 'process',
        driver: `${library.name}, SQLite ${sqliteVersion(sql)}`,
      }),
      now: () => clock.read(),
      clock: () =>
        read((own) => {
          clock.learn(own);
          return clock.describe();
        }),
      resetClock: () =>
        writer.write(() => {
          if (clock.set(sql)) lanes.rearrange((ids) => places.placesOf(ids));
        }),
      space: () => read((own) => spaceOf(own, path)),
      backUp: (file) => backUp(sql, file),
      async vacuum() {
        await writer.write(() => sql.exec(COUNT_REMOVED));
        await retryWhileBusy(() => sql.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM')).catch((error) => {
          throw storeError(error, path);
        });
        await retryWhileBusy(() => sql.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
      },
      endLeases: () => writer.write(() => lostLeases.dismissAll()),
      isLocal: true,
      onNews: (listener) => wake.listen(listener),
      verify: () => read(brokenInvariants),
      prunable: (retention) => pruning.prunable(retention),
      prune: (retention, after) => pruning.prune(retention, after),
      remove: (ids, states, after) => pruning.remove(ids, states, after),
      tidy: () => chores.tidy(),
      gatherCounts: () => counting.gather(),
      takeTurn: (chore, every) => chores.takeTurn(chore, every),
      takeActions: (limit) => chores.takeActions(limit),
      giveUpAfter: (time) => writer.giveUpAfter(time),
      async close() {
        if (closed) return;
        closed = true;
        wake.close();
        await writer.close();
        const departing = pendingLeaves.close();
        if (departing) void departing.then(() => sql.close());
        else sql.close();
      },
    },
  };
}

/** Configures the connection and makes the tables. Every important setting is read back. */
function prepare(sql: Sql, path: string, durability: Durability, { name }: Library): void {
  refuseOldSqlite(sqliteVersion(sql), name);
  // In a file that has pages this would be a write, also in one that is refused below.
  if (pageCount(sql) === 0) sql.exec('PRAGMA auto_vacuum = INCREMENTAL');
  const { journal_mode: journal } = sql.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL') as {
    journal_mode: string;
  };
  if (journal !== 'wal' && journal !== 'memory') {
    throw new StoreError(
      'store_unsupported',
      `${path} stands on a file system that cannot share memory between processes (SQLite keeps journal_mode=${journal} there), as network file systems do. Put it on a local disk.`,
    );
  }
  // better-sqlite3 is built with NORMAL for WAL, which loses acknowledged commits when the power goes.
  const wanted = SYNCHRONOUS[durability];
  sql.exec(
    `PRAGMA synchronous = ${wanted.name}; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA journal_size_limit = ${WAL_KEPT_BYTES}`,
  );
  if (synchronous(sql) !== wanted.number) {
    throw new StoreError(
      'store_unsupported',
      `SQLite did not take synchronous=${wanted.name} for ${path}: it uses ${SYNCHRONOUS_NAMES[synchronous(sql) ?? -1] ?? 'an unknown setting'}. Use the better-sqlite3 that Holdfast installs.`,
    );
  }
  // Whoever only reads does not wait for the transaction of another process.
  if (refuseTooNew(sql, path).schema >= SCHEMA) return;
  sql.run('BEGIN IMMEDIATE');
  try {
    migrate(sql, path);
    sql.run('COMMIT');
  } catch (error) {
    if (sql.inTransaction) sql.run('ROLLBACK');
    throw error;
  }
}

function synchronous(sql: Sql): number | undefined {
  return sql.get<{ synchronous: number }>('PRAGMA synchronous')?.synchronous;
}

function pageCount(sql: Sql): number | undefined {
  return sql.get<{ page_count: number }>('PRAGMA page_count')?.page_count;
}

function sqliteVersion(sql: Sql): string {
  return sql.get<{ version: string }>('SELECT sqlite_version() AS version')?.version ?? 'unknown';
}
