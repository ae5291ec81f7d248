import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type HistoryEntry, type Holdfast, openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { type Child, useFolder, usePrograms } from './children.ts';

const { run } = usePrograms();
const folder = useFolder();

const pathOf = () => join(folder(), 'tasks.db');

/** Looks at the file from here, beside the processes that work on it. */
async function look<T>(at: (holdfast: Holdfast) => Promise<T>): Promise<T> {
  const holdfast = await openHoldfast({ store: sqlite(pathOf()) });
  try {
    return await at(holdfast);
  } finally {
    await holdfast.close();
  }
}

const enqueue = (how: string, more: object = {}, options = {}) =>
  look(async (holdfast) => (await holdfast.enqueue('work', { how, ...more }, options)).id);
const get = (id: number) => look((holdfast) => holdfast.get(id));
const executionsOf = (id: number) =>
  look(async (holdfast) =>
    (await holdfast.history(id)).filter(
      (entry): entry is Extract<HistoryEntry, { kind: 'execution' }> => entry.kind === 'execution',
    ),
  );

/** A worker process with a name; the shortest lease that there is, unless another is asked for. */
async function startWorker(name: string, worker: object = {}, more: object = {}): Promise<Child> {
  const child = run('worker', pathOf(), { name, worker: { leaseFor: '1s', pollInterval: '20ms', ...worker }, ...more });
  await child.says('working');
  return child;
}

describe('a worker that is killed', () => {
  test('is provably dead: its task runs at once in the next process, long before its lease runs out', async () => {
    const id = await enqueue('until aborted');
    const first = await startWorker('first', { leaseFor: '10m' });
    await first.says({ running: id });

    first.signal('SIGKILL');
    await first.ended;
    const second = await startWorker('second', { leaseFor: '10m' });
    await second.says({ running: id, execution: 2, recovered: true });

    expect(await executionsOf(id)).toMatchObject([{ outcome: 'loss', worker: 'first', charge: 'nobody' }]);
    expect(await get(id)).toMatchObject({ state: 'running', executions: 2, attempts: 0, recoveries: 0, suspect: true });
  });

  test("leaves its task to a worker that was there already, at that one's next beat", async () => {
    const second = await startWorker('second', { types: [] });
    const id = await enqueue('until aborted');
    const first = await startWorker('first', { leaseFor: '10m' });
    await first.says({ running: id });

    first.signal('SIGKILL');

    await second.says({ settled: id, state: 'ready' });
    expect(await get(id)).toMatchObject({ state: 'ready', suspect: true, attempts: 0 });
  });

  test('by its own task again and again is a crash loop after the fourth charged time; other tasks go on', async () => {
    const poison = await enqueue('die');
    const others = [await enqueue('quick'), await enqueue('quick')];

    let lives = 0;
    for (; lives < 12 && (await get(poison)).state !== 'needs_manual'; lives++) {
      const child = await startWorker(`life-${lives}`, { concurrency: 1 });
      const settled = child.says({ settled: poison, state: 'needs_manual' }).catch(() => {});
      await Promise.race([child.ended, settled]);
      child.signal('SIGTERM');
      await child.ended;
    }

    expect(await get(poison)).toMatchObject({
      state: 'needs_manual',
      reason: 'worker.crash_loop',
      attempts: 0,
      recoveries: 4,
    });
    expect((await get(poison)).executions).toBe(5);
    const last = await startWorker('last', { concurrency: 1 });
    for (const id of others) if ((await get(id)).state !== 'succeeded') await last.says({ settled: id });
    last.signal('SIGTERM');
    await last.endsWell();
    for (const id of others) expect(await get(id)).toMatchObject({ state: 'succeeded', attempts: 0 });
  });
});

/** An operator takes away what a worker holds that does not listen any more. */
async function endWorker(name: string): Promise<void> {
  await look(async (holdfast) => {
    const worker = (await holdfast.workers()).find((each) => each.name === name);
    await holdfast.endWorker(worker?.id as number);
  });
}

describe('a worker that is stopped but lives', () => {
  test('keeps its tasks until an operator ends it; woken up, it is told, and its word is evidence', async () => {
    const id = await enqueue('until aborted');
    const sleeper = await startWorker('sleeper', {}, { grace: '600ms' });
    await sleeper.says({ running: id });
    const other = await startWorker('other', {}, { grace: '600ms' });

    sleeper.signal('SIGSTOP');
    await endWorker('sleeper');
    await other.says({ running: id, execution: 2 });
    expect(await get(id)).toMatchObject({ executions: 2, attempts: 0, recoveries: 0 });

    sleeper.signal('SIGCONT');
    await sleeper.says({ aborted: id, reason: 'LeaseLostError' });
    await sleeper.says({ stale: id, execution: 1 });

    expect(await get(id)).toMatchObject({ state: 'running', executions: 2, running: { worker: 'other' } });
    expect(await executionsOf(id)).toMatchObject([
      { execution: 1, outcome: 'loss', worker: 'sleeper', late: false },
      { execution: 1, outcome: 'success', late: true },
    ]);
    sleeper.signal('SIGTERM');
    await sleeper.endsWell();
    // It has changed nothing: the other one's word is what counts.
    other.signal('SIGTERM');
    await other.says({ settled: id, execution: 2, state: 'succeeded' });
    await other.endsWell();
    expect(await get(id)).toMatchObject({ state: 'succeeded', result: 'too late', executions: 2 });
  });

  test('and fails late, schedules no retry', async () => {
    const id = await enqueue('fail when aborted');
    const sleeper = await startWorker('sleeper');
    await sleeper.says({ running: id });
    const other = await startWorker('other', { types: [] });

    sleeper.signal('SIGSTOP');
    await endWorker('sleeper');
    await other.says({ settled: id, state: 'ready' });
    await look((holdfast) => holdfast.hold(id));
    sleeper.signal('SIGCONT');
    await sleeper.says({ stale: id, execution: 1 });

    expect(await get(id)).toMatchObject({ state: 'held', executions: 1, attempts: 0 });
  });

  test('because its handler blocks the event loop loses its tasks as well when it is ended, and does not undo a cancel', async () => {
    const id = await enqueue('block', { blockMs: 4_000 });
    const blocked = await startWorker('blocked');
    await blocked.says({ running: id });
    const other = await startWorker('other', { types: [] });
    await endWorker('blocked');
    await other.says({ settled: id, state: 'ready' });
    await look(async (holdfast) => {
      await holdfast.cancel(id);
    });

    await blocked.says({ stale: id, execution: 1 });

    expect(await get(id)).toMatchObject({ state: 'cancelled', executions: 1 });
    const [, late] = await executionsOf(id);
    expect(late).toMatchObject({ outcome: 'success', late: true });
  });
});

/** What a worker is given that is not told a grace. */
const DEFAULT_GRACE_MS = 30_000;

describe('SIGTERM', () => {
  test('hands back what runs, uncharged, and the process ends by itself', async () => {
    const ids = [await enqueue('deaf'), await enqueue('fail when aborted'), await enqueue('until aborted')];
    const worker = await startWorker('deployed', {}, { grace: '600ms' });
    for (const id of ids) await worker.says({ running: id });

    const toldAt = performance.now();
    worker.signal('SIGTERM');
    await worker.endsWell();

    expect(performance.now() - toldAt).toBeLessThan(DEFAULT_GRACE_MS);
    const [deaf, failed, succeeded] = ids as [number, number, number];
    for (const id of [deaf, failed]) {
      expect(await get(id)).toMatchObject({
        state: 'ready',
        executions: 1,
        attempts: 0,
        recoveries: 0,
        suspect: false,
      });
    }
    expect(await get(succeeded)).toMatchObject({ state: 'succeeded' });
    const workers = await look((holdfast) => holdfast.workers());
    expect(workers).toEqual([]);
    // The next one has them at once.
    const next = await startWorker('next');
    await next.says({ running: deaf, execution: 2 });
  });

  test('twice is the same as once', async () => {
    const id = await enqueue('until aborted');
    const worker = await startWorker('deployed', {}, { grace: '600ms' });
    await worker.says({ running: id });

    worker.signal('SIGTERM');
    worker.signal('SIGTERM');

    await worker.endsWell();
  });
});

// A timer that was left would keep it for minutes, which is longer than a test may take.
describe('a process ends by itself', () => {
  test('after close, with no timer left', async () => {
    const child = await startWorker('worker', { leaseFor: '10m', pollInterval: '10m' });
    child.signal('SIGTERM');
    await child.says('closed');
    await child.endsWell();
  });

  test('that only enqueues and closes', async () => {
    const child = run('enqueue', pathOf(), { tasks: 3, input: null });
    await child.says('closed');
    await child.endsWell();
  });

  test.each(['memory', 'a file'])('that used the testing kit on %s, with a handler that never ends', async (where) => {
    const child = run('kit', where === 'memory' ? '' : pathOf());
    expect(await child.says({ timers: [] })).toEqual({ timers: [] });
    await child.endsWell();
    expect(child.said).toContainEqual({ state: 'ready' });
  });

  test('that drains and forgets to close', async () => {
    const id = await enqueue('quick');
    const child = run('drain', pathOf(), { worker: { leaseFor: '10m', pollInterval: '10m' } });
    await child.says('closed');
    await child.endsWell();
    expect(await get(id)).toMatchObject({ state: 'succeeded' });
  });
});
