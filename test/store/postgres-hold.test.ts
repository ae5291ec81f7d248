import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, idsOf, LEASE, newTask } from '../contract/scene.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * What is committed late, while something else happened to its lane: a task is never stuck for it.
 */

const world = { clock: systemClock, random: Math.random };
const { schema: functions } = functionsOver('"holdfast"');

let databases: TestDatabases;
let database: TestDatabase;
let store: Store;
let enqueuer: pg.Client;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(world)).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
  store = await postgres(database.url).open(world);
  enqueuer = new pg.Client({ connectionString: database.directUrl });
  await enqueuer.connect();
});
afterEach(async () => {
  await enqueuer.end();
  expect(await store.upkeep.verify()).toEqual([]);
  await store.upkeep.close();
  database.drop();
});

/** Enqueues a task as a store does, in a transaction that stays open until what it answers is called. */
async function enqueueSlowly(queue: string, source: string): Promise<() => Promise<number>> {
  await enqueuer.query('BEGIN');
  const { rows } = await enqueuer.query(
    `SELECT (${functions}.enqueue_tasks(gen_random_uuid(), $1, '[{"g": 0, "p": 0, "b": "{}", "d": 0}]', false, true, NULL) -> 0 ->> 0)::int AS id`,
    [JSON.stringify([[queue, 'mail', '', '{}', source]])],
  );
  return async () => {
    await enqueuer.query('COMMIT');
    return rows[0].id;
  };
}

const join = () => store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
const by = { actor: 'maria' };

test('a task that is committed after its source was held and released is claimed', async () => {
  const worker = await join();
  const first = await store.tasks.enqueue([newTask({ source: 's' })]);
  const commit = await enqueueSlowly('default', 's');
  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual(first.map(({ id }) => id));
  await store.sources.hold('s', by);
  await store.sources.release('s');
  const id = await commit();

  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual([id]);
});

test('a task of a held source in a lane that is new, and is committed while its source is released, is claimed', async () => {
  const worker = await join();
  await store.sources.hold('s', by);
  const commit = await enqueueSlowly('default', 's');
  const released = store.sources.release('s');
  // Until the release has ended, or waits for the transaction.
  const waits =
    'SELECT 1 FROM pg_locks WHERE NOT granted UNION ALL SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM holdfast.sources)';
  while ((await enqueuer.query(waits)).rowCount === 0);
  const id = await commit();
  await released;

  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual([id]);
});

test('a task that is committed after its queue got turns is claimed', async () => {
  const worker = await join();
  await store.tasks.enqueue([newTask({ source: 'a' }), newTask({ source: 'b' })]);
  await store.tasks.claim(claimRequest(worker, { limit: 2 }));
  await store.sources.setUp('other', { fair: true });
  const commit = await enqueueSlowly('other', 'a');
  await store.tasks.claim(claimRequest(worker));
  const id = await commit();

  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual([id]);
});
