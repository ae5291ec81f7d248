import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask } from '../contract/scene.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';

/*
 * Answers stay small enough for Node, and lists read no more than they must.
 */

const world = { clock: systemClock, random: Math.random };
const MEBIBYTE = 2 ** 20;
const { schema: functions } = functionsOver('"holdfast"');

let databases: TestDatabases;
beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(world)).upkeep.close();
  });
});
afterAll(() => databases.close());

/** A store over a pool of one connection, over which tests may ask as well. */
async function withStore(use: (store: Store, pool: pg.Pool) => Promise<void>): Promise<void> {
  const database = await databases.take();
  const pool = new pg.Pool({ connectionString: database.directUrl, max: 1 });
  // Its database is dropped under it where a test fails.
  pool.on('error', () => {});
  const store = await postgres(pool, { listen: false }).open(world);
  try {
    await use(store, pool);
  } finally {
    await store.upkeep.close();
    await pool.end();
    database.drop();
  }
}

test('a claim hands out 64 MiB of payloads at most, over all queues and also ahead', () =>
  withStore(async (store, pool) => {
    await store.tasks.enqueue(Array.from({ length: 18 }, (_, n) => newTask({ queue: `q${n % 2}` })));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    await pool.query(`UPDATE holdfast.bodies SET payload = '"' || repeat('x', 6 * ${MEBIBYTE} - 2) || '"'`);
    // The answer stays in the server: only its length comes here.
    const request = { ...claimRequest(worker, { limit: 10 }), ahead: 8, aheadTypes: ['mail'], rotation: 0 };
    const text = `SELECT json_array_length(${functions}.claim($1, gen_random_uuid()) -> 'tasks') AS count`;
    const { rows } = await pool.query(text, [JSON.stringify(request)]);
    expect(rows).toEqual([{ count: 10 }]);
    expect((await store.records.counts()).byState).toMatchObject({ running: 10, ready: 8 });
  }));

test('a claim of certain tasks hands out 64 MiB of payloads at most', () =>
  withStore(async (store, pool) => {
    const receipts = await store.tasks.enqueue(Array.from({ length: 12 }, () => newTask()));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    await pool.query(`UPDATE holdfast.bodies SET payload = '"' || repeat('x', 6 * ${MEBIBYTE} - 2) || '"'`);
    const only = receipts.map(({ id }) => id);
    const text = `SELECT json_array_length(${functions}.claim($1, gen_random_uuid()) -> 'tasks') AS count`;
    const request = JSON.stringify({ ...claimRequest(worker, { limit: 12, only }), rotation: 0 });
    expect((await pool.query(text, [request])).rows).toEqual([{ count: 10 }]);
    expect((await pool.query(text, [request])).rows).toEqual([{ count: 2 }]);
  }));

test('a task whose payload alone is larger is handed out by itself', () =>
  withStore(async (store, pool) => {
    await store.tasks.enqueue(Array.from({ length: 10 }, () => newTask()));
    await pool.query(`UPDATE holdfast.bodies SET payload = '"' || repeat('x', 65 * ${MEBIBYTE}) || '"' WHERE id = 5`);
    const fitting = (ids: string) =>
      pool.query(`SET search_path = ${functions}, holdfast; SELECT fitting('{${ids}}', 1, gen_random_uuid()) AS count`);
    const counts = [];
    for (const ids of ['1,2,3,4,5,6,7,8,9', '5,6,7,8,9,10', '6,7,8,9,10']) {
      const results = (await fitting(ids)) as unknown as pg.QueryResult<{ count: number }>[];
      counts.push(results[1]?.rows[0]?.count);
    }
    expect(counts).toEqual([4, 1, 5]);
  }));

test('a list of a type or queue that no task was ever of reads no tasks', () =>
  withStore(async (store, pool) => {
    await store.tasks.enqueue(Array.from({ length: 10 }, () => newTask()));
    const scans = async () => {
      await pool.query('SELECT pg_stat_force_next_flush()');
      const { rows } = await pool.query(`SELECT sum(seq_scan + idx_scan)::int AS scans FROM pg_stat_user_tables
        WHERE schemaname = 'holdfast' AND (relname IN ('live', 'ended') OR relname LIKE 'succeeded%')`);
      return rows[0].scans as number;
    };
    const before = await scans();
    expect(await store.records.list({ limit: 10, types: ['unknown'] })).toEqual([]);
    expect(await store.records.list({ limit: 10, queues: ['unknown'] })).toEqual([]);
    // The tasks of the page, of which there are none, are looked up once in each table.
    expect((await scans()) - before).toBeLessThanOrEqual(10);
    expect(await store.records.list({ limit: 10, types: ['mail'] })).toHaveLength(10);
  }));
