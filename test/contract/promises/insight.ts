import { expect, test } from 'vitest';
import { retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';

const MINUTE = 60_000;

/** What is read over many tasks at once, for an overview. */
export function promisesOfInsight(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('actions of people on tasks are listed over all tasks, the newest first', async () => {
    const [one = 0, other = 0] = await scene.enqueue({}, {});
    const at = scene.now();
    await scene.store.tasks.move([one], { verb: 'hold', actor: 'eva', note: 'wait' });
    scene.advance(1_000);
    await scene.store.tasks.move([other, one], { verb: 'cancel', actor: 'tom' });

    const acts = await scene.store.records.acts({ limit: 10 });
    expect(acts).toMatchObject([
      { at: at + 1_000, actor: 'tom', verb: 'cancel', to: 'cancelled' },
      { at: at + 1_000, actor: 'tom', verb: 'cancel', to: 'cancelled' },
      { task: one, at, actor: 'eva', verb: 'hold', note: 'wait', from: 'ready', to: 'held' },
    ]);
    expect(
      acts
        .slice(0, 2)
        .map(({ task }) => task)
        .sort(),
    ).toEqual([one, other].sort());
    expect(await scene.store.records.acts({ limit: 1, before: acts[1]?.id })).toEqual([acts[2]]);
  });

  test('counts are listed by the periods in which they are kept', async () => {
    const start = scene.now() - (scene.now() % MINUTE);
    const worker = await scene.join();
    for (let i = 0; i < 2; i++) {
      await scene.settle(await scene.start(worker), succeeded(), { countedAs: '["work"]' });
      scene.advance(MINUTE);
    }
    expect(await scene.store.records.counterPeriods(0)).toEqual([
      { at: start, span: MINUTE, countedAs: '["work"]', count: 1 },
      { at: start + MINUTE, span: MINUTE, countedAs: '["work"]', count: 1 },
    ]);
    expect(await scene.store.records.counterPeriods(start + MINUTE)).toHaveLength(1);
  });

  test('what falls due is counted by spans of time, and retries are told from first tries', async () => {
    const worker = await scene.join();
    const lease = await scene.start(worker);
    const from = scene.now();
    await scene.settle(lease, retryIn(30_000));
    for (const delay of [10_000, MINUTE, MINUTE + 1, 5 * MINUTE]) await scene.enqueue({ delay });

    const ask = (more: object = {}) =>
      scene.store.records.fallingDue({
        from,
        until: from + 5 * MINUTE,
        span: MINUTE,
        mostCounted: 10,
        mostRead: 10,
        ...more,
      });
    const { counts, kinds } = await ask();
    expect(counts).toEqual([
      { span: 0, count: 2 },
      { span: 1, count: 2 },
    ]);
    expect(kinds).toMatchObject([
      { span: 0, reason: null, count: 1 },
      { span: 0, reason: expect.any(String), count: 1 },
      { span: 1, reason: null, count: 2 },
    ]);
    expect((await ask({ mostCounted: 3, mostRead: 1 })).counts).toEqual([
      { span: 0, count: 2 },
      { span: 1, count: 1 },
    ]);
  });
}
