import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { type PostgresOptions, postgres } from '../../src/store/postgres/index.ts';
import type { Claimed, Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, lost, newTask, retryIn, settlement, succeeded } from '../contract/scene.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * A transaction of a user that enqueued a task and stays open: nobody waits for it but who needs its very key.
 */

const world = { clock: systemClock, random: Math.random };

let databases: TestDatabases;
let database: TestDatabase;
let stores: Store[];
let user: pg.Client;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(world)).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
  stores = [];
  user = new pg.Client({ connectionString: database.directUrl, application_name: 'web shop' });
  await user.connect();
  await user.query('BEGIN');
});
afterEach(async () => {
  await user.end();
  for (const store of stores) {
    expect(await store.upkeep.verify()).toEqual([]);
    await store.upkeep.close();
  }
  database.drop();
});

async function open(options: PostgresOptions = {}): Promise<Store> {
  const store = await postgres(database.url, { listen: false, ...options }).open(world);
  stores.push(store);
  return store;
}

const within = (store: Store, task = newTask()) => store.within?.(user).enqueue([task]);
const unique = (onConflict: 'ignore' | 'replace' = 'ignore', key = 'u') =>
  ({ key, while: 'waiting', onConflict }) as const;
const ending = { commit: true, rollback: false };

async function claimOne(store: Store, worker: number, limit = 100): Promise<Claimed> {
  const { tasks } = await store.tasks.claim(claimRequest(worker, { limit }));
  expect(tasks).toHaveLength(1);
  return tasks[0] as Claimed;
}

describe.each(Object.entries(ending))('while a user who will %s holds a key', (end, isCommitted) => {
  test('an enqueue of that key waits, and those with other keys or none are answered', async () => {
    const [mine, store] = [await open(), await open()];
    await within(mine, newTask({ key: 'held' }));
    let isAnswered = false;
    const waiting = store.tasks.enqueue([newTask({ key: 'held' })]).finally(() => {
      isAnswered = true;
    });
    // In the same turn, and in later ones.
    const together = Array.from({ length: 80 }, (_, n) => store.tasks.enqueue([newTask({ key: `k${n}` })]));
    const plain = store.tasks.enqueue([newTask()]);
    const again = store.tasks.enqueue([newTask({ key: 'held' })]);
    const created = await Promise.all([...together, plain]);
    expect(created.flat().every((receipt) => receipt.created)).toBe(true);
    expect(await store.tasks.enqueue([newTask({ key: 'later' })])).toMatchObject([{ created: true }]);
    expect(isAnswered).toBe(false);

    await user.query(end);
    const receipts = (await Promise.all([waiting, again])).flat();
    expect(receipts.filter((receipt) => receipt.created)).toHaveLength(isCommitted ? 0 : 1);
    expect(new Set(receipts.map(({ id }) => id)).size).toBe(1);
  });

  test('a retry that needs it waits, and the other settlements and claims of its worker go on', async () => {
    const [mine, store] = [await open(), await open()];
    await store.tasks.enqueue([newTask({ unique: unique() })]);
    await store.tasks.enqueue(Array.from({ length: 3 }, () => newTask()));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: 3 }));
    const [first, second, third] = tasks as [Claimed, Claimed, Claimed];
    await within(mine, newTask({ unique: unique() }));

    let isAnswered = false;
    const retry = store.tasks.settle([settlement(first, retryIn(60_000))]).finally(() => {
      isAnswered = true;
    });
    const success = store.tasks.settle([settlement(second, succeeded())]);
    const next = await claimOne(store, worker);
    expect(await success).toEqual([{ answer: 'settled', state: 'succeeded' }]);
    const other = store.tasks.settle([settlement(third, retryIn(60_000))]);
    expect(await other).toEqual([{ answer: 'settled', state: 'scheduled' }]);
    expect(await store.tasks.settle([settlement(next, succeeded())])).toMatchObject([{ state: 'succeeded' }]);
    expect(isAnswered).toBe(false);

    await user.query(end);
    expect(await retry).toEqual([{ answer: 'settled', state: isCommitted ? 'cancelled' : 'scheduled' }]);
  });
});

test('settlements that are made in one call are refused together, so that each can be made alone', async () => {
  const [mine, store] = [await open(), await open()];
  await store.tasks.enqueue([newTask({ unique: unique() }), newTask()]);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: 2 }));
  await within(mine, newTask({ unique: unique() }));
  const together = tasks.map((task) => settlement(task, retryIn(60_000)));
  await expect(store.tasks.settle(together)).rejects.toMatchObject({ code: 'store_busy', retryable: true });
  await user.query('ROLLBACK');
  expect(await store.tasks.settle(together)).toMatchObject([{ state: 'scheduled' }, { state: 'scheduled' }]);
});

test('who waited too long hears which transaction holds the key, for how long, and what to do', async () => {
  const store = await open({ answerWithin: '1s' });
  // An older transaction that only keeps the tables from being changed, as VACUUM does, is not to blame.
  const vacuum = new pg.Client({ connectionString: database.directUrl });
  await vacuum.connect();
  vacuum.on('error', () => {});
  await vacuum.query('BEGIN; LOCK TABLE holdfast.live IN SHARE UPDATE EXCLUSIVE MODE');
  await user.query('COMMIT; BEGIN');
  await within(await open(), newTask({ key: 'held' }));
  const [{ pid }] = (await user.query('SELECT pg_backend_pid() AS pid')).rows;
  await expect(store.tasks.enqueue([newTask({ key: 'held' })])).rejects.toMatchObject({
    code: 'store_busy',
    retryable: true,
    message: expect.stringMatching(
      new RegExp(`process ${pid} \\(application "web shop"\\)\\. It has been open for \\d+ s\\. .*${pid}`),
    ),
  });
  await vacuum.end();
});

test('a type that a transaction enqueues for the first time is waited for by no other type', async () => {
  const store = await open();
  await store.tasks.enqueue([newTask()]);
  await user.query(`SELECT holdfast.enqueue('new type', '{}')`);
  const same = store.tasks.enqueue([newTask({ type: 'new type' })]);
  const others = await Promise.all([
    store.tasks.enqueue([newTask({ type: 'another' })]),
    store.tasks.enqueue([newTask({ type: 'a third', source: 's' })]),
  ]);
  expect(others.flat()).toMatchObject([{ created: true }, { created: true }]);
  // Nor by those that are enqueued in the same turn, again and again: each would be waited for 500 ms.
  const rounds = 10;
  const started = performance.now();
  const more: Promise<unknown>[] = [];
  for (let round = 0; round < rounds; round++) {
    more.push(store.tasks.enqueue([newTask({ type: 'new type' })]));
    await store.tasks.enqueue([newTask()]);
  }
  expect(performance.now() - started).toBeLessThan(rounds * 500);
  await user.query('COMMIT');
  await Promise.all(more);
  expect(await same).toMatchObject([{ created: true }]);
});

test.each([
  ['pausing', (store: Store) => store.sources.pause('new', { actor: 'ada' })],
  ['setting up', (store: Store) => store.sources.setUp('new', { order: 'lifo' })],
])('%s a queue that an open transaction makes fails with the name of that transaction', async (_, act) => {
  const store = await open({ answerWithin: '1s' });
  await user.query(`SELECT holdfast.enqueue('t', '{}', queue => 'new')`);
  await expect(act(store)).rejects.toMatchObject({ code: 'store_busy', message: expect.stringContaining('web shop') });
  await user.query('ROLLBACK');
  await act(store);
});

test('a transaction that would replace a task that runs does not keep its worker from settling it', async () => {
  const [mine, store] = [await open(), await open()];
  const unfinished = { ...unique('replace'), while: 'unfinished' } as const;
  await store.tasks.enqueue([newTask({ unique: unfinished })]);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const task = await claimOne(store, worker);
  expect(await within(mine, newTask({ unique: unfinished }))).toMatchObject([{ id: task.lease.task, created: false }]);
  expect(await store.tasks.settle([settlement(task, retryIn(60_000))])).toMatchObject([{ state: 'scheduled' }]);
});

describe('while a user replaces tasks', () => {
  const replaceable = (n: number, source = 's') => newTask({ source, unique: unique('replace', `${n}`) });

  test.each([1, 4, 12])('a claim of %i goes on behind them, in the order of the queue', async (limit) => {
    const [mine, store] = [await open(), await open()];
    await store.tasks.enqueue(Array.from({ length: 150 }, (_, n) => replaceable(n)));
    await mine.within?.(user).enqueue(Array.from({ length: 130 }, (_, n) => replaceable(n)));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    const given: number[] = [];
    while (given.length < 20) {
      const { tasks } = await store.tasks.claim(claimRequest(worker, { limit }));
      expect(tasks).toHaveLength(Math.min(limit, 20 - given.length));
      given.push(...tasks.map(({ lease }) => lease.task));
    }
    expect(given).toEqual(Array.from({ length: 20 }, (_, n) => 131 + n));
    expect(await store.tasks.claim(claimRequest(worker, { limit }))).toMatchObject({ tasks: [] });
    await user.query('ROLLBACK');
    expect(await claimOne(store, worker, 1)).toMatchObject({ lease: { task: 1 } });
  });

  test('a claim of a fair queue goes on behind them with each source in its turn', async () => {
    const [mine, store] = [await open(), await open()];
    await store.sources.setUp('default', { fair: true });
    await store.tasks.enqueue(Array.from({ length: 20 }, (_, n) => replaceable(n, 'big')));
    await store.tasks.enqueue([replaceable(100, 'small'), replaceable(101, 'small')]);
    await mine.within?.(user).enqueue(Array.from({ length: 18 }, (_, n) => replaceable(n, 'big')));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    const given: number[] = [];
    for (let n = 0; n < 4; n += 1) given.push((await claimOne(store, worker, 1)).lease.task);
    expect(given).toEqual([19, 21, 20, 22]);
  });

  test.each([1, 2])('suspects that were lost %i times are passed over too', async (lostInARow) => {
    const [mine, store] = [await open(), await open()];
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    for (let n = 0; n < 5; n += 1) {
      await store.tasks.enqueue([replaceable(n)]);
      const { tasks } = await store.tasks.claim(claimRequest(worker, { only: [n + 1] }));
      const [suspect] = tasks as [Claimed];
      await store.tasks.settle([settlement(suspect, lost('free', lostInARow))]);
    }
    await store.tasks.enqueue([newTask(), newTask()]);
    await mine.within?.(user).enqueue(Array.from({ length: 4 }, (_, n) => replaceable(n)));
    expect(await claimOne(store, worker, 1)).toMatchObject({ lease: { task: 5 } });
    expect(await claimOne(store, worker, 1)).toMatchObject({ lease: { task: 6 } });
  });

  test('those of them that fall due are not due now, and the others are claimed', async () => {
    const [mine, store] = [await open(), await open()];
    await store.tasks.enqueue([newTask({ unique: unique('replace') }), newTask({ priority: 3 })]);
    const now = Date.now();
    const set = (what: string, id: number) =>
      ask(database.directUrl, `UPDATE holdfast.live SET ${what} WHERE id = ${id}`);
    await set(`state = 'scheduled', run_at = ${now - 1}`, 2);
    await set(`state = 'scheduled', run_at = ${now - 2}`, 1);
    await within(mine, newTask({ unique: unique('replace') }));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({
      tasks: [{ lease: { task: 2 } }],
      nextDueIn: 100,
    });
    expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({ tasks: [], nextDueIn: 100 });
    await user.query('ROLLBACK');
    expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({ tasks: [{ lease: { task: 1 } }] });
  });

  test('those of them that meet their deadline are left to a later claim', async () => {
    const [mine, store] = [await open(), await open()];
    await store.tasks.enqueue([newTask({ unique: unique('replace') }), newTask(), newTask()]);
    const now = Date.now();
    await ask(database.directUrl, `UPDATE holdfast.live SET deadline = ${now - 10} + id WHERE id <= 2`);
    await within(mine, newTask({ unique: unique('replace') }));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({
      tasks: [{ lease: { task: 3 } }],
      expired: [{ lease: { task: 2 } }],
      nextDueIn: 100,
    });
    expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({ tasks: [], expired: [], nextDueIn: 100 });
    await user.query('ROLLBACK');
    expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({ expired: [{ lease: { task: 1 } }] });
  });
});

test('the first key of a day does not keep others from settling', async () => {
  const [mine, store] = [await open(), await open()];
  await ask(database.directUrl, 'DELETE FROM holdfast.days');
  for (const table of ['succeeded', 'executions']) {
    const days = await ask(
      database.directUrl,
      `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'holdfast.${table}'::regclass AND inhrelid::regclass::text ~ '\\d{8}$'`,
    );
    for (const { name } of days) await ask(database.directUrl, `DROP TABLE ${name}`);
  }
  await within(mine, newTask({ key: 'k' }));
  await store.tasks.enqueue([newTask()]);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const task = await claimOne(store, worker);
  expect(await store.tasks.settle([settlement(task, succeeded())])).toMatchObject([{ state: 'succeeded' }]);
});

test('calls that name the same keys in other orders do not wait for each other in a circle', async () => {
  const [one, two] = [await open(), await open()];
  const keys = Array.from({ length: 20 }, (_, n) => n);
  for (let round = 0; round < 10; round += 1) {
    const tasks = keys.map((n) => newTask({ key: `${round} ${n}`, unique: unique('replace', `${round} ${n % 7}`) }));
    const [there, back] = await Promise.all([one.tasks.enqueue(tasks), two.tasks.enqueue([...tasks].reverse())]);
    expect([...there, ...back].filter(({ created }) => created)).toHaveLength(keys.length);
  }
  const [stats] = await ask(
    database.directUrl,
    'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
  );
  expect(stats).toEqual({ deadlocks: 0 });
});

/** A task as `enqueue_tasks` takes it; `from` is when it was submitted, from now on. */
interface Placed {
  readonly source: string;
  readonly from?: number;
  readonly priority?: number;
}

describe.each([
  ['fifo', { first: { from: -90_000 }, late: { from: -50_000 }, last: { from: 50_000 } }],
  ['lifo', { first: { from: 90_000 }, late: { from: 50_000 }, last: { from: -50_000 } }],
  ['priority', { first: { priority: 9 }, late: { priority: 9 }, last: { priority: 0 } }],
] as const)('in a %s queue with more sources than a claim reads', (order, { first, late, last }) => {
  const source = 'one';
  let store: Store;
  let worker: number;

  /** Enqueues as the store does, over a connection whose transaction can stay open. */
  const enqueueOver = (client: pg.Client, ...tasks: readonly Placed[]) =>
    client.query(`SELECT ${functionsOver('"holdfast"').schema}.enqueue_tasks(NULL, $1, $2, false, true, NULL)`, [
      JSON.stringify(tasks.map((task) => ['default', 'mail', '', '{}', task.source])),
      JSON.stringify(
        tasks.map(({ priority = 1, from = 0 }, g) => ({
          g,
          p: priority,
          b: '{}',
          d: 0,
          sa: store.upkeep.now() + from,
        })),
      ),
    ]);

  beforeEach(async () => {
    store = await open();
    await user.query('ROLLBACK');
    await store.sources.setUp('default', { order });
    await enqueueOver(user, { source, ...first }, { source, ...last });
    await enqueueOver(user, ...Array.from({ length: 2_990 }, (_, n) => ({ source: `other ${n % 299}` })));
    // Gives the lane the lowest rank, so that no enqueue lowers it.
    await store.sources.hold(source, { actor: 'maria' });
    await store.sources.release(source);
    worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  });

  const claimSources = async (limit: number) =>
    (await store.tasks.claim(claimRequest(worker, { limit }))).tasks.map((task) => task.source);

  test('the next claim after a commit gives the task, though others claimed while its transaction was open', async () => {
    await user.query('BEGIN');
    await enqueueOver(user, { source, ...late });
    expect(await claimSources(1)).toEqual([source]);
    for (let n = 0; n < 20; n += 1) expect(await claimSources(1)).not.toEqual([source]);
    await user.query('COMMIT');
    expect(await claimSources(1)).toEqual([source]);
  });

  test('the next claim gives a task that was committed between picking and leasing of the claim before', async () => {
    await user.query('BEGIN');
    await user.query('SELECT 1 FROM holdfast.workers WHERE id = $1 FOR UPDATE', [worker]);
    const claim = claimSources(2);
    const second = new pg.Client({ connectionString: database.directUrl });
    await second.connect();
    // The claim has picked its tasks, and waits for the worker's row.
    let waiting = 0;
    do waiting = (await second.query('SELECT 1 FROM pg_locks WHERE NOT granted')).rowCount ?? 0;
    while (waiting === 0);
    await enqueueOver(second, { source, ...late });
    await second.end();
    await user.query('COMMIT');
    expect(await claim).toEqual([source, expect.stringContaining('other')]);
    expect(await claimSources(1)).toEqual([source]);
  });
});

test('a retry of a task that another transaction writes meanwhile is told once in its history', async () => {
  const store = await open();
  await store.tasks.enqueue([newTask()]);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const task = await claimOne(store, worker);
  // As a follow-up that waits for this task is enqueued.
  await user.query(`UPDATE holdfast.live SET in_group = true WHERE id = ${task.lease.task}`);
  const retry = store.tasks.settle([settlement(task, retryIn(60_000))]);
  await waitsForLock();
  await user.query('COMMIT');
  expect(await retry).toEqual([{ answer: 'settled', state: 'scheduled' }]);
  const { rows } = await user.query(
    `SELECT execution, outcome FROM holdfast.executions WHERE task = ${task.lease.task}`,
  );
  expect(rows).toEqual([{ execution: 1, outcome: 'failure' }]);
});

/** Resolves when a statement waits for a lock. */
async function waitsForLock(): Promise<void> {
  const waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  while ((await ask(database.directUrl, waiting)).length === 0);
}
