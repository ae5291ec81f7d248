import { expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { claimRequest, idsOf, newTask, retryIn, type StoreFactory, settlement, succeeded, useScene } from '../scene.ts';

export function promisesOfUpkeep(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('finds nothing broken in a new store', async () => {
    expect(await scene.store.upkeep.verify()).toEqual([]);
  });

  test('says where and what it is', async () => {
    const described = scene.store.upkeep.describe();
    expect(described).toEqual({
      kind: expect.stringMatching(/./),
      where: expect.stringMatching(/./),
      schema: expect.any(Number),
      durability: expect.stringMatching(/./),
      driver: expect.stringMatching(/./),
    });
  });

  test('refuses every call after it was closed, with the code `closed`', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const store = await scene.closeStore();

    const calls: readonly ((store: Store) => Promise<unknown>)[] = [
      ({ tasks }) => tasks.enqueue([newTask()]),
      ({ tasks }) => tasks.join({ name: 'late', leaseFor: 30_000, publishes: {} }),
      ({ tasks }) => tasks.claim(claimRequest(worker)),
      ({ tasks }) => tasks.renew(worker, [claimed.lease]),
      ({ tasks }) => tasks.settle([settlement(claimed, succeeded())]),
      ({ tasks }) => tasks.recover(worker, 1),
      ({ tasks }) => tasks.leave(worker),
      ({ tasks }) => tasks.move([claimed.lease.task], { actor: 'maria', verb: 'cancel' }),
      ({ sources }) => sources.setUp('default', { order: 'lifo' }),
      ({ records }) => records.find(1),
      ({ records }) => records.find({ key: 'k' }),
      ({ records }) => records.list({ limit: 1 }),
      ({ records }) => records.history(1),
      ({ records }) => records.counts(),
      ({ records }) => records.workers(),
      ({ upkeep }) => upkeep.verify(),
    ];
    for (const call of calls) {
      await expect(call(store), String(call)).rejects.toMatchObject({ code: 'closed' });
    }
  });

  test('ends all leases after a backup was restored, so that another worker takes the tasks over', async () => {
    const hers = await scene.start(await scene.join('alice'));
    await scene.store.upkeep.endLeases();
    expect(await scene.settle(hers, succeeded())).toEqual({ answer: 'stale' });
    expect(idsOf(await scene.recover(await scene.join('bob')))).toEqual([hers.lease.task]);
  });

  test('knows its size', async () => {
    await scene.enqueueOne();
    expect((await scene.store.upkeep.space()).bytes).toBeGreaterThan(10_000);
  });

  test('can be closed twice', async () => {
    const store = await scene.closeStore();
    await store.upkeep.close();
  });

  test('finishes calls that were made before the close', async () => {
    const { store } = scene;
    const calls = Array.from({ length: 5 }, () => store.tasks.enqueue([newTask()]));
    await scene.closeStore();
    const receipts = await Promise.all(calls);
    expect(receipts.flat().map(({ created }) => created)).toEqual([true, true, true, true, true]);
  });

  test.runIf(scene.hasSecond)('keeps everything over a restart', async () => {
    const worker = await scene.join('alice', { publishes: { mail: '{}' } });
    await scene.store.sources.setUp('default', { order: 'lifo' });
    const claimed = await scene.start(worker, { key: 'k', needs: { cpu: 1 } }).catch(() => undefined);
    expect(claimed).toBeUndefined();
    const running = await scene.start(worker);
    const failed = await scene.start(worker);
    await scene.settle(failed, retryIn(5_000));
    const ids = await scene.enqueue({}, {}, { delay: 9_000 });
    const records = await scene.store.records.list({ limit: 100 });
    const counts = await scene.store.records.counts();
    const history = await scene.store.records.history(failed.lease.task);

    await scene.closeStore().then(() => scene.openSecond());

    expect(await scene.store.records.list({ limit: 100 })).toEqual(records);
    expect(await scene.store.records.counts()).toEqual(counts);
    expect(await scene.store.records.history(failed.lease.task)).toEqual(history);
    expect(await scene.settle(running, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
    const claimedNow = await scene.claim(worker);
    expect(claimedNow.map(({ lease }) => lease.task)).toEqual([ids[1], ids[0]]);
    expect(await scene.store.tasks.enqueue([newTask({ key: 'k' })])).toMatchObject([{ created: false }]);
  });

  test('notifies listeners when tasks were enqueued, until it is stopped', async () => {
    let hints = 0;
    const heard = new Promise<void>((resolve) => {
      const stop = scene.store.upkeep.onNews(() => {
        hints += 1;
        stop();
        resolve();
      });
    });

    await scene.enqueueOne();
    scene.advance(1_000);
    await heard;
    await scene.enqueueOne();
    scene.advance(1_000);
    await scene.enqueueOne();
    expect(hints).toBe(1);
  });

  test.each([
    ['a retry at once', async () => scene.settle(await scene.start(await scene.join()), retryIn(0))],
    [
      'a worker that left',
      async () => {
        const worker = await scene.join();
        await scene.start(worker);
        await scene.store.tasks.leave(worker);
      },
    ],
    [
      'an operator',
      async () => {
        await scene.move(await scene.taskIn('dead'), { verb: 'retry' });
      },
    ],
  ] as const)('hints when work became ready through %s', async (_, act) => {
    const heard = new Promise<void>((resolve) => {
      scene.store.upkeep.onNews((news) => (news === 'work' ? resolve() : undefined));
    });
    await act();
    scene.advance(1_000);
    await heard;
  });

  test.each([
    ['a cancel of what runs', async () => scene.move(await scene.taskIn('running'), { verb: 'cancel' })],
    ['a held source', () => scene.store.sources.hold('imap:INBOX', { actor: 'maria' })],
    ['a paused queue', () => scene.store.sources.pause('default', { actor: 'maria' })],
  ] satisfies readonly [string, () => Promise<unknown>][])(
    'hints that workers may have to give something back for %s',
    async (_, act) => {
      const heard = new Promise<void>((resolve) => {
        scene.store.upkeep.onNews((news) => (news === 'recall' ? resolve() : undefined));
      });
      await act();
      await heard;
    },
  );

  test('lets a call that fails take none of its neighbours along', async () => {
    const worker = await scene.join();
    await scene.enqueueOne();
    const broken = { ...newTask(), payload: undefined as unknown as string };
    const calls = await Promise.allSettled([
      scene.store.tasks.enqueue([newTask({ key: 'before' })]),
      scene.store.tasks.enqueue([newTask({ key: 'with' }), broken]),
      scene.store.tasks.enqueue([newTask({ key: 'after' })]),
      scene.claim(worker, { limit: 1 }),
    ]);

    expect(calls.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    expect(await scene.store.records.find({ key: 'before' })).toBeDefined();
    expect(await scene.store.records.find({ key: 'with' })).toBeUndefined();
    expect(await scene.store.records.find({ key: 'after' })).toBeDefined();
  });
}
