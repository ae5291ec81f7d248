import { describe, expect, test } from 'vitest';
import { defineTask, fixed, type PolicyOptions, type RunningTask } from '../../src/index.ts';
import { type Kit, useKits } from './scene.ts';

const open = useKits();

/** A kit that runs one task with this policy, until its signal aborts or for so long. */
async function running(retry: PolicyOptions, run: (kit: Kit, task: RunningTask) => unknown) {
  const work = defineTask('work', { retry, run: (_: null, task) => run(kit, task) });
  const kit = await open({ tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, null);
  await kit.drain();
  return { kit, id };
}

const oneTry = (timeout: string): PolicyOptions => ({ timeout, maxAttempts: 1 });
const untilAborted = (kit: Kit, task: RunningTask) => kit.clock.sleep('1000d', task.signal);

describe('the time in which the process was frozen', () => {
  test('does not count against the time limit of what runs; all of the limit is left as it was', async () => {
    const { kit, id } = await running(oneTry('10s'), untilAborted);
    await kit.advance('4s');

    kit.clock.freeze('3h');
    await kit.advance('5999ms');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running' });
    await kit.advance('1ms');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
  });

  test('does not count where it is shorter than a pulse either', async () => {
    const { kit, id } = await running(oneTry('500ms'), untilAborted);
    await kit.advance('100ms');

    kit.clock.freeze('800ms');
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running' });
    await kit.advance('500ms');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
  });

  test('a freeze does not count for executions that started after it, nor twice before a heartbeat', async () => {
    const beats: RunningTask[] = [];
    const { kit, id } = await running(oneTry('10s'), (kit, task) => {
      beats.push(task);
      return untilAborted(kit, task);
    });
    await kit.advance('4s');
    kit.clock.freeze('1h');
    beats[0]?.heartbeat();
    await kit.advance('9999ms');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running' });
    await kit.advance('1ms');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
  });

  test('does not count for giveUpAfter, but counts for a deadline, which is a fixed time', async () => {
    const failing = async (kit: Kit) => {
      await kit.clock.sleep('2s');
      throw new Error('not yet');
    };
    const retry: PolicyOptions = { giveUpAfter: '1h', backoff: fixed('1s'), jitter: { kind: 'none' } };
    const { kit, id } = await running(retry, failing);
    kit.clock.freeze('2h');
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled', attempts: 1 });

    const late = await kit.holdfast.enqueue('work', null, { deadline: new Date(kit.clock.now() + 3_600_000) });
    await kit.drain();
    kit.clock.freeze('2h');
    await kit.drain();
    expect(await kit.holdfast.get(late.id)).toMatchObject({ state: 'dead' });
  });

  test('does not count as the length of an execution where it is decided what to claim ahead', async () => {
    const lengths: string[] = [];
    const quick = defineTask('quick', {
      async run() {
        lengths.push('begun');
        await kit.clock.sleep('1ms');
      },
    });
    const kit = await open({ tasks: [quick], worker: { concurrency: 1, claimAhead: true } });
    for (let n = 0; n < 30; n++) await kit.holdfast.enqueue(quick, null);
    for (let n = 0; n < 30; n++) await kit.advance('1ms');
    await kit.holdfast.enqueue(quick, null);
    await kit.drain();
    kit.clock.freeze('1h');
    await kit.drain();
    await kit.holdfast.enqueueAll(quick, [null, null, null]);
    await kit.drain();
    expect((await kit.holdfast.counts()).byState).toMatchObject({ running: 3, ready: 0 });
    await kit.advance('1s');
    expect(lengths).toHaveLength(34);
  });
});

test('a time limit counts only after arrived events were read, because the execution may have ended', async () => {
  let end = () => {};
  const work = defineTask('work', {
    retry: oneTry('10s'),
    run: () => new Promise<void>((resolve) => (end = resolve)),
  });
  const kit = await open({ tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, null);
  await kit.drain();
  // As the end of a child process is read after the timers of the same turn.
  kit.clock.after(10_000, () => queueMicrotask(end));
  kit.clock.moveTo(kit.clock.now() + 10_000);
  await kit.drain();

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded' });
});
