import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Claimed, Store, StoreOpener, World } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, RENEW_INTERVAL, settlement, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * Databases that former versions made. Each holds the same twelve tasks; `killed`, the worker that ran #11, was killed with SIGKILL.
 */
const FORMER = {
  1: 'succeeded', // With the key invoice-1.
  2: 'dead',
  3: 'needs_manual', // With the unique key u1.
  4: 'scheduled', // It failed once.
  5: 'scheduled',
  6: 'scheduled', // With the key invoice-2.
  7: 'held',
  8: 'cancelled',
  9: 'ready', // Its queue is paused.
  10: 'ready', // Its source is held.
  11: 'running',
  12: 'ready',
} as const;

/** After the versions that made them, and before anything is due. */
const LATER = Date.UTC(2027, 0, 1);

const file = (name: string) => new URL(`./fixtures/${name}`, import.meta.url);

/** `wait`: long enough for a lease that has run out to be watched. */
async function goesOn(opener: StoreOpener, world: World, wait: () => Promise<void> | void): Promise<void> {
  let store = await opener.open(world);
  expect(await store.upkeep.verify()).toEqual([]);
  const states = async () => {
    const tasks = await store.records.list({ limit: 50 });
    return Object.fromEntries(tasks.map(({ id, state }) => [id, state]));
  };
  expect(await states()).toEqual(FORMER);
  expect(await store.records.history(4)).toMatchObject([{ kind: 'execution', outcome: 'failure', worker: 'first' }]);

  // What was lost is recovered, and what waits is worked off in its turn.
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const lost = await recoverAll(store, worker, wait);
  expect(lost).toMatchObject([{ lease: { task: 11 }, why: 'loss', lostBy: 'killed', facts: { executions: 1 } }]);
  await settleAll(store, lost);
  await settleAll(store, await claimAll(store, worker), [12]);

  // Operators' actions reach what was stopped, and keys mean what they meant.
  const act = (id: number, action: object) => store.tasks.move([id], { actor: 'maria', ...action } as never);
  await act(7, { verb: 'release' });
  await act(3, { verb: 'resolve', as: 'retry' });
  for (const id of [2, 4, 5, 8]) await act(id, { verb: 'retry' });
  await store.sources.release('imap:shut');
  await store.sources.resume('slow');
  expect(await store.tasks.enqueue([newTask({ key: 'invoice-1' }), newTask({ key: 'invoice-2' })])).toMatchObject([
    { id: 1, created: false },
    { id: 6, created: false },
  ]);
  const unique = { key: 'u1', while: 'unfinished', onConflict: 'ignore' } as const;
  expect(await store.tasks.enqueue([newTask({ unique })])).toMatchObject([{ id: 3, created: false }]);
  const [added] = await store.tasks.enqueue([newTask({ key: 'new' })]);
  const rest = [2, 3, 4, 5, 7, 8, 9, 10, added?.id as number];
  await settleAll(store, await claimAll(store, worker), rest);
  expect(await store.upkeep.verify()).toEqual([]);

  // A process that opens it again finds it as it was left.
  await store.upkeep.close();
  store = await opener.open(world);
  expect(await states()).toEqual(
    Object.fromEntries([...Object.keys(FORMER), added?.id].map((id) => [id, id === '6' ? 'scheduled' : 'succeeded'])),
  );
  await store.upkeep.tidy();
  const nothing = { succeeded: { default: 0 }, dead: {}, cancelled: {}, needs_manual: {} };
  let removed = 0;
  for (let next: number | undefined = 0; next !== undefined; ) {
    const pruned = await store.upkeep.prune(nothing, next);
    removed += pruned.removed.length;
    next = pruned.next;
  }
  expect(removed).toBe(12);
  expect(await store.upkeep.verify()).toEqual([]);
  await store.upkeep.close();
}

async function recoverAll(store: Store, worker: number, wait: () => Promise<void> | void): Promise<readonly Claimed[]> {
  for (let looks = 0; looks < 5; looks++) {
    const { tasks } = await store.tasks.recover(worker, 10);
    if (tasks.length > 0) return tasks;
    await wait();
  }
  return [];
}

async function claimAll(store: Store, worker: number): Promise<readonly Claimed[]> {
  const { tasks } = await store.tasks.claim(claimRequest(worker));
  return tasks;
}

async function settleAll(store: Store, claimed: readonly Claimed[], expected?: readonly number[]): Promise<void> {
  if (expected) expect(claimed.map(({ lease }) => lease.task).sort((a, b) => a - b)).toEqual(expected);
  const settled = await store.tasks.settle(claimed.map((task) => settlement(task, succeeded())));
  expect(settled.map(({ answer }) => answer)).toEqual(claimed.map(() => 'settled'));
}

describe('a SQLite file of a former version is migrated, recovers what was lost and goes on', () => {
  test.each([2, 8])('schema %i', async (schema) => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-former-'));
    try {
      const path = join(folder, 'tasks.db');
      copyFileSync(file(`sqlite-schema-${schema}.db`), path);
      const world = virtualWorld();
      world.clock.advance(LATER - world.clock.now());
      await goesOn(sqlite(path), world, () => world.clock.advance(RENEW_INTERVAL + 1));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a PostgreSQL database of a former version is migrated, recovers what was lost and goes on', () => {
  let databases: TestDatabases;
  let database: TestDatabase;

  beforeAll(async () => {
    databases = await openDatabases(async (url) => {
      await ask(url, readFileSync(file('postgres-schema-7.sql'), 'utf8'));
    });
    database = await databases.take();
  });
  afterAll(async () => {
    database.drop();
    await databases.close();
  });

  test('schema 7', async () => {
    const wait = () =>
      ask(database.directUrl, `UPDATE holdfast.watches SET since = since - ${RENEW_INTERVAL + 1}`).then(() => {});
    await goesOn(postgres(database.url), { clock: systemClock, random: Math.random }, wait);
  });
});
