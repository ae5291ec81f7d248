import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { aStore, STORE } from '../a-store.ts';
import Database from '../database.ts';
import { atOnce, useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

/*
 * Every commit on a file wakes the workers of other processes that share it. If a claim that is given nothing were to write,
 * two of them could wake each other without end.
 */
test.runIf(STORE === 'sqlite')(
  'a claim that is given nothing writes nothing, although its worker keeps a task from starting beside its deaf handler',
  async () => {
    const path = join(folder(), 'tasks.db');
    const deaf = defineTask('deaf', { retry: { ...atOnce, timeout: '1m' }, run: () => new Promise(() => {}) });
    const kit = await open({ tasks: [deaf], store: aStore(path), worker: { grace: '1s' }, patienceMs: 30 });
    const { id } = await kit.holdfast.enqueue(deaf, null);
    await kit.holdfast.enqueue('elsewhere', null);
    await kit.advance('2m');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 1 });

    const watcher = new Database(path, { readonly: true });
    const version = () => watcher.pragma('data_version', { simple: true });
    const before = version();
    for (let look = 0; look < 5; look++) await kit.drain();

    expect(version()).toBe(before);
    watcher.close();
  },
);

test.runIf(STORE === 'sqlite')(
  'a claim that is given nothing writes nothing, although its clock is not that of the file',
  async () => {
    const path = join(folder(), 'tasks.db');
    const tasks = [defineTask('work', { run() {} })];
    const start = new Date('2026-01-01T00:00:00Z');
    const ahead = await open({
      tasks,
      store: aStore(path),
      start: new Date(start.getTime() + 60_000),
      worker: { types: [] },
    });
    await ahead.holdfast.enqueue('work', null);
    const behind = await open({ tasks, store: aStore(path), start, worker: { types: [] } });
    await behind.drain();

    const watcher = new Database(path, { readonly: true });
    const version = () => watcher.pragma('data_version', { simple: true });
    const before = version();
    for (let look = 0; look < 5; look++) {
      await ahead.drain();
      await behind.drain();
    }

    expect(version()).toBe(before);
    watcher.close();
  },
);

test('what may not start beside its deaf handler does not hold back what may', async () => {
  const ran: string[] = [];
  const work = defineTask('work', {
    retry: { ...atOnce, timeout: '1m' },
    async run(name: string) {
      ran.push(name);
      if (name === 'deaf') await new Promise(() => {});
    },
  });
  const kit = await open({ tasks: [work], worker: { grace: '1s', concurrency: 2 }, patienceMs: 30 });
  await kit.holdfast.enqueue(work, 'deaf');
  await kit.advance('2m');

  for (const name of ['a', 'b']) await kit.holdfast.enqueue(work, name);
  await kit.drain();

  expect(ran).toEqual(['deaf', 'a', 'b']);
});
