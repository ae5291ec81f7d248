import { expect, test } from 'vitest';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { claimRequest, newTask } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';

const WEIGHTS = [1, 2, 7];
const CLAIMS = 100_000;
const BATCH = 100;
/** Of each weight, always: many more than a batch takes, so that only the weights make the difference. */
const WAITING = 10_000;

test('weighted_random shares 100,000 claims among weights of 1, 2 and 7 within 2 %', { timeout: 120_000 }, async () => {
  const store = await sqlite(':memory:').open(virtualWorld(1));
  try {
    await store.sources.setUp('default', { order: 'weighted_random' });
    const worker = await store.tasks.join({ name: 'alice', leaseFor: 30_000, publishes: {} });
    const task = (priority: number) => newTask({ priority, source: `weight-${priority}` });
    for (const weight of WEIGHTS) await store.tasks.enqueue(Array.from({ length: WAITING }, () => task(weight)));

    const claims = new Map(WEIGHTS.map((weight) => [weight, 0]));
    for (let count = 0; count < CLAIMS; count += BATCH) {
      const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: BATCH }));
      expect(tasks).toHaveLength(BATCH);
      for (const { priority } of tasks) claims.set(priority, (claims.get(priority) ?? 0) + 1);
      await store.tasks.enqueue(tasks.map(({ priority }) => task(priority)));
    }
    for (const weight of WEIGHTS) {
      const fairShare = (CLAIMS * weight) / 10;
      const off = Math.abs((claims.get(weight) as number) / fairShare - 1);
      expect(off, `weight ${weight} had ${claims.get(weight)} of ${fairShare}`).toBeLessThan(0.02);
    }
    expect(await store.upkeep.verify()).toEqual([]);
  } finally {
    await store.upkeep.close();
  }
});
