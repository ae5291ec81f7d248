import { drizzle } from 'drizzle-orm/node-postgres';
import knex from 'knex';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { defineTask, type Holdfast, openHoldfast, type PostgresHandle } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';
import { gate } from '../worker/scene.ts';

/*
 * Enqueueing inside a transaction of the caller's: through pg, Drizzle, Kysely and Knex for real, and from plain SQL.
 */

let databases: TestDatabases;
let database: TestDatabase;
let holdfast: Holdfast;
let pool: pg.Pool;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await openHoldfast({ store: postgres(url) })).close();
  });
});
afterAll(() => databases.close());

beforeEach(async () => {
  database = await databases.take();
  holdfast = await openHoldfast({ store: postgres(database.url) });
  pool = new pg.Pool({ connectionString: database.url, max: 3 });
  // Databases are dropped under their connections.
  pool.on('error', () => {});
  await pool.query('CREATE TABLE orders (name text)');
});
afterEach(async () => {
  await holdfast.close();
  await pool.end();
  database.drop();
});

/** Runs the work in a transaction of a library, and commits it, or rolls it back where the work throws. */
type InTransaction = (
  work: (handle: PostgresHandle, insertOrder: () => Promise<unknown>) => Promise<void>,
) => Promise<void>;

const libraries: Readonly<Record<string, InTransaction>> = {
  async pg(work) {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      await work(client, () => client.query("INSERT INTO orders VALUES ('books')"));
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  },
  async Drizzle(work) {
    await drizzle(pool).transaction((tx) => work(tx, () => tx.execute("INSERT INTO orders VALUES ('books')")));
  },
  async Kysely(work) {
    const kysely = new Kysely<{ orders: { name: string } }>({ dialect: new PostgresDialect({ pool }) });
    await kysely
      .transaction()
      .execute((tx) => work(tx, () => tx.insertInto('orders').values({ name: 'books' }).execute()));
  },
  async Knex(work) {
    const db = knex({ client: 'pg', connection: database.url, pool: { min: 0, max: 2 } });
    try {
      await db.transaction((tx) => work(tx, async () => tx('orders').insert({ name: 'books' })));
    } finally {
      await db.destroy();
    }
  },
};

const orders = async () => (await pool.query('SELECT name FROM orders')).rowCount;

describe.each(Object.entries(libraries))('in a transaction of %s', (_, inTransaction) => {
  test('the task is there exactly if the transaction commits, with everything that it was given', async () => {
    const input = { text: `it's a "test" with \\ and $1 and ? and ?? and :name`, n: 1 };
    await inTransaction(async (handle, insertOrder) => {
      await insertOrder();
      const { created } = await holdfast
        .within(handle)
        .enqueue('ship', input, { key: 'o-1', priority: 7, source: "it's" });
      expect(created).toBe(true);
      expect(await holdfast.list()).toEqual([]);
    });

    expect(await orders()).toBe(1);
    const [task] = await holdfast.list();
    expect(task).toMatchObject({ type: 'ship', input, key: 'o-1', priority: 7, source: "it's" });

    await expect(
      inTransaction(async (handle, insertOrder) => {
        await insertOrder();
        await holdfast.within(handle).enqueue('ship', input, { key: 'o-2' });
        throw new Error('never mind');
      }),
    ).rejects.toThrow('never mind');
    expect(await orders()).toBe(1);
    expect(await holdfast.list()).toHaveLength(1);
    expect(await holdfast.get('o-2').catch(({ code }) => code)).toBe('task_not_found');
  });

  test('a unique key that is rejected leaves the transaction to go on with', async () => {
    const options = { unique: { key: 'u', onConflict: 'reject' } } as const;
    const { id } = await holdfast.enqueue('ship', {}, options);
    await inTransaction(async (handle, insertOrder) => {
      await expect(holdfast.within(handle).enqueue('ship', {}, options)).rejects.toMatchObject({
        code: 'unique_conflict',
        task: id,
      });
      await insertOrder();
    });
    expect(await orders()).toBe(1);
  });
});

test('a worker runs what was committed, and nobody waits for a transaction that stays open', async () => {
  const ran: unknown[] = [];
  const [second, first] = [gate(), gate()];
  const own = await openHoldfast({
    store: postgres(database.url),
    tasks: [
      defineTask('ship', {
        run(input: { n: number }) {
          ran.push(input.n);
          (input.n === 2 ? second : first).open();
        },
      }),
    ],
  });
  const client = await pool.connect();
  await client.query('BEGIN');
  await own.within(client).enqueue('ship', { n: 1 });
  const worker = own.work();
  await own.enqueue('ship', { n: 2 });
  await second.passed;
  expect(ran).toEqual([2]);

  await client.query('COMMIT');
  client.release();
  // Nothing tells the worker of somebody else's commit: its next look finds it.
  worker.look();
  await first.passed;
  await worker.stop();
  await own.close();
  expect(ran).toEqual([2, 1]);
});

test('a pool of one connection, which the transaction holds, is enough', async () => {
  const single = new pg.Pool({ connectionString: database.url, max: 1 });
  single.on('error', () => {});
  const own = await openHoldfast({ store: postgres(single) });
  const client = await single.connect();
  await client.query('BEGIN');
  const { created } = await own.within(client).enqueue('new type', {});
  await client.query('COMMIT');
  client.release();
  expect(created).toBe(true);
  expect(await own.list()).toHaveLength(1);
  await own.close();
  await single.end();
});

test('a group that is recorded, or ended by a replacement, inside a transaction; and one whose process died before its end was noticed', async () => {
  const inTransaction = libraries.pg as InTransaction;
  const unique = { key: 'u', onConflict: 'replace' } as const;
  const followUps: number[] = [];
  const isWaiting = async (id: number | undefined) => (await holdfast.get(id as number)).waitsForGroup === true;
  await inTransaction(async (handle) => {
    for (const options of [{}, () => ({ unique })]) {
      const { followUp } = await holdfast.within(handle).enqueueGroup('a', [1], { followUp: ['b', 2], options });
      followUps.push(followUp.id);
    }
  });
  const [dead, replaced] = followUps;
  expect([await isWaiting(dead), await isWaiting(replaced)]).toEqual([true, true]);

  await inTransaction(async (handle) => void (await holdfast.within(handle).enqueue('a', 3, { unique })));
  expect([await isWaiting(dead), await isWaiting(replaced)]).toEqual([true, false]);

  await pool.query("UPDATE holdfast.group_tasks SET ended = 'succeeded'");
  const { tasks } = holdfast.store;
  await tasks.renew(await tasks.join({ name: 'alice', leaseFor: 30_000, publishes: {} }), []);
  expect(await isWaiting(dead)).toBe(false);
});

describe('from plain SQL', () => {
  test('a task is enqueued with a type and a payload, and everything else by name', async () => {
    const { rows } = await pool.query(`select holdfast.enqueue('mail', '{"a":1}') as id`);
    expect(await holdfast.get(Number(rows[0].id))).toMatchObject({
      type: 'mail',
      source: 'mail',
      queue: 'default',
      input: { a: 1 },
    });

    const named = await pool.query(
      `select holdfast.enqueue('mail', '{}', key => 'k', queue => 'slow', source => 'smtp', priority => 5, delay => '1 minute',
         category => 'news', needs => '{"gpu": "A", "cpu": 2}', deadline => now() + interval '1 hour') as id`,
    );
    const task = await holdfast.get(Number(named.rows[0].id));
    expect(task).toMatchObject({
      key: 'k',
      queue: 'slow',
      source: 'smtp',
      priority: 5,
      category: 'news',
      needs: { cpu: 2, gpu: 'A' },
    });
    expect(Number(task?.dueAt) - Number(task?.createdAt)).toBe(60_000);
    const again = await pool.query(`select holdfast.enqueue('mail', '{}', key => 'k') as id`);
    expect(again.rows).toEqual(named.rows);
  });

  test.each([
    ["holdfast.enqueue('', '{}')", /a type/],
    ["holdfast.enqueue(null, '{}')", /a type/],
    ["holdfast.enqueue('mail', null)", /a payload/],
    ["holdfast.enqueue('mail', '{}', priority => 4096)", /priority/],
    ["holdfast.enqueue('mail', '{}', delay => '-1 s')", /delay/],
    ["holdfast.enqueue('mail', '{}', delay => '300000 years')", /delay must be at most ten years/],
    ["holdfast.enqueue('mail', '{}', deadline => 'infinity')", /deadline/],
    ["holdfast.enqueue('mail', '{}', deadline => '290000-01-01')", /deadline/],
    ["holdfast.enqueue('mail', '{}', needs => '[1]')", /needs must be an object/],
    [`holdfast.enqueue('mail', '{}', needs => '{"a": 1e400}')`, /needs .* 'a'/],
    [`holdfast.enqueue('mail', '{}', needs => '{"a": null}')`, /needs .* 'a'/],
    [`holdfast.enqueue('mail', '{}', needs => '{"": 1}')`, /needs .* ''/],
    [
      "holdfast.enqueue('mail', '{}', needs => (select jsonb_object_agg(n, 1) from generate_series(1, 65) n))",
      /64 capabilities/,
    ],
    ["holdfast.enqueue('mail', to_jsonb(repeat('x', 1100000)))", /1048576/],
  ])('%s is refused in words', async (call, words) => {
    await expect(pool.query(`select ${call}`)).rejects.toThrow(words);
    expect(await holdfast.list()).toEqual([]);
  });
});

describe('refuses', () => {
  test.each([[undefined], [null], [{}], ['postgres://localhost'], [7]])('%o, which is no handle', (handle) => {
    expect(() => holdfast.within(handle as unknown as PostgresHandle)).toThrow(/within takes a client of pg/);
  });

  test('a handle on a database without tables of Holdfast, or with those of another store', async () => {
    const other = await databases.take();
    const there = await openHoldfast({ store: postgres(other.url, { schema: 'other' }) });
    const otherPool = new pg.Pool({ connectionString: other.url });
    otherPool.on('error', () => {});
    await otherPool.query('UPDATE holdfast.meta SET epoch = gen_random_uuid()');
    await expect(holdfast.within(otherPool).enqueue('ship', {})).rejects.toMatchObject({ code: 'invalid_input' });
    await otherPool.query('DROP SCHEMA holdfast CASCADE');
    await expect(holdfast.within(otherPool).enqueue('ship', {})).rejects.toMatchObject({ code: 'invalid_input' });
    await there.close();
    await otherPool.end();
    other.drop();
  });
});
