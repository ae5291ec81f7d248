import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Store } from '../../src/store/store.ts';
import { newTask } from '../contract/scene.ts';
import Database from '../database.ts';

let folder: string;
let path: string;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-space-'));
  path = join(folder, 'tasks.db');
  store = await sqlite(path).open({ clock: systemClock, random: Math.random });
});
afterEach(async () => {
  await store.upkeep.close();
  rmSync(folder, { recursive: true, force: true });
});

/** As after the removal of many tasks. */
function leaveFreeSpace(): void {
  const other = new Database(path);
  other.exec('CREATE TABLE other (x); INSERT INTO other VALUES (zeroblob(20000000)); DROP TABLE other');
  other.close();
}

test('a new file gives free space back while old tasks are removed', async () => {
  leaveFreeSpace();
  expect((await store.upkeep.space()).free).toBeGreaterThan(19_000_000);
  let steps = 0;
  while ((await store.upkeep.tidy()) > 0) steps += 1;
  expect(steps).toBeGreaterThan(1);
  expect((await store.upkeep.space()).bytes).toBeLessThan(12_000_000);
  expect(await store.upkeep.verify()).toEqual([]);
});

test('an older file does so after it was vacuumed once', async () => {
  const other = new Database(path);
  other.exec('PRAGMA auto_vacuum = NONE; VACUUM');
  other.close();
  leaveFreeSpace();
  expect(await store.upkeep.tidy()).toBe(0);
  await store.upkeep.vacuum();
  expect(statSync(path).size).toBeLessThan(2_000_000);
  leaveFreeSpace();
  expect(await store.upkeep.tidy()).toBeGreaterThan(0);
});

test('a backup is one moment of a store that is written to meanwhile', async () => {
  const copy = join(folder, 'copy.db');
  await store.tasks.enqueue([newTask(), newTask()]);
  await Promise.all([store.upkeep.backUp(copy), store.tasks.enqueue([newTask()])]);
  const restored = await sqlite(copy).open({ clock: systemClock, random: Math.random });
  expect((await restored.records.counts()).byState.ready).toBeGreaterThanOrEqual(2);
  expect(await restored.upkeep.verify()).toEqual([]);
  await restored.upkeep.close();
  await expect(store.upkeep.backUp(copy)).rejects.toMatchObject({ code: 'store_unsupported' });
});
