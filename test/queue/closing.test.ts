import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defineTask, type Holdfast, openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { aStore, lockOf, STORE } from '../a-store.ts';
import { gate, useFolder } from '../worker/scene.ts';
import { refused, watchRejections } from './refused.ts';

watchRejections();
const folder = useFolder();

const work = defineTask('work', { run: () => 'done' });
const openFile = () => openHoldfast({ store: aStore(join(folder(), 'tasks.db')), tasks: [work] });

describe('after close', () => {
  const calls: readonly [string, (holdfast: Holdfast) => unknown][] = [
    ['enqueue', (holdfast) => holdfast.enqueue(work, null)],
    ['enqueue by text', (holdfast) => holdfast.enqueue('elsewhere', null)],
    ['enqueueAll', (holdfast) => holdfast.enqueueAll(work, [null])],
    ['claim', (holdfast) => holdfast.claim()],
    ['work', (holdfast) => holdfast.work()],
    ['worker', (holdfast) => holdfast.worker()],
    ['find', (holdfast) => holdfast.find(1)],
    ['find by key', (holdfast) => holdfast.find('k')],
    ['get', (holdfast) => holdfast.get(1)],
    ['list', (holdfast) => holdfast.list()],
    ['history', (holdfast) => holdfast.history(1)],
    ['counts', (holdfast) => holdfast.counts()],
    ['workers', (holdfast) => holdfast.workers()],
    ['sources.list', (holdfast) => holdfast.sources.list()],
    ['queues', (holdfast) => holdfast.queues()],
    ['endWorker', (holdfast) => holdfast.endWorker(1)],
    ['setQueueOrder', (holdfast) => holdfast.setQueueOrder('q', 'lifo')],
    ['setQueueFair', (holdfast) => holdfast.setQueueFair('q', true)],
    ['sources.hold', (holdfast) => holdfast.sources.hold('s')],
    ['sources.release', (holdfast) => holdfast.sources.release('s')],
    ['pauseQueue', (holdfast) => holdfast.pauseQueue('q')],
    ['resumeQueue', (holdfast) => holdfast.resumeQueue('q')],
    ['describe', (holdfast) => holdfast.describe()],
    ['retry', (holdfast) => holdfast.retry(1)],
    ['cancel', (holdfast) => holdfast.cancel(1)],
    ['hold', (holdfast) => holdfast.hold(1)],
    ['release', (holdfast) => holdfast.release(1)],
    ['resolve as succeeded', (holdfast) => holdfast.resolve(1, { as: 'succeeded' })],
    ['resolve as retry', (holdfast) => holdfast.resolve(1, { as: 'retry' })],
  ];

  test.each(calls)('%s is refused', async (_, call) => {
    const holdfast = await openFile();
    await holdfast.close();
    expect(await refused(() => call(holdfast))).toMatchObject({ code: 'closed', name: 'ClosedError' });
  });

  test('what is called while it is under way is done or refused, and new workers are refused', async () => {
    const holdfast = await openFile();
    const { id } = await holdfast.enqueue(work, null);
    const closed = holdfast.close();
    expect((await refused(() => holdfast.worker())).code).toBe('closed');
    const answers = await Promise.allSettled(calls.map(async ([, call]) => call(holdfast)));
    await closed;

    for (const answer of answers) {
      if (answer.status === 'rejected')
        expect(['closed', 'task_not_found', 'worker_not_found', 'state_conflict']).toContain(answer.reason.code);
    }
    const again = await openFile();
    expect(await again.find(id)).toBeDefined();
    expect(await again.store.upkeep.verify()).toEqual([]);
    await again.close();
  });

  test('a handler that still runs may read and enqueue until its end: a shutdown is not its failure', async () => {
    const { open: go, passed } = gate();
    const started = gate();
    const parent = defineTask('parent', {
      async run(_: unknown, task) {
        started.open();
        await passed;
        const child = await holdfast.enqueue('child', { of: task.id });
        return (await holdfast.get(child.id)).input;
      },
    });
    const holdfast = await openHoldfast({ store: aStore(join(folder(), 'tasks.db')), tasks: [parent] });
    const { id } = await holdfast.enqueue(parent, null);
    holdfast.work();
    await started.passed;

    const closed = holdfast.close();
    go();
    await closed;

    const again = await openFile();
    expect(await again.get(id)).toMatchObject({ state: 'succeeded', result: { of: id }, attempts: 0 });
    expect((await again.counts()).byState).toMatchObject({ ready: 1 });
    await again.close();
  });

  test('a worker that was made before is refused as well', async () => {
    const holdfast = await openFile();
    const worker = holdfast.worker();
    await holdfast.close();
    expect((await refused(() => worker.start())).code).toBe('closed');
    expect((await refused(() => worker.drain())).code).toBe('closed');
    expect((await refused(() => worker.runOne())).code).toBe('closed');
    await worker.stop();
    await worker.finished;
  });

  test('the file can be opened again, by anybody', async () => {
    const first = await openFile();
    const { id } = await first.enqueue(work, 1);
    await first.close();
    const second = await openFile();
    expect(await second.get(id)).toMatchObject({ input: 1 });
    await second.close();
  });
});

describe('close', () => {
  test('ends a second after its grace behind a locked store; what could not be recorded is refused', async () => {
    const holdfast = await openFile();
    await holdfast.enqueue(work, null);
    const release = await lockOf(join(folder(), 'tasks.db'));
    const enqueued = refused(() => holdfast.enqueue(work, null));
    const claimed = refused(() => holdfast.claim());
    holdfast.work();

    const began = performance.now();
    await holdfast.close({ grace: 0 });
    expect(performance.now() - began).toBeLessThan(15_000);
    expect((await enqueued).code).toMatch(/^store_(busy|unavailable)$/);
    expect((await claimed).code).toMatch(/^store_(busy|unavailable)$/);
    await release();

    const again = await openFile();
    // A server may still do what it was asked, of which nobody was told.
    const { ready } = (await again.counts()).byState;
    expect(STORE === 'sqlite' ? [1] : [1, 2]).toContain(ready);
    await again.close();
  });

  test('has no other grace than its workers had, also after they have stopped', async () => {
    const holdfast = await openFile();
    const worker = holdfast.work({ grace: 0 });
    await holdfast.enqueue(work, null);
    const release = await lockOf(join(folder(), 'tasks.db'));
    await worker.stop();
    void holdfast.enqueue(work, null).catch(() => {});

    const began = performance.now();
    await holdfast.close();
    expect(performance.now() - began).toBeLessThan(15_000);
    await release();
  });

  test('does not wait longer than its grace for the checks of what is being enqueued', async () => {
    const never = defineTask('never', {
      input: { '~standard': { version: 1, vendor: 'test', validate: () => new Promise<never>(() => {}) } },
      run() {},
    });
    const holdfast = await openHoldfast({ store: aStore(), tasks: [never] });
    void holdfast.enqueue(never, null as never);
    await holdfast.close({ grace: 0 });
  });

  test('may be called as often as one likes', async () => {
    const holdfast = await openFile();
    await Promise.all([holdfast.close(), holdfast.close()]);
    await holdfast.close();
    await holdfast[Symbol.asyncDispose]();
  });

  test('is what `await using` calls', async () => {
    let seen: Holdfast | undefined;
    {
      await using holdfast = await openFile();
      await using worker = holdfast.work();
      expect(worker.name).toMatch(/^worker-/);
      seen = holdfast;
    }
    expect((await refused(() => (seen as Holdfast).counts())).code).toBe('closed');
  });

  /** A holdfast at work on a task that ends when it is told to stop, and heeds nothing else. */
  async function atWork() {
    const started = gate();
    const endless = defineTask('endless', {
      run: (_: unknown, { signal }) =>
        new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          started.open();
        }),
    });
    const holdfast = await openHoldfast({ store: aStore(join(folder(), 'tasks.db')), tasks: [endless] });
    const { id } = await holdfast.enqueue(endless, null);
    holdfast.work({ grace: '1h' });
    await started.passed;
    return { holdfast, id };
  }

  test('stops its workers with the grace that it is given instead of theirs', async () => {
    const { holdfast, id } = await atWork();
    await holdfast.close({ grace: 0 });
    const again = await openFile();
    expect(await again.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
    await again.close();
  });

  test('is hurried by a second call with a shorter grace', async () => {
    const { holdfast, id } = await atWork();
    const closed = holdfast.close();
    await Promise.all([holdfast.close({ grace: 0 }), closed]);
    const again = await openFile();
    expect(await again.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
    await again.close();
  });

  test('refuses what it does not know, and stays open', async () => {
    const holdfast = await openFile();
    const unknown = { force: true } as object;
    expect(await refused(() => holdfast.close(unknown))).toMatchObject({ code: 'invalid_input' });
    expect(await refused(() => holdfast.close({ grace: '-1s' }))).toMatchObject({ code: 'invalid_input' });
    expect(await holdfast.counts()).toMatchObject({ due: 0 });
    await holdfast.close();
  });

  test('stops its workers and waits for what they run', async () => {
    const holdfast = await openFile();
    const { id } = await holdfast.enqueue(work, null);
    holdfast.work();
    await holdfast.close();

    const again = await openFile();
    // Either it ran to its end, or it was never begun, or it was handed back.
    expect(['succeeded', 'ready']).toContain((await again.get(id)).state);
    expect(await again.workers()).toEqual([]);
    expect(await again.store.upkeep.verify()).toEqual([]);
    await again.close();
  });

  test('leaves every enqueue that races with it either durable or refused', async () => {
    let acknowledged = 0;
    for (let round = 0; round < 20; round++) {
      const holdfast = await openFile();
      const answers = Array.from({ length: 50 }, async (_, n) => {
        for (let turn = 0; turn < n % 7; turn++) await new Promise((resolve) => setImmediate(resolve));
        return holdfast.enqueue(work, { round, n });
      });
      const settling = Promise.allSettled(answers);
      for (let turn = 0; turn < round % 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      await holdfast.close();

      const settled = await settling;
      const refusals = settled.filter((answer) => answer.status === 'rejected');
      for (const { reason } of refusals) expect(reason).toMatchObject({ code: 'closed' });
      acknowledged += settled.length - refusals.length;

      const again = await openFile();
      const { byState } = await again.counts();
      expect(byState.ready).toBe(acknowledged);
      await again.close();
    }
    expect(acknowledged).toBeGreaterThan(0);
  });

  test('writes what was enqueued before it in the same turn', async () => {
    const holdfast = await openFile();
    const enqueued = holdfast.enqueue(work, null);
    const closed = holdfast.close();
    const { id } = await enqueued;
    await closed;

    const again = await openFile();
    expect(await again.get(id)).toMatchObject({ state: 'ready' });
    await again.close();
  });

  test('that races with a worker leaves no task running', async () => {
    for (let round = 0; round < 15; round++) {
      const holdfast = await openFile();
      await Promise.all(Array.from({ length: 10 }, () => holdfast.enqueue(work, null)));
      holdfast.work({ concurrency: 3 });
      for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setImmediate(resolve));
      await holdfast.close();

      const again = await openFile();
      expect((await again.counts()).byState).toMatchObject({ running: 0 });
      expect(await again.store.upkeep.verify()).toEqual([]);
      await again.close();
    }
  });
});

test('opening fails without leaving anything open, and says why', async () => {
  expect(await refused(() => openHoldfast({ store: sqlite(join(folder(), 'none', 'tasks.db')) }))).toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('its folder does not exist'),
  });
});
