import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type PgPool, type PostgresOptions, postgres } from '../../src/store/postgres/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, idsOf, LEASE, lost, newTask, settlement, succeeded } from '../contract/scene.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';
import { startProxy, type TestProxy } from '../postgres/proxy.ts';

/*
 * Connections that go half-open or break, and pools that are the caller's.
 */

const world = { clock: systemClock, random: Math.random };
const ANSWER_WITHIN = 800;

let databases: TestDatabases;
let database: TestDatabase;
let proxy: TestProxy;
let stores: Store[];
let pools: pg.Pool[];

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(world)).upkeep.close();
  });
});
afterAll(() => databases.close());

beforeEach(async () => {
  database = await databases.take();
  proxy = await startProxy(database.url);
  stores = [];
  pools = [];
});
afterEach(async () => {
  // From here on their connections may break without a store that listens.
  for (const pool of pools) pool.on('error', () => {});
  for (const store of stores) {
    expect(await store.upkeep.verify()).toEqual([]);
    await store.upkeep.close();
  }
  // Whatever is still asked for a connection hears that there is none.
  proxy.cut();
  for (const pool of pools) if (!pool.ended) await pool.end();
  await proxy.close();
  database.drop();
});

async function open(connection: string | PgPool, options: PostgresOptions = {}): Promise<Store> {
  const store = await postgres(connection, options).open(world);
  stores.push(store);
  return store;
}

function newPool(config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: proxy.url(database.url), ...config });
  pools.push(pool);
  return pool;
}

/** A task's whole life. */
async function runOne(store: Store): Promise<number> {
  const [receipt] = await store.tasks.enqueue([newTask()]);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const { tasks } = await store.tasks.claim(claimRequest(worker));
  expect(idsOf(tasks)).toEqual([receipt?.id]);
  const [task] = tasks.map((one) => settlement(one, succeeded()));
  const [answer] = task ? await store.tasks.settle([task]) : [];
  expect(answer).toEqual({ answer: 'settled', state: 'succeeded' });
  await store.tasks.leave(worker);
  return receipt?.id as number;
}

describe.each([
  ['a pool of its own', () => proxy.url(database.url)],
  ['a pool of the caller', (max?: number) => newPool({ max })],
])('over %s', (_, connection) => {
  test('a call that is not answered is made again over a new connection, and the old one is given up', async () => {
    const store = await open(connection(1), { answerWithin: `${ANSWER_WITHIN}ms`, connections: 1, listen: false });
    await store.tasks.enqueue([newTask()]);
    const before = proxy.accepted;
    proxy.freeze();
    expect(await store.tasks.enqueue([newTask()])).toMatchObject([{ created: true }]);
    expect(await store.records.list({ limit: 10 })).toHaveLength(2);
    // The new one, and the one over which the server was asked to cancel the statement.
    expect([proxy.accepted, proxy.standing]).toEqual([before + 2, 1]);
  });

  test('what is not waited for any more does not go on in a server that is blocked', async () => {
    const most = 3;
    const store = await open(connection(most), {
      answerWithin: `${ANSWER_WITHIN}ms`,
      connections: most,
      listen: false,
    });
    const blocker = new pg.Client({ connectionString: database.directUrl });
    await blocker.connect();
    await blocker.query('BEGIN; LOCK TABLE holdfast.live, holdfast.calls IN ACCESS EXCLUSIVE MODE');
    const before = proxy.accepted;
    const calls = [store.tasks.enqueue([newTask()]), store.records.counts(), store.records.list({ limit: 1 })];
    const counts: number[] = [];
    // Each call is given up and made again several times.
    while (proxy.accepted < before + 8 * most) counts.push((await ask(database.directUrl, others)).length);
    await blocker.query('COMMIT');
    await blocker.end();
    await Promise.all(calls);
    // The connection that blocks them, and one that is just being replaced.
    expect(Math.max(...counts)).toBeLessThanOrEqual(most + 2);
  });

  test('a server that takes no writes while another one takes its place is waited for', async () => {
    const store = await open(connection(), { listen: false });
    const name = new URL(database.directUrl).pathname.slice(1);
    await ask(database.directUrl, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await ask(database.directUrl, terminateOthers);
    const before = proxy.accepted;
    const call = store.tasks.enqueue([newTask()]);
    // It comes back over a new connection, which may lead to the new primary.
    await expect.poll(() => proxy.accepted).toBeGreaterThan(before + 2);
    await ask(database.directUrl, `BEGIN READ WRITE; ALTER DATABASE ${name} RESET ALL; COMMIT`);
    expect(await call).toMatchObject([{ created: true }]);
  });

  test('a server that says nothing for a while is waited for', async () => {
    const store = await open(connection(), { answerWithin: `${ANSWER_WITHIN}ms` });
    proxy.swallow();
    const kept = proxy.kept();
    const call = runOne(store);
    await kept;
    proxy.thaw();
    expect(await call).toBe(1);
  });

  test('opening does not wait for a server that accepts and says nothing', async () => {
    proxy.swallow();
    await expect(open(connection(), { answerWithin: `${ANSWER_WITHIN}ms` })).rejects.toMatchObject({
      name: 'StoreError',
      code: 'store_unavailable',
      retryable: true,
    });
  });

  test('connections that the server ends, idle or not, are replaced', async () => {
    const store = await open(connection());
    await runOne(store);
    await ask(database.directUrl, terminateOthers);
    await runOne(store);
  });

  test('closing does not wait for connections that are half-open', async () => {
    const store = await open(connection());
    await runOne(store);
    proxy.freeze();
    stores = [];
    await store.upkeep.close();
    await expect(store.tasks.enqueue([newTask()])).rejects.toMatchObject({ code: 'closed' });
  });
});

describe('a statement that arrives after it was made again', () => {
  /** Makes the call while a statement that has this text is kept, and passes it on once the call was answered over another connection. */
  async function overtaken<T>(text: string, call: () => Promise<T>): Promise<T> {
    const delayed = proxy.delay(text);
    const answer = await call();
    await delayed;
    proxy.thaw();
    // The server ends its side when it has done what it was told.
    await expect.poll(() => ask(database.directUrl, others)).toHaveLength(proxy.standing);
    return answer;
  }

  test('does nothing once more: enqueue', async () => {
    const store = await open(proxy.url(database.url), { answerWithin: `${ANSWER_WITHIN}ms`, listen: false });
    await overtaken('.enqueue_tasks(', () => store.tasks.enqueue([newTask()]));
    expect(await store.records.list({ limit: 10 })).toHaveLength(1);
  });

  test('does nothing once more: claim', async () => {
    const store = await open(proxy.url(database.url), { answerWithin: `${ANSWER_WITHIN}ms`, listen: false });
    await store.tasks.enqueue(Array.from({ length: 10 }, () => newTask()));
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    const { tasks } = await overtaken('.claim(', () => store.tasks.claim(claimRequest(worker, { limit: 3 })));
    expect(tasks).toHaveLength(3);
    expect(await store.records.list({ limit: 10, states: ['running'] })).toHaveLength(3);
  });

  test('does nothing once more: hold and pause, after the release', async () => {
    const store = await open(proxy.url(database.url), { answerWithin: `${ANSWER_WITHIN}ms`, listen: false });
    const by = { actor: 'maria' };
    await overtaken('.hold_source(', async () => {
      await store.sources.hold('s', by);
      await store.sources.release('s');
    });
    await overtaken('.pause_queue(', async () => {
      await store.sources.pause('default', by);
      await store.sources.resume('default');
    });
    expect(await store.records.sources()).toEqual([]);
    expect((await store.records.queues())[0]).not.toHaveProperty('paused');
  });

  test('does nothing once more: release and resume, after the next hold', async () => {
    const store = await open(proxy.url(database.url), { answerWithin: `${ANSWER_WITHIN}ms`, listen: false });
    const by = { actor: 'maria' };
    await store.sources.hold('s', by);
    await store.sources.pause('default', by);
    await overtaken('.release_source(', async () => {
      await store.sources.release('s');
      await store.sources.hold('s', by);
    });
    await overtaken('.resume_queue(', async () => {
      await store.sources.resume('default');
      await store.sources.pause('default', by);
    });
    expect(await store.records.sources()).toMatchObject([{ name: 's' }]);
    expect(await store.records.queues()).toMatchObject([{ name: 'default', paused: { actor: 'maria' } }]);
  });

  test('does nothing once more: recover', async () => {
    const store = await open(proxy.url(database.url), { answerWithin: `${ANSWER_WITHIN}ms`, listen: false });
    const join = (name: string) => store.tasks.join({ name, leaseFor: LEASE, publishes: {} });
    const [alice, bob] = [await join('alice'), await join('bob')];
    await store.tasks.enqueue(Array.from({ length: 10 }, () => newTask()));
    await store.tasks.claim(claimRequest(alice, { limit: 6 }));
    await store.tasks.leave(alice);
    await store.tasks.renew(bob, []);
    await overtaken('.take_over(', async () => {
      const { tasks: recovered } = await store.tasks.recover(bob, 2);
      expect(recovered).toHaveLength(2);
      await store.tasks.settle(recovered.map((task) => settlement(task, lost('free'))));
    });
    expect(await ask(database.directUrl, `SELECT id FROM holdfast.live WHERE worker = ${bob}`)).toEqual([]);
  });
});

const others =
  "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";

const terminateOthers =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()';

describe('a pool of the caller', () => {
  const parsers: Readonly<Record<string, (oid: number) => (text: string) => unknown>> = {
    'bigints as BigInt': (oid) => (oid === 20 ? BigInt : pg.types.getTypeParser(oid)),
    'JSON as text': (oid) => (oid === 114 || oid === 3802 ? String : pg.types.getTypeParser(oid)),
    'everything as text': () => String,
  };

  test.each(Object.entries(parsers))('that reads %s serves as any other', async (_, getTypeParser) => {
    const pool = newPool({ types: { getTypeParser: getTypeParser as typeof pg.types.getTypeParser } });
    // On a schema that has to be made, and on one that is there.
    await open(pool, { schema: 'fresh' });
    const store = await open(pool, { schema: 'fresh' });
    const { tasks, records, sources } = store;
    const id = await runOne(store);
    expect(await records.find(id)).toMatchObject({
      id,
      state: 'succeeded',
      priority: 0,
      executions: 1,
      idempotent: true,
    });
    expect(await tasks.enqueue([newTask({ key: 'k', delay: 60_000 }), newTask({ key: 'k' })])).toEqual([
      { id: id + 1, created: true },
      { id: id + 1, created: false, state: 'scheduled' },
    ]);
    expect(await tasks.move([id + 1], { verb: 'hold', actor: 'maria' })).toEqual([
      { id: id + 1, moved: true, from: 'scheduled', to: 'held' },
    ]);
    await sources.hold('s', { actor: 'maria' });
    await sources.pause('default', { actor: 'maria' });
    expect(await records.sources()).toMatchObject([{ name: 's', hold: { at: expect.any(Number) } }]);
    expect(await records.queues()).toMatchObject([
      { name: 'default', fair: false, paused: { at: expect.any(Number) } },
    ]);
    expect(await records.history(id + 1)).toMatchObject([{ verb: 'hold', at: expect.any(Number) }]);
    expect(await store.upkeep.takeTurn('prune', 1_000)).toBe(true);
    expect(await store.upkeep.takeTurn('prune', 1_000)).toBe(false);
  });

  test('of one connection is enough, also while the store listens', async () => {
    const pool = newPool({ max: 1 });
    const [store, other] = [await open(pool), await open(database.url)];
    let heard = () => {};
    const work = new Promise<void>((resolve) => {
      heard = resolve;
    });
    store.upkeep.onNews(() => heard());
    await Promise.all([runOne(store), store.records.counts(), store.records.workers()]);
    await other.tasks.enqueue([newTask()]);
    await work;
  });

  test('stays open when the store is closed, without a listener of the store on it', async () => {
    const pool = newPool();
    const store = await open(pool);
    stores = [];
    await store.upkeep.close();
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    expect(pool.listenerCount('error')).toBe(0);
    expect([pool.idleCount, pool.totalCount]).toEqual([1, 1]);
  });

  test('all of whose connections are taken, or that was ended, is told in words', async () => {
    const pool = newPool({ max: 1 });
    const held = await pool.connect();
    await expect(open(pool, { answerWithin: `${ANSWER_WITHIN}ms` })).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('no connection was had within'),
    });
    held.release();
    const store = await open(pool);
    stores = [];
    await pool.end();
    await expect(store.tasks.enqueue([newTask()])).rejects.toMatchObject({ code: 'store_unavailable' });
    await store.upkeep.close();
  });
});

test('refuses a database whose transactions do not see what others commit', async () => {
  const url = new URL(database.directUrl);
  const name = url.pathname.slice(1);
  await ask(database.directUrl, `ALTER DATABASE ${name} SET default_transaction_isolation = 'repeatable read'`);
  await expect(open(database.url)).rejects.toMatchObject({
    code: 'store_unsupported',
    message: expect.stringContaining("'repeatable read'"),
  });
});
