import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { postgres } from '../../src/store/postgres/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, RENEW_INTERVAL } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';
import { startProxy, type TestProxy } from '../postgres/proxy.ts';

let databases: TestDatabases;
let database: TestDatabase;
let proxy: TestProxy;
let world: ReturnType<typeof virtualWorld>;
let store: Store;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(virtualWorld())).upkeep.close();
  });
});
afterAll(() => databases.close());

beforeEach(async () => {
  database = await databases.take();
  proxy = await startProxy(database.url);
  world = virtualWorld();
  store = await postgres(proxy.url(database.url)).open(world);
});
afterEach(async () => {
  await store.upkeep.close();
  await proxy.close();
  database.drop();
});

const join = (name: string) => store.tasks.join({ name, leaseFor: LEASE, publishes: {} });

/** A call of a living worker is made again up to a second after the database is back. */
const LONGEST_PAUSE = 1_000;

test('a lease that ran out while the database was away is watched for as long as its worker may pause before it renews', async () => {
  const [alice, bob] = [await join('alice'), await join('bob')];
  await store.tasks.enqueue([newTask()]);
  await store.tasks.claim(claimRequest(alice));

  world.clock.advance(LEASE + 1);
  const lost = proxy.lose('statement', 'others');
  expect((await store.tasks.recover(bob, 10)).tasks).toEqual([]);
  await lost;
  world.clock.advance(RENEW_INTERVAL + LONGEST_PAUSE - 1);
  expect((await store.tasks.recover(bob, 10)).tasks).toEqual([]);

  world.clock.advance(2);
  expect((await store.tasks.recover(bob, 10)).tasks).toHaveLength(1);
});

test('a lease that is watched while the database goes away is watched anew from its return', async () => {
  const [alice, bob] = [await join('alice'), await join('bob')];
  await store.tasks.enqueue([newTask()]);
  await store.tasks.claim(claimRequest(alice));
  world.clock.advance(LEASE + 1);
  expect((await store.tasks.recover(bob, 10)).tasks).toEqual([]);

  world.clock.advance(RENEW_INTERVAL + LONGEST_PAUSE + 1);
  const lost = proxy.lose('statement', 'others');
  expect((await store.tasks.recover(bob, 10)).tasks).toEqual([]);
  await lost;
  world.clock.advance(RENEW_INTERVAL + LONGEST_PAUSE + 1);

  expect((await store.tasks.recover(bob, 10)).tasks).toHaveLength(1);
});

test('a lease that ran out some leases after the database was back is watched for one interval', async () => {
  const [alice, bob] = [await join('alice'), await join('bob')];
  await store.tasks.enqueue([newTask()]);
  await store.tasks.claim(claimRequest(alice));
  const lost = proxy.lose('statement', 'others');
  expect((await store.tasks.recover(bob, 10)).tasks).toEqual([]);
  await lost;

  world.clock.advance(2 * LEASE);
  expect((await store.tasks.recover(bob, 10)).tasks).toEqual([]);
  world.clock.advance(RENEW_INTERVAL + 1);

  expect((await store.tasks.recover(bob, 10)).tasks).toHaveLength(1);
});

test('a store that is closed gives up a server that does not answer, and those who wait for it hear of that', async () => {
  await join('alice');
  proxy.swallow();
  const asked = [store.tasks.enqueue([newTask()]), store.records.counts(), store.upkeep.verify()];
  const refused = Promise.allSettled(asked);
  await proxy.kept();

  await store.upkeep.giveUpAfter(10);
  await store.upkeep.close();

  for (const one of await refused)
    expect(one).toMatchObject({ reason: { code: 'store_unavailable', retryable: true } });
});
