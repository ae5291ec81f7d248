import { describe, expect, test } from 'vitest';
import type { Claimed } from '../../../src/store/store.ts';
import { handedBack, idsOf, lost, retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';
import { restrict, sourcesOf } from '../source-scene.ts';

const person = { actor: 'eva', origin: 'person' } as const;
const config = { actor: 'config', origin: 'config' } as const;

/** What limits of sources and queues mean, and holds that end by themselves. */
export function promisesOfLimits(factory: StoreFactory): void {
  const scene = useScene(factory);
  const S = 'imap:INBOX';
  const sources = () => sourcesOf(scene);
  const many = (count: number, task = {}) => Array.from({ length: count }, () => task);
  const claim = async (worker: number, limit = 100) => {
    const { tasks, nextDueIn } = await scene.store.tasks.claim({
      ...{ worker, limit, capabilities: {}, suspects: 1, alone: true, except: [] },
    });
    return { count: tasks.length, nextDueIn, tasks };
  };

  describe('of a source', () => {
    test('a pace spaces its starts, and a claim says when the next is', async () => {
      const worker = await scene.join();
      await sources().limit(S, { pace: { perSecond: 10, burst: 1 } }, person);
      await scene.enqueue(...many(3), { source: 'b' });

      expect(await claim(worker)).toMatchObject({ count: 2, nextDueIn: 100 });
      const [, held] = await scene.store.records.list({ states: ['ready'], limit: 9 });
      expect(held).toMatchObject({ heldBy: 'pace', heldFor: 100 });
      scene.advance(100);
      expect(await claim(worker)).toMatchObject({ count: 1, nextDueIn: 100 });
      scene.advance(3_600_000);
      expect((await claim(worker)).count).toBe(1);
    });

    test('concurrency counts the leases of all workers', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      await sources().limit(S, { concurrency: 2 }, person);
      await scene.enqueue(...many(4, {}), { source: 'b' });
      const taken = (await claim(alice, 1)).tasks;
      expect((await claim(bob)).tasks.map(({ source }) => source)).toEqual([S, 'b']);
      const [waiting] = await scene.store.records.list({ states: ['ready'], limit: 1 });
      expect(waiting).toMatchObject({ heldBy: 'concurrency' });
      expect(await scene.claim(bob, { only: [waiting?.id as number] })).toEqual([]);

      await scene.settle(taken[0] as Claimed, succeeded());
      expect((await claim(bob)).count).toBe(1);
      expect((await claim(alice)).count).toBe(0);
    });

    test.each([
      ['fails', retryIn(60_000)],
      ['is handed back', handedBack()],
    ])('a task that %s frees its slot', async (_, decision) => {
      const worker = await scene.join();
      await sources().limit(S, { concurrency: 1 }, person);
      await scene.enqueue(...many(2));
      const [one] = (await claim(worker)).tasks;
      await scene.settle(one as Claimed, decision);
      expect((await claim(worker)).count).toBe(1);
    });

    test('frees the slot of a later execution that succeeds in a batch with others', async () => {
      const worker = await scene.join();
      const first = await scene.start(worker);
      await scene.settle(first, retryIn(0));
      await sources().limit(S, { concurrency: 1 }, person);
      const [again] = (await claim(worker)).tasks;
      const other = await scene.start(worker, { source: 'b' });
      await scene.enqueue({});
      await scene.store.tasks.settle(
        [again as Claimed, other].map(({ lease, revision }) => ({
          ...{ lease, revision, decision: succeeded(), report: { ranFor: 1, outcome: 'success' } },
        })),
      );
      expect((await claim(worker)).count).toBe(1);
    });

    test('a slot of a lost worker is freed when its task is recovered, and not before', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      await sources().limit(S, { concurrency: 1 }, person);
      await scene.enqueue(...many(2));
      await scene.claim(alice);
      const [recovered] = await scene.recoverAfterSilence(bob);
      expect((await claim(bob)).count).toBe(0);
      await scene.settle(recovered as Claimed, lost('free'), { source: 'any' });
      expect((await claim(bob)).count).toBe(1);
    });

    test('a limit that is set while more tasks run lets nothing start until enough of them have ended', async () => {
      const worker = await scene.join();
      const running = [await scene.start(worker), await scene.start(worker), await scene.start(worker)];
      await sources().limit(S, { concurrency: 2 }, person);
      await scene.enqueue({});
      expect((await claim(worker)).count).toBe(0);
      for (const [n, one] of running.entries()) {
        await scene.settle(one, succeeded());
        expect((await claim(worker)).count).toBe(n === 1 ? 1 : 0);
      }
    });

    test('a claim by id skips a task that a limit holds, and takes the next one', async () => {
      const worker = await scene.join();
      await sources().limit(S, { concurrency: 1 }, person);
      await scene.start(worker);
      const [held, free] = await scene.enqueue({}, { source: 'b' });
      expect(idsOf(await scene.claim(worker, { only: [held as number, free as number], limit: 1 }))).toEqual([free]);
    });

    test('a limit is changed and removed while tasks wait', async () => {
      const worker = await scene.join();
      await scene.enqueue(...many(9));
      await sources().limit(S, { concurrency: 1 }, person);
      expect((await claim(worker)).count).toBe(1);
      await sources().limit(S, { concurrency: 3 }, person);
      expect((await claim(worker)).count).toBe(2);
      await sources().limit(S, { pace: { perSecond: 1, burst: 1 }, concurrency: null }, person);
      expect((await claim(worker)).count).toBe(1);
      await sources().limit(S, { pace: null }, person);
      expect((await claim(worker)).count).toBe(5);
      expect(await scene.store.records.sources()).toEqual([]);
    });

    test('of a pace and a restriction the stricter counts', async () => {
      const worker = await scene.join();
      await scene.enqueue(...many(20));
      await sources().limit(S, { pace: { perSecond: 10, burst: 5 } }, person);
      await restrict(scene, S, { cause: 'breaker', pace: { perSecond: 1, burst: 9 } });
      await claim(worker);
      scene.advance(60_000);
      expect(await claim(worker)).toMatchObject({ count: 5, nextDueIn: 1_000 });
      await restrict(scene, S, { cause: 'breaker', pace: { perSecond: 100, burst: 1 } });
      scene.advance(100);
      expect(await claim(worker)).toMatchObject({ count: 1, nextDueIn: 100 });
    });

    test('the configuration does not replace limits that a person set, and sets the others', async () => {
      await sources().limit(S, { concurrency: 5 }, config);
      await sources().limit(S, { concurrency: 2 }, { ...person, note: 'they asked' });
      await sources().limit(S, { concurrency: 5, pace: { perSecond: 10, burst: 1 } }, config);
      await sources().limit(S, { concurrency: null }, config);
      expect(await scene.store.records.sources()).toMatchObject([
        { name: S, limits: { concurrency: 2, pace: { perSecond: 10, burst: 1 }, by: { at: scene.now() } } },
      ]);
      await sources().limit(S, { concurrency: null, pace: null }, person);
      await sources().limit(S, { concurrency: 4 }, config);
      expect(await scene.store.records.sources()).toEqual([
        { name: S, running: 0, limits: { concurrency: 4, by: { ...config, at: scene.now() } } },
      ]);
    });

    test('nothing of it is claimed ahead', async () => {
      const worker = await scene.join();
      await sources().limit(S, { concurrency: 50 }, person);
      await scene.enqueue(...many(9));
      expect(await scene.claim(worker, { limit: 2, ahead: { limit: 5, types: ['mail'] } })).toHaveLength(2);
    });

    test.runIf(factory.openSecond)('limits and what they count outlive a restart', async () => {
      const worker = await scene.join();
      await sources().limit(S, { concurrency: 2, pace: { perSecond: 1, burst: 2 } }, person);
      await scene.enqueue(...many(9));
      expect((await claim(worker)).count).toBe(1);
      await scene.openSecond();
      await scene.closeStore();
      expect(await claim(worker)).toMatchObject({ count: 0, nextDueIn: 1_000 });
      scene.advance(60_000);
      expect((await claim(worker)).count).toBe(1);
      scene.advance(60_000);
      expect((await claim(worker)).count).toBe(0);
    });

    test('one with a limit and very many tasks holds up no other', async () => {
      const worker = await scene.join();
      await sources().limit('A', { concurrency: 1 }, person);
      await scene.enqueue(...many(500, { source: 'A' }), ...many(5, { source: 'b' }));
      expect((await claim(worker, 3)).tasks.map(({ source }) => source)).toEqual(['A', 'b', 'b']);
      expect((await claim(worker)).tasks.map(({ source }) => source)).toEqual(['b', 'b', 'b']);
    });
  });

  describe('of a queue', () => {
    const setUp = (settings: object) => scene.store.sources.setUp('default', settings);

    test('a pace spaces the starts of all its tasks', async () => {
      const worker = await scene.join();
      await setUp({ pace: { perSecond: 10, burst: 2 } });
      await scene.enqueue(...many(5), { source: 'b' }, { queue: 'other' });
      expect(await claim(worker)).toMatchObject({ count: 2, nextDueIn: 100 });
      const [held] = await scene.store.records.list({ states: ['ready'], limit: 1 });
      expect(held).toMatchObject({ heldBy: 'pace', heldFor: 100 });
      scene.advance(60_000);
      expect(await claim(worker)).toMatchObject({ count: 2 });
    });

    test('hints that workers may have work when a slot of it is freed', async () => {
      const worker = await scene.join();
      await setUp({ concurrency: 1 });
      await scene.enqueue(...many(2));
      const [one] = (await claim(worker)).tasks;
      const heard = new Promise<void>((resolve) => {
        scene.store.upkeep.onNews((news) => (news === 'work' || news === 'any' ? resolve() : undefined));
      });
      await scene.settle(one as Claimed, succeeded());
      await heard;
    });

    test('a new pace counts from when it is set: an earlier, slower pace delays nothing', async () => {
      const worker = await scene.join();
      await setUp({ pace: { perSecond: 0.01, burst: 1 } });
      await scene.enqueue(...many(3));
      expect(await claim(worker)).toMatchObject({ count: 1, nextDueIn: 100_000 });
      await setUp({ pace: { perSecond: 0.01, burst: 1 } });
      expect(await claim(worker)).toMatchObject({ count: 0, nextDueIn: 100_000 });
      await setUp({ pace: { perSecond: 10, burst: 1 } });
      expect(await claim(worker)).toMatchObject({ count: 1, nextDueIn: 100 });
    });

    test('concurrency counts its leases, of all sources', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const running = await scene.start(alice);
      await setUp({ concurrency: 2 });
      const ids = await scene.enqueue({ source: 'a' }, { source: 'b' }, { queue: 'other' });
      expect(idsOf((await claim(bob)).tasks).toSorted()).toEqual([ids[0], ids[2]]);
      expect((await scene.find(ids[1] as number)).heldBy).toBe('concurrency');
      expect(await scene.claim(bob, { only: ids })).toEqual([]);
      await scene.settle(running, succeeded());
      expect(idsOf((await claim(bob)).tasks)).toEqual([ids[1]]);
    });

    test('limits are listed with the queue, kept when other settings change, and removed with null', async () => {
      const worker = await scene.join();
      await setUp({ pace: { perSecond: 10, burst: 1 }, concurrency: 3 });
      await setUp({ order: 'lifo' });
      expect(await scene.store.records.queues()).toEqual([
        { name: 'default', order: 'lifo', fair: false, pace: { perSecond: 10, burst: 1 }, concurrency: 3 },
      ]);
      await setUp({ pace: null, concurrency: null });
      expect(await scene.store.records.queues()).toEqual([{ name: 'default', order: 'lifo', fair: false }]);
      await scene.enqueue(...many(9));
      expect((await claim(worker)).count).toBe(9);
    });

    test('nothing of it is claimed ahead', async () => {
      const worker = await scene.join();
      await setUp({ concurrency: 50 });
      await scene.enqueue(...many(9));
      expect(await scene.claim(worker, { limit: 2, ahead: { limit: 5, types: ['mail'] } })).toHaveLength(2);
    });
  });

  describe('a hold for a time', () => {
    const eva = { actor: 'eva' };

    test('ends by itself, and a claim says when', async () => {
      const worker = await scene.join();
      await scene.store.sources.hold(S, eva, 60_000);
      const id = await scene.enqueueOne();
      expect(await claim(worker)).toMatchObject({ count: 0, nextDueIn: 60_000 });
      expect(await scene.find(id)).toMatchObject({ heldBy: 'source_held', heldFor: 60_000 });
      scene.advance(60_000);
      expect(await scene.store.records.sources()).toEqual([]);
      expect((await claim(worker)).count).toBe(1);
    });

    test('a second hold changes when the hold ends, and keeps who held it first', async () => {
      const worker = await scene.join();
      await scene.enqueueOne();
      await scene.store.sources.hold(S, eva, 60_000);
      await scene.store.sources.hold(S, { actor: 'bob' }, 5_000);
      expect(await claim(worker)).toMatchObject({ nextDueIn: 5_000 });
      await scene.store.sources.hold(S, { actor: 'bob' });
      expect((await claim(worker)).nextDueIn).toBeUndefined();
      scene.advance(60_000);
      expect((await claim(worker)).count).toBe(0);
      expect(await scene.store.records.sources()).toMatchObject([{ hold: { actor: 'eva' } }]);
      await scene.store.sources.hold(S, eva, 1_000);
      scene.advance(1_000);
      await scene.store.sources.hold(S, { actor: 'bob' }, 1_000);
      expect(await scene.store.records.sources()).toMatchObject([{ hold: { actor: 'bob' } }]);
    });
  });
}
