import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type PostgresOptions, postgres } from '../../src/store/postgres/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, settlement, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';
import { startPgBouncer } from '../postgres/pgbouncer.mjs';
import { startProxy } from '../postgres/proxy.ts';

/*
 * Hearing of work from other processes by LISTEN. Each of the stores here has connections of its own, as processes do.
 */

const HAS_PGBOUNCER = (process.env.PATH ?? '')
  .split(':')
  .concat('/usr/sbin')
  .some((path) => existsSync(join(path, 'pgbouncer')));
const world = { clock: systemClock, random: Math.random };
const LISTENERS =
  "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN %'";

let databases: TestDatabases;
let database: TestDatabase;
let stores: Store[];

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(world)).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
  stores = [];
});
afterEach(async () => {
  for (const store of stores) await store.upkeep.close();
  database.drop();
});

async function open(url = database.directUrl, options: PostgresOptions = {}): Promise<Store> {
  const store = await postgres(url, options).open(world);
  stores.push(store);
  return store;
}

const enqueue = (store: Store) => store.tasks.enqueue([newTask()]);

/** Listens, and resolves `next` at each hint. */
function ears(store: Store) {
  let hint = () => {};
  const stop = store.upkeep.onNews(() => hint());
  return {
    stop,
    next: () =>
      new Promise<void>((resolve) => {
        hint = resolve;
      }),
  };
}

test('hears what other processes enqueue, and comes back when its connection is ended', async () => {
  const [store, other] = [await open(), await open()];
  const { next } = ears(store);
  // The first hint: it listens.
  await next();
  for (let round = 0; round < 2; round++) {
    const heard = next();
    await enqueue(other);
    await heard;
    const back = next();
    expect(await ask(database.directUrl, `SELECT pg_terminate_backend(pid) AS ended ${LISTENERS}`)).toEqual([
      { ended: true },
    ]);
    await back;
  }
});

test('a renewal after a minute notices that the listening connection has gone silent, and it is replaced', async () => {
  const proxy = await startProxy(database.directUrl);
  const direct = new pg.Pool({ connectionString: database.directUrl, max: 1 });
  // Its database is dropped while it ends.
  direct.on('error', () => {});
  const options = { connectionString: proxy.url(database.directUrl) };
  const pool = Object.assign({ connect: () => direct.connect() }, { Client: pg.Client, options });
  const virtual = virtualWorld();
  const store = await postgres(pool).open(virtual);
  stores.push(store);
  const { next } = ears(store);
  await next();
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const renew = async () => {
    virtual.clock.advance(60_000);
    await store.tasks.renew(worker, []);
  };
  await renew();
  expect(proxy.accepted).toBe(1);
  proxy.freeze();
  const again = next();
  await renew();
  await again;
  expect(proxy.accepted).toBe(2);
  await store.upkeep.close();
  stores = [];
  await direct.end();
  await proxy.close();
});

test('the test of a new listener wakes no other process', async () => {
  const other = await open();
  const heard = ears(other);
  await heard.next();
  let hints = 0;
  other.upkeep.onNews(() => {
    hints += 1;
  });
  const store = await open();
  await ears(store).next();
  const work = heard.next();
  await enqueue(store);
  await work;
  expect(hints).toBe(1);
});

test('has one connection that listens, and none where nobody listens', async () => {
  const store = await open();
  const [one, other] = [ears(store), ears(store)];
  await one.next();
  const count = async () => (await ask(database.directUrl, `SELECT pid ${LISTENERS}`)).length;
  expect(await count()).toBe(1);
  one.stop();
  expect(await count()).toBe(1);
  other.stop();
  await expect.poll(count).toBe(0);
});

test('with listen: false hears nothing, and makes no connection for it', async () => {
  const [store, other] = [await open(database.directUrl, { listen: false }), await open()];
  let hints = 0;
  store.upkeep.onNews(() => {
    hints += 1;
  });
  const heard = ears(other);
  await heard.next();
  const own = heard.next();
  await enqueue(other);
  await own;
  expect(hints).toBe(0);
  expect(await ask(database.directUrl, `SELECT pid ${LISTENERS}`)).toHaveLength(1);
  await enqueue(store);
  expect(hints).toBeGreaterThan(0);
});

test('tells others at most once in 100 ms, whatever is enqueued beside tasks that have waited for 10 s, and always after the last', async () => {
  const [store, other] = [await open(), await open()];
  await ears(other).next();
  await store.tasks.enqueue([newTask({ submittedAt: Date.now() - 60_000 })]);
  const [row] = await ask(database.directUrl, `SELECT query ${LISTENERS}`);
  const observer = new pg.Client({ connectionString: database.directUrl });
  await observer.connect();
  const times: number[] = [];
  let onTold = () => {};
  observer.on('notification', () => {
    times.push(performance.now());
    onTold();
  });
  await observer.query(row?.query as string);

  const started = performance.now();
  let last = started;
  for (let n = 0; n < 100; n++) {
    await Promise.all([enqueue(store), enqueue(store)]);
    last = performance.now();
  }
  await new Promise<void>((resolve) => {
    onTold = () => {
      if ((times.at(-1) as number) >= last) resolve();
    };
    onTold();
  });
  await observer.end();
  const longest = 1 + ((times.at(-1) as number) - started) / 100;
  expect(times.length).toBeGreaterThanOrEqual(1);
  expect(times.length).toBeLessThanOrEqual(longest + 1);
});

test('tells others of a task at once where workers may be idle, however soon after the last', async () => {
  const [store, other] = [await open(), await open()];
  const { next } = ears(other);
  await next();
  const worker = await other.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  let shortest = Number.POSITIVE_INFINITY;
  let before = Number.NEGATIVE_INFINITY;
  for (let round = 0; round < 20; round++) {
    const heard = next();
    await enqueue(store);
    await heard;
    shortest = Math.min(shortest, performance.now() - before);
    before = performance.now();
    const { tasks } = await other.tasks.claim(claimRequest(worker));
    await other.tasks.settle(tasks.map((task) => settlement(task, succeeded())));
  }
  expect(shortest).toBeLessThan(100);
});

test('closing while it begins to listen, or waits to try again, ends at once', async () => {
  const proxy = await startProxy(database.directUrl);
  const store = await open(proxy.url(database.directUrl), { answerWithin: '1s' });
  proxy.swallow();
  const kept = proxy.kept();
  store.upkeep.onNews(() => {});
  await kept;
  await store.upkeep.close();
  stores = [];
  proxy.thaw();
  await expect.poll(() => proxy.standing).toBe(0);
  await proxy.close();
});

test.skipIf(!HAS_PGBOUNCER)(
  'behind a pooler that shares connections by transaction it notices that it is deaf, and everything else works',
  async () => {
    const pooler = await startPgBouncer({ port: Number(new URL(database.directUrl).port) });
    const proxy = await startProxy(pooler.url());
    const url = proxy.url(pooler.url(new URL(database.directUrl).pathname.slice(1)));
    const store = await open(url);
    let hints = 0;
    store.upkeep.onNews(() => {
      hints += 1;
    });
    // One connection to listen, and one to test it with; the first is given up when nothing came of it.
    await expect.poll(() => proxy.standing, { timeout: 10_000 }).toBe(2);
    await expect.poll(() => proxy.standing, { timeout: 10_000 }).toBe(1);
    expect(hints).toBe(0);
    const [receipt] = await enqueue(store);
    expect(hints).toBeGreaterThan(0);
    expect((await store.records.find(receipt?.id as number))?.state).toBe('ready');
    await store.upkeep.close();
    stores = [];
    await proxy.close();
    await pooler.stop();
  },
);
