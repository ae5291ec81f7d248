import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Decision } from '../../src/failure/decide.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, retryIn, settlement, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import Database from '../database.ts';

/*
 * What `counts` does not count but computes, beside a program of the version before: that one knows neither the number of removed tasks nor
 * which scheduled tasks have failed.
 */

let folder: string;
let store: Store;
let former: InstanceType<typeof Database>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-counts-'));
  const path = join(folder, 'tasks.db');
  store = await sqlite(path).open(virtualWorld());
  former = new Database(path);
});
afterEach(async () => {
  former.close();
  await store.upkeep.close();
  rmSync(folder, { recursive: true });
});

async function settleOne(decision: Decision): Promise<number> {
  await store.tasks.enqueue([newTask()]);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const { tasks } = await store.tasks.claim(claimRequest(worker));
  await store.tasks.settle(tasks.map((task) => settlement(task, decision)));
  return tasks[0]?.lease.task as number;
}

test('a task that another program removes is not counted as succeeded', async () => {
  const id = await settleOne(succeeded());
  expect((await store.records.counts()).byState.succeeded).toBe(1);
  for (const table of ['hf_resting', 'hf_tasks']) former.prepare(`DELETE FROM ${table} WHERE id = ?`).run(id);
  expect((await store.records.counts()).byState.succeeded).toBe(0);
  expect((await store.records.totals()).succeeded).toBe(0);
  await settleOne(succeeded());
  expect((await store.records.totals()).succeeded).toBe(1);
  expect(await store.upkeep.verify()).toEqual([]);
});

test('a retry that another program schedules is counted as one', async () => {
  await settleOne(retryIn(60_000));
  await store.tasks.enqueue([newTask({ delay: 1_000 })]);
  expect(await store.records.counts()).toMatchObject({ retrying: 1, byState: { scheduled: 2 } });
  former.exec('UPDATE hf_scheduled SET failed = NULL');
  expect(await store.records.counts()).toMatchObject({ retrying: 1, byState: { scheduled: 2 } });
  expect(await store.upkeep.verify()).toEqual([]);
});

test('a vacuum counts again how many tasks were removed, if ids were left out by hand', async () => {
  await settleOne(succeeded());
  former.exec("UPDATE sqlite_sequence SET seq = seq + 5 WHERE name = 'hf_tasks'");
  expect(await store.upkeep.verify()).toHaveLength(1);
  await store.upkeep.vacuum();
  expect((await store.records.totals()).succeeded).toBe(1);
  await settleOne(succeeded());
  expect((await store.records.counts()).byState.succeeded).toBe(2);
  expect(await store.upkeep.verify()).toEqual([]);
});
