import { describe, expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { type Kit, useKits } from './scene.ts';

const open = useKits();

/** A kit whose worker has found out that `quick` is short, and holds one of five tasks open. */
async function busy(options: { readonly idempotent?: boolean; readonly leaseFor?: string } = {}) {
  let release = () => {};
  const begun: number[] = [];
  const quick = defineTask('quick', {
    ...(options.idempotent !== undefined && { idempotent: options.idempotent }),
    async run(input: { wait?: string; fail?: object; text?: string }, task) {
      begun.push(task.id);
      if (input.wait === 'open') {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      } else if (input.wait) await kit.clock.sleep(input.wait, task.signal);
      if (input.fail) throw Object.assign(new Error('It failed.'), input.fail);
    },
  });
  const long = defineTask('long', { run: () => kit.clock.sleep('1h') });
  const kit = await open({
    tasks: [quick, long],
    worker: { concurrency: 1, claimAhead: true, leaseFor: options.leaseFor ?? '1d' },
  });
  for (let i = 0; i < 40; i++) await kit.holdfast.enqueue(quick, {});
  await kit.drain();
  begun.length = 0;
  return { kit, quick, long, begun, release: () => release() };
}

const states = async (kit: Awaited<ReturnType<typeof open>>) => {
  const { running, ready, succeeded } = (await kit.holdfast.counts()).byState;
  return { running, ready, succeeded };
};

describe('tasks that are claimed ahead', () => {
  test('are the next tasks of a type that was measured to be short, and they begin in their order', async () => {
    const { kit, quick, begun, release } = await busy();
    const ids: number[] = [];
    for (const input of [{ wait: 'open' }, {}, {}, {}, {}]) ids.push((await kit.holdfast.enqueue(quick, input)).id);
    await kit.drain();

    expect(begun).toEqual(ids.slice(0, 1));
    expect(await states(kit)).toEqual({ running: 5, ready: 0, succeeded: 40 });
    release();
    await kit.drain();
    expect(begun).toEqual(ids);
    expect(await states(kit)).toEqual({ running: 0, ready: 0, succeeded: 45 });
  });

  test('is handed back, uncharged, where no slot becomes free for a second', async () => {
    const { kit, quick, begun, release } = await busy();
    const receipts = await kit.holdfast.enqueueAll(quick, [{ wait: 'open' }, {}, {}, {}, {}]);
    await kit.drain();
    await kit.advance('1s');

    expect(await states(kit)).toEqual({ running: 1, ready: 4, succeeded: 40 });
    const last = await kit.holdfast.get(receipts[4]?.id as number);
    expect(last).toMatchObject({ state: 'ready', attempts: 0, deferrals: 0, recoveries: 0 });
    release();
    await kit.drain();
    expect(begun).toHaveLength(5);
    expect(await states(kit)).toEqual({ running: 0, ready: 0, succeeded: 45 });
  });

  test('are fewer the longer their payloads are, for the worker has them in memory', async () => {
    const { kit, quick, release } = await busy();
    const text = 'x'.repeat(1_000_000);
    await kit.holdfast.enqueueAll(quick, Array(20).fill({ text }));
    await kit.drain();
    await kit.holdfast.enqueueAll(quick, [{ wait: 'open' }, ...Array(40).fill({ text })]);
    await kit.drain();

    expect((await states(kit)).running).toBeGreaterThan(8);
    expect((await states(kit)).running).toBeLessThan(20);
    release();
    await kit.drain();
    expect(await states(kit)).toEqual({ running: 0, ready: 0, succeeded: 101 });
  });

  test('is handed back once those before it take longer than they did', async () => {
    const { kit, quick, begun } = await busy();
    await kit.holdfast.enqueueAll(quick, Array(5).fill({ wait: '800ms' }));
    await kit.drain();
    expect(await states(kit)).toMatchObject({ running: 5 });

    await kit.advance('800ms');
    expect(begun).toHaveLength(2);
    expect(await states(kit)).toEqual({ running: 1, ready: 3, succeeded: 41 });
    await kit.advance('5s');
    expect(await states(kit)).toEqual({ running: 0, ready: 0, succeeded: 45 });
  });

  test('is less where an execution was far too long now and then, for each such one has all of it handed back', async () => {
    const { kit, quick, release } = await busy();
    await kit.holdfast.enqueue(quick, { wait: '200ms' });
    await kit.advance('1s');
    await kit.holdfast.enqueueAll(quick, Array(80).fill({}));
    await kit.drain();

    await kit.holdfast.enqueueAll(quick, [{ wait: 'open' }, ...Array(40).fill({})]);
    await kit.drain();
    const { running } = await states(kit);
    expect(running).toBeGreaterThan(1);
    expect(running).toBeLessThan(10);
    release();
    await kit.drain();
    expect(await states(kit)).toMatchObject({ running: 0, ready: 0 });
  });

  test('are handed back when the worker stops, even if the claim is still running', async () => {
    const { kit, quick } = await busy();
    await kit.holdfast.enqueueAll(quick, Array(5).fill({ wait: '1h' }));
    await kit.drain();
    await kit.holdfast.enqueueAll(quick, Array(20).fill({}));
    const stopped = kit.worker.stop({ grace: 0 });
    await kit.holdfast.enqueueAll(quick, Array(20).fill({}));
    await stopped;

    expect(await states(kit)).toEqual({ running: 0, ready: 45, succeeded: 40 });
  });

  test('are never tasks that must not run twice, have a deadline, or come after a task of another type', async () => {
    const once = await busy({ idempotent: false });
    await once.kit.holdfast.enqueueAll(once.quick, [{ wait: 'open' }, {}, {}]);
    await once.kit.drain();
    expect(await states(once.kit)).toMatchObject({ running: 1, ready: 2 });
    once.release();
    await once.kit.drain();

    const { kit, quick, long, release } = await busy();
    await kit.holdfast.enqueue(quick, { wait: 'open' });
    await kit.holdfast.enqueue(quick, {}, { idempotent: false });
    await kit.holdfast.enqueue(quick, {});
    await kit.drain();
    expect(await states(kit)).toMatchObject({ running: 1, ready: 2 });
    release();
    await kit.drain();

    const tomorrow = new Date(kit.clock.now() + 86_400_000);
    await kit.holdfast.enqueue(quick, { wait: 'open' });
    await kit.holdfast.enqueue(quick, {}, { deadline: tomorrow });
    await kit.drain();
    expect(await states(kit)).toMatchObject({ running: 1, ready: 1 });
    release();
    await kit.drain();

    await kit.holdfast.enqueue(long, undefined);
    await kit.holdfast.enqueueAll(quick, [{}, {}]);
    await kit.drain();
    expect(await states(kit)).toMatchObject({ running: 1, ready: 2 });
    await kit.advance('1h');
  });

  test.each([
    ['its source is held', (kit: Kit) => kit.holdfast.sources.hold('quick', { actor: 'maria' })],
    ['its queue is paused', (kit: Kit) => kit.holdfast.pauseQueue('default', { actor: 'maria' })],
  ] as const)('is handed back at once where %s, and does not begin', async (_, act) => {
    const { kit, quick, begun, release } = await busy();
    await kit.holdfast.enqueueAll(quick, [{ wait: 'open' }, {}, {}]);
    await kit.drain();
    expect(await states(kit)).toMatchObject({ running: 3 });

    await act(kit);
    await kit.drain();

    expect(await states(kit)).toMatchObject({ running: 1, ready: 2 });
    release();
    await kit.drain();
    expect(begun).toHaveLength(1);
  });

  test.each([
    ['is down', Array(3).fill({ wait: '1ms', fail: { code: 'ECONNREFUSED' } })],
    ['asked to wait', [{ wait: '1ms', fail: { status: 429, headers: { 'retry-after': '60' } } }]],
  ] as const)(
    'is handed back, and does not begin, where an outcome before it shows that its source %s',
    async (_, bad) => {
      const { kit, quick, begun } = await busy();
      await kit.holdfast.enqueueAll(quick, [...bad, {}, {}, {}, {}]);
      await kit.advance('500ms');
      expect(begun).toHaveLength(bad.length);
      expect(await states(kit)).toEqual({ running: 0, ready: 4, succeeded: 40 });
    },
  );

  test('is cancelled before it begins, at once', async () => {
    const { kit, quick, begun, release } = await busy({ leaseFor: '1500ms' });
    const receipts = await kit.holdfast.enqueueAll(quick, [{ wait: 'open' }, {}]);
    await kit.drain();
    const id = receipts[1]?.id as number;
    await kit.holdfast.cancel(id);
    await kit.drain();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'cancelled' });
    release();
    await kit.drain();
    expect(begun).toHaveLength(1);
  });
});
