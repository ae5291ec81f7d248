import { describe, expect, test } from 'vitest';
import type { Recovered } from '../../../src/store/store.ts';
import {
  cancelled,
  claimRequest,
  deferredFor,
  ended,
  idsOf,
  LEASE,
  lost,
  newTask,
  RENEW_INTERVAL,
  retryIn,
  type Scene,
  type StoreFactory,
  succeeded,
  useScene,
} from '../scene.ts';

export function promisesOfRecovery(factory: StoreFactory): void {
  const scene = useScene(factory);

  describe('of lost leases', () => promisesOfTakingOver(scene));
  describe('and time', () => promisesOfPatience(scene));
  describe('by processes that live for a moment', () => promisesOfSharedWatches(scene));
  describe('of workers that left', () => promisesOfLeaving(scene));
  describe('and which tasks ran at the same time', () => promisesOfBlame(scene));
  describe('of waiting tasks past their deadline', () => promisesOfExpiry(scene));
}

function promisesOfTakingOver(scene: Scene): void {
  test('hands a lost task over: the same execution, a new token, and who lost it', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice, { payload: '{"n":1}', key: 'k', policy: '{}', idempotent: false });

    const [his, ...others] = await scene.recoverAfterSilence(bob);

    expect(others).toEqual([]);
    const silence = LEASE + RENEW_INTERVAL + 2;
    expect(his).toEqual({
      ...hers,
      lease: { task: hers.lease.task, execution: 1, token: expect.not.stringMatching(hers.lease.token) },
      revision: expect.any(Number),
      facts: { ...hers.facts, sinceFirstStartMs: silence },
      why: 'loss',
      lostBy: 'alice',
      how: 'alone',
    });
    expect(await scene.find(hers.lease.task)).toMatchObject({
      state: 'running',
      executions: 1,
      running: { worker: 'bob', cancelRequested: false },
    });
  });

  test('settles like a claim', async () => {
    const bob = await scene.join('bob');
    const hers = await scene.start(await scene.join('alice'));
    const [his] = (await scene.recoverAfterSilence(bob)) as [Recovered];

    expect(await scene.store.tasks.renew(bob, [his.lease])).toMatchObject({ known: true, lost: [], cancelled: [] });
    expect(await scene.settle(his, lost('free'))).toEqual({ answer: 'settled', state: 'ready' });
    expect(await scene.settle(his, lost('free'))).toEqual({ answer: 'already' });

    const again = await scene.claimTask(bob, hers.lease.task);
    expect(again.lease.execution).toBe(2);
    expect(again.facts).toMatchObject({ executions: 2, lostInARow: 1, charged: [], recoveriesAgoMs: [] });
  });

  test('finds a suspect behind one of another source that is gone, beside tasks that are none', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const [first, second] = await scene.enqueue({ source: 'u' }, { source: 's' });
    await scene.claim(alice);
    for (const taken of await scene.recoverAfterSilence(bob)) await scene.settle(taken, lost('free'));
    await scene.move(first as number, { verb: 'cancel' });
    const fresh = await scene.enqueueOne();

    expect(idsOf(await scene.claim(bob, { limit: 2 }))).toEqual([second, fresh]);
  });

  test('hands a task over once, and not to itself', async () => {
    const [bob, carol] = [await scene.join('bob'), await scene.join('carol')];
    const hers = await scene.start(await scene.join('alice'));
    expect(idsOf(await scene.recoverAfterSilence(bob))).toEqual([hers.lease.task]);

    expect(await scene.recover(bob)).toEqual([]);
    expect(await scene.recover(carol)).toEqual([]);
  });

  test('hands over at most as many as were asked for, and the others the next time', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const ids = await scene.enqueue(...Array.from({ length: 7 }, () => ({})));
    await scene.claim(alice);
    await scene.store.tasks.leave(alice);

    const rounds: number[][] = [];
    for (let round = 0; round < 4; round += 1) rounds.push(idsOf(await scene.recover(bob, 3)));
    expect(rounds.map(({ length }) => length)).toEqual([3, 3, 1, 0]);
    expect(rounds.flat().toSorted((a, b) => a - b)).toEqual(ids);
  });

  test('hands over at most as many as were asked for, of several workers together', async () => {
    const [alice, anna, bob] = [await scene.join('alice'), await scene.join('anna'), await scene.join('bob')];
    await scene.enqueue(...Array.from({ length: 6 }, () => ({})));
    await scene.claim(alice, { limit: 3 });
    await scene.claim(anna, { limit: 3 });
    await scene.store.tasks.leave(alice);
    await scene.store.tasks.leave(anna);

    const [first, second] = [await scene.recover(bob, 4), await scene.recover(bob, 4)];
    expect([first.length, second.length]).toEqual([4, 2]);
    expect([...first, ...second].map(({ lostBy }) => lostBy).toSorted()).toEqual([
      ...Array<string>(3).fill('alice'),
      ...Array<string>(3).fill('anna'),
    ]);
  });

  test('hands it over with what is known of it: counts, suspicion, and a cancel that was asked for', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const id = await scene.enqueueOne();
    for (const decision of [retryIn(0), deferredFor(0), lost('charged')]) {
      await scene.settle(await scene.claimTask(alice, id), decision);
    }
    await scene.claimTask(alice, id);
    await scene.move(id, { verb: 'cancel' });
    await scene.store.tasks.leave(alice);

    const [his] = (await scene.recover(bob)) as [Recovered];
    expect(his.lease.execution).toBe(4);
    expect(his.facts).toMatchObject({
      executions: 4,
      charged: [{ reason: 'fs.locked', count: 1 }],
      deferralsInARow: 1,
      recoveriesAgoMs: [0],
      lostInARow: 1,
      cancelRequested: true,
    });
    expect(await scene.settle(his, cancelled())).toEqual({ answer: 'settled', state: 'cancelled' });
  });

  test('hears of a cancel that came after it was handed over', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    await scene.start(alice);
    await scene.store.tasks.leave(alice);
    const [his] = (await scene.recover(bob)) as [Recovered];
    await scene.move(his.lease.task, { verb: 'cancel' });

    expect((await scene.settle(his, lost('free'))).answer).toBe('changed');
  });

  test('recovers again what a recoverer took with it, for the same reason', async () => {
    const [alice, bob, carol] = [await scene.join('alice'), await scene.join('bob'), await scene.join('carol')];
    const hers = await scene.start(alice);
    const late = await scene.enqueueOne({ deadline: scene.now() + 1_000, delay: 500_000 });
    await scene.store.tasks.leave(alice);
    scene.advance(1_000);
    expect(idsOf(await scene.recover(bob)).toSorted((a, b) => a - b)).toEqual([hers.lease.task, late]);

    const again = await scene.recoverAfterSilence(carol);

    const byId = new Map(again.map((each) => [each.lease.task, each]));
    expect(byId.get(hers.lease.task)).toMatchObject({ why: 'loss', lease: { execution: 1 } });
    expect(byId.get(late)).toMatchObject({ why: 'expiry', lease: { execution: 0 } });
    expect(await scene.settle(byId.get(late) as Recovered, ended('dead', 'deadline.passed'))).toMatchObject({
      state: 'dead',
    });
  });

  test('finds every task of a worker that is gone, and none of one that lives', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    await scene.enqueue(...Array.from({ length: 20 }, (_, n) => ({ source: `s${n % 3}`, queue: `q${n % 2}` })));
    const hers = await scene.claim(alice, { limit: 11 });
    const his = await scene.claim(bob, { limit: 5 });

    scene.advance(LEASE + 1);
    await scene.recover(bob);
    scene.advance(RENEW_INTERVAL + 1);
    const recovered = await scene.recover(bob);

    expect(idsOf(recovered).toSorted()).toEqual(idsOf(hers).toSorted());
    expect(
      await scene.store.tasks.renew(
        bob,
        his.map(({ lease }) => lease),
      ),
    ).toMatchObject({ lost: [] });
  });

  test('returns what a worker published about its type, even after that worker left', async () => {
    const alice = await scene.join('alice', { publishes: { mail: '{"idempotent":true}', other: '{}' } });
    const bob = await scene.join('bob');
    await scene.start(alice);
    await scene.start(alice, { type: 'unpublished' });
    await scene.store.tasks.leave(alice);

    const recovered = await scene.recover(bob);
    expect(recovered.map(({ type, published }) => [type, published]).toSorted()).toEqual([
      ['mail', '{"idempotent":true}'],
      ['unpublished', undefined],
    ]);
  });

  test('returns the newest published value', async () => {
    const alice = await scene.join('alice', { publishes: { mail: '1' } });
    const bob = await scene.join('bob', { publishes: { mail: '2' } });
    await scene.start(alice);
    await scene.store.tasks.leave(alice);
    expect(await scene.recover(bob)).toMatchObject([{ published: '2' }]);
  });

  test.runIf(scene.hasSecond)('lets another process take over', async () => {
    const hers = await scene.start(await scene.join('alice'));
    const second = await scene.openSecond();
    const bob = await second.tasks.join({ name: 'bob', leaseFor: LEASE, publishes: {} });
    const recover = async () => {
      await second.tasks.renew(bob, []);
      return (await second.tasks.recover(bob, 10)).tasks;
    };

    scene.advance(LEASE + 1);
    expect(await recover()).toEqual([]);
    scene.advance(RENEW_INTERVAL + 1);
    expect(await recover()).toMatchObject([{ lostBy: 'alice', why: 'loss', lease: { task: hers.lease.task } }]);
    expect(await scene.settle(hers, retryIn(0))).toEqual({ answer: 'stale' });
  });

  test.runIf(scene.hasSecond)('hands each task over once when two processes take over at the same time', async () => {
    const alice = await scene.join('alice');
    const ids = await scene.enqueue(...Array.from({ length: 20 }, () => ({})));
    await scene.claim(alice);
    const second = await scene.openSecond();
    const bob = await scene.join('bob');
    const carol = await second.tasks.join({ name: 'carol', leaseFor: LEASE, publishes: {} });
    const both = async () => {
      await Promise.all([scene.store.tasks.renew(bob, []), second.tasks.renew(carol, [])]);
      const both = await Promise.all([scene.store.tasks.recover(bob, 15), second.tasks.recover(carol, 15)]);
      return both.flatMap(({ tasks }) => tasks);
    };

    scene.advance(LEASE + 1);
    expect(await both()).toEqual([]);
    scene.advance(RENEW_INTERVAL + 1);
    const recovered = await both();
    expect(idsOf(recovered).toSorted((a, b) => a - b)).toEqual(ids);
  });

  test.runIf(scene.hasSecond)('takes over what was running when the store was closed', async () => {
    const hers = await scene.start(await scene.join('alice'));
    const second = await scene.openSecond();
    await scene.closeStore();
    const bob = await second.tasks.join({ name: 'bob', leaseFor: LEASE, publishes: {} });

    expect(await scene.recoverAfterSilence(bob)).toMatchObject([{ lease: { task: hers.lease.task }, lostBy: 'alice' }]);
  });
}

function promisesOfPatience(scene: Scene): void {
  test('does not take over a lease that has not run out, however long it is watched', async () => {
    const bob = await scene.join('bob');
    await scene.start(await scene.join('alice'));
    for (let passed = 0; passed < LEASE - 2_000; passed += 1_000) {
      scene.advance(1_000);
      expect(await scene.recover(bob)).toEqual([]);
    }
  });

  test('watches a lease that ran out for one renewal interval before it takes it over', async () => {
    const bob = await scene.join('bob');
    const hers = await scene.start(await scene.join('alice'));

    scene.advance(LEASE + 1);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL - 1);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(2);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });

  test('starts to watch when it sees that a lease ran out: not before, and not when it did', async () => {
    const bob = await scene.join('bob');
    const hers = await scene.start(await scene.join('alice'));

    scene.advance(LEASE - 1_000);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(3_600_000);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL - 1);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(2);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });

  test('begins anew when the lease was renewed while it was watched', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice);

    scene.advance(LEASE + 1);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL - 1_000);
    expect(await scene.store.tasks.renew(alice, [hers.lease])).toMatchObject({ lost: [] });
    scene.advance(2_000);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(LEASE);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL + 1);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });

  test('begins anew also when nobody looked while the lease was good again', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice);

    scene.advance(LEASE + 1);
    expect(await scene.recover(bob)).toEqual([]);
    expect(await scene.store.tasks.renew(alice, [hers.lease])).toMatchObject({ lost: [] });
    scene.advance(LEASE + 1);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL + 1);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });

  test('does not take over its own leases, even if it forgot to renew', async () => {
    const alice = await scene.join('alice');
    const hers = await scene.start(alice);
    for (let round = 0; round < 3; round += 1) {
      scene.advance(LEASE + 1);
      expect((await scene.store.tasks.recover(alice, 100)).tasks).toEqual([]);
    }
    expect(await scene.settle(hers, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
  });

  test.each([
    ['sleeps for eight hours', 8 * 3_600_000],
    ['sleeps for half a year', 182 * 86_400_000],
  ])('steals nothing while the machine %s and its worker renews afterwards', async (_, jump) => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice);
    scene.advance(RENEW_INTERVAL);
    await scene.store.tasks.renew(alice, [hers.lease]);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL - 100);
    expect(await scene.recover(bob)).toEqual([]);

    scene.world.clock.jumpWall(jump);
    // Bob wakes first, and looks more than once before Alice comes to renew.
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(100);
    expect(await scene.recover(bob)).toEqual([]);
    expect(await scene.store.tasks.renew(alice, [hers.lease])).toMatchObject({ known: true, lost: [] });
    scene.advance(RENEW_INTERVAL);
    expect(await scene.recover(bob)).toEqual([]);

    expect(await scene.settle(hers, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
    expect((await scene.find(hers.lease.task)).executions).toBe(1);
  });

  test('takes over after a sleep the leases that are not renewed any more', async () => {
    const bob = await scene.join('bob');
    const hers = await scene.start(await scene.join('alice'));
    scene.world.clock.jumpWall(8 * 3_600_000);

    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL + 1);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });

  test('watches a lease for as long as its own worker takes to renew it', async () => {
    const bob = await scene.join('bob');
    const slow = await scene.join('slow', { leaseFor: 300_000 });
    const hers = await scene.start(slow);
    scene.world.clock.jumpWall(8 * 3_600_000);

    expect(await scene.recover(bob)).toEqual([]);
    for (let passed = 0; passed < 90_000; passed += RENEW_INTERVAL) {
      scene.advance(RENEW_INTERVAL);
      expect(await scene.recover(bob)).toEqual([]);
    }
    expect(await scene.store.tasks.renew(slow, [hers.lease])).toMatchObject({ lost: [] });
    scene.advance(20_000);
    expect(await scene.recover(bob)).toEqual([]);
  });

  test('takes over within a lease and an interval although the wall clock was set back', async () => {
    const bob = await scene.join('bob');
    const hers = await scene.start(await scene.join('alice'));
    scene.world.clock.jumpWall(-3_600_000);

    const recovered: number[] = [];
    for (let passed = 0; passed <= LEASE + 2 * RENEW_INTERVAL; passed += RENEW_INTERVAL) {
      recovered.push(...idsOf(await scene.recover(bob)));
      scene.advance(RENEW_INTERVAL);
    }
    expect(recovered).toEqual([hers.lease.task]);
  });
}

function promisesOfSharedWatches(scene: Scene): void {
  test('tells when the next lease that has run out may be taken over', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    await scene.start(alice);
    const nextIn = async () => (await scene.store.tasks.recover(bob, 10)).nextIn;

    expect(await nextIn()).toBeUndefined();
    scene.advance(LEASE + 1);
    await scene.renew(bob);
    expect(await nextIn()).toBe(RENEW_INTERVAL);
    scene.advance(4_000);
    expect(await nextIn()).toBe(RENEW_INTERVAL - 4_000);
    await scene.renew(alice);
    expect(await nextIn()).toBeUndefined();
  });

  test('names no next recovery if only workers without tasks are silent', async () => {
    await scene.join('alice');
    const bob = await scene.join('bob');
    scene.advance(LEASE + 1);
    await scene.renew(bob);
    expect(await scene.store.tasks.recover(bob, 10)).toEqual({ tasks: [], neighbours: [] });
  });

  test.runIf(scene.hasSecond)('continues the watch that an earlier process began', async () => {
    const hers = await scene.start(await scene.join('alice'));
    const looks: number[][] = [];
    scene.advance(LEASE + 1);
    for (let look = 0; look < 4; look += 1) {
      const store = await scene.openSecond();
      const worker = await store.tasks.join({ name: 'for a moment', leaseFor: LEASE, publishes: {} });
      looks.push(idsOf((await store.tasks.recover(worker, 10)).tasks));
      await store.tasks.leave(worker);
      scene.advance(4_000);
    }

    expect(looks).toEqual([[], [], [], [hers.lease.task]]);
  });

  test('starts a watch again after a reboot, because the monotonic clock has started again', async () => {
    const bob = await scene.join('bob');
    const hers = await scene.start(await scene.join('alice'));
    scene.advance(LEASE + 1);
    expect(await scene.recover(bob)).toEqual([]);

    scene.world.clock.reboot();
    scene.advance(RENEW_INTERVAL + 1);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });

  test('leaves the tasks of a process that is alive alone for as long as they may run', async () => {
    const bob = await scene.join('bob');
    const hers = await scene.start(await scene.join('alice', { mayRunFor: 600_000 }));
    scene.advance(LEASE + 1);
    expect(await scene.recover(bob)).toEqual([]);
    expect((await scene.store.tasks.recover(bob, 10)).nextIn).toBeUndefined();
    scene.advance(600_000);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(RENEW_INTERVAL);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });

  test('never takes them over if they have no time limit, unless an operator ends the worker', async () => {
    const [alice, bob] = [await scene.join('alice', { mayRunFor: 'none' }), await scene.join('bob')];
    const hers = await scene.start(alice);
    for (let day = 0; day < 10; day += 1) {
      scene.advance(86_400_000);
      expect(await scene.recover(bob)).toEqual([]);
    }
    await scene.store.tasks.leave(alice);
    expect(idsOf(await scene.recover(bob))).toEqual([hers.lease.task]);
  });
}

function promisesOfLeaving(scene: Scene): void {
  test('hands over at once what a worker that left still held', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const [one, two] = [await scene.start(alice), await scene.start(alice)];
    await scene.settle(one, succeeded());
    await scene.store.tasks.leave(alice);

    expect(await scene.recover(bob)).toMatchObject([
      { lease: { task: two.lease.task, execution: 1 }, why: 'loss', lostBy: 'alice' },
    ]);
  });

  test('does not know a worker that left', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    await scene.start(alice);
    await scene.store.tasks.leave(alice);

    expect((await scene.store.records.workers()).map(({ id }) => id)).toEqual([bob]);
    await scene.recover(bob);
    expect((await scene.store.records.workers()).map(({ id, running }) => [id, running])).toEqual([[bob, 1]]);
  });

  test('lets a worker leave twice, and one that was never there', async () => {
    const alice = await scene.join('alice');
    await scene.store.tasks.leave(alice);
    await scene.store.tasks.leave(alice);
    await scene.store.tasks.leave(999_999);
  });

  test('removes a worker that stayed away until all of its tasks were recovered', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice);
    for (let day = 0; day < 30; day += 1) {
      scene.advance(86_400_000);
      for (const taken of await scene.recover(bob)) await scene.settle(taken, lost('free'));
    }

    expect((await scene.store.records.workers()).map(({ id }) => id)).toEqual([bob]);
    expect((await scene.store.tasks.renew(alice, [])).known).toBe(false);
    expect(await scene.stateOf(hers.lease.task)).toBe('ready');
  });

  test('never loses a task between a leave and a recovery', async () => {
    const alice = await scene.join('alice');
    const hers = await scene.start(alice);
    await scene.store.tasks.leave(alice);
    expect(await scene.find(hers.lease.task)).toMatchObject({ state: 'running', running: { worker: 'alice' } });
    scene.advance(30 * 86_400_000);

    expect(idsOf(await scene.recover(await scene.join('bob')))).toEqual([hers.lease.task]);
  });
}

function promisesOfBlame(scene: Scene): void {
  const hows = (recovered: readonly Recovered[]) => recovered.map(({ how }) => how);

  test('says that a task ran alone in its process', async () => {
    await scene.start(await scene.join('alice'));
    const bob = await scene.join('bob');
    expect(hows(await scene.recoverAfterSilence(bob))).toEqual(['alone']);
  });

  test('says that others ran beside it, of its own worker or of another one of its process', async () => {
    const [alice, anna, bob] = [await scene.join('alice'), await scene.join('anna'), await scene.join('bob')];
    await scene.start(alice);
    await scene.start(anna);
    expect(hows(await scene.recoverAfterSilence(bob))).toEqual(['beside_others', 'beside_others']);
  });

  test('does not count tasks that were settled before', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const first = await scene.start(alice);
    await scene.start(alice);
    await scene.settle(first, succeeded());
    expect(hows(await scene.recoverAfterSilence(bob))).toEqual(['alone']);
  });

  test('says the same of all that a process ran, however few are taken over at a time, and by whom', async () => {
    const [alice, anna] = [await scene.join('alice'), await scene.join('anna')];
    await scene.enqueue({}, {}, {});
    await scene.claim(alice, { limit: 2 });
    await scene.claim(anna, { limit: 1 });
    scene.advance(LEASE + 1);
    const takers = [await scene.join('bob'), await scene.join('carol'), await scene.join('dora')];
    for (const taker of takers) expect(await scene.recover(taker, 1)).toEqual([]);
    scene.advance(RENEW_INTERVAL + 1);

    const recovered: Recovered[] = [];
    for (const taker of takers) {
      for (const other of takers) await scene.store.tasks.renew(other, []);
      recovered.push(...(await scene.recover(taker, 1)));
    }
    expect(hows(recovered)).toEqual(['beside_others', 'beside_others', 'beside_others']);
  });

  test('keeps this result when the worker that took it over is lost too', async () => {
    const bob = await scene.join('bob');
    await scene.start(await scene.join('alice'));
    expect(hows(await scene.recoverAfterSilence(bob))).toEqual(['alone']);
    await scene.start(bob);
    const carol = await scene.join('carol');
    const again = await scene.recoverAfterSilence(carol);
    expect(hows(again)).toEqual(['alone', 'alone']);
  });

  test('finds it anew at the next loss of the same task', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice);
    await scene.start(alice);
    for (const taken of await scene.recoverAfterSilence(bob)) {
      const decision = taken.lease.task === hers.lease.task ? lost('free') : ended('dead');
      await scene.settle(taken, decision);
    }
    await scene.claimTask(await scene.join('anna'), hers.lease.task);
    expect(hows(await scene.recoverAfterSilence(bob))).toEqual(['alone']);
  });

  test('says of all tasks of a stopping worker that it was stopping', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    await scene.start(alice);
    await scene.store.tasks.stopping(alice);
    await scene.store.tasks.stopping(999_999);
    const late = await scene.start(alice);
    expect(await scene.settle(late, succeeded())).toMatchObject({ answer: 'settled' });
    expect(hows(await scene.recoverAfterSilence(bob))).toEqual(['while_stopping']);
  });

  test('says nothing of this for a task that expired while it waited', async () => {
    const bob = await scene.join('bob');
    await scene.enqueue({ deadline: scene.now() + 1_000, delay: 500_000 });
    scene.advance(1_000);
    expect(await scene.recover(bob)).toEqual([expect.not.objectContaining({ how: expect.anything() })]);
  });
}

function promisesOfExpiry(scene: Scene): void {
  test('leases a ready task past its deadline, without raising its executions', async () => {
    const bob = await scene.join('bob');
    const id = await scene.enqueueOne({ deadline: scene.now() + 60_000 });

    scene.advance(59_999);
    expect(await scene.recover(bob)).toEqual([]);
    scene.advance(2);
    const [expired] = (await scene.recover(bob)) as [Recovered];

    expect(expired).toMatchObject({ why: 'expiry', lease: { task: id, execution: 0 }, facts: { executions: 0 } });
    expect(expired).not.toHaveProperty('lostBy');
    expect(expired.facts.untilDeadlineMs).toBeLessThanOrEqual(0);
    expect(expired.facts.sinceFirstStartMs).toBe(0);
    expect(await scene.find(id)).toMatchObject({ state: 'running', executions: 0 });

    expect(await scene.settle(expired, ended('dead', 'deadline.passed'))).toEqual({ answer: 'settled', state: 'dead' });
    expect(await scene.find(id)).toMatchObject({ executions: 0, reason: 'deadline.passed' });
  });

  test('leases a retry that waits past its deadline, with its present execution count', async () => {
    const bob = await scene.join('bob');
    const claimed = await scene.start(bob, { deadline: scene.now() + 60_000 });
    scene.advance(1_000);
    await scene.settle(claimed, retryIn(500_000));
    scene.advance(60_000);

    expect(await scene.recover(bob)).toMatchObject([
      {
        why: 'expiry',
        lease: { task: claimed.lease.task, execution: 1 },
        facts: { executions: 1, sinceFirstStartMs: 61_000, charged: [{ count: 1 }] },
      },
    ]);
  });

  test('says of a task that never ran that no execution of it started, also when its recoverer is lost', async () => {
    const [bob, carol] = [await scene.join('bob'), await scene.join('carol')];
    await scene.enqueueOne({ deadline: scene.now() + 1_000 });
    scene.advance(1_001);
    expect(await scene.recover(bob)).toHaveLength(1);
    scene.advance(5_000);
    await scene.store.tasks.leave(bob);

    expect(await scene.recover(carol)).toMatchObject([
      { why: 'expiry', facts: { executions: 0, sinceFirstStartMs: 0, lostInARow: 0 } },
    ]);
  });

  test('raises the count by one when such a task is put back and claimed', async () => {
    const bob = await scene.join('bob');
    const id = await scene.enqueueOne({ deadline: scene.now() + 1_000 });
    scene.advance(1_001);
    const [expired] = (await scene.recover(bob)) as [Recovered];
    await scene.settle(expired, ended('needs_manual', 'deadline.passed'));
    await scene.move(id, { verb: 'resolve', as: 'succeeded' });
    await scene.move(id, { verb: 'retry' });

    expect(await scene.claimTask(bob, id)).toMatchObject({ lease: { execution: 1 }, facts: { executions: 1 } });
  });

  test('does not expire tasks that are held, wait for a person, run or have ended', async () => {
    const bob = await scene.join('bob');
    const deadline = scene.now() + 5_000;
    const [held, manual, running, done] = (await scene.enqueue(...Array.from({ length: 4 }, () => ({ deadline })))) as [
      number,
      number,
      number,
      number,
    ];
    await scene.move(held, { verb: 'hold' });
    await scene.settle(await scene.claimTask(bob, manual), ended('needs_manual'));
    await scene.settle(await scene.claimTask(bob, done), succeeded());
    await scene.claimTask(bob, running);

    scene.advance(10_000);
    expect(await scene.recover(bob)).toEqual([]);
    await scene.move(held, { verb: 'release' });
    expect(idsOf(await scene.recover(bob))).toEqual([held]);
  });

  test('leases a task whose deadline had passed when it was enqueued', async () => {
    const bob = await scene.join('bob');
    const ids = await scene.enqueue({ deadline: scene.now() - 1 }, { deadline: scene.now() - 1, delay: 9_000 });
    expect(idsOf(await scene.recover(bob)).toSorted((a, b) => a - b)).toEqual(ids);
  });

  test('leaves tasks without a deadline alone, and hands over at most as many as were asked for', async () => {
    const bob = await scene.join('bob');
    await scene.enqueue({}, { delay: 1_000 });
    await scene.store.tasks.enqueue(Array.from({ length: 5 }, () => newTask({ deadline: scene.now() + 1_000 })));
    scene.advance(20_000);

    expect(await scene.recover(bob, 3)).toHaveLength(3);
    expect(await scene.recover(bob, 3)).toHaveLength(2);
    expect(await scene.recover(bob, 3)).toEqual([]);
  });

  test('does not block claims: they return tasks that have not expired, and some that have', async () => {
    const bob = await scene.join('bob');
    const deadline = scene.now() + 1_000;
    const late = { elsewhere: { queue: 'reports', deadline }, before: { deadline }, later: { deadline, delay: 500 } };
    for (const one of Object.values(late)) await scene.enqueue(...Array.from({ length: 70 }, () => one));
    const live = await scene.enqueue({}, {}, { queue: 'live' }, { queue: 'live' });
    scene.advance(1_001);

    const claimed: number[] = [];
    const expired: number[] = [];
    const sizes: number[] = [];
    for (let nextDueIn: number | undefined = 0; nextDueIn === 0 && sizes.length < 100; ) {
      const claim = await scene.store.tasks.claim(claimRequest(bob, { limit: 3 }));
      claimed.push(...idsOf(claim.tasks));
      expired.push(...idsOf(claim.expired));
      sizes.push(claim.expired.length);
      for (const one of claim.expired) await scene.settle(one, ended('dead', 'deadline.passed'));
      nextDueIn = claim.nextDueIn;
      if (sizes.length === 1) expect(claim.tasks.map(({ queue }) => queue)).toContain('live');
    }
    claimed.push(...idsOf(await scene.claim(bob, { limit: 5 })));
    expect(claimed.toSorted((a, b) => a - b)).toEqual(live);
    expect(new Set(expired).size).toBe(210);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(150);
  });

  test('hands over at most as many as were asked for, lost and expired ones together', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    await scene.enqueue(...Array.from({ length: 4 }, () => ({})));
    await scene.claim(alice);
    await scene.enqueue(...Array.from({ length: 4 }, () => ({ deadline: scene.now() + 1_000 })));
    await scene.store.tasks.leave(alice);
    scene.advance(1_001);

    expect(await scene.recover(bob, 6)).toHaveLength(6);
    expect(await scene.recover(bob, 6)).toHaveLength(2);
  });
}
