import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineTask, type Holdfast, openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import Database from '../database.ts';

let folder: string;
let holdfast: Holdfast;
let failing: boolean;
const ran: unknown[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-damaged-'));
  ran.length = 0;
  failing = true;
  await reopen();
});
afterEach(async () => {
  await holdfast.close();
  rmSync(folder, { recursive: true });
});

async function reopen(): Promise<void> {
  await holdfast?.close();
  const work = defineTask('work', {
    retry: { backoff: { kind: 'fixed', delay: 0 }, maxAttempts: 5, jitter: { kind: 'none' } },
    run(input) {
      ran.push(input);
      if (failing) throw new Error('not yet');
    },
  });
  holdfast = await openHoldfast({ store: sqlite(join(folder, 'tasks.db')), tasks: [work] });
}

function alter(sql: string): void {
  const file = new Database(join(folder, 'tasks.db'));
  file.exec(sql);
  file.close();
}

/** Two tasks that failed once each. */
async function failedOnce(): Promise<void> {
  for (const n of [1, 2]) await holdfast.enqueue('work', { n });
  const worker = holdfast.worker({ maxTasks: 2 });
  await worker.drain();
  await worker.stop();
  failing = false;
}

test.each([
  ['charged', '{"a"'],
  ['charged', '5'],
  ['recoveries', '['],
])('asks a person about a task whose %s are %j, and runs the other', async (column, text) => {
  await failedOnce();
  alter(`UPDATE hf_facts SET ${column} = '${text}' WHERE task = 1`);
  expect(await holdfast.list()).toHaveLength(2);
  expect(await holdfast.get(1)).toMatchObject({ unreadable: [column] });
  await holdfast.worker().drain();

  expect(ran.slice(2)).toEqual([{ n: 2 }]);
  expect(await holdfast.get(1)).toMatchObject({ state: 'needs_manual', reason: 'task.corrupt', unreadable: [column] });
  expect(await holdfast.get(2)).toMatchObject({ state: 'succeeded' });
  await holdfast.retry(1);
  await holdfast.worker().drain();
  expect(await holdfast.get(1)).toMatchObject({ state: 'succeeded' });
});

test('asks a person about tasks whose needs cannot be read', async () => {
  failing = false;
  await holdfast.enqueue('work', { n: 1 }, { needs: { gpu: true } });
  await holdfast.enqueue('work', { n: 2 });
  alter("UPDATE hf_classes SET needs = '{' WHERE needs <> '{}'");
  await reopen();
  await holdfast.worker().drain();

  expect(ran).toEqual([{ n: 2 }]);
  expect(await holdfast.get(1)).toMatchObject({ state: 'needs_manual', reason: 'task.corrupt', unreadable: ['needs'] });
});

test('goes on beside a worker whose row is damaged', async () => {
  failing = false;
  const worker = holdfast.worker();
  await worker.drain();
  await holdfast.enqueue('work', { n: 1 });
  alter("UPDATE hf_workers SET takes = '{'");
  expect(await holdfast.workers()).toMatchObject([{ takes: { capabilities: {} } }]);
  expect(await holdfast.list()).toHaveLength(1);
  await worker.stop();
});

test('goes on where what a worker published of a type is damaged', async () => {
  failing = false;
  await holdfast.worker().drain();
  await holdfast.enqueue('work', { n: 1 });
  alter("UPDATE hf_types SET published = '{'");
  const claim = await holdfast.claim();
  await claim?.complete();
  expect(await holdfast.get(1)).toMatchObject({ state: 'succeeded' });
});
