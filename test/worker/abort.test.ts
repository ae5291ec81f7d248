import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defineTask, LeaseLostError, type PolicyOptions, type RunningTask } from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { atOnce, isSettled, isStale, isStarted, type Kit, useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

const START = Date.UTC(2026, 0, 1);
const SECOND = 1_000;

/** Waits for ever or until aborted, and notes when and why. */
function obedient(retry: PolicyOptions = {}, then: (task: RunningTask) => unknown = () => {}) {
  const aborts: { at: number; reason: unknown }[] = [];
  let kit: Kit;
  const task = defineTask('work', {
    retry,
    async run(_: unknown, task) {
      try {
        await kit.clock.sleep('1000d', task.signal);
      } catch (reason) {
        aborts.push({ at: kit.clock.now() - START, reason });
      }
      if (!task.signal.aborted) throw new Error('It was never aborted.');
      const result = await then(task);
      if (result === undefined) throw new Error('gave up when it was told to');
      return result;
    },
  });
  return { task, aborts, in: (opened: Kit) => (kit = opened) };
}

describe('the signal of a handler', () => {
  test('aborts with a TimeoutError when its time is over, and the failure is the timeout', async () => {
    const { task, aborts, in: runIn } = obedient({ timeout: '10s', maxAttempts: 1 });
    const kit = runIn(await open({ tasks: [task] }));
    const { id } = await kit.holdfast.enqueue(task, null);

    await kit.advance('9999ms');
    expect(aborts).toEqual([]);
    await kit.advance('1ms');

    expect(aborts).toEqual([{ at: 10 * SECOND, reason: expect.objectContaining({ name: 'TimeoutError' }) }]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
    expect(await kit.holdfast.history(id)).toMatchObject([
      { outcome: 'failure', failure: { reason: 'timeout', kind: 'transient', ambiguous: true } },
    ]);
  });

  test('counts the time from the last heartbeat', async () => {
    const beats: RunningTask[] = [];
    const { task, aborts, in: runIn } = obedient({ timeout: '10s', maxAttempts: 1 });
    const beating = {
      ...task,
      run(input: unknown, running: RunningTask) {
        beats.push(running);
        return task.run(input, running);
      },
    };
    const kit = runIn(await open({ tasks: [beating] }));
    await kit.holdfast.enqueue(beating, null);

    await kit.advance('8s');
    beats[0]?.heartbeat();
    await kit.advance('8s');
    beats[0]?.heartbeat();
    await kit.advance('20s');

    expect(aborts).toMatchObject([{ at: 26 * SECOND }]);
  });

  test("never aborts for its time where the timeout is 'none'", async () => {
    const { task, aborts, in: runIn } = obedient({ timeout: 'none' });
    // It renews three times in that time; at each stop on the way a worker does its chores, as making the partitions of a day.
    const kit = runIn(await open({ tasks: [task], worker: { leaseFor: '365d' } }));
    await kit.holdfast.enqueue(task, null);

    await kit.advance('365d');

    expect(aborts).toEqual([]);
    expect(kit.events.filter(isStarted)).toHaveLength(1);
  });

  test('aborts an hour after the start where nothing else is said', async () => {
    const { task, aborts, in: runIn } = obedient();
    const kit = runIn(await open({ tasks: [task] }));
    await kit.holdfast.enqueue(task, null);

    await kit.advance('1h');

    expect(aborts).toMatchObject([{ at: 3_600 * SECOND }]);
  });

  test('aborts at once after a cancel, and the task ends as cancelled', async () => {
    const { task, aborts, in: runIn } = obedient();
    const kit = runIn(await open({ tasks: [task], worker: { leaseFor: '30s' } }));
    const { id } = await kit.holdfast.enqueue(task, null);
    await kit.advance('15s');
    await kit.holdfast.cancel(id);
    await kit.drain();

    const reason = expect.objectContaining({ name: 'AbortError', message: `Task #${id} was cancelled.` });
    expect(aborts).toEqual([{ at: 15 * SECOND, reason }]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'cancelled', attempts: 0 });
  });

  test('aborts for a shutdown', async () => {
    const { task, aborts, in: runIn } = obedient();
    const kit = runIn(await open({ tasks: [task] }));
    await kit.holdfast.enqueue(task, null);
    await kit.drain();

    await kit.worker.stop({ grace: 0 });

    const reason = expect.objectContaining({ name: 'AbortError', message: 'The worker is shutting down.' });
    expect(aborts).toEqual([{ at: 0, reason }]);
  });

  test('aborts with a LeaseLostError when the lease is lost, and what fails after that is only evidence', async () => {
    const {
      task,
      aborts,
      in: runIn,
    } = obedient({}, () => {
      throw new Error('too late');
    });
    const path = join(folder(), 'tasks.db');
    const sleeper = runIn(
      // It has no slot left, so that it does not look for work and hears of its loss at a renewal.
      await open({
        tasks: [task],
        store: aStore(path),
        worker: { leaseFor: '30s', name: 'sleeper', concurrency: 1 },
      }),
    );
    const other = await open({ tasks: [task], store: aStore(path), worker: { leaseFor: '30s', types: [] } });
    const { id } = await sleeper.holdfast.enqueue(task, null);
    await sleeper.drain();

    await endWorkerOf(other, 'sleeper');
    expect(await other.holdfast.get(id)).toMatchObject({ state: 'ready', suspect: true });
    await other.holdfast.hold(id);
    await sleeper.advance('10s');

    expect(aborts).toEqual([{ at: 10 * SECOND, reason: expect.any(LeaseLostError) }]);
    expect(aborts[0]?.reason).toMatchObject({ code: 'lease_lost', task: id, execution: 1 });
    expect(sleeper.events.filter(isStale)).toMatchObject([
      { outcome: { kind: 'interruption' }, task: { lease: { execution: 1 } } },
    ]);
    expect(await other.holdfast.history(id)).toMatchObject([
      { execution: 1, outcome: 'loss', worker: 'sleeper', late: false },
      { kind: 'action', verb: 'hold' },
      { execution: 1, outcome: 'interruption', late: true },
    ]);
    expect(await other.holdfast.get(id)).toMatchObject({ state: 'held' });
  });

  test('aborts once, for its first cause', async () => {
    const { task, aborts, in: runIn } = obedient({ timeout: '5s' }, () => kit.clock.sleep('20s'));
    const kit = runIn(await open({ tasks: [task], worker: { leaseFor: '30s' } }));
    const { id } = await kit.holdfast.enqueue(task, null);
    await kit.advance('6s');
    await kit.holdfast.cancel(id);
    await kit.advance('60s');

    expect(aborts).toMatchObject([{ reason: { name: 'TimeoutError' } }]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'cancelled' });
  });

  test('does not abort after the handler has ended', async () => {
    const signals: AbortSignal[] = [];
    const task = defineTask('work', {
      run(_: unknown, { signal }) {
        signals.push(signal);
      },
    });
    const kit = await open({ tasks: [task] });
    await kit.holdfast.enqueue(task, null);

    await kit.advance('2h');
    await kit.worker.stop({ grace: 0 });

    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});

describe('a handler that succeeds after its abort has succeeded', () => {
  test('when its time was over', async () => {
    const { task, aborts, in: runIn } = obedient({ timeout: '10s' }, () => 'done all the same');
    const kit = runIn(await open({ tasks: [task] }));
    const { id } = await kit.holdfast.enqueue(task, null);

    await kit.advance('10s');

    expect(aborts).toHaveLength(1);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'done all the same', attempts: 0 });
  });

  test('when it was cancelled', async () => {
    const { task, aborts, in: runIn } = obedient({}, () => 'done all the same');
    const kit = runIn(await open({ tasks: [task], worker: { leaseFor: '30s' } }));
    const { id } = await kit.holdfast.enqueue(task, null);
    await kit.drain();
    await kit.holdfast.cancel(id);

    await kit.advance('10s');

    expect(aborts).toHaveLength(1);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded' });
  });

  test('when its worker shut down', async () => {
    const { task, in: runIn } = obedient({}, () => 'done all the same');
    const kit = runIn(await open({ tasks: [task] }));
    const { id } = await kit.holdfast.enqueue(task, null);
    await kit.drain();
    const stopped = kit.worker.stop({ grace: '6s' });

    await kit.advance('5s');
    await stopped;

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded' });
  });
});

describe('a handler that ignores its abort', () => {
  /** Ten hours of work whatever it is told, the first time. */
  async function deaf() {
    const starts: number[] = [];
    const task = defineTask('deaf', {
      retry: { ...atOnce, timeout: '1m' },
      async run(_: unknown, { execution }) {
        starts.push(execution);
        if (execution === 1) await kit.clock.sleep('10h');
      },
    });
    const quick = defineTask('quick', { run: () => 'done' });
    const kit = await open({
      tasks: [task, quick],
      worker: { concurrency: 1, grace: '30s', leaseFor: '30d' },
      patienceMs: 50,
    });
    const { id } = await kit.holdfast.enqueue(task, null);
    await kit.drain();
    return { kit, id, starts, quick };
  }

  test('is judged when its grace is over', async () => {
    const { kit, id } = await deaf();

    await kit.advance('89s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running' });
    await kit.advance('1s');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 1, reason: 'timeout' });
  });

  test('keeps its slot, and its task does not start beside it, until it has really ended', async () => {
    const { kit, id, starts, quick } = await deaf();
    const other = await kit.holdfast.enqueue(quick, null);

    await kit.advance('5h');
    expect(starts).toEqual([1]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready' });
    expect(await kit.holdfast.get(other.id)).toMatchObject({ state: 'ready', executions: 0 });

    await kit.advance('5h');
    expect(starts).toEqual([1, 2]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 2 });
    expect(await kit.holdfast.get(other.id)).toMatchObject({ state: 'succeeded' });
  });

  test('leaves the other slots to other tasks', async () => {
    const starts: string[] = [];
    const work = defineTask('work', {
      retry: { ...atOnce, timeout: '1m' },
      async run(name: string, { execution }) {
        starts.push(`${name} ${execution}`);
        if (name === 'deaf') await kit.clock.sleep('10h');
      },
    });
    const kit = await open({ tasks: [work], worker: { concurrency: 2, leaseFor: '30d' }, patienceMs: 50 });
    await kit.holdfast.enqueue(work, 'deaf');
    await kit.advance('2m');

    await kit.holdfast.enqueue(work, 'quick');
    await kit.drain();

    expect(starts).toEqual(['deaf 1', 'quick 1']);
    // It was not even claimed.
    const [, deaf] = await kit.holdfast.list();
    expect(deaf).toMatchObject({ state: 'ready', executions: 1, reason: 'timeout' });
  });

  test('holds its task back from every worker of its process', async () => {
    const { kit, id, starts } = await deaf();
    await kit.advance('2m');

    const other = kit.holdfast.worker({ name: 'other' });
    expect(await other.runOne()).toBeUndefined();

    expect(starts).toEqual([1]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready' });
  });

  test('does not hold its task back from another process', async () => {
    const path = join(folder(), 'tasks.db');
    const task = (run: (task: RunningTask) => unknown) =>
      defineTask('deaf', { retry: { timeout: '10s', ...atOnce }, run: (_: unknown, running) => run(running) });
    const here = await open({
      tasks: [task(() => here.clock.sleep('10h'))],
      store: aStore(path),
      worker: { grace: '1s' },
    });
    const { id } = await here.holdfast.enqueue('deaf', null);
    await here.advance('1m');
    const there = await open({ tasks: [task(() => 'done')], store: aStore(path), start: new Date(here.clock.now()) });
    await there.drain();

    expect(await there.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 2 });
  });

  test('its late end changes nothing, whatever its outcome is', async () => {
    const { kit, id } = await deaf();
    await kit.advance('2m');
    await kit.holdfast.hold(id);

    await kit.advance('10h');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'held', executions: 1, attempts: 1 });
    expect(kit.events.filter(isSettled)).toHaveLength(1);
  });
});

test('a worker that lost a task whose handler still runs does not start it again beside that', async () => {
  const live: number[] = [];
  let most = 0;
  const task = defineTask('deaf', {
    async run(_: unknown, { execution }) {
      live.push(execution);
      most = Math.max(most, live.length);
      await sleeper.clock.sleep('10h');
      live.pop();
    },
  });
  const path = join(folder(), 'tasks.db');
  const sleeper = await open({
    tasks: [task],
    store: aStore(path),
    worker: { leaseFor: '30s', grace: '1h', name: 'sleeper' },
  });
  const other = await open({ tasks: [task], store: aStore(path), worker: { leaseFor: '30s', types: [] } });
  const { id } = await sleeper.holdfast.enqueue(task, null);
  await sleeper.drain();
  await endWorkerOf(other, 'sleeper');
  expect(await other.holdfast.get(id)).toMatchObject({ state: 'ready' });

  // It looks for work before it has heard of its loss, and again after that.
  await sleeper.holdfast.enqueue('elsewhere', null);
  await sleeper.drain();
  await sleeper.advance('1m');

  expect(most).toBe(1);
  expect(await other.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0, recoveries: 0 });
});

describe('a handler that has not heard yet that its lease was lost', () => {
  async function unaware() {
    const starts: number[] = [];
    const task = defineTask('deaf', {
      async run(_: unknown, { execution }) {
        starts.push(execution);
        await kit.clock.sleep('10h');
      },
    });
    const path = join(folder(), 'tasks.db');
    const kit = await open({ tasks: [task], store: aStore(path), worker: { name: 'sleeper', concurrency: 1 } });
    const other = await open({ tasks: [task], store: aStore(path), worker: { leaseFor: '30s', types: [] } });
    const { id } = await kit.holdfast.enqueue(task, null);
    await kit.drain();
    await endWorkerOf(other, 'sleeper');
    expect(await other.holdfast.get(id)).toMatchObject({ state: 'ready', executions: 1 });
    return { kit, id, starts };
  }

  test('is not run again beside itself by another worker of its process', async () => {
    const { kit, id, starts } = await unaware();

    await kit.holdfast.worker({ name: 'second' }).runOne();

    expect(starts).toEqual([1]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test('is not claimed by hand in its process', async () => {
    const { kit, id, starts } = await unaware();

    expect(await kit.holdfast.claim({ id })).toBeUndefined();

    expect(starts).toEqual([1]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  });
});

/** An operator ends a worker, and the other one takes its tasks over at its next beat. */
async function endWorkerOf(other: Kit, name: string): Promise<void> {
  const worker = (await other.holdfast.workers()).find((each) => each.name === name);
  await other.holdfast.endWorker(worker?.id as number);
  await other.advance('10s');
}
