import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, RENEW_INTERVAL } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import Database from '../database.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';

let databases: TestDatabases;
const folders: string[] = [];
beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(virtualWorld())).upkeep.close();
  });
});
afterAll(async () => {
  await databases.close();
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** A store, and what changes its table of workers behind its back. */
interface Place {
  readonly store: Store;
  alter(statement: (workers: string) => string): Promise<unknown>;
}

const world = virtualWorld();

async function inFile(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-lost-'));
  folders.push(folder);
  const path = join(folder, 'tasks.db');
  const alter = async (statement: (workers: string) => string) => {
    const file = new Database(path);
    file.exec(statement('hf_workers'));
    file.close();
  };
  return { store: await sqlite(path).open(world), alter };
}

async function inDatabase(): Promise<Place> {
  const { url, directUrl } = await databases.take();
  const alter = (statement: (workers: string) => string) => ask(directUrl, statement('holdfast.workers'));
  return { store: await postgres(url).open(world), alter };
}

describe.each([
  ['sqlite', inFile],
  ['postgres', inDatabase],
])('on %s', (kind, open) => {
  /** Alice runs a task, and Bob looks for what others lost. */
  async function begin() {
    const { store, alter } = await open();
    const join = (name: string) => store.tasks.join({ name, leaseFor: LEASE, publishes: {} });
    const [alice, bob] = [await join('alice'), await join('bob')];
    await store.tasks.enqueue([newTask()]);
    await store.tasks.claim(claimRequest(alice));
    const recover = async () => (await store.tasks.recover(bob, 10)).tasks;
    return { store, alice, bob, recover, alter };
  }

  test('a running task whose worker is not there any more is recovered at once', async () => {
    const { store, alice, recover, alter } = await begin();
    await alter((workers) => `DELETE FROM ${workers} WHERE id = ${alice}`);
    expect(await recover()).toMatchObject([{ why: 'loss', lostBy: 'a worker that left' }]);
    expect(await store.upkeep.verify()).toEqual([]);
    await store.upkeep.close();
  });

  test('a worker of which neither boot nor pid namespace is known is judged by its lease', async () => {
    const { store, alice, bob, recover, alter } = await begin();
    await alter((workers) => `UPDATE ${workers} SET boot = NULL, pid_space = NULL, pid = 999999 WHERE id = ${alice}`);
    expect(await recover()).toEqual([]);
    world.clock.advance(LEASE + 1);
    await store.tasks.renew(bob, []);
    expect(await recover()).toEqual([]);
    world.clock.advance(RENEW_INTERVAL + 1);
    expect(await recover()).toHaveLength(1);
    await store.upkeep.close();
  });

  test('a worker of another pid namespace is not taken for dead, though no process has its number here', async () => {
    const { store, alice, recover, alter } = await begin();
    await alter((workers) => `UPDATE ${workers} SET pid_space = 'pid:[1]', pid = 999999 WHERE id = ${alice}`);
    expect(await recover()).toEqual([]);
    const workers = await store.records.workers();
    expect(workers.find(({ id }) => id === alice)).toMatchObject({ keepsTasks: true });
    await store.upkeep.close();
  });

  test(`a worker of before a reboot is ${kind === 'sqlite' ? 'dead, for the file needs one kernel' : 'judged by its lease'}`, async () => {
    const { store, alice, recover, alter } = await begin();
    await alter((workers) => `UPDATE ${workers} SET boot = 'an earlier boot' WHERE id = ${alice}`);
    expect(await recover()).toHaveLength(kind === 'sqlite' ? 1 : 0);
    await store.upkeep.close();
  });
});

test('after a failover that lost the rows of workers, and gave their ids again, each worker joins anew', async () => {
  const { directUrl } = await databases.take();
  const [first, second] = [await postgres(directUrl).open(world), await postgres(directUrl).open(world)];
  const join = ({ tasks }: Store, name: string) => tasks.join({ name, leaseFor: LEASE, publishes: {} });
  const failOver = () => ask(directUrl, 'DELETE FROM holdfast.workers; ALTER SEQUENCE holdfast.workers_id_seq RESTART');
  const alice = await join(first, 'alice');
  await failOver();
  // In the same process no two workers have the same id.
  expect(await join(first, 'carol')).not.toBe(alice);
  await failOver();
  const bob = await join(second, 'bob');
  expect(bob).toBe(alice);
  expect((await first.tasks.renew(alice, [])).known).toBe(false);
  expect((await second.tasks.renew(bob, [])).known).toBe(true);
  await first.upkeep.close();
  await second.upkeep.close();
});
