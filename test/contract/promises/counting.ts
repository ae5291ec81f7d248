import { expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { retryIn, type StoreFactory, settlement, succeeded, useScene } from '../scene.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A key, as the engine makes them: it begins with type and source. */
function key(source: string, ...more: readonly unknown[]): string {
  return JSON.stringify(['mail', source, ...more]);
}

/** The counts by source and what follows it. */
async function counted(store: Store, since = 0): Promise<Record<string, number>> {
  const { counts } = await store.records.counters(since);
  return Object.fromEntries(counts.map(({ countedAs, count }) => [JSON.parse(countedAs).slice(1).join(), count]));
}

/** Does all that is left to do. */
async function tidyUp(store: Store): Promise<void> {
  while ((await store.upkeep.tidy()) > 0);
}

export function promisesOfCounting(factory: StoreFactory): void {
  const scene = useScene(factory);

  /** Starts a task for each key, and settles all of them with one call. */
  async function succeed(...keys: readonly string[]): Promise<void> {
    const ids = await scene.enqueue(...keys.map(() => ({})));
    const claimed = await scene.claim(await scene.join(), { only: ids, limit: ids.length });
    await scene.store.tasks.settle(
      claimed.map((one, n) => settlement(one, succeeded(), { countedAs: keys[n] as string })),
    );
  }

  test('counts each settlement that is written, once, and none that is not', async () => {
    const worker = await scene.join();
    expect(await scene.store.records.counters(0)).toEqual({ counts: [] });
    const [first, second, third] = [await scene.start(worker), await scene.start(worker), await scene.start(worker)];
    const startedAt = scene.now();
    const sent = [
      settlement(first, succeeded(), { countedAs: key('a', 'good') }),
      settlement({ ...second, revision: second.revision + 1 }, retryIn(0), { countedAs: key('a', 'changed') }),
      settlement({ ...third, lease: { ...third.lease, token: 'forged' } }, succeeded(), {
        countedAs: key('a', 'stale'),
      }),
    ];
    await scene.store.tasks.settle(sent);
    await scene.store.tasks.settle(sent);
    await scene.settle(second, retryIn(0), { countedAs: key('a', 'bad') });
    await scene.settle(third, succeeded());

    expect(await counted(scene.store)).toEqual({ 'a,good': 1, 'a,bad': 1 });
    expect((await scene.store.records.counters(0)).firstAt).toBe(startedAt);
    while (await scene.store.upkeep.gatherCounts());
    expect(await counted(scene.store)).toEqual({ 'a,good': 1, 'a,bad': 1 });
    expect(await scene.store.upkeep.gatherCounts()).toBe(false);
  });

  test('keeps counts over retention, by minute, then by hour, then by day', async () => {
    await succeed(key('a'), key('a'), key('b'));
    const { firstAt } = await scene.store.records.counters(0);
    const forever = { default: 'never' } as const;
    const retention = { succeeded: { default: 0 }, dead: forever, cancelled: forever, needs_manual: forever };
    scene.advance(MINUTE);
    while ((await scene.store.upkeep.prune(retention)).next !== undefined);
    expect(await scene.store.records.list({ limit: 9 })).toEqual([]);
    await tidyUp(scene.store);
    await succeed(key('a'));
    expect(await counted(scene.store)).toEqual({ a: 3, b: 1 });
    expect(await counted(scene.store, scene.now())).toEqual({ a: 1 });

    for (const time of [4 * HOUR, 16 * DAY]) {
      scene.advance(time);
      await tidyUp(scene.store);
      await succeed(key('c'));
      expect(await counted(scene.store)).toMatchObject({ a: 3, b: 1 });
      expect(await counted(scene.store, scene.now())).toEqual({ c: 1 });
      expect((await scene.store.records.counters(0)).firstAt).toBe(firstAt);
    }
    scene.advance(900 * DAY);
    await tidyUp(scene.store);
    expect(await counted(scene.store)).toEqual({ a: 3, b: 1, c: 2 });
    expect(await counted(scene.store, scene.now())).toEqual({});
  });

  test('counts the same since any time, whether days, hours or minutes are read', async () => {
    const times: number[] = [];
    for (let n = 0; n < 24; n += 1) {
      await succeed(key('a'), ...(n % 3 === 0 ? [key('b')] : []));
      times.push(scene.now());
      if (n % 4 === 0) await tidyUp(scene.store);
      scene.advance(17 * HOUR);
    }
    await tidyUp(scene.store);
    const { records } = scene.store;
    const total = ({ counts }: Awaited<ReturnType<typeof records.counters>>) =>
      Object.fromEntries(
        [...new Set(counts.map(({ countedAs }) => countedAs))]
          .sort()
          .map((name) => [
            name,
            counts.reduce((sum, { countedAs, count }) => (countedAs === name ? sum + count : sum), 0),
          ]),
      );
    for (const since of [0, ...times, ...times.map((time) => time - (time % DAY))]) {
      expect(total(await records.counters(since))).toEqual(total(await records.counterPeriods(since)));
    }
    expect(await counted(scene.store)).toEqual({ a: 24, b: 8 });
  });

  test('names the busiest hundred sources of an old hour, and counts the others together', async () => {
    const sources = Array.from({ length: 130 }, (_, n) => `s${n}`);
    await succeed(...sources.map((source) => key(source)), key('s129'), key('s129', 'too'), key('s128'));
    scene.advance(4 * HOUR);
    await tidyUp(scene.store);

    const counts = await counted(scene.store);
    expect(counts).toMatchObject({ s129: 2, 's129,too': 1, s128: 2, _other: 30 });
    expect(Object.keys(counts)).toHaveLength(102);
    expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(133);
  });

  test.runIf(scene.hasSecond)('keeps counts over a restart', async () => {
    await succeed(key('a'));
    await scene.closeStore().then(() => scene.openSecond());
    expect(await counted(scene.store)).toEqual({ a: 1 });
  });
}
