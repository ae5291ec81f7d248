import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { aStore, lockOf } from '../a-store.ts';
import { gate, useFolder } from './scene.ts';

const folder = useFolder();

/** A worker with tasks that run until they are told to end or aborted, on a store whose file is locked. */
async function behindALock() {
  const path = join(folder(), 'tasks.db');
  const lines: { event?: string; task?: number }[] = [];
  const keep = (fields: object) => void lines.push(fields);
  const end = gate();
  const work = defineTask('work', {
    run: (_: null, task) => Promise.race([end.passed, kit.clock.sleep('1d', task.signal)]),
  });
  const log = { debug() {}, info() {}, warn: keep, error: keep };
  const kit = await openTestHoldfast({ store: aStore(path), tasks: [work], log, worker: { grace: '30s' } });
  const ids = (await kit.holdfast.enqueueAll(work, [null, null])).map(({ id }) => id);
  await kit.drain();
  const release = await lockOf(path);
  const unwritten = () => lines.filter(({ event }) => event === 'unwritten').map(({ task }) => task);
  return { kit, ids, end, release, unwritten };
}

/** What is ready to happen without the store happens. */
async function turns(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
}

test.each(['what runs', 'what has ended'])(
  'a stop ends a second after its grace, however long %s cannot be written, and names it in its answer and in the log',
  async (what) => {
    const { kit, ids, end, release, unwritten } = await behindALock();
    if (what === 'what has ended') end.open();
    await turns();
    let stopped = false;
    const stopping = kit.worker.stop({ grace: '10s' }).finally(() => {
      stopped = true;
    });
    kit.clock.moveTo(kit.clock.now() + 10_000);
    await turns();
    expect(stopped).toBe(false);

    kit.clock.moveTo(kit.clock.now() + 999);
    const named = ids.map((task) => ({ task, execution: 1, type: 'work', queue: 'default', source: 'work' }));
    expect(await stopping).toEqual({ unwritten: named });
    expect(await kit.worker.finished).toEqual({ unwritten: named });
    expect(unwritten()).toEqual(ids);
    await release();
    await kit.close();
  },
);

test('a stop that was called without a grace, and a drain with it, end within a second too', async () => {
  const { kit, ids, release, unwritten } = await behindALock();
  const stopping = kit.worker.stop({ grace: 0 });
  await turns();
  kit.clock.moveTo(kit.clock.now() + 999);
  await stopping;
  expect(unwritten()).toEqual(ids);
  await release();
  await kit.close();
});
