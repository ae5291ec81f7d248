import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineTask, openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import Database from '../database.ts';

test('a damaged group of failures does not hide the others', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-groups-'));
  const path = join(folder, 'tasks.db');
  const fails = (type: string) =>
    defineTask(type, {
      retry: { maxAttempts: 1 },
      run(): void {
        throw new Error('broken');
      },
    });
  const tasks = [fails('one'), fails('two')];
  const holdfast = await openHoldfast({ store: sqlite(path), tasks });
  for (const task of tasks) await holdfast.enqueue(task, {});
  await holdfast.worker().drain();
  const groups = await holdfast.failures.list();
  expect(groups.map(({ type }) => type).sort()).toEqual(['one', 'two']);
  // An act first writes the groups of all failures so far.
  for (const { id } of groups) await holdfast.failures.acknowledge(id);

  const file = new Database(path);
  file.exec(`UPDATE hf_failure_groups SET data = '{"id":' WHERE data LIKE '%"two"%'`);
  file.exec(`INSERT INTO hf_failure_entries (at, seen) VALUES (1, 'no JSON'), (2, '[]'), (3, '{"seen":7}')`);
  file.close();
  expect((await holdfast.failures.list()).map(({ type }) => type)).toEqual(['one']);

  await holdfast.enqueue('two', {});
  await holdfast.worker().drain();
  expect((await holdfast.failures.list()).map(({ type, count }) => [type, count]).sort()).toEqual([
    ['one', 1],
    ['two', 1],
  ]);
  await holdfast.close();
  rmSync(folder, { recursive: true });
});
