import { describe, expect, test } from 'vitest';
import { defineTask, type RunningTask } from '../../src/index.ts';
import { atOnce, gate, isSettled, isStarted, useKits } from './scene.ts';

const open = useKits();

/** A handler that notes how many run at once, in all and of the same task. */
function counted(then: (task: RunningTask) => unknown) {
  const running: number[] = [];
  const most = { atOnce: 0, ofOneTask: 0 };
  return {
    most,
    async run(_: unknown, task: RunningTask) {
      running.push(task.id);
      most.atOnce = Math.max(most.atOnce, running.length);
      most.ofOneTask = Math.max(most.ofOneTask, running.filter((id) => id === task.id).length);
      try {
        return await then(task);
      } finally {
        running.splice(running.indexOf(task.id), 1);
      }
    },
  };
}

describe('concurrency', () => {
  test('is never exceeded, and is used to the full', async () => {
    const { most, run } = counted(() => kit.clock.sleep('1s'));
    const work = defineTask('work', { run });
    const kit = await open({ tasks: [work], worker: { concurrency: 3 } });
    await Promise.all(Array.from({ length: 20 }, () => kit.holdfast.enqueue(work, null)));

    await kit.advance('7s');

    expect(most).toEqual({ atOnce: 3, ofOneTask: 1 });
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 20 });
  });

  test('holds for a task that fails and is claimed again in the very transaction that settled it', async () => {
    const hanging = gate();
    const { most, run } = counted(async (task) => {
      if (task.execution === 1) throw new Error('at first');
      await hanging.passed;
    });
    const work = defineTask('work', { retry: atOnce, run });
    const kit = await open({ tasks: [work], worker: { concurrency: 1 } });
    await kit.holdfast.enqueue(work, null);
    await kit.seen((event) => isStarted(event) && event.task.lease.execution === 2);

    // The worker hears of the first of these, and what it then claims is answered before the last is.
    for (let n = 0; n < 3; n++) await kit.holdfast.enqueue(work, null);
    hanging.open();
    await kit.drain();

    expect(most.atOnce).toBe(1);
  });

  test('keeps one live execution a task through a storm of failures', async () => {
    const { most, run } = counted(async (task) => {
      await null;
      if (task.execution < 5) throw new Error('again');
    });
    const work = defineTask('work', { retry: { ...atOnce, maxAttempts: 9 }, run });
    const kit = await open({ tasks: [work], worker: { concurrency: 4 } });
    await Promise.all(Array.from({ length: 40 }, () => kit.holdfast.enqueue(work, null)));

    await kit.drain();

    expect(most.ofOneTask).toBe(1);
    expect(most.atOnce).toBeLessThanOrEqual(4);
    expect(kit.events.filter(isStarted)).toHaveLength(40 * 5);
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 40 });
  });

  test('is shared by drain and runOne of a worker that was not started', async () => {
    const hanging = gate();
    const { most, run } = counted(() => hanging.passed);
    const work = defineTask('work', { run });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    const worker = kit.holdfast.worker({ concurrency: 2 });
    await Promise.all(Array.from({ length: 8 }, () => kit.holdfast.enqueue(work, null)));

    const draining = Promise.all([worker.drain(), worker.drain()]);
    const one = worker.runOne().catch((error: unknown) => error);
    expect(await one).toMatchObject({ code: 'invalid_input', message: expect.stringContaining('concurrency') });
    hanging.open();
    await draining;

    expect(most.atOnce).toBe(2);
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 8 });
  });
});

describe('the order', () => {
  test('of starts is the order of submission, of settlements that of ends', async () => {
    const gates = [gate(), gate(), gate()];
    const work = defineTask('work', { run: (n: number) => gates[n]?.passed });
    const kit = await open({ tasks: [work] });
    for (const n of [0, 1, 2]) await kit.holdfast.enqueue(work, n);
    await kit.seen((event) => isStarted(event) && event.task.payload === '2');

    for (const n of [2, 0, 1]) {
      gates[n]?.open();
      await kit.seen((event) => isSettled(event) && event.task.payload === String(n));
    }

    expect(kit.events.map(({ kind, task }) => `${kind} ${task.payload}`)).toEqual([
      'started 0',
      'started 1',
      'started 2',
      'settled 2',
      'settled 0',
      'settled 1',
    ]);
  });

  test('starts what waits in the turn in which a slot becomes free', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const kit = await open({ tasks: [work], worker: { concurrency: 1 } });
    await Promise.all([1, 2, 3].map((n) => kit.holdfast.enqueue(work, n)));

    await kit.drain();

    // Settling and claiming share a transaction, so the next task starts before its predecessor's settlement is told.
    expect(kit.events.filter(isStarted)).toHaveLength(3);
    expect(kit.events.filter(isSettled)).toHaveLength(3);
  });
});
