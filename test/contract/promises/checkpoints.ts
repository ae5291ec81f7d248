import { describe, expect, test } from 'vitest';
import { ended, handedBack, lost, retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';

const DAY = 86_400_000;

export function promisesOfCheckpoints(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('hands a saved checkpoint to the next execution, and nothing to the first', async () => {
    const worker = await scene.join();
    const first = await scene.start(worker);
    expect(first).not.toHaveProperty('checkpoint');
    expect(await scene.store.tasks.save(first.lease, { checkpoint: '{"copied":3}' })).toBe(true);
    await scene.settle(first, retryIn(0));

    expect(await scene.claimTask(worker, first.lease.task)).toMatchObject({ checkpoint: '{"copied":3}' });
  });

  test('keeps the last one that was saved', async () => {
    const worker = await scene.join();
    const first = await scene.start(worker);
    await scene.store.tasks.save(first.lease, { checkpoint: '1' });
    await scene.store.tasks.save(first.lease, { checkpoint: '2' });
    await scene.settle(first, retryIn(0));

    const second = await scene.claimTask(worker, first.lease.task);
    expect(second.checkpoint).toBe('2');
    await scene.store.tasks.save(second.lease, { checkpoint: '3' });
    await scene.settle(second, handedBack());
    expect(await scene.claimTask(worker, first.lease.task)).toMatchObject({ checkpoint: '3' });
  });

  test('hands out each task its own in one claim', async () => {
    const worker = await scene.join();
    const ids = await scene.enqueue({}, {}, {});
    const claimed = await scene.claim(worker, { limit: 3 });
    for (const one of claimed.slice(0, 2))
      await scene.store.tasks.save(one.lease, { checkpoint: `"of ${one.lease.task}"` });
    for (const one of claimed) await scene.settle(one, retryIn(0));

    const again = await scene.claim(worker, { limit: 3 });
    expect(new Map(again.map(({ lease, checkpoint }) => [lease.task, checkpoint]))).toEqual(
      new Map([
        [ids[0], `"of ${ids[0]}"`],
        [ids[1], `"of ${ids[1]}"`],
        [ids[2], undefined],
      ]),
    );
  });

  test('returns it to the worker that recovers a lost task, and to the next execution', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice);
    await scene.store.tasks.save(hers.lease, { checkpoint: '"half"' });
    const [his] = await scene.recoverAfterSilence(bob);
    expect(his).toMatchObject({ checkpoint: '"half"' });
    await scene.settle(his as typeof hers, lost('free'));
    expect(await scene.claimTask(bob, hers.lease.task)).toMatchObject({ checkpoint: '"half"' });
  });

  test('keeps the progress of a task beside its checkpoint, with its time, and shows it', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const { lease } = claimed;
    expect(await scene.find(lease.task)).not.toHaveProperty('progress');
    expect(await scene.store.tasks.save(lease, { progress: '0.1' })).toBe(true);
    const { progressAt } = await scene.find(lease.task);
    scene.advance(5_000);
    await scene.store.tasks.save(lease, { checkpoint: '"half"' });
    expect(await scene.find(lease.task)).toMatchObject({ progress: '0.1', progressAt });
    await scene.store.tasks.save(lease, { progress: '0.5' });
    expect(await scene.find(lease.task)).toMatchObject({ progress: '0.5', progressAt: (progressAt ?? 0) + 5_000 });
    expect(await scene.store.records.list({ limit: 1 })).toMatchObject([{ progress: '0.5' }]);
    await scene.settle(claimed, retryIn(0));
    expect(await scene.claimTask(worker, lease.task)).toMatchObject({ checkpoint: '"half"' });
    expect(await scene.find(lease.task)).toMatchObject({ progress: '0.5' });
  });

  test('hands out no checkpoint where only progress was saved', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.store.tasks.save(claimed.lease, { progress: '1' });
    await scene.settle(claimed, retryIn(0));
    expect(await scene.claimTask(worker, claimed.lease.task)).not.toHaveProperty('checkpoint');
  });

  test.each([
    ['success', succeeded()],
    ['retry', retryIn(60_000)],
    ['end', ended('dead')],
  ] as const)('saves the last progress with a settlement: %s', async (_, decision) => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, decision, { progress: '"all"' });
    expect(await scene.find(claimed.lease.task)).toMatchObject({ state: decision.next, progress: '"all"' });
    await scene.settle(claimed, decision, { progress: '"late"' });
    expect(await scene.find(claimed.lease.task)).toMatchObject({ progress: '"all"' });
  });

  test('keeps it over rounds', async () => {
    const worker = await scene.join();
    const first = await scene.start(worker);
    await scene.store.tasks.save(first.lease, { checkpoint: '"kept"' });
    await scene.settle(first, ended('dead'));
    await scene.move(first.lease.task, { verb: 'retry' });
    expect(await scene.claimTask(worker, first.lease.task)).toMatchObject({ checkpoint: '"kept"' });
  });

  describe('a lease that is over', () => {
    test('saves nothing after it was taken over', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const hers = await scene.start(alice);
      await scene.store.tasks.save(hers.lease, { checkpoint: '"hers"' });
      const [his] = await scene.recoverAfterSilence(bob);
      expect(await scene.store.tasks.save(hers.lease, { checkpoint: '"late"' })).toBe(false);
      await scene.settle(his as typeof hers, lost('free'));
      expect(await scene.store.tasks.save(hers.lease, { checkpoint: '"later"' })).toBe(false);

      const again = await scene.claimTask(bob, hers.lease.task);
      expect(again).toMatchObject({ checkpoint: '"hers"' });
      expect(await scene.store.tasks.save(hers.lease, { checkpoint: '"latest"' })).toBe(false);
      expect(await scene.store.tasks.save({ ...again.lease, token: 'forged' }, { checkpoint: '"forged"' })).toBe(false);
      expect(await scene.store.tasks.save(again.lease, { checkpoint: '"his"' })).toBe(true);
    });

    test.each([
      ['settled', succeeded()],
      ['put back', retryIn(60_000)],
    ] as const)('saves nothing after its task was %s', async (_, decision) => {
      const worker = await scene.join();
      const claimed = await scene.start(worker);
      await scene.settle(claimed, decision);
      expect(await scene.store.tasks.save(claimed.lease, { checkpoint: '1' })).toBe(false);
      expect(await scene.store.tasks.save({ ...claimed.lease, task: 999_999 }, { checkpoint: '1' })).toBe(false);
    });
  });

  test('removes it with its task', async () => {
    const worker = await scene.join();
    for (const decision of [succeeded(), ended('dead')]) {
      const claimed = await scene.start(worker);
      await scene.store.tasks.save(claimed.lease, { checkpoint: '1' });
      await scene.settle(claimed, decision);
    }
    scene.advance(60 * DAY);
    const month = { default: 30 * DAY };
    const retention = { succeeded: month, dead: month, cancelled: {}, needs_manual: {} };
    for (let after: number | undefined = 0; after !== undefined; ) {
      ({ next: after } = await scene.store.upkeep.prune(retention, after));
    }
    expect(await scene.store.records.list({ limit: 10 })).toEqual([]);
    // That nothing is left behind is what `verify` looks for when the test ends.
    expect(await scene.store.upkeep.verify()).toEqual([]);
  });
}
