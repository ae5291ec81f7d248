import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Retention } from '../../src/retention.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { ended, retryIn, Scene, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * Partitions of a day each: made when they are needed, and dropped as a whole when all that is in them is over age.
 */

const DAY = 86_400_000;
const MONTH: Retention = {
  succeeded: { default: 30 * DAY },
  dead: { default: 30 * DAY },
  cancelled: { default: 30 * DAY },
  needs_manual: {},
};

let databases: TestDatabases;
let database: TestDatabase;
let client: pg.Client;

const scene = new Scene({
  async open(world) {
    database = await databases.take();
    return postgres(database.url).open(world);
  },
  async close() {
    database.drop();
  },
});

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(virtualWorld())).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  await scene.begin();
  client = new pg.Client(database.directUrl);
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await scene.end();
});

/** The days that have a partition of this table, the oldest first. */
async function partitions(table: string): Promise<string[]> {
  const { rows } = await client.query(
    `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = ('holdfast.' || $1)::regclass ORDER BY c.relname`,
    [table],
  );
  return rows.map(({ relname }) => relname.replace(`${table}_`, ''));
}

async function hygiene(): Promise<number[]> {
  const removed: number[] = [];
  while ((await scene.store.upkeep.tidy()) > 0);
  for (let next: number | undefined = 0; next !== undefined; ) {
    const pruned = await scene.store.upkeep.prune(MONTH, next);
    removed.push(...pruned.removed.map(({ id }) => id));
    next = pruned.next;
  }
  return removed;
}

test('a day is there before it begins, once upkeep has looked, and at the first need without it', async () => {
  const claimed = await scene.start(await scene.join());
  expect(await partitions('succeeded')).toEqual([]);
  await scene.settle(claimed, succeeded());
  expect(await partitions('succeeded')).toEqual(['20260115']);
  await scene.store.upkeep.tidy();
  expect(await partitions('succeeded')).toEqual(['20260115', '20260116', '20260117']);
  expect(await partitions('executions')).toEqual(['20260115', '20260116', '20260117']);
});

test('a day of tasks that succeeded is dropped whole, with their keys, and its slices are told once', async () => {
  const worker = await scene.join();
  const ids = await scene.enqueue(...Array.from({ length: 2_100 }, (_, n) => ({ key: `k${n}` })));
  for (const claimed of await scene.claim(worker, { limit: 2_100 })) await scene.settle(claimed, succeeded());
  scene.advance(DAY);
  const young = await scene.start(worker);
  await scene.settle(young, succeeded());

  // The day of the first ones ends half a day after them.
  scene.advance(29.5 * DAY);
  expect(await hygiene()).toEqual(ids);
  expect(await partitions('succeeded')).not.toContain('20260115');
  expect(await partitions('succeeded')).toContain('20260116');
  expect((await client.query('SELECT count(*)::int AS n FROM holdfast.keys')).rows).toEqual([{ n: 0 }]);
  expect(await scene.store.records.find(ids[0] as number)).toBeUndefined();
  expect(await scene.enqueue({ key: 'k0' })).not.toContain(ids[0]);
  expect(await scene.stateOf(young.lease.task)).toBe('succeeded');
}, 60_000);

test('history older than a month is dropped by the day, but for tasks that are still there', async () => {
  const worker = await scene.join();
  const stays = await scene.start(worker, { source: 'stays' });
  const goes = await scene.start(worker, { source: 'goes' });
  for (const claimed of [stays, goes]) await scene.settle(claimed, retryIn(1_000));
  scene.advance(1_000);
  const [first, second] = await scene.claim(worker);
  for (const claimed of [first, second]) {
    if (!claimed) throw new Error('Both were due.');
    await scene.settle(claimed, claimed.source === 'stays' ? ended('needs_manual') : ended('dead'));
  }
  const before = await scene.store.records.history(stays.lease.task);
  expect(before).toHaveLength(2);

  scene.advance(40 * DAY);
  expect(await hygiene()).toEqual([goes.lease.task]);
  expect(await partitions('executions')).not.toContain('20260115');
  expect(await scene.store.records.history(stays.lease.task)).toEqual(before);
  expect((await client.query('SELECT count(*)::int AS n FROM holdfast.old_executions')).rows).toEqual([{ n: 2 }]);
});

test('a day that somebody reads is left for another time, and nobody waits for it', async () => {
  const claimed = await scene.start(await scene.join(), { key: 'k' });
  await scene.settle(claimed, succeeded());
  scene.advance(40 * DAY);
  await client.query('BEGIN');
  await client.query('SELECT * FROM holdfast.succeeded');
  expect(await scene.store.upkeep.prune(MONTH)).toMatchObject({ removed: [{ id: claimed.lease.task }] });
  expect(await partitions('succeeded')).toContain('20260115');
  await client.query('COMMIT');
  await hygiene();
  expect(await partitions('succeeded')).not.toContain('20260115');
});
