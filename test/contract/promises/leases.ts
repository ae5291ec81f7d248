import { describe, expect, test } from 'vitest';
import type { Claimed } from '../../../src/store/store.ts';
import {
  cancelled,
  claimRequest,
  ended,
  idsOf,
  LEASE,
  lost,
  RENEW_INTERVAL,
  retryIn,
  type StoreFactory,
  succeeded,
  useScene,
} from '../scene.ts';

export function promisesOfLeases(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('a worker reports why it claims nothing and since when, until it claims again', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const troubles = async () => (await scene.store.records.workers()).map(({ trouble }) => trouble);
    const full = { reason: 'fs.no_space', message: 'no space left on device' };

    await scene.store.tasks.reportTrouble(alice, full);
    const since = scene.store.upkeep.now();
    expect(await troubles()).toEqual([{ ...full, since }, undefined]);
    await scene.store.tasks.reportTrouble(alice, undefined);
    expect(await troubles()).toEqual([undefined, undefined]);

    await scene.store.tasks.leave(bob);
    await scene.store.tasks.reportTrouble(bob, full);
    expect(await troubles()).toEqual([undefined]);
  });

  describe('a worker whose task was taken over', () => {
    /** Alice's claim, and what Bob got of it when she had been silent for too long. */
    async function takenOver(): Promise<{ alice: number; bob: number; hers: Claimed; his: Claimed }> {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const hers = await scene.start(alice);
      const [his] = await scene.recoverAfterSilence(bob);
      if (his === undefined) throw new Error('Nothing was taken over.');
      return { alice, bob, hers, his };
    }

    test('can neither fail it nor schedule a retry: the answer is `stale`', async () => {
      const { hers } = await takenOver();
      const before = await scene.find(hers.lease.task);

      expect(await scene.settle(hers, ended('dead'))).toEqual({ answer: 'stale' });
      expect(await scene.settle(hers, retryIn(0))).toEqual({ answer: 'stale' });
      expect(await scene.find(hers.lease.task)).toEqual(before);
    });

    test('cannot renew it: the answer is that it is lost', async () => {
      const { alice, hers } = await takenOver();
      expect(await scene.store.tasks.renew(alice, [hers.lease])).toMatchObject({ lost: [hers.lease], cancelled: [] });
    });

    test('cannot overwrite the result of the worker that took it over', async () => {
      const { hers, his } = await takenOver();
      await scene.settle(his, succeeded(), { result: '"B"' });

      expect(await scene.settle(hers, succeeded(), { result: '"A"' })).toEqual({ answer: 'stale' });
      expect(await scene.find(hers.lease.task)).toMatchObject({ state: 'succeeded', result: '"B"' });
    });

    test('cannot fail it once it was put back, nor touch it while it runs again', async () => {
      const { bob, hers, his } = await takenOver();
      await scene.settle(his, lost('free'));
      expect(await scene.settle(hers, retryIn(0))).toEqual({ answer: 'stale' });
      expect(await scene.stateOf(hers.lease.task)).toBe('ready');

      const again = await scene.claimTask(bob, hers.lease.task);
      expect(again.lease.execution).toBe(2);
      expect(await scene.settle(hers, succeeded())).toEqual({ answer: 'stale' });
      expect(await scene.settle(again, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
    });

    test('continues with other tasks when it wakes, if necessary under a new id', async () => {
      const { alice, hers } = await takenOver();
      const { known } = await scene.store.tasks.renew(alice, [hers.lease]);
      const worker = known ? alice : await scene.join('alice');

      const id = await scene.enqueueOne();
      const claimed = await scene.claimTask(worker, id);
      expect(await scene.settle(claimed, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
    });
  });

  describe('renewing', () => {
    test('keeps a lease for as long as it is renewed', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const claimed = await scene.start(alice);

      for (let minute = 0; minute < 120; minute += 1) {
        for (let interval = 0; interval < 6; interval += 1) {
          scene.advance(RENEW_INTERVAL);
          expect(await scene.store.tasks.renew(alice, [claimed.lease])).toMatchObject({
            known: true,
            lost: [],
            cancelled: [],
          });
        }
        expect(await scene.recover(bob)).toEqual([]);
      }
      expect(await scene.settle(claimed, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
    });

    test('that is carried out long after it was asked for keeps what the worker did not know of then', async () => {
      const [alice, bob] = [await scene.join('alice', { leaseFor: 1_000 }), await scene.join('bob')];
      await scene.start(alice);

      // Asked for before the answer of the claim came; then the store is away for a while.
      const renewing = scene.store.tasks.renew(alice, [], 1);
      scene.advance(5_000);
      expect(await renewing).toMatchObject({ known: true });
      expect(await scene.recover(bob)).toEqual([]);
    });

    test('extends the worker’s lease by its own length from now on', async () => {
      const alice = await scene.join('alice', { leaseFor: 90_000 });
      const until = async () => (await scene.store.records.workers()).find(({ id }) => id === alice)?.leaseUntil;

      expect(await until()).toBe(scene.now() + 90_000);
      scene.advance(20_000);
      await scene.store.tasks.renew(alice, []);
      expect(await until()).toBe(scene.now() + 90_000);
    });

    test('tells which leases are gone: settled, never given, or of another task', async () => {
      const alice = await scene.join('alice');
      const [done, live] = [await scene.start(alice), await scene.start(alice)];
      await scene.settle(done, retryIn(0));
      const invented = { ...live.lease, token: 'invented' };
      const nowhere = { ...live.lease, task: 999_999 };

      const { lost: gone } = await scene.store.tasks.renew(alice, [done.lease, live.lease, invented, nowhere]);
      expect(gone).toEqual([done.lease, invented, nowhere]);
    });

    test('tells of a cancel until it is settled, and never calls such a lease lost', async () => {
      const alice = await scene.join('alice');
      const [stopping, other] = [await scene.start(alice), await scene.start(alice)];
      await scene.move(stopping.lease.task, { verb: 'cancel' });
      const leases = [stopping.lease, other.lease];

      const told = { known: true, lost: [], cancelled: [stopping.lease] };
      expect(await scene.store.tasks.renew(alice, leases)).toMatchObject(told);
      expect(await scene.store.tasks.renew(alice, leases)).toMatchObject(told);

      const answer = await scene.settle(stopping, cancelled());
      if (answer.answer === 'changed') await scene.settle({ ...stopping, revision: answer.revision }, cancelled());
      expect(await scene.stateOf(stopping.lease.task)).toBe('cancelled');
      expect(await scene.store.tasks.renew(alice, [other.lease])).toMatchObject({
        known: true,
        lost: [],
        cancelled: [],
      });
    });

    test('calls another worker’s lease lost, and leaves it to that one', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const hers = await scene.start(alice);

      expect(await scene.store.tasks.renew(bob, [hers.lease])).toMatchObject({
        known: true,
        lost: [hers.lease],
        cancelled: [],
      });
      expect(await scene.store.tasks.renew(alice, [hers.lease])).toMatchObject({
        known: true,
        lost: [],
        cancelled: [],
      });
    });

    test('renews nobody else’s lease', async () => {
      const [alice, bob, carol] = [await scene.join('alice'), await scene.join('bob'), await scene.join('carol')];
      const hers = await scene.start(alice);
      scene.advance(LEASE + 1);
      await scene.store.tasks.renew(bob, []);
      await scene.recover(carol);
      scene.advance(RENEW_INTERVAL + 1);
      await scene.store.tasks.renew(bob, []);

      expect(idsOf(await scene.recover(carol))).toEqual([hers.lease.task]);
    });

    test('gives to recovery what the worker does not know of any more, once it is older than a lease', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const [forgotten, kept] = [await scene.start(alice), await scene.start(alice)];

      scene.advance(LEASE - 1_000);
      expect(await scene.store.tasks.renew(alice, [kept.lease])).toMatchObject({ lost: [] });
      expect(await scene.recover(bob)).toEqual([]);
      scene.advance(1_001);
      expect(await scene.store.tasks.renew(alice, [kept.lease])).toMatchObject({ lost: [] });

      expect(await scene.recover(bob)).toMatchObject([
        { lease: { task: forgotten.lease.task, execution: 1 }, why: 'loss', lostBy: 'alice' },
      ]);
    });

    test('lets a worker itself recover tasks that it no longer knew', async () => {
      const alice = await scene.join('alice');
      const { lease } = await scene.start(alice);
      scene.advance(LEASE + 1);
      await scene.store.tasks.renew(alice, []);

      const { tasks } = await scene.store.tasks.recover(alice, 10);
      expect(tasks).toMatchObject([{ lease: { task: lease.task }, why: 'loss', lostBy: 'alice' }]);
      expect(await scene.settle(tasks[0] as Claimed, lost('free'))).toEqual({ answer: 'settled', state: 'ready' });
    });

    test('gives nothing to recovery that may have been claimed by a claim without an answer yet', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const { lease } = await scene.start(alice);
      scene.advance(10 * LEASE);
      await scene.store.tasks.renew(alice, [], 10 * LEASE);

      expect((await scene.store.tasks.recover(bob, 10)).tasks).toEqual([]);
      expect((await scene.store.tasks.renew(alice, [lease])).lost).toEqual([]);
    });

    test('gives to recovery leases from before the claim without an answer', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const { lease } = await scene.start(alice);
      scene.advance(LEASE + 10);
      await scene.store.tasks.renew(alice, [], 5);

      expect((await scene.store.tasks.recover(bob, 10)).tasks).toMatchObject([{ lease: { task: lease.task } }]);
    });

    test('leases that no worker names go to a recovery, never to a claim that meets an expired task', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const { lease } = await scene.start(alice);
      scene.advance(LEASE + 10);
      await scene.store.tasks.renew(alice, []);
      const [expiring] = await scene.enqueue({ deadline: scene.now() + 10 });
      scene.advance(10);

      const { expired } = await scene.store.tasks.claim(claimRequest(bob, { limit: 0 }));
      expect(expired).toMatchObject([{ lease: { task: expiring }, why: 'expiry' }]);
      expect((await scene.store.tasks.recover(bob, 10)).tasks).toMatchObject([{ lease: { task: lease.task } }]);
    });

    test('leaves alone what the worker has just taken over, however long ago that began', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      await scene.start(alice);
      scene.advance(10 * LEASE);
      await scene.store.tasks.leave(alice);
      const [his] = (await scene.store.tasks.recover(bob, 10)).tasks;

      await scene.store.tasks.renew(bob, []);
      expect((await scene.store.tasks.recover(await scene.join('carol'), 10)).tasks).toEqual([]);
      expect(await scene.settle(his as Claimed, lost('free'))).toEqual({ answer: 'settled', state: 'ready' });
    });

    test('leaves alone an expired task that the worker has just taken over from another', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      await scene.enqueue({ deadline: scene.now() - 1 });
      await scene.store.tasks.claim(claimRequest(alice, { limit: 0 }));
      scene.advance(10 * LEASE);
      await scene.store.tasks.leave(alice);
      const [his] = (await scene.store.tasks.recover(bob, 10)).tasks;
      expect(his).toMatchObject({ why: 'expiry' });

      await scene.store.tasks.renew(bob, []);
      expect((await scene.store.tasks.recover(await scene.join('carol'), 10)).tasks).toEqual([]);
    });

    test('says of a worker that left that it is not known', async () => {
      const alice = await scene.join('alice');
      const claimed = await scene.start(alice);
      await scene.store.tasks.leave(alice);
      expect((await scene.store.tasks.renew(alice, [claimed.lease])).known).toBe(false);
    });
  });

  describe('what a worker must stop', () => {
    const by = { actor: 'maria' };

    test('is nothing as long as nobody takes anything back', async () => {
      const alice = await scene.join('alice');
      const hers = await scene.start(alice);
      expect(await scene.store.tasks.recalls(alice, [hers.lease])).toEqual({ cancelled: [], held: [] });
    });

    test('includes its running tasks that were cancelled, and no tasks of others', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const [hers, his] = [await scene.start(alice), await scene.start(bob)];
      await scene.start(alice);
      for (const { lease } of [hers, his]) await scene.move(lease.task, { verb: 'cancel' });

      expect(await scene.store.tasks.recalls(alice, [])).toEqual({ cancelled: [hers.lease], held: [] });
    });

    test('includes tasks that have not begun, of a held source or a paused queue', async () => {
      const alice = await scene.join('alice');
      const ofSource = await scene.start(alice, { source: 's' });
      const ofQueue = await scene.start(alice, { queue: 'q' });
      const other = await scene.start(alice, { source: 't', queue: 'r' });
      const begun = await scene.start(alice, { source: 's' });
      await scene.store.sources.hold('s', by);
      await scene.store.sources.pause('q', by);
      const waiting = [ofSource, ofQueue, other].map(({ lease }) => lease);

      expect(await scene.store.tasks.recalls(alice, waiting)).toEqual({
        cancelled: [],
        held: [ofSource.lease, ofQueue.lease],
      });
      await scene.store.sources.release('s');
      await scene.store.sources.resume('q');
      expect(await scene.store.tasks.recalls(alice, [...waiting, begun.lease])).toEqual({ cancelled: [], held: [] });
    });
  });

  test('gives each worker an id that was never another’s', async () => {
    const first = await scene.join('alice');
    const second = await scene.join('alice');
    await scene.store.tasks.leave(second);
    const third = await scene.join('alice');
    expect(new Set([first, second, third]).size).toBe(3);
  });

  test('lets workers with leases of different lengths live side by side', async () => {
    const long = await scene.join('long', { leaseFor: 300_000 });
    const short = await scene.join('short');
    const claimed = await scene.start(long);

    for (let passed = 0; passed < 250_000; passed += RENEW_INTERVAL) {
      scene.advance(RENEW_INTERVAL);
      expect(await scene.recover(short)).toEqual([]);
    }
    expect(await scene.settle(claimed, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
  });
}
