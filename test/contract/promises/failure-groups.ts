import { expect, test } from 'vitest';
import type { Decision } from '../../../src/failure/decide.ts';
import type { FailureGroup } from '../../../src/failure/groups.ts';
import type { Outcome } from '../../../src/failure/outcome.ts';
import { MOST_FAILURE_GROUPS } from '../../../src/store/failure-groups.ts';
import type { Claimed, Settlement, Store } from '../../../src/store/store.ts';
import { gatherFailures, sightingOf, withNewFailures } from '../../../src/worker/failure-groups.ts';
import { ended, failure, retryIn, type StoreFactory, settlement, succeeded, useScene } from '../scene.ts';

const RETENTION = { default: 0 } as const;

export function promisesOfFailureGroups(factory: StoreFactory): void {
  const scene = useScene(factory);

  /** A settlement as a worker makes it. */
  function settling(claimed: Claimed, decision: Decision, message?: string): Settlement {
    const failed = { ...failure(), message: message ?? '', fingerprint: `2:${message}` };
    const outcome: Outcome = message === undefined ? { kind: 'success' } : { kind: 'failure', failure: failed };
    const report = { ranFor: 1, outcome: outcome.kind, ...(message !== undefined && { failure: failed }) };
    const sighting = sightingOf(claimed, outcome, decision);
    return settlement(claimed, decision, { report, ...(sighting && { sighting }) });
  }

  async function gathered(store: Store): Promise<readonly FailureGroup[]> {
    while (await gatherFailures(store.failures));
    return store.failures.groups();
  }

  test('count each failure that is written, once, with how the executions after it ended', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker, { type: 'mail', source: 'imap:a' });
    const { task } = claimed.lease;
    const first = settling(claimed, retryIn(0), 'gone');
    const stale = settling({ ...claimed, lease: { ...claimed.lease, token: 'forged' } }, retryIn(0), 'gone');
    await scene.store.tasks.settle([stale]);
    await scene.store.tasks.settle([first]);
    await scene.store.tasks.settle([first]);
    const failedAt = scene.now();
    expect(scene.store.failures.takeNew()).toBe(true);
    expect(scene.store.failures.takeNew()).toBe(false);
    scene.advance(1_000);
    await scene.store.tasks.settle([settling(await scene.claimTask(worker, task), retryIn(0), 'gone')]);
    await scene.store.tasks.settle([settling(await scene.claimTask(worker, task), succeeded())]);
    const other = await scene.start(worker, { type: 'mail' });
    await scene.store.tasks.settle([settling(other, ended('dead'), 'broken')]);

    const groups = await gathered(scene.store);
    expect(groups.map(({ message }) => message).toSorted()).toEqual(['broken', 'gone']);
    expect(groups.find(({ message }) => message === 'gone')).toMatchObject({
      type: 'mail',
      fingerprint: '2:gone',
      task,
      count: 2,
      firstAt: failedAt,
      lastAt: failedAt + 1_000,
      retries: { succeeded: 1, failed: 1 },
      sources: { 'imap:a': 2 },
      dead: 0,
    });
    expect(groups.find(({ message }) => message === 'broken')).toMatchObject({ count: 1, dead: 1 });
  });

  test('count failures of one call that are alike, and leave out those that are not written', async () => {
    const worker = await scene.join();
    await scene.enqueue({}, {}, {}, {});
    const tasks = await scene.claim(worker, { limit: 4 });
    const of = tasks.map((claimed, i) => {
      const lease = i === 1 ? { ...claimed.lease, token: 'forged' } : claimed.lease;
      return settling({ ...claimed, lease }, retryIn(0), 'gone');
    });
    await scene.store.tasks.settle(of);
    const { entries } = await scene.store.failures.entries(9);
    expect(entries.flatMap(({ sightings }) => sightings.seen)).toHaveLength(1);
    const newest = Math.max(...tasks.map(({ lease }) => lease.task));
    expect(await gathered(scene.store)).toMatchObject([{ count: 3, task: newest }]);
  });

  test('keep nothing of tasks that succeed at their first execution, and stay when their tasks are removed', async () => {
    const worker = await scene.join();
    await scene.store.tasks.settle([settling(await scene.start(worker), succeeded())]);
    expect(await scene.store.failures.entries(9)).toEqual({ revision: 0, entries: [] });

    await scene.store.tasks.settle([settling(await scene.start(worker), ended('dead'), 'x')]);
    scene.advance(1);
    const retention = { succeeded: RETENTION, dead: RETENTION, cancelled: RETENTION, needs_manual: RETENTION };
    while ((await scene.store.upkeep.prune(retention)).next !== undefined);
    expect(await gathered(scene.store)).toMatchObject([{ count: 1 }]);
  });

  test.runIf(scene.hasSecond)(
    'lose and repeat nothing if several processes gather and write at the same time',
    async () => {
      const stores = [scene.store, await scene.openSecond()];
      const worker = await scene.join();
      const ids = await scene.enqueue(...Array.from({ length: 60 }, () => ({})));
      const tasks = await scene.claim(worker, { only: ids, limit: ids.length });
      await Promise.all([
        ...tasks.map(async (claimed, i) => {
          const store = stores[i % 2] as Store;
          await store.tasks.settle([settling(claimed, ended('dead'), `m${i % 3}`)]);
          await gatherFailures(store.failures);
        }),
        ...stores.map(gathered),
      ]);
      const groups = await gathered(scene.store);
      expect(groups.map(({ count }) => count)).toEqual([20, 20, 20]);
    },
  );

  test('are at most a thousand: those that failed last', async () => {
    const worker = await scene.join();
    await scene.store.tasks.settle([settling(await scene.start(worker), ended('dead'), 'x')]);
    const [group] = await gathered(scene.store);
    const { revision } = await scene.store.failures.entries(0);
    const many = Array.from({ length: MOST_FAILURE_GROUPS }, (_, i) => ({
      ...(group as FailureGroup),
      id: `g${i}`,
      lastAt: scene.now() + 1 + i,
    }));
    expect(await scene.store.failures.write(revision + 1, [], many)).toBe(false);
    expect(await scene.store.failures.write(revision, [], many)).toBe(true);
    const kept = await scene.store.failures.groups();
    expect(kept).toHaveLength(MOST_FAILURE_GROUPS);
    expect(kept[0]?.id).toBe(`g${MOST_FAILURE_GROUPS - 1}`);
    expect(await scene.store.failures.groups(['g7', 'nothing'])).toMatchObject([{ id: 'g7' }]);
    scene.advance(1_000 + MOST_FAILURE_GROUPS);
    await scene.store.tasks.settle([settling(await scene.start(worker), ended('dead'), 'y')]);
    const { groups: seen } = await withNewFailures(scene.store.failures);
    expect([seen.length, seen[0]?.message, seen.some(({ id }) => id === 'g0')]).toEqual([1_000, 'y', false]);
  });
}
