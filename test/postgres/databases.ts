import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { askForServer } from './ask-for-server.ts';

/** How many databases are kept ready, made while tests run. */
const READY = 4;

/** A database of one test alone, prepared as all of them. */
export interface TestDatabase {
  /** For the program under test: through the pooler, if there is one. */
  readonly url: string;
  /** Past the pooler: for a test that looks on, or ends connections. */
  readonly directUrl: string;
  /** Removes it in the background, whoever is still connected. */
  drop(): void;
}

export interface TestDatabases {
  take(): Promise<TestDatabase>;
  /** Removes all that are left. */
  close(): Promise<void>;
}

/**
 * Databases for tests. `prepare` is called once, with the URL of an empty one; each that is taken is a copy of what it made.
 * It must have closed its connections when it resolves. One of these serves one test file.
 */
export async function openDatabases(prepare: (url: string) => Promise<void>): Promise<TestDatabases> {
  const { direct, pooled } = await askForServer();
  const prefix = `t_${randomBytes(4).toString('hex')}`;
  const template = `${prefix}_template`;
  const [maker, remover] = await Promise.all([openQueue(direct), openQueue(direct)]);
  const removals: Promise<void>[] = [];
  const ready: Promise<string>[] = [];
  let made = 0;

  /* FILE_COPY has the whole server write what it holds, twice for each copy, for which tests wait where the data is on a disk.
     Emptying one database between tests is no faster for them than what is made beside them, and keeps what a test did to
     the schema. */
  async function make(): Promise<string> {
    const name = `${prefix}_${++made}`;
    await maker.run(`create database ${name} template ${template} strategy wal_log`);
    return name;
  }

  function makeReady(): void {
    const making = make();
    // Whoever takes it is told.
    making.catch(() => {});
    ready.push(making);
  }

  function remove(name: string): void {
    const removal = remover.run(`drop database if exists ${name} with (force)`);
    removal.catch(() => {});
    removals.push(removal);
  }

  const databases: TestDatabases = {
    async take() {
      makeReady();
      const name = await (ready.shift() as Promise<string>);
      return { url: named(pooled ?? direct, name), directUrl: named(direct, name), drop: () => remove(name) };
    },
    async close() {
      const left = await Promise.allSettled(ready);
      for (const making of left) if (making.status === 'fulfilled') remove(making.value);
      remove(template);
      try {
        await Promise.all(removals);
      } finally {
        await Promise.all([maker.close(), remover.close()]);
      }
    },
  };

  try {
    await maker.run(`create database ${template}`);
    await prepare(named(direct, template));
  } catch (error) {
    await databases.close();
    throw error;
  }
  for (let n = 0; n < READY; n++) makeReady();
  return databases;
}

/** A connection that runs one statement after the other. */
async function openQueue(url: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(statement: string): Promise<void> {
      const run = last.then(async () => {
        await client.query(statement);
      });
      last = run.catch(() => {});
      return run;
    },
    close: () => client.end(),
  };
}

function named(url: string, database: string): string {
  const renamed = new URL(url);
  renamed.pathname = `/${database}`;
  return renamed.href;
}
