import { describe, expect, test } from 'vitest';
import { defineTask, PayloadError, PermanentFailure, type RunningTask, StoreError } from '../../src/index.ts';
import { gate, type Kit, useKits } from './scene.ts';

const open = useKits();

/** Runs one task of this handler. `values`: what `onEvent` was told, one after the other. */
async function started(run: (task: RunningTask, kit: Kit) => unknown) {
  const kits: Kit[] = [];
  const report = defineTask('report', { retry: { maxAttempts: 1 }, run: (_, task) => run(task, kits[0] as Kit) });
  const kit = await open({ tasks: [report] });
  kits.push(kit);
  const { id } = await kit.holdfast.enqueue(report, null);
  const values = () => kit.events.flatMap((event) => (event.kind === 'progress' ? [event.progress] : []));
  return { kit, id, values };
}

describe('progress', () => {
  test('is kept with its time while its task runs, and shown by get and list', async () => {
    const { kit, id } = await started(async (task, { clock }) => {
      await clock.sleep('10s');
      task.progress({ done: 40, total: 100 });
      await clock.sleep('1h');
    });
    await kit.advance('1m');
    const shown = {
      state: 'running',
      progress: { done: 40, total: 100 },
      progressAt: new Date('2026-01-01T00:00:10Z'),
    };
    expect(await kit.holdfast.get(id)).toMatchObject(shown);
    expect(await kit.holdfast.list()).toMatchObject([shown]);
    await kit.advance('1h');
    expect(await kit.holdfast.get(id)).toMatchObject({ ...shown, state: 'succeeded' });
  });

  test('is written at most once a second, the newest value each time, and the last one with the outcome', async () => {
    const { kit, id, values } = await started(async (task, { clock }) => {
      for (let done = 0; done < 1_000; done += 1) {
        task.progress(done);
        await clock.sleep(done < 25 ? '100ms' : '0ms');
      }
    });
    await kit.advance('1h');
    expect(values()).toEqual([0, 9, 19, 999]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', progress: 999 });
    expect(kit.events.at(-1)?.kind).toBe('settled');
  });

  test.each([
    ['fails', 'dead', { throws: true }],
    ['succeeds', 'succeeded', { throws: false }],
  ] as const)('keeps the last value of a handler that %s at once', async (_, state, { throws }) => {
    const { kit, id, values } = await started((task) => {
      for (const value of ['first', 'second', 'last']) task.progress(value);
      if (throws) throw new PermanentFailure('No.');
    });
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state, progress: 'last' });
    expect(values()).toEqual(['first', 'last']);
  });

  test.each([
    [1n, /The progress holds a BigInt/],
    [new Map(), /The progress holds a Map/],
    [Number.NaN, /The progress holds NaN/],
    [
      'x'.repeat(4_095),
      /^The progress is 4097 bytes of JSON, and the limit is 4096\. Keep large data elsewhere and put its address in the progress\.$/,
    ],
  ])('refuses what is not JSON or too large: case %#', async (value, message) => {
    const thrown = gate<unknown>();
    const { kit, id } = await started((task) => {
      task.progress('before');
      try {
        task.progress(value);
      } catch (error) {
        thrown.open(error);
      }
    });
    await kit.drain();
    expect(await thrown.passed).toBeInstanceOf(PayloadError);
    expect(((await thrown.passed) as Error).message).toMatch(message);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', progress: 'before' });
  });

  test('of an execution whose lease was lost aborts its signal and changes nothing', async () => {
    const lost = gate<unknown>();
    const { kit, id } = await started(async (task, { clock }) => {
      task.signal.addEventListener('abort', () => lost.open(task.signal.reason));
      await clock.sleep('1h');
      task.progress('late');
      await clock.sleep('1h');
    });
    await kit.drain();
    const { tasks } = kit.holdfast.store;
    const [worker] = await kit.holdfast.workers();
    await tasks.leave(worker?.id as number);
    const taker = await tasks.join({ name: 'taker', leaseFor: 30_000, publishes: {} });
    expect((await tasks.recover(taker, 1)).tasks).toHaveLength(1);
    await kit.advance('1h');
    expect(await lost.passed).toMatchObject({ code: 'lease_lost' });
    expect(await kit.holdfast.get(id)).not.toHaveProperty('progress');
  });

  test('does not fail the task while the store does not answer; the value is written later', async () => {
    const { kit, id, values } = await started(async (task, { clock }) => {
      task.progress('kept');
      await clock.sleep('1h');
    });
    const { tasks } = kit.holdfast.store;
    const save = tasks.save.bind(tasks);
    let refused = 0;
    tasks.save = (lease, saved) => {
      if (refused++ > 0) return save(lease, saved);
      return Promise.reject(new StoreError('store_unavailable', 'Away.'));
    };
    await kit.advance('30s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running', progress: 'kept' });
    expect(values()).toEqual(['kept']);
    await kit.advance('1h');
  });
});

describe('a claim by hand', () => {
  test('reports progress until it is settled, the last value with the outcome', async () => {
    const work = defineTask('work', { run() {} });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    const { id } = await kit.holdfast.enqueue(work, null);
    const claim = await kit.holdfast.claim();
    for (const value of [1, 2, 3]) claim?.progress(value);
    await claim?.complete();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', progress: 3 });
    expect(() => claim?.progress(4)).toThrow('so progress() is refused');
  });
});
