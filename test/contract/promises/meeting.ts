import { describe, expect, test } from 'vitest';
import type { Claimed, NewTask, Store } from '../../../src/store/store.ts';
import type { QueueOrder } from '../../../src/task.ts';
import { claimRequest, idsOf, newTask, type StoreFactory, useScene } from '../scene.ts';

const CLAIMERS = 4;
const AT_ONCE = 10;

/** What the order of a queue means where several processes claim from it at the same time. */
export function promisesOfMeetingClaims(factory: StoreFactory): void {
  const scene = useScene(factory);

  /** Has several processes claim at the same time, again and again, until this many tasks were given or none is left. */
  async function claimTogether(enough = Number.POSITIVE_INFINITY, limit = AT_ONCE): Promise<(readonly Claimed[])[]> {
    const stores: Store[] = [scene.store];
    while (stores.length < CLAIMERS) stores.push(await scene.openSecond());
    const claims: (readonly Claimed[])[] = [];
    let given = 0;
    await Promise.all(
      stores.map(async (store, n) => {
        const worker = await store.tasks.join({ name: `worker-${n}`, leaseFor: 60_000, publishes: {} });
        while (given < enough) {
          const { tasks } = await store.tasks.claim(claimRequest(worker, { limit }));
          if (tasks.length === 0) return;
          claims.push(tasks);
          given += tasks.length;
        }
      }),
    );
    return claims;
  }

  const spread = (count: number, task: (n: number) => Partial<NewTask>) =>
    scene.enqueue(...Array.from({ length: count }, (_, n) => task(n)));

  describe.skipIf(!factory.openSecond)('that meet', () => {
    test.each<[QueueOrder, (n: number) => number]>([
      ['fifo', (n) => n],
      ['lifo', (n) => -n],
      ['priority', (n) => -(n % 7) * 1_000 + n],
    ])('each take what comes next in the exact order, over many sources: %s', async (order, place) => {
      await scene.store.sources.setUp('default', { order });
      const ids = await spread(400, (n) => ({ source: `s${n % 83}`, priority: n % 7 }));
      const right = ids.map((id, n) => ({ id, place: place(n) })).sort((a, b) => a.place - b.place);

      const claims = await claimTogether();
      const places = new Map(right.map(({ id }, n) => [id, n]));
      const blocks = claims
        .map((claim) => idsOf(claim).map((id) => places.get(id) as number))
        .sort(([a = 0], [b = 0]) => a - b);
      // One after the other, the claims gave every task in order.
      expect(blocks.flat()).toEqual(right.map((_, n) => n));
    });

    test('give each source of a fair queue the same number of turns, within one', async () => {
      await scene.store.sources.setUp('default', { fair: true });
      await spread(1_000, (n) => ({ source: `s${n % 20}` }));

      const shares = new Map<string, number>();
      for (const { source } of (await claimTogether(300)).flat()) shares.set(source, (shares.get(source) ?? 0) + 1);
      expect(shares.size).toBe(20);
      expect(Math.max(...shares.values()) - Math.min(...shares.values())).toBeLessThanOrEqual(1);
    });

    test('draw by weight as one claim would, within two in a hundred', async () => {
      const each = 4_000;
      await scene.store.sources.setUp('default', { order: 'weighted_random' });
      const tasks = Array.from({ length: 2 * each }, (_, n) =>
        newTask({ source: `s${n % 10}`, priority: n % 2 === 0 ? 8 : 1 }),
      );
      await scene.store.tasks.enqueue(tasks);

      const given = (await claimTogether(each, 50)).flat();
      const heavy = given.filter(({ priority }) => priority === 8).length / given.length;
      expect(Math.abs(heavy - shareOfHeavy(given.length / each))).toBeLessThan(0.02);
    });
  });
}

/** The share of weight 8 among the first of as many tasks of weight 8 as of weight 1; `drawn` is in units of one kind's number. */
function shareOfHeavy(drawn: number): number {
  const after = (time: number, weight: number) => 1 - Math.exp(-weight * time);
  let [low, high] = [0, 100];
  while (high - low > 1e-9) {
    const middle = (low + high) / 2;
    if (after(middle, 8) + after(middle, 1) < drawn) low = middle;
    else high = middle;
  }
  return after(low, 8) / drawn;
}
