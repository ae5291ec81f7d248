import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTask, type RunningTask } from '../../src/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';
import { enqueueUnchecked, gate, isSettled, isStarted, useKits } from './scene.ts';

const open = useKits();

const START = Date.UTC(2026, 0, 1);
const SECOND = 1_000;

/** A worker that is busy with one task, and stops. The handler notes when it is told to end. */
async function busy(
  run: (task: RunningTask, sleep: (time: string, signal?: AbortSignal) => Promise<unknown>) => unknown,
) {
  const aborts: number[] = [];
  const work = defineTask('work', {
    idempotent: (input: { idempotent: boolean }) => input.idempotent,
    run(_, task) {
      task.signal.addEventListener('abort', () => aborts.push(kit.clock.now() - START));
      return run(task, (time, signal) => kit.clock.sleep(time, signal));
    },
  });
  const kit = await open({ tasks: [work], patienceMs: 50 });
  const enqueue = (idempotent = true) => kit.holdfast.enqueue(work, { idempotent });
  return { kit, work, aborts, enqueue };
}

/** When a promise is over, in virtual time. */
function whenOver(promise: Promise<unknown>, now: () => number): { at?: number } {
  const over: { at?: number } = {};
  void promise.then(() => {
    over.at = now() - START;
  });
  return over;
}

describe('a worker that stops', () => {
  test('lets what runs finish within the grace, undisturbed for five sixths of it', async () => {
    const { kit, aborts, enqueue } = await busy((_, sleep) => sleep('24s'));
    const { id } = await enqueue();
    await kit.drain();

    const over = whenOver(kit.worker.stop({ grace: '30s' }), () => kit.clock.now());
    await kit.advance('60s');

    expect(aborts).toEqual([]);
    expect(over.at).toBe(24 * SECOND);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
  });

  test('aborts what still runs at five sixths, and hands it back uncharged at the end', async () => {
    const { kit, aborts, enqueue } = await busy((_, sleep) => sleep('10h'));
    const { id } = await enqueue();
    await kit.drain();

    const over = whenOver(kit.worker.stop({ grace: '30s' }), () => kit.clock.now());
    await kit.advance('60s');

    expect(aborts).toEqual([25 * SECOND]);
    expect(over.at).toBe(30 * SECOND);
    expect(await kit.holdfast.get(id)).toMatchObject({
      state: 'ready',
      executions: 1,
      attempts: 0,
      deferrals: 0,
      recoveries: 0,
      suspect: false,
    });
    expect(await kit.holdfast.history(id)).toMatchObject([
      { outcome: 'interruption', charge: 'nobody', message: 'Its worker shut down while it ran.' },
    ]);
  });

  test('ends as soon as the last handler has, and takes the default grace of 30 s', async () => {
    const { kit, aborts, enqueue } = await busy((task, sleep) => sleep('10h', task.signal));
    const { id } = await enqueue();
    await kit.drain();

    const over = whenOver(kit.worker.stop(), () => kit.clock.now());
    await kit.advance('60s');

    expect(aborts).toEqual([25 * SECOND]);
    expect(over.at).toBe(25 * SECOND);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test('leaves a task that must not run twice to a person, if it was cut off while it ran', async () => {
    const { kit, enqueue } = await busy((_, sleep) => sleep('10h'));
    const { id } = await enqueue(false);
    await kit.drain();

    await kit.worker.stop({ grace: 0 });

    expect(await kit.holdfast.get(id)).toMatchObject({
      state: 'needs_manual',
      reason: 'worker.interrupted',
      attempts: 0,
    });
  });

  test('hands back fifty times without charging anybody', async () => {
    const { kit, work, enqueue } = await busy((_, sleep) => sleep('10h'));
    const { id } = await enqueue();
    await kit.drain();
    await kit.worker.stop({ grace: 0 });
    for (let deploy = 1; deploy < 50; deploy++) {
      const worker = kit.holdfast.worker({ name: `deploy-${deploy}` });
      const one = worker.runOne();
      while (kit.clock.sleepers <= deploy) await new Promise((resolve) => setImmediate(resolve));
      await worker.stop({ grace: 0 });
      expect(await one).toMatchObject({ kind: 'settled', state: 'ready' });
    }

    expect(work.type).toBe('work');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', executions: 50, attempts: 0, recoveries: 0 });
  });

  test('renews its lease until the last handler has ended', async () => {
    const work = defineTask('work', { run: () => kit.clock.sleep('8m') });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', grace: '10m' } });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    kit.holdfast.work({ leaseFor: '30s', types: [], name: 'watcher' });

    const stopped = kit.worker.stop();
    await kit.advance('8m');
    await stopped;

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
    expect(kit.events.filter(isStarted)).toHaveLength(1);
  });

  test('claims nothing more after it was stopped', async () => {
    const { kit, enqueue } = await busy((_, sleep) => sleep('10s'));
    await enqueue();
    await kit.drain();

    const stopped = kit.worker.stop();
    const { id } = await enqueue();
    await kit.advance('10s');
    await stopped;

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', executions: 0 });
  });

  test('removes its row, resolves `finished`, and refuses to be used again', async () => {
    const { kit } = await busy(() => {});
    await kit.drain();
    expect(await kit.holdfast.workers()).toHaveLength(1);

    await kit.worker.stop();
    await kit.worker.finished;

    expect(await kit.holdfast.workers()).toEqual([]);
    expect(() => kit.worker.start()).toThrow(expect.objectContaining({ code: 'closed' }));
    await expect(kit.worker.drain()).rejects.toMatchObject({ code: 'closed' });
    await expect(kit.worker.runOne()).rejects.toMatchObject({ code: 'closed' });
  });
});

describe('a second stop', () => {
  test('hurries with a shorter grace', async () => {
    const { kit, aborts, enqueue } = await busy((_, sleep) => sleep('10h'));
    const { id } = await enqueue();
    await kit.drain();

    const first = whenOver(kit.worker.stop({ grace: '10m' }), () => kit.clock.now());
    await kit.advance('1m');
    const second = whenOver(kit.worker.stop({ grace: '6s' }), () => kit.clock.now());
    await kit.advance('1m');

    expect(aborts).toEqual([65 * SECOND]);
    expect([first.at, second.at]).toEqual([66 * SECOND, 66 * SECOND]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test('hurries to the end with a grace of 0', async () => {
    const { kit, enqueue } = await busy((_, sleep) => sleep('10h'));
    const { id } = await enqueue();
    await kit.drain();

    const stopped = kit.worker.stop({ grace: '10m' });
    await kit.worker.stop({ grace: 0 });
    await stopped;

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test('does not prolong', async () => {
    const { kit, enqueue } = await busy((_, sleep) => sleep('10h'));
    await enqueue();
    await kit.drain();

    const over = whenOver(kit.worker.stop({ grace: '6s' }), () => kit.clock.now());
    void kit.worker.stop({ grace: '10m' });
    void kit.worker.stop();
    await kit.advance('1m');

    expect(over.at).toBe(6 * SECOND);
  });
});

describe('a stop while a claim is on its way', () => {
  test('hands back claimed tasks, and starts no handler', async () => {
    for (let hops = 0; hops <= 24; hops++) {
      let running = 0;
      const work = defineTask('work', {
        async run(_: unknown, task) {
          running += 1;
          await kit.clock.sleep('10h', task.signal).finally(() => {
            running -= 1;
          });
        },
      });
      const kit = await openTestHoldfast({ store: aStore(), tasks: [work] });
      await kit.drain();
      const { id } = await kit.holdfast.enqueue(work, null);
      for (let hop = 0; hop < hops; hop++) await null;

      await kit.worker.stop({ grace: 0 });

      expect(running, `${hops} turns after the enqueue`).toBe(0);
      expect(await kit.holdfast.get(id), `${hops} turns after the enqueue`).toMatchObject({
        state: 'ready',
        attempts: 0,
      });
      expect(await kit.holdfast.workers()).toEqual([]);
      expect(await kit.holdfast.store.upkeep.verify()).toEqual([]);
      await kit.close();
    }
  });

  test('leaves a task that must not run twice as it was, for its handler had not begun', async () => {
    const starts: number[] = [];
    const work = defineTask('work', { idempotent: false, run: () => starts.push(1) });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    const { id } = await kit.holdfast.enqueue(work, null);
    const worker = kit.holdfast.worker();

    const one = worker.runOne();
    const stopped = worker.stop({ grace: 0 });
    await Promise.all([one, stopped]);

    expect(starts).toEqual([]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready' });
    expect(await kit.holdfast.workers()).toHaveLength(1);
  });

  test('waits for the drain and the runOne that are under way', async () => {
    const hanging = gate();
    const work = defineTask('work', { run: () => hanging.passed });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    await Promise.all([1, 2, 3].map((n) => kit.holdfast.enqueue(work, n)));
    const worker = kit.holdfast.worker({ concurrency: 2 });
    const draining = worker.drain();

    const stopped = worker.stop();
    hanging.open();
    await Promise.all([draining, stopped]);

    const { succeeded, ready } = (await kit.holdfast.counts()).byState;
    expect(succeeded + ready).toBe(3);
  });
});

test('a handler whose input is still being read does not begin after its worker has stopped, and had not begun', async () => {
  const reading = gate();
  const ran: unknown[] = [];
  const slow = z.string().transform(async (text) => {
    if (ran.length === 0) await reading.passed;
    return text;
  });
  const strict = defineTask('work', { input: slow, idempotent: false, run: (input) => void ran.push(input) });
  const kit = await open({ tasks: [strict], patienceMs: 30 });
  const id = await enqueueUnchecked(kit, 'x', false);
  await kit.drain();

  await kit.worker.stop({ grace: 0 });
  reading.open();
  await reading.passed;
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));

  expect(ran).toEqual([]);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  expect(await kit.holdfast.history(id)).toMatchObject([{ message: 'Its worker shut down before it began.' }]);
});

test('a worker whose handlers all ignore their abort ends at its deadline, and a handler that ends later changes nothing', async () => {
  const hanging = gate();
  const work = defineTask('work', { run: () => hanging.passed });
  const kit = await open({ tasks: [work], patienceMs: 50 });
  const { id } = await kit.holdfast.enqueue(work, null);
  await kit.drain();

  await kit.worker.stop({ grace: 0 });
  hanging.fail(new Error('far too late'));
  await hanging.passed.catch(() => {});

  expect(kit.events.filter(isSettled)).toMatchObject([{ state: 'ready' }]);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
});
