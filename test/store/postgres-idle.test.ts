import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { openWith } from '../../src/queue/open.ts';
import { type PostgresOptions, postgres } from '../../src/store/postgres/index.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { claimRequest, LEASE, newTask, settlement, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * Workers that have had no task for half a minute: how often they call the database, and how soon they hear of what users enqueue in
 * transactions of their own.
 */

const MINUTE = 60_000;

/** So much time passes at once. */
const STEP = 5_000;

let databases: TestDatabases;
let database: TestDatabase;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(virtualWorld())).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
});
afterEach(() => database.drop());

/** A worker that has been idle for two minutes, and what it calls from then on. */
async function anIdleWorker(options: PostgresOptions = {}) {
  const world = virtualWorld();
  const pool = new pg.Pool({ connectionString: database.directUrl, max: 1 });
  // Its database may be dropped while it ends.
  pool.on('error', () => {});
  const calls: string[] = [];
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      const [, name] = /^SELECT "holdfast_\w+"\.(\w+)/.exec((args[0] as { text?: string }).text ?? '') ?? [];
      if (name) calls.push(name);
      return query(...args);
    }) as typeof client.query;
  });
  const ran: unknown[] = [];
  let onRun = () => {};
  const mail = defineTask('mail', {
    run(input) {
      ran.push(input);
      onRun();
    },
  });
  const holdfast = await openWith({ store: postgres(pool, options), tasks: [mail] }, world);
  const worker = holdfast.work();
  const pass = async (time: number) => {
    for (let passed = 0; passed < time; passed += STEP) {
      world.clock.advance(STEP);
      do await new Promise((resolve) => setImmediate(resolve));
      while (!worker.resting);
    }
  };
  if (options.listen !== false) {
    await expect
      .poll(() => ask(database.directUrl, "SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"), {
        timeout: 20_000,
      })
      .toHaveLength(1);
  }
  await pass(2 * MINUTE);
  calls.splice(0);
  return {
    calls,
    ran,
    pass,
    nextRun: () =>
      new Promise<void>((resolve) => {
        onRun = resolve;
      }),
    async close() {
      await holdfast.close();
      await pool.end();
    },
  };
}

test('an idle worker that listens calls the database twice a minute', async () => {
  const { calls, pass, close } = await anIdleWorker();
  await pass(10 * MINUTE);
  expect(calls).toEqual(Array(20).fill('renew'));
  await close();
});

test('one that does not listen calls it six times a minute, and finds within ten seconds what a transaction of a user enqueued', async () => {
  const { calls, pass, nextRun, close } = await anIdleWorker({ listen: false });
  await pass(10 * MINUTE);
  expect(calls).toEqual(Array(60).fill('renew'));
  const found = nextRun();
  await ask(database.directUrl, `SELECT holdfast.enqueue('mail', '1')`);
  await pass(10_000);
  await found;
  await close();
});

test('hears at once of what a transaction of a user enqueues, unless holdfast.notify is off: then its next renewal finds it', async () => {
  const { ran, pass, nextRun, close } = await anIdleWorker();
  const heard = nextRun();
  await ask(database.directUrl, `SELECT holdfast.enqueue('mail', '1')`);
  await heard;
  // Idle again.
  await pass(2 * MINUTE);
  const found = nextRun();
  await ask(database.directUrl, `SET holdfast.notify = off; SELECT holdfast.enqueue('mail', '2')`);
  await pass(30_000);
  await found;
  expect(ran).toEqual([1, 2]);
  await close();
});

test('an idle worker has a longer lease until it is given a task, unless others hold tasks', async () => {
  const store = await postgres(database.directUrl).open(virtualWorld());
  const { tasks } = store;
  await new Promise<void>((resolve) => void store.upkeep.onNews(() => resolve()));
  const join = (name: string) => tasks.join({ name, leaseFor: LEASE, publishes: {} });
  const left = async () => {
    const rows = await ask(
      database.directUrl,
      'SELECT lease_until - holdfast.now_ms() AS left FROM holdfast.workers ORDER BY id',
    );
    return rows.map((row) => Number(row.left));
  };
  const alice = await join('alice');
  expect(await tasks.renew(alice, [], 0, true)).toMatchObject({ idle: { renewIn: LEASE, leaseFor: 3 * LEASE } });
  expect(await left()).toEqual([3 * LEASE]);
  await tasks.claim(claimRequest(alice));
  expect(await left()).toEqual([3 * LEASE]);
  await tasks.enqueue([newTask()]);
  expect((await tasks.claim(claimRequest(alice))).tasks).toHaveLength(1);
  expect(await left()).toEqual([LEASE]);

  const bob = await join('bob');
  expect(await tasks.renew(bob, [], 0, true)).toMatchObject({ idle: { renewIn: LEASE / 3, leaseFor: LEASE } });
  await store.upkeep.close();
});

test('an idle worker of the same process claims a task in the transaction that enqueues it', async () => {
  const store = await postgres(database.directUrl, { listen: false }).open(virtualWorld());
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  // The first task of a kind may have to wait for another transaction that makes it too.
  await store.tasks.enqueue([newTask({ delay: MINUTE })]);
  const claims: ReturnType<typeof store.tasks.claim>[] = [];
  const stop = store.upkeep.onNews(() => claims.push(store.tasks.claim(claimRequest(worker, { limit: 1 }))));
  const [, [later]] = await Promise.all([
    store.tasks.enqueue([newTask({ payload: '1' })]),
    store.tasks.enqueue([newTask({ payload: '2' })]),
  ]);
  stop();
  const [first] = await Promise.all(claims);

  expect(first?.tasks).toMatchObject([{ payload: '1' }]);
  const rows = await ask(
    database.directUrl,
    `SELECT b.payload, l.state, b.xmin = l.xmin AS "isSameTransaction" FROM holdfast.bodies b JOIN holdfast.live l USING (id)
     WHERE b.id >= ${first?.tasks[0]?.lease.task} ORDER BY b.id`,
  );
  expect(rows[0]).toEqual({ payload: '1', state: 'running', isSameTransaction: true });
  // The worker is told of what its claim left.
  expect(claims.length).toBeGreaterThan(1);
  expect(later?.created).toBe(true);
  await store.upkeep.close();
});

test('a task that an idle worker starts in the transaction that enqueues it is not put into a lane', async () => {
  const world = virtualWorld();
  const store = await postgres(database.directUrl, { listen: false }).open(world);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  await store.tasks.enqueue([newTask()]);
  const claim = async () => (await store.tasks.claim(claimRequest(worker))).tasks;
  await store.tasks.settle((await claim()).map((claimed) => settlement(claimed, succeeded())));
  // The lane is kept for 10 s after its last task.
  world.clock.advance(11_000);
  expect(await claim()).toEqual([]);
  let claiming: ReturnType<typeof claim> | undefined;
  const stop = store.upkeep.onNews(() => {
    claiming ??= claim();
  });
  const [receipt] = await store.tasks.enqueue([newTask()]);
  stop();
  expect((await claiming)?.map(({ lease }) => lease.task)).toEqual([receipt?.id]);
  expect(await ask(database.directUrl, 'SELECT active FROM holdfast.lanes')).toEqual([{ active: false }]);
  await store.upkeep.close();
});

test('a worker lets the database be called after each hundred handlers that do not wait', async () => {
  let ran = 0;
  const mail = defineTask('mail', {
    run() {
      ran += 1;
    },
  });
  const holdfast = await openWith(
    { store: postgres(database.directUrl, { listen: false }), tasks: [mail] },
    virtualWorld(),
  );
  await holdfast.enqueueAll(
    mail,
    Array.from({ length: 700 }, () => ({})),
  );
  let [before, mostInOneTurn, isOver] = [0, 0, false];
  const lookEachTurn = () => {
    mostInOneTurn = Math.max(mostInOneTurn, ran - before);
    before = ran;
    if (!isOver) setImmediate(lookEachTurn);
  };
  lookEachTurn();
  await holdfast.worker({ concurrency: 1 }).drain();
  isOver = true;
  expect(ran).toBe(700);
  expect(mostInOneTurn).toBeGreaterThan(50);
  expect(mostInOneTurn).toBeLessThanOrEqual(101);
  await holdfast.close();
});
