import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { inspect } from 'node:util';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { timeFor } from '../../src/store/postgres/clock.ts';
import { Database } from '../../src/store/postgres/database.ts';
import { type PostgresOptions, postgres } from '../../src/store/postgres/index.ts';
import { migrate, SCHEMA } from '../../src/store/postgres/migrate.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, retryIn, settlement, succeeded } from '../contract/scene.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * Opening a store: what it is told, by whom it may be opened, and what happens to the tables.
 */

const world = { clock: systemClock, random: Math.random };
const DAY = 86_400_000;

let databases: TestDatabases;
let database: TestDatabase;

/** Empty databases. */
beforeAll(async () => {
  databases = await openDatabases(async () => {});
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
});
afterEach(() => database.drop());

const open = (url = database.url, options: PostgresOptions = {}): Promise<Store> => postgres(url, options).open(world);
const sql = (text: string) => ask(database.directUrl, text);
const databaseName = () => new URL(database.directUrl).pathname.slice(1);

async function openAndClose(options: PostgresOptions = {}): Promise<void> {
  await (await open(database.url, options)).upkeep.close();
}

/** The URL of the test's database with these parts changed. */
function changed(parts: Partial<Pick<URL, 'username' | 'password' | 'hostname' | 'port' | 'pathname'>>): string {
  return Object.assign(new URL(database.directUrl), parts).href;
}

/** Everything that a person could see of an error. */
const shown = (error: unknown) => inspect(error, { depth: 10, showHidden: true });

const failure = (opening: Promise<unknown>): Promise<Error & { readonly code?: string }> =>
  opening.then(
    () => expect.unreachable('It opened.'),
    (error) => error,
  );

/** A server that answers for so long that it is starting up, and then is the test's one. */
async function startingFor(ms: number): Promise<{ readonly url: string; close(): void }> {
  const fields = ['SFATAL', 'VFATAL', 'C57P03', 'Mthe database system is starting up', ''].join('\0');
  const answer = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), Buffer.from(`${fields}\0`)]);
  answer.writeInt32BE(answer.length - 1, 1);
  const { hostname, port } = new URL(database.directUrl);
  let first: number | undefined;
  const server = createServer((client) => {
    client.on('error', () => {});
    first ??= performance.now();
    if (performance.now() - first < ms) {
      client.once('data', () => client.end(answer));
      return;
    }
    const real = connect(Number(port), hostname).on('error', () => client.destroy());
    client.pipe(real).pipe(client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = (server.address() as AddressInfo).port;
  return { url: changed({ hostname: '127.0.0.1', port: String(own) }), close: () => server.close() };
}

test('a server that is starting up is waited for, longer than one that is not there', async () => {
  const starting = await startingFor(4_000);
  const store = await open(starting.url);
  await store.upkeep.close();
  starting.close();
});

describe('is told in words, and without a password, that', () => {
  const SECRET = 'hunter-2';

  test.each([
    ['a password is wrong', () => changed({ username: 'somebody', password: SECRET })],
    ['there is no such database', () => changed({ pathname: '/nowhere', password: SECRET })],
    ['there is no such host', () => changed({ hostname: 'nowhere.invalid', password: SECRET })],
    ['nobody listens at the port', () => changed({ port: '1', password: SECRET })],
    ['the server has no TLS', () => `${changed({ password: SECRET })}?sslmode=verify-full`],
    ['no server has this socket', () => `postgres:///db?host=/nowhere&user=u&password=${SECRET}`],
  ])('%s', async (_, url) => {
    const started = performance.now();
    const error = await failure(open(url()));
    expect(error).toMatchObject({ name: 'StoreError', code: 'store_unavailable' });
    expect(error.message).toMatch(/^Cannot connect to postgres:\/\/|^postgres:\/\/\S* refused the login/);
    expect(shown(error)).not.toContain(SECRET);
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  test.each([
    `mysql://u:${SECRET}@host/db`,
    `postgres:/u:${SECRET}@host/db`,
    `postgres://u:p/${SECRET}@host/db`,
    `host=localhost password=${SECRET}`,
    '',
  ])('%s is no connection string', (text) => {
    let refused: unknown;
    try {
      postgres(text);
    } catch (error) {
      refused = error;
    }
    expect(refused).toMatchObject({ name: 'InvalidInputError', code: 'invalid_input' });
    expect(shown(refused)).not.toContain(SECRET);
  });

  test('a connection string cannot be read', async () => {
    const error = await failure(open(`${changed({ password: SECRET })}?sslrootcert=/nowhere`));
    expect(error).toMatchObject({ name: 'InvalidInputError', code: 'invalid_input' });
    expect(shown(error)).not.toContain(SECRET);
  });

  test('who answers is no PostgreSQL', async () => {
    const server = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const error = await failure(open(`postgres://u@127.0.0.1:${(server.address() as AddressInfo).port}/db`));
    expect(error).toMatchObject({ name: 'StoreError', code: 'store_unavailable' });
    server.close();
  });

  test('a database has another encoding than UTF8', async () => {
    const name = `${databaseName()}_latin1`;
    await sql(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
    const error = await failure(open(changed({ pathname: `/${name}` })));
    expect(error).toMatchObject({ name: 'StoreError', code: 'store_unsupported' });
    expect(error.message).toMatch(/encoding LATIN1, and Holdfast needs UTF8/);
    await sql(`DROP DATABASE ${name} WITH (FORCE)`);
  });

  test('options with a password are no connection', () => {
    const options = { host: 'db', password: SECRET } as unknown as string;
    let error: unknown;
    try {
      postgres(options);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ code: 'invalid_input' });
    expect(shown(error)).not.toContain(SECRET);
    expect(shown(postgres(changed({ password: SECRET })))).not.toContain(SECRET);
  });

  test('a database takes no writes', async () => {
    await sql(`ALTER DATABASE ${databaseName()} SET default_transaction_read_only = on`);
    expect(await failure(open())).toMatchObject({ name: 'StoreError', code: 'store_read_only' });
    await sql(`ALTER DATABASE ${databaseName()} RESET default_transaction_read_only`).catch(() => {});
  });

  test('a store that was made takes no writes, and can be looked at', async () => {
    await openAndClose();
    await sql(`ALTER DATABASE ${databaseName()} SET default_transaction_read_only = on`);
    const store = await open();
    expect(await store.records.list({ limit: 1 })).toEqual([]);
    expect(await failure(store.tasks.enqueue([newTask()]))).toMatchObject({ code: 'store_read_only' });
    await store.upkeep.close();
  });
});

describe('its schema', () => {
  test.each(['Tasks of "Ann"', "it's $$ and $1 \\ $&", 'ünïcode '.repeat(5), 'select', 'a.b'])(
    'may be called %s',
    async (schema) => {
      const store = await open(database.url, { schema });
      let heard = () => {};
      const work = new Promise<void>((resolve) => {
        heard = resolve;
      });
      store.upkeep.onNews(() => heard());
      await work;
      await store.tasks.enqueue([newTask()]);
      const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
      const { tasks } = await store.tasks.claim(claimRequest(worker));
      expect(tasks).toHaveLength(1);
      await store.tasks.settle(tasks.map((task) => settlement(task, succeeded())));
      expect(await store.upkeep.verify()).toEqual([]);
      await store.upkeep.close();
      await openAndClose({ schema, migrate: 'never' });
      expect(await sql(`SELECT count(*)::int AS n FROM ${pg.escapeIdentifier(schema)}.succeeded`)).toEqual([{ n: 1 }]);
    },
  );

  test.each(['', 'a\0b', 'ü'.repeat(32)])('may not be called %j', (schema) => {
    expect(() => postgres(database.url, { schema })).toThrow(/1 to 63 bytes/);
  });
});

describe('migration', () => {
  test("of nothing with migrate: 'never' is refused, and makes nothing", async () => {
    expect(await failure(open(database.url, { migrate: 'never' }))).toMatchObject({
      code: 'store_unsupported',
      message: expect.stringContaining("migrate: 'never'"),
    });
    expect(await sql("SELECT 1 FROM pg_namespace WHERE nspname = 'holdfast'")).toEqual([]);
  });

  test('to a newer version is refused with nothing changed, by a version that is older than it allows', async () => {
    await openAndClose();
    await sql('UPDATE holdfast.meta SET version = 1000, least_writer = 1000');
    const before = await sql('SELECT * FROM holdfast.meta');
    for (const migrate of ['auto', 'never'] as const) {
      expect(await failure(open(database.url, { migrate }))).toMatchObject({ code: 'store_too_new' });
    }
    expect(await sql('SELECT * FROM holdfast.meta')).toEqual(before);

    // A newer one that older versions may write to is none of their business.
    await sql('UPDATE holdfast.meta SET least_writer = 1');
    await openAndClose();
  });

  test('that fails leaves nothing behind', async () => {
    await sql('CREATE SCHEMA holdfast; CREATE TABLE holdfast.acts (mine text)');
    expect(await failure(open())).toMatchObject({ name: 'StoreError' });
    expect(await sql("SELECT relname FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace")).toEqual([
      { relname: 'acts' },
    ]);
  });

  test('is done once, however many open the store at once', async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => open()));
    expect(await sql('SELECT count(*)::int AS n FROM holdfast.meta')).toEqual([{ n: 1 }]);
    for (const store of stores) await store.upkeep.close();
  });

  test('to a next version holds nobody up for long, and leaves the version before it at work', async () => {
    const old = await open();
    const steps = [
      ...Array.from({ length: SCHEMA }, () => ({ sql: () => '', leastWriter: 1 })),
      { sql: () => 'ALTER TABLE acts ADD COLUMN more text;', leastWriter: 1 },
    ];
    const pool = new pg.Pool({ connectionString: database.directUrl });
    // Databases are dropped under their connections.
    pool.on('error', () => {});
    const way = { pool, where: 'the database', answerWithin: 30_000, connectionWithin: 10_000 };
    const next = new Database(way, '"holdfast"', timeFor(systemClock, '"holdfast"'));
    const reader = new pg.Client({ connectionString: database.directUrl });
    await reader.connect();
    await reader.query('BEGIN; SELECT * FROM holdfast.acts');
    const migration = migrate(next, 'auto', steps);
    await expect
      .poll(() => sql("SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"))
      .toHaveLength(1);
    // Whoever comes now waits behind the migration, which waits for the reader: but not until that one ends.
    expect(await sql('SELECT * FROM holdfast.acts')).toEqual([]);
    await reader.end();
    await migration;
    expect(await sql('SELECT version, least_writer FROM holdfast.meta')).toEqual([
      { version: SCHEMA + 1, least_writer: 1 },
    ]);

    const [receipt] = await old.tasks.enqueue([newTask()]);
    await old.tasks.move([receipt?.id as number], { actor: 'maria', verb: 'cancel' });
    await openAndClose();
    await old.upkeep.close();
    await next.close();
    await pool.end();
  });

  test('needs no right to create schemas where both are there and its own; else it says what to run', async () => {
    await sql('CREATE ROLE keeper LOGIN; CREATE SCHEMA holdfast AUTHORIZATION keeper');
    try {
      const { message } = await failure(open(changed({ username: 'keeper' })));
      const [create] = /CREATE SCHEMA "holdfast_[0-9a-f]{12}" AUTHORIZATION/.exec(message) as RegExpExecArray;
      await sql(`${create} keeper`);
      await (await open(changed({ username: 'keeper' }))).upkeep.close();
    } finally {
      await sql('DROP OWNED BY keeper CASCADE; DROP ROLE keeper');
    }
  });
});

/** What docs/operations/postgres.md says. */
const grants = (role: string) => `
  GRANT USAGE ON SCHEMA holdfast TO ${role};
  GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO ${role};
  GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO ${role};
  GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast TO ${role};
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO ${role};
  REVOKE INSERT, UPDATE, DELETE ON holdfast.meta FROM ${role};`;

describe('a role that owns nothing', () => {
  const worker = 'hf_worker';

  beforeEach(async () => {
    await openAndClose();
    await sql(`CREATE ROLE ${worker} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
  });
  afterEach(() => sql(`DROP OWNED BY ${worker} CASCADE; DROP ROLE ${worker}`));

  test('enqueues, works, recovers, moves, looks, tidies and makes partitions of days, with the rights in the docs', async () => {
    await sql(grants(worker));
    const store = await open(changed({ username: worker }), { migrate: 'never' });
    const { tasks, sources, records, upkeep } = store;
    const by = { actor: 'maria' };
    const ids = (
      await tasks.enqueue([
        newTask(),
        newTask({ key: 'k', unique: { key: 'u', while: 'waiting', onConflict: 'reject' } }),
        newTask({ queue: 'q', type: 't', source: 's' }),
      ])
    ).map(({ id }) => id);
    const [alice, bob] = [await tasks.join(newWorker()), await tasks.join(newWorker())];
    const claimed = (await tasks.claim(claimRequest(alice))).tasks;
    expect(claimed).toHaveLength(3);
    const [first, second] = claimed.map((task, i) => settlement(task, i === 0 ? succeeded() : retryIn(60_000)));
    expect(await tasks.settle([first, second].filter((one) => one !== undefined))).toMatchObject([
      { answer: 'settled' },
      { answer: 'settled' },
    ]);
    await tasks.leave(alice);
    expect((await tasks.recover(bob, 10)).tasks).toHaveLength(1);
    expect(await tasks.move(ids.slice(1, 2), { ...by, verb: 'cancel' })).toMatchObject([{ moved: true }]);
    await sources.hold('s', by);
    await sources.release('s');
    await sources.pause('q', by);
    await sources.setUp('q', { order: 'priority', fair: true });
    expect(await records.list({ limit: 10 })).toHaveLength(3);
    expect(await records.counts()).toBeDefined();
    expect(await upkeep.takeTurn('prune', DAY)).toBe(true);
    await upkeep.tidy();
    await upkeep.takeActions(10);
    await upkeep.prune({ succeeded: { default: 0 }, dead: {}, cancelled: {}, needs_manual: {} });
    expect(await upkeep.verify()).toEqual([]);
    await upkeep.close();
    // Today's, those of the two days to come, and the default ones; all of them the owner's.
    expect(
      await sql(`SELECT count(*)::int AS n, bool_and(pg_get_userbyid(relowner) = 'postgres') AS owners FROM pg_class
        WHERE relnamespace = 'holdfast'::regnamespace AND relispartition AND relkind = 'r'`),
    ).toEqual([{ n: 9, owners: true }]);
  });

  test('cannot pretend that a backup was restored, and changes no schema', async () => {
    await sql(grants(worker));
    const url = changed({ username: worker });
    await expect(ask(url, 'UPDATE holdfast.meta SET version = 7')).rejects.toMatchObject({ code: '42501' });
    await expect(ask(url, 'SELECT holdfast.restored()')).rejects.toMatchObject({ code: '42501' });
    await expect(ask(url, 'CREATE TABLE holdfast.mine ()')).rejects.toMatchObject({ code: '42501' });
  });

  test('without rights is told which it needs', async () => {
    expect(await failure(open(changed({ username: worker })))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('docs/operations/postgres.md'),
    });
    await sql(`GRANT USAGE ON SCHEMA holdfast TO ${worker}; GRANT SELECT ON holdfast.meta TO ${worker}`);
    const store = await open(changed({ username: worker }));
    expect(await failure(store.tasks.enqueue([newTask()]))).toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('docs/operations/postgres.md'),
    });
    await store.upkeep.close();
  });

  test('that only enqueues from SQL needs less', async () => {
    await sql(`
      GRANT USAGE ON SCHEMA holdfast TO ${worker};
      GRANT SELECT ON holdfast.holdfast_tasks TO ${worker}`);
    const url = changed({ username: worker });
    // Who only looks cannot enqueue.
    await expect(ask(url, `SELECT holdfast.enqueue('mail', '{}')`)).rejects.toMatchObject({ code: '42501' });
    await sql(`GRANT EXECUTE ON FUNCTION holdfast.enqueue TO ${worker}`);
    const [first] = await ask(url, `SELECT holdfast.enqueue('mail', '{}', key => 'k') AS id`);
    expect(await ask(url, `SELECT holdfast.enqueue('mail', '{}', key => 'k') AS id`)).toEqual([first]);
    for (const statement of [
      'DELETE FROM holdfast.live',
      'SELECT payload FROM holdfast.bodies',
      "INSERT INTO holdfast.queues (name) VALUES ('q')",
    ]) {
      await expect(ask(url, statement)).rejects.toMatchObject({ code: '42501' });
    }
    await expect(ask(url, `SELECT holdfast.enqueue('mail', '{}', queue => repeat('q', 300))`)).rejects.toMatchObject({
      code: '22023',
    });
  });
});

function newWorker() {
  return { name: 'alice', leaseFor: LEASE, publishes: { mail: '{}' } };
}
