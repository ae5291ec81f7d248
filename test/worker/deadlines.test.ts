import { describe, expect, test } from 'vitest';
import { defineTask, fixed } from '../../src/index.ts';
import { isStarted, useKits } from './scene.ts';

const open = useKits();

const START = Date.UTC(2026, 0, 1);
const at = (seconds: number) => new Date(START + seconds * 1_000);

describe('a deadline', () => {
  test('ends a task that waits for its time, at the exact moment', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null, { delay: '1h', deadline: at(600) });

    await kit.advance('599999ms');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled' });
    await kit.advance('1ms');

    expect(await kit.holdfast.get(id)).toMatchObject({
      state: 'dead',
      reason: 'deadline.passed',
      endedAt: at(600),
      executions: 0,
      attempts: 0,
    });
    expect(kit.events).toMatchObject([{ kind: 'settled', outcome: { kind: 'expiry' }, state: 'dead' }]);
  });

  test('ends a task that nobody here can run', async () => {
    const kit = await open({ tasks: [defineTask('work', { run() {} })] });
    const { id } = await kit.holdfast.enqueue('elsewhere', null, { deadline: at(60) });

    await kit.advance('60s');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', endedAt: at(60) });
  });

  test('of a thousand tasks of another queue keeps no task waiting', async () => {
    const kit = await open({ tasks: [defineTask('work', { run() {} })] });
    const late = Array.from({ length: 1_000 }, () => null);
    await kit.holdfast.enqueueAll('work', late, { queue: 'reports', deadline: at(60) });
    await kit.holdfast.pauseQueue('reports');
    await kit.advance('59s');
    const { id } = await kit.holdfast.enqueue('work', null, { delay: '1s' });
    await kit.advance('1s');

    const begun = kit.events.findIndex(isStarted);
    expect(kit.events[begun]).toMatchObject({ task: { lease: { task: id } } });
    expect(begun).toBeLessThan(150);
    expect(kit.events.filter((event) => event.kind === 'settled' && event.state === 'dead')).toHaveLength(1_000);
  });

  test("leads where the task's policy ends", async () => {
    const work = defineTask('work', { retry: { onExhausted: 'needs_manual' }, run() {} });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null, { delay: '1h', deadline: at(60) });

    await kit.advance('60s');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', reason: 'deadline.passed' });
  });

  test('ends a task at its failure, if the next attempt would come too late', async () => {
    const work = defineTask('work', {
      retry: { backoff: fixed('1m'), jitter: { kind: 'none' } },
      run() {
        throw new Error('no');
      },
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null, { deadline: at(90) });

    await kit.advance('60s');

    expect(await kit.holdfast.get(id)).toMatchObject({
      state: 'dead',
      reason: 'unknown',
      executions: 2,
      endedAt: at(60),
    });
    expect(await kit.holdfast.history(id)).toMatchObject([{}, { because: { step: 'deadline' } }]);
  });

  test('does not end what runs: it may still succeed, however late', async () => {
    const work = defineTask('work', { run: () => kit.clock.sleep('10m') });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null, { deadline: at(60) });

    await kit.advance('10m');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', endedAt: at(600) });
  });

  test('that passed before anybody had a slot means that the task is not started', async () => {
    const started: string[] = [];
    const work = defineTask('work', {
      async run(name: string) {
        started.push(name);
        await kit.clock.sleep('10m');
      },
    });
    const kit = await open({ tasks: [work], worker: { concurrency: 1 } });
    await kit.holdfast.enqueue(work, 'long');
    const { id } = await kit.holdfast.enqueue(work, 'late', { deadline: at(60) });

    await kit.advance('1h');

    expect(started).toEqual(['long']);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'deadline.passed', attempts: 0 });
  });

  test('that has passed at the enqueue ends the task at once', async () => {
    const work = defineTask('work', { run() {} });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null, { deadline: at(-1) });

    await kit.drain();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'deadline.passed' });
    expect(kit.events.filter(isStarted)).toEqual([]);
  });

  test('is met by runOne and drain of a worker that was not started', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    await kit.worker.stop();
    const ids = [];
    for (const deadline of [at(60), at(120), at(180)]) {
      ids.push((await kit.holdfast.enqueue(work, null, { delay: '1h', deadline })).id);
    }
    const worker = kit.holdfast.worker();

    kit.clock.moveTo(START + 60_000);
    expect(await worker.runOne()).toBeUndefined();
    expect(await kit.holdfast.get(ids[0] as number)).toMatchObject({ state: 'dead' });
    kit.clock.moveTo(START + 150_000);
    await worker.drain();

    expect(await kit.holdfast.get(ids[1] as number)).toMatchObject({ state: 'dead' });
    expect(await kit.holdfast.get(ids[2] as number)).toMatchObject({ state: 'scheduled' });
  });

  test('ends thousands that wait, in one sweep', async () => {
    const kit = await open({ tasks: [defineTask('work', { run() {} })] });
    await Promise.all(
      Array.from({ length: 1_000 }, () => kit.holdfast.enqueue('work', null, { delay: '1h', deadline: at(60) })),
    );

    await kit.advance('60s');

    expect((await kit.holdfast.counts()).byState).toMatchObject({ dead: 1_000 });
  });
});
