import pg from 'pg';
import { afterAll, afterEach } from 'vitest';
import { systemClock } from '../src/clock.ts';
import type { Store, StoreOpener } from '../src/index.ts';
import { postgres } from '../src/store/postgres/index.ts';
import { sqlite } from '../src/store/sqlite/index.ts';
import { dice } from '../src/testing/dice.ts';
import { VirtualClock } from '../src/testing/index.ts';
import Database from './database.ts';
import { ask } from './postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from './postgres/databases.ts';

/** The kind of store that tests of the upper layers run on: `HOLDFAST_TEST_STORE`, SQLite unless it says otherwise. */
export const STORE = kindOf(process.env.HOLDFAST_TEST_STORE ?? 'sqlite');

function kindOf(name: string): 'sqlite' | 'postgres' {
  if (name === 'sqlite' || name === 'postgres') return name;
  throw new Error(`HOLDFAST_TEST_STORE is sqlite or postgres, got ${name}.`);
}

const IN_MEMORY = ':memory:';

/**
 * An empty store of that kind. One that has a path is a file; on PostgreSQL the path is the name of a database, which the same
 * test meets again by it, as it would meet the file.
 */
export function aStore(path = IN_MEMORY): StoreOpener {
  if (STORE === 'sqlite') return sqlite(path);
  return { kind: 'postgres', open: (world) => openPostgres(path, world) };
}

/** Runs SQL in the database of the store that was opened at a path, beside the store. */
export async function alter(path: string, sql: Readonly<Record<typeof STORE, string>>): Promise<void> {
  if (STORE === 'sqlite') {
    const file = new Database(path);
    file.exec(sql.sqlite);
    file.close();
    return;
  }
  const database = await named.get(path);
  if (database === undefined) throw new Error(`No store was opened at ${path}.`);
  await ask(database.directUrl, sql.postgres);
}

/** Makes the store that was opened at a path refuse something, until it relents. */
export interface Refusals {
  /** Settling: of all tasks, or of one. */
  refuse(what: 'settling' | 'claiming' | 'renewing', task?: number): Promise<unknown>;
  relent(): Promise<unknown>;
}

export function refusalsOf(path: string): Refusals {
  return STORE === 'sqlite' ? refusalsOfFile(path) : refusalsOfDatabase(path);
}

function refusalsOfFile(path: string): Refusals {
  const exec = async (sql: string) => {
    const file = new Database(path);
    file.exec(sql);
    file.close();
  };
  const when = { settling: 'DELETE ON hf_running', claiming: 'INSERT ON hf_running', renewing: 'UPDATE ON hf_workers' };
  return {
    refuse: (what, task) =>
      exec(`CREATE TRIGGER refuse BEFORE ${task === undefined ? when[what] : `INSERT ON hf_resting WHEN new.id = ${task}`}
        BEGIN SELECT raise(ABORT, 'not now'); END`),
    relent: () => exec('DROP TRIGGER refuse'),
  };
}

function refusalsOfDatabase(path: string): Refusals {
  const run = async (sql: string) => {
    const database = await named.get(path);
    if (database === undefined) throw new Error(`No store was opened at ${path}.`);
    await ask(database.directUrl, sql);
  };
  const when = {
    settling: "DELETE OR UPDATE ON holdfast.live FOR EACH ROW WHEN (old.state = 'running'",
    claiming: "UPDATE ON holdfast.live FOR EACH ROW WHEN (old.state <> 'running' AND new.state = 'running'",
    renewing: 'UPDATE ON holdfast.workers FOR EACH ROW WHEN (true',
  };
  return {
    refuse: (what, task) =>
      run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$;
        CREATE TRIGGER refuse BEFORE ${when[what]}${task === undefined ? '' : ` AND old.id = ${task}`}) EXECUTE FUNCTION refuse()`),
    relent: () => run('DROP FUNCTION refuse() CASCADE'),
  };
}

/** Locks the store that was opened at a path, so that it can be read and not written, until the lock is released. */
export async function lockOf(path: string): Promise<() => Promise<void>> {
  if (STORE === 'sqlite') {
    const file = new Database(path);
    file.exec('BEGIN IMMEDIATE');
    return async () => void file.close();
  }
  const client = new pg.Client((await (named.get(path) as Promise<TestDatabase>)).directUrl);
  await client.connect();
  await client.query('BEGIN; LOCK TABLE holdfast.live, holdfast.workers IN EXCLUSIVE MODE');
  return () => client.end();
}

/** What another process does is heard of when the test says so, as on a file: by a look. */
const QUIET = { listen: false };

type World = Parameters<StoreOpener['open']>[0];

/** Databases by the clock that they have: the server's own, or the testing kit's. */
const prepared = new Map<boolean, Promise<TestDatabases>>();
const named = new Map<string, Promise<TestDatabase>>();

async function openPostgres(path: string, world: World): Promise<Store> {
  const isVirtual = world.clock !== systemClock;
  if (path === IN_MEMORY) {
    const { url, drop } = await take(isVirtual);
    const store = await postgres(url, QUIET).open(world);
    const close = async () => {
      await store.upkeep.close();
      drop();
    };
    return { ...store, upkeep: { ...store.upkeep, close } };
  }
  const database = named.get(path) ?? take(isVirtual);
  named.set(path, database);
  return postgres((await database).url, QUIET).open(world);
}

async function take(isVirtual: boolean): Promise<TestDatabase> {
  const databases = prepared.get(isVirtual) ?? openDatabases((url) => prepare(url, isVirtual));
  prepared.set(isVirtual, databases);
  return (await databases).take();
}

/** A clock of the testing kit begins before that of any test, for it goes forward only. */
async function prepare(url: string, isVirtual: boolean): Promise<void> {
  const clock = isVirtual ? new VirtualClock(new Date(0)) : systemClock;
  const store = await postgres(url).open({ clock, random: dice(1) });
  await store.upkeep.close();
}

afterEach(async () => {
  const left = [...named.values()];
  named.clear();
  for (const database of left) (await database).drop();
});
afterAll(async () => {
  for (const databases of prepared.values()) await (await databases).close();
});
