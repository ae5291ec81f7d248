import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, settlement, succeeded } from '../contract/scene.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * Lanes without tasks, and floors under which lanes and tasks are not read: neither hides a task or changes the order.
 */

const world = { clock: systemClock, random: Math.random };
const { schema: functions } = functionsOver('"holdfast"');

let databases: TestDatabases;
let database: TestDatabase;
let store: Store;
let client: pg.Client;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(world)).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
  store = await postgres(database.url, { listen: false }).open(world);
  client = new pg.Client({ connectionString: database.directUrl });
  await client.connect();
});
afterEach(async () => {
  await client.end();
  expect(await store.upkeep.verify()).toEqual([]);
  await store.upkeep.close();
  database.drop();
});

/** Lanes that are active and have no tasks, in front of all others. */
async function makeEmptyLanes(count: number): Promise<void> {
  await client.query(
    `INSERT INTO holdfast.lanes (class, source, track, active, was_active, rank)
     SELECT (SELECT min(id) FROM holdfast.classes), 'empty ' || n, 0, true, true, '-infinity' FROM generate_series(1, $1) n`,
    [count],
  );
}

const claim = async (worker: number, limit: number) =>
  (await store.tasks.claim(claimRequest(worker, { limit }))).tasks.map(({ payload }) => payload);

test('the order is exact behind many lanes without tasks', async () => {
  const at = (n: number, source: string) =>
    newTask({ source, payload: `${n}`, submittedAt: store.upkeep.now() - 1_000_000 + n });
  await store.tasks.enqueue([
    ...[1, 100, 101, 102].map((n) => at(n, 'first')),
    ...Array.from({ length: 40 }, (_, n) => at(2 + n, `s${n}`)),
  ]);
  // A claim puts so many of them to rest, but for one or a few, and ends early.
  await makeEmptyLanes(795);
  await client.query("UPDATE holdfast.lanes SET rank = '-infinity', rank_seq = -1 WHERE source = 'first'");
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  expect(await claim(worker, 3)).toEqual(['1', '2', '3']);
});

test('a large claim that meets many lanes without tasks is answered with the tasks behind them', async () => {
  await store.tasks.enqueue(Array.from({ length: 10 }, () => newTask({ source: 'last' })));
  await makeEmptyLanes(600);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  expect(await claim(worker, 400)).toHaveLength(10);
});

test('a floor is written again only when it is not valid any more', async () => {
  const raise = async (floor: number, now: number) => {
    await client.query(`SET search_path = ${functions}, holdfast`);
    await client.query("SELECT raise_floor('due', $1, 600, $2)", [floor, now]);
    const { rows } = await client.query('SELECT floor, until::int FROM floors');
    return rows[0];
  };
  expect(await raise(5, 10_000)).toEqual({ floor: 5, until: 11_120 });
  expect(await raise(6, 11_000)).toEqual({ floor: 5, until: 11_120 });
  expect(await raise(7, 11_120)).toEqual({ floor: 7, until: 12_240 });
});

test('a lane with steady work is not rewritten by each claim, and is deactivated later', async () => {
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const versionAfterTask = async () => {
    await store.tasks.enqueue([newTask({ source: 'steady' })]);
    expect(await claim(worker, 5)).toHaveLength(1);
    const { rows } = await client.query("SELECT ctid::text, active FROM holdfast.lanes WHERE source = 'steady'");
    return rows[0];
  };
  const first = await versionAfterTask();
  expect(first.active).toBe(true);
  expect(await versionAfterTask()).toEqual(first);
  await client.query('UPDATE holdfast.lanes SET rank = rank - 20000');
  expect(await claim(worker, 5)).toEqual([]);
  const { rows } = await client.query("SELECT active FROM holdfast.lanes WHERE source = 'steady'");
  expect(rows).toEqual([{ active: false }]);
});

test('beside an old snapshot, claims read only after the dead entries of lanes, without new versions of their rows', async () => {
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const now = store.upkeep.now();
  const startTask = async (submittedAt: number) => {
    await store.tasks.enqueue([newTask({ source: 's0', payload: `${submittedAt}`, submittedAt })]);
    return claim(worker, 50);
  };
  const lanes = async () => {
    const text = `SELECT string_agg(l.ctid::text, ' ') AS rows, max(k.keys) AS "lowKeys" FROM holdfast.lanes l LEFT JOIN holdfast.low_keys k ON true`;
    return (await ask(database.directUrl, text))[0] as { rows: string; lowKeys: number[] | null };
  };
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM holdfast.live');
  await store.tasks.enqueue(
    Array.from({ length: 1_600 }, (_, n) => newTask({ source: `s${n % 40}`, submittedAt: now })),
  );
  const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: 1_600 }));
  await store.tasks.settle(tasks.map((task) => settlement(task, succeeded())));

  const before = await lanes();
  expect(before.lowKeys).toBeNull();
  expect(await startTask(now + 1)).toEqual([`${now + 1}`]);
  const after = await lanes();
  expect(after.rows).toBe(before.rows);
  expect(after.lowKeys).toHaveLength(40);
  expect(Math.min(...(after.lowKeys ?? []))).toBeGreaterThan(now);

  // A task that comes before the dead entries is found at once.
  expect(await startTask(now - 1_000)).toEqual([`${now - 1_000}`]);
  await client.query('COMMIT');
});

test('an enqueue of many types of one source reads few rows for each, also by a plan that was made when there were few types', async () => {
  const types = Array.from({ length: 200 }, (_, n) => `type${n}`);
  const enqueueIn = async (some: readonly string[]) => {
    const rows = some.map((_, g) => ({ g, p: 0, b: '{}', d: 60_000 }));
    const groups = some.map((type) => ['default', type, '', '{}', 'default']);
    await client.query(
      `SELECT ${functions}.enqueue_tasks(gen_random_uuid(), $1, $2, false, true, NULL)`,
      [groups, rows].map((list) => JSON.stringify(list)),
    );
    const { rows: counted } = await client.query(
      `SELECT sum(pg_stat_get_xact_tuples_returned(i::regclass))::int AS read
       FROM unnest('{holdfast.classes_queue_type_category_needs_key,holdfast.lanes_source_class_track_key}'::text[]) i`,
    );
    return counted[0].read as number;
  };
  await enqueueIn(types.slice(0, 1));
  await store.tasks.enqueue(types.map((type) => newTask({ type, delay: 60_000 })));
  await client.query('BEGIN');
  expect(await enqueueIn(types)).toBeLessThan(20 * types.length);
  await client.query('ROLLBACK');
});

test.each(['fifo', 'lifo', 'priority'])(
  'in a %s queue, tasks that differ only in their payloads are recorded like others',
  async (ordering) => {
    await store.tasks.enqueue([newTask({ payload: '0' })]);
    await client.query('UPDATE holdfast.queues SET ordering = $1', [ordering]);
    const { queue, type, source } = newTask();
    const groups = JSON.stringify([[queue, type, '', '{}', source]]);
    const record = async (tasks: readonly object[], payloads: string | null) => {
      const { rows: answers } = await client.query(
        `SELECT ${functions}.enqueue_tasks(gen_random_uuid(), $1, $2, false, true, NULL, NULL, $3) AS answer`,
        [groups, JSON.stringify(tasks), payloads],
      );
      const { receipts } = answers[0].answer as { receipts: [id: number, created: boolean][] };
      const { rows } = await client.query(
        `SELECT payload, source, priority, submitted_at, policy, class, lane, state, order_key, seq = l.id AS ascends, seq = -l.id AS descends,
         deadline, idempotent, run_at - created_at < 100000 AS is_soon
       FROM holdfast.live l JOIN holdfast.bodies b ON b.id = l.id WHERE l.id = ANY($1) ORDER BY l.id`,
        [receipts.map(([id]) => id)],
      );
      return rows;
    };
    for (const due of [{ d: 0 }, { d: 60_000 }, { da: 8_000_000_000_000 }]) {
      const task = { g: 0, p: 3, i: false, sa: 1_000, dl: 9_000_000_000_000, po: '{}', ...due };
      const alike = await record([task], '1\x1e2');
      expect(alike).toHaveLength(2);
      expect(alike).toEqual(
        await record(
          ['1', '2'].map((b) => ({ ...task, b })),
          null,
        ),
      );
    }
  },
);

test('tasks that differ only in their payloads activate an inactive lane, and change the rank of one whose first task comes after them', async () => {
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  await store.tasks.enqueue([newTask({ payload: '0' })]);
  expect(await claim(worker, 9)).toEqual(['0']);
  await client.query('UPDATE holdfast.lanes SET active = false');
  await store.tasks.enqueue(['1', '2'].map((payload) => newTask({ payload })));
  await store.tasks.enqueue([newTask({ payload: 'earlier', submittedAt: 1 })]);
  expect(await claim(worker, 9)).toEqual(['earlier', '1', '2']);
});

test('what is picked from one active lane is the same by both functions', async () => {
  await store.tasks.enqueue(['1', '2', '3'].map((payload) => newTask({ payload })));
  const pickedBy = async (most: number) => {
    const { rows } = await client.query(
      `SELECT to_json(single)::jsonb - 'alike' AS single, to_json(merged)::jsonb - 'alike' - 'is_blocked' AS merged, (single).alike IS NOT NULL AS alike
       FROM ${functions}.claimable_queues('{}', true, false, holdfast.now_ms()) q
       CROSS JOIN LATERAL ${functions}.pick_single(q, $1, holdfast.now_ms()) single
       CROSS JOIN LATERAL ${functions}.pick(q, '{0}', $1, 0, '{}', '{}', holdfast.now_ms()) merged`,
      [most],
    );
    return rows;
  };
  const expectSame = async (most: number, count: number, alike: boolean) => {
    const [{ single, merged, alike: isAlike }] = await pickedBy(most);
    const { is_blocked: _, ...rest } = single;
    expect(rest).toEqual(merged);
    expect(rest.ids ?? []).toHaveLength(count);
    expect(isAlike).toBe(alike);
  };
  await client.query(`SET search_path = ${functions}, holdfast`);
  await expectSame(2, 2, true);
  await expectSame(3, 3, true);
  await expectSame(9, 3, true);
  // A lane that has been active for long is deactivated once it is empty.
  await client.query('UPDATE holdfast.lanes SET rank = 1');
  await expectSame(9, 3, true);
  await client.query(`UPDATE holdfast.live SET state = 'held' WHERE seq = 1`);
  await expectSame(9, 2, true);
  await client.query(`UPDATE holdfast.live SET deadline = 9000000000000 WHERE seq = 2`);
  await expectSame(9, 2, false);
  await client.query(`UPDATE holdfast.live SET state = 'held'`);
  await expectSame(9, 0, false);
  // Neither is for several lanes.
  await store.tasks.enqueue(['4', '5'].map((source) => newTask({ source })));
  await client.query('UPDATE holdfast.lanes SET active = true');
  expect((await pickedBy(9))[0].single.ids).toBe(null);
});
