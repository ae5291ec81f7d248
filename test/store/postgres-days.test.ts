import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Retention } from '../../src/retention.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { ended, retryIn, Scene, settlement, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * Partitions of a day each: made ahead, and dropped once retention has removed what was in them. A default partition takes what
 * belongs to any other day.
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

async function rowsIn(table: string): Promise<number> {
  const { rows } = await client.query(`SELECT count(*)::int AS n FROM holdfast.${table}`);
  return rows[0].n;
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

test('a worker that joins makes the partitions of today, and upkeep those of the two days after it', async () => {
  await scene.join();
  expect(await partitions('succeeded')).toEqual(['20260115', 'earlier', 'other']);
  await scene.store.upkeep.tidy();
  expect(await partitions('succeeded')).toEqual(['20260115', '20260116', '20260117', 'earlier', 'other']);
  expect(await partitions('executions')).toEqual(['20260115', '20260116', '20260117', 'other']);
});

test('what is written of a day without partitions is there, and moves into them once they are made', async () => {
  const worker = await scene.join();
  scene.advance(5 * DAY);
  const worked = await scene.start(worker);
  await scene.settle(worked, retryIn(0));
  await scene.settle(await scene.claimTask(worker, worked.lease.task), succeeded());
  expect(await rowsIn('succeeded_other')).toBe(1);
  expect(await rowsIn('executions_other')).toBe(2);

  await scene.store.upkeep.tidy();
  expect(await partitions('succeeded')).toContain('20260120');
  expect([await rowsIn('succeeded_other'), await rowsIn('executions_other')]).toEqual([0, 0]);
  expect(await scene.stateOf(worked.lease.task)).toBe('succeeded');
  expect(await scene.store.records.history(worked.lease.task)).toHaveLength(2);
});

test('a day of which too much is written before it has partitions stays in the default partition', async () => {
  const endedAt = scene.now();
  await scene.import({ stands: 'dead', executions: 1, endedAt });
  await client.query(`DELETE FROM holdfast.days; DROP TABLE holdfast.succeeded_20260115, holdfast.succeeded_earlier, holdfast.executions_20260115;
    WITH moved AS (DELETE FROM holdfast.ended RETURNING *)
    INSERT INTO holdfast.succeeded (id, class, source, state, since, priority, submitted_at, created_at, run_at, payload, executions)
    SELECT id + n, class, source, 'succeeded', since, priority, submitted_at, created_at, run_at, payload, executions
    FROM moved, generate_series(0, 10000) n`);
  await scene.store.upkeep.tidy();
  expect(await partitions('succeeded')).toEqual(['20260116', '20260117', 'earlier', 'other']);
  expect(await partitions('executions')).toEqual(['20260115', '20260116', '20260117', 'other']);
  scene.advance(32 * DAY);
  expect(await hygiene()).toHaveLength(10_001);
}, 60_000);

test('partitions are made another time where somebody reads what they are made from', async () => {
  await client.query('BEGIN');
  await client.query('SELECT * FROM holdfast.succeeded');
  const claimed = await scene.start(await scene.join());
  await scene.settle(claimed, succeeded());
  expect(await partitions('succeeded')).toEqual(['other']);
  await client.query('COMMIT');
  await scene.store.upkeep.tidy();
  expect(await partitions('succeeded')).toContain('20260115');
  expect(await scene.stateOf(claimed.lease.task)).toBe('succeeded');
});

test('tasks that are imported into an empty store as succeeded long ago are in one partition, which a new partition need not read', async () => {
  const days = Array.from(
    { length: 3_000 },
    (_, n) => ({ stands: 'succeeded', endedAt: scene.now() - n * DAY }) as const,
  );
  const ids = await scene.import(...days);
  await scene.store.upkeep.tidy();
  expect(await partitions('succeeded')).toEqual(['20260115', '20260116', '20260117', 'earlier', 'other']);
  expect(await rowsIn('succeeded_earlier')).toBe(2_999);
  expect(await rowsIn('succeeded_other')).toBe(0);
  expect(await scene.find(ids[2_999] as number)).toMatchObject({ endedAt: scene.now() - 2_999 * DAY });
});

test('succeeded tasks are removed in bounded batches, each reported once, and then their day is dropped', async () => {
  const worker = await scene.join();
  const ids = await scene.enqueue(...Array.from({ length: 2_100 }, (_, n) => ({ key: `k${n}` })));
  const claimed = await scene.claim(worker, { limit: 2_100 });
  await scene.store.tasks.settle(claimed.map((one) => settlement(one, succeeded())));
  scene.advance(DAY);
  const young = await scene.start(await scene.join());
  await scene.settle(young, succeeded());
  scene.advance(29.5 * DAY);

  // As by a worker that ends after each batch, so that the next one begins anew.
  const first = await scene.store.upkeep.prune(MONTH);
  const second = await scene.store.upkeep.prune(MONTH);
  expect([first.removed.length, second.removed.length]).toEqual([500, 500]);
  expect(await partitions('succeeded')).toContain('20260115');
  const told = [...first.removed, ...second.removed].map(({ id }) => id);
  expect([...told, ...(await hygiene())]).toEqual(ids);
  expect(await partitions('succeeded')).not.toContain('20260115');
  expect(await partitions('succeeded')).toContain('20260116');
  expect(await rowsIn('keys')).toBe(0);
  expect(await scene.store.records.find(ids[0] as number)).toBeUndefined();
  expect(await scene.enqueue({ key: 'k0' })).not.toContain(ids[0]);
  expect(await scene.stateOf(young.lease.task)).toBe('succeeded');
}, 60_000);

test('a day is dropped while an import is under way only after it, so that no task is lost', async () => {
  const claimed = await scene.start(await scene.join());
  await scene.settle(claimed, succeeded());
  scene.advance(40 * DAY);
  await client.query('BEGIN');
  await client.query('SELECT pg_advisory_xact_lock_shared(holdfast.lane_lock(), 66)');
  expect(await hygiene()).toEqual([claimed.lease.task]);
  expect(await partitions('succeeded')).toContain('20260115');
  await client.query('COMMIT');
  expect(await hygiene()).toEqual([]);
  expect(await partitions('succeeded')).not.toContain('20260115');
});

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
  expect(await rowsIn('old_executions')).toBe(2);
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
