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

  test('outcomes are counted by the periods in which counts are kept, by key', async () => {
    const start = scene.now() - (scene.now() % MINUTE);
    const worker = await scene.join();
    const keys = [
      '["work","a","success","succeeded"]',
      '["work","b","success","succeeded"]',
      '["work","a","failure","dead"]',
    ];
    for (const countedAs of [...keys, ...keys.slice(0, 1)]) {
      await scene.settle(await scene.start(worker), succeeded(), { countedAs });
      if (countedAs === keys[2]) scene.advance(MINUTE);
    }
    const counted = async (since: number) => {
      const { counts } = await scene.store.records.counterPeriods(since);
      return counts
        .map(({ countedAs, span, at, counted: of }) => ({
          countedAs,
          span,
          of: Object.fromEntries(at.map((time, i) => [time, of[i]])),
        }))
        .sort((a, b) => keys.indexOf(a.countedAs) - keys.indexOf(b.countedAs));
    };
    const all = [
      { countedAs: keys[0], span: MINUTE, of: { [start]: 1, [start + MINUTE]: 1 } },
      { countedAs: keys[1], span: MINUTE, of: { [start]: 1 } },
      { countedAs: keys[2], span: MINUTE, of: { [start]: 1 } },
    ];
    expect(await counted(0)).toEqual(all);
    while ((await scene.store.upkeep.tidy()) > 0);
    expect(await counted(0)).toEqual(all);
    expect(await counted(start + MINUTE)).toEqual([{ ...all[0], of: { [start + MINUTE]: 1 } }]);
    expect(
      (await scene.store.records.counterPeriods(0)).counts.find(({ countedAs }) => countedAs === keys[0])?.count,
    ).toBe(2);
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
