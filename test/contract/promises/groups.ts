import { describe, expect, test } from 'vitest';
import { WHEN_GROUP_ENDS } from '../../../src/store/new-task.ts';
import type { NewTask, Receipt } from '../../../src/store/store.ts';
import type { EndedState } from '../../../src/task.ts';
import {
  deferredFor,
  ended,
  idsOf,
  newTask,
  retryIn,
  type Scene,
  type StoreFactory,
  settlement,
  succeeded,
  useScene,
} from '../scene.ts';

export function promisesOfGroups(factory: StoreFactory): void {
  const scene = useScene(factory);

  /** Records a group. Returns the ids of its tasks, and then that of its follow-up. */
  async function enqueueGroup(tasks: readonly Partial<NewTask>[], followUp: Partial<NewTask> = {}): Promise<number[]> {
    return (await receiptsOf(tasks, followUp)).map(({ id }) => id);
  }

  function receiptsOf(tasks: readonly Partial<NewTask>[], more: Partial<NewTask> = {}): Promise<readonly Receipt[]> {
    const followUp = { type: 'report', dueAt: WHEN_GROUP_ENDS, groupOf: tasks.length, ...more };
    return scene.store.tasks.enqueue([...tasks, followUp].map(newTask));
  }

  const groupOf = (followUp: number) => scene.store.records.groupOf(followUp);

  async function isDue(followUp: number): Promise<boolean> {
    const { state, waitsForGroup } = await scene.find(followUp);
    expect(['scheduled', 'ready']).toContain(state);
    return waitsForGroup === undefined;
  }

  test('a follow-up waits until all tasks of its group have ended, and then runs once', async () => {
    const worker = await scene.join();
    const [a, b, followUp] = (await enqueueGroup([{}, {}])) as [number, number, number];
    expect(await scene.find(followUp)).toMatchObject({ state: 'scheduled', waitsForGroup: true });
    expect((await scene.find(followUp)).dueAt).toBeUndefined();
    expect((await scene.store.records.counts()).nextDueAt).toBeUndefined();
    const [first, second] = await scene.claim(worker);
    await scene.settle(first as Claimed, succeeded(), { result: '{"n":1}' });
    expect(idsOf(await scene.claim(worker))).toEqual([]);
    expect(await groupOf(followUp)).toEqual([{ id: a, ended: 'succeeded', result: '{"n":1}' }, { id: b }]);

    await scene.settle(second as Claimed, ended('dead'));

    expect(await groupOf(followUp)).toMatchObject([{ ended: 'succeeded' }, { id: b, ended: 'dead' }]);
    const claimed = await scene.claim(worker);
    expect(claimed).toMatchObject([{ lease: { task: followUp }, type: 'report' }]);
    await scene.settle(claimed[0] as Claimed, succeeded());
    expect(idsOf(await scene.claim(worker))).toEqual([]);
  });

  test('counts the tasks of one call, of one settlement and of one batch, and of several groups apart', async () => {
    const worker = await scene.join();
    const [first, second] = [await enqueueGroup([{}, {}, {}]), await enqueueGroup([{}])];
    const claimed = await scene.claim(worker);
    expect(claimed).toHaveLength(4);
    const settle = (some: readonly Claimed[], result?: string) =>
      scene.store.tasks.settle(some.map((one) => settlement(one, succeeded(), result === undefined ? {} : { result })));
    await settle(claimed.slice(0, 2));
    expect([await isDue(first.at(-1) as number), await isDue(second.at(-1) as number)]).toEqual([false, false]);
    await settle(claimed.slice(2), '1');
    expect([await isDue(first.at(-1) as number), await isDue(second.at(-1) as number)]).toEqual([true, true]);
  });

  test('tasks that end at the same time, in calls of their own, end their group', async () => {
    const [worker, other] = [await scene.join(), await scene.join('bob')];
    const ids = await enqueueGroup(Array(10).fill({}));
    const claimed = [...(await scene.claim(worker, { limit: 5 })), ...(await scene.claim(other))];
    await Promise.all(claimed.map((one) => scene.settle(one, succeeded())));
    expect(await isDue(ids.at(-1) as number)).toBe(true);
  });

  describe('a task of a group has ended', () => {
    test('if it is cancelled: waiting, held, or needing a person', async () => {
      const [a, b, c, followUp] = (await enqueueGroup([{}, {}, {}])) as [number, number, number, number];
      await scene.settle(await scene.claimTask(await scene.join(), c), ended('needs_manual'));
      await scene.move(b, { verb: 'hold' });
      for (const id of [a, b, c]) {
        expect(await isDue(followUp)).toBe(false);
        await scene.move(id, { verb: 'cancel' });
      }
      expect(await groupOf(followUp)).toEqual([a, b, c].map((id) => ({ id, ended: 'cancelled' })));
      expect(await isDue(followUp)).toBe(true);
    });

    test('if it is replaced or superseded by a task with its unique key', async () => {
      const worker = await scene.join();
      const unique = { key: 'u', while: 'waiting', onConflict: 'replace' } as const;
      const [, followUp] = (await enqueueGroup([{ unique }])) as [number, number];
      await scene.enqueue({ unique });
      expect(await isDue(followUp)).toBe(true);
      const [id, next] = (await enqueueGroup([{ unique }])) as [number, number];
      const running = await scene.claimTask(worker, id);
      await scene.enqueue({ unique });
      expect(await isDue(next)).toBe(false);
      expect(await scene.settle(running, retryIn(0))).toMatchObject({ state: 'cancelled' });
      expect(await isDue(next)).toBe(true);
    });

    test('if it is replaced by the task of a schedule: its follow-up is due at the next renewal of any worker', async () => {
      const worker = await scene.join();
      const { schedules } = scene.store;
      const definition = { name: 's', definition: '{}', origin: { by: 'code' }, progress: '{}', lookAt: 0 } as const;
      await schedules.define(definition, 0);
      const unique = { key: 'u', while: 'waiting', onConflict: 'replace' } as const;
      const [id, followUp] = (await enqueueGroup([{ unique }])) as [number, number];
      const step = { progress: '{}', lookAt: undefined };
      await schedules.turn({ name: 's', revision: 1, tasks: [newTask({ unique })], step });
      expect(await groupOf(followUp)).toEqual([{ id, ended: 'cancelled' }]);
      await scene.renew(worker);
      expect(await isDue(followUp)).toBe(true);
    });

    test.each<EndedState>(['succeeded', 'dead'])('if a person resolves it as %s', async (as) => {
      const [id, followUp] = (await enqueueGroup([{}])) as [number, number];
      await scene.settle(await scene.claimTask(await scene.join(), id), ended('needs_manual'));
      expect(await isDue(followUp)).toBe(false);
      await scene.move(id, { verb: 'resolve', as: as as 'dead' });
      expect(await groupOf(followUp)).toMatchObject([{ ended: as }]);
      expect(await isDue(followUp)).toBe(true);
    });

    test('not if it waits for a retry, a deferral, or an answer that is a retry', async () => {
      const worker = await scene.join();
      const [id, followUp] = (await enqueueGroup([{}])) as [number, number];
      for (const decision of [retryIn(0), deferredFor(0), ended('needs_manual')]) {
        await scene.settle(await scene.claimTask(worker, id), decision);
        expect(await isDue(followUp)).toBe(false);
      }
      await scene.move(id, { verb: 'resolve', as: 'retry' });
      await scene.settle(await scene.claimTask(worker, id), succeeded());
      expect(await groupOf(followUp)).toEqual([{ id, ended: 'succeeded' }]);
      expect(await isDue(followUp)).toBe(true);
    });

    test('if its lost execution succeeded after all', async () => {
      const [worker, other] = [await scene.join(), await scene.join('bob')];
      const [id, followUp] = (await enqueueGroup([{}])) as [number, number];
      const claimed = await scene.claimTask(worker, id);
      const [lost] = await scene.recoverAfterSilence(other);
      await scene.settle(lost as Claimed, ended('needs_manual', 'worker.lost'), {
        report: { ranFor: 0, outcome: 'loss' },
      });
      expect(await isDue(followUp)).toBe(false);
      expect(await scene.settle(claimed, succeeded())).toMatchObject({ state: 'succeeded' });
      expect(await isDue(followUp)).toBe(true);
    });

    test('for good: a retry of a dead one changes neither its group nor the follow-up', async () => {
      const worker = await scene.join();
      const [a, b, followUp] = (await enqueueGroup([{}, {}])) as [number, number, number];
      await scene.settle(await scene.claimTask(worker, a), ended('dead'));
      await scene.move(a, { verb: 'retry' });
      await scene.settle(await scene.claimTask(worker, b), succeeded());
      expect(await isDue(followUp)).toBe(true);
      await scene.settle(await scene.claimTask(worker, a), succeeded());
      expect(await groupOf(followUp)).toMatchObject([{ id: a, ended: 'dead' }, { ended: 'succeeded' }]);
    });

    test('if it is removed while it needs a person: it counts as dead', async () => {
      const [id, followUp] = (await enqueueGroup([{}])) as [number, number];
      await scene.settle(await scene.claimTask(await scene.join(), id), ended('needs_manual'));
      scene.advance(1_000);
      const retention = { succeeded: {}, dead: {}, cancelled: {}, needs_manual: { default: 0 } };
      await scene.store.upkeep.prune(retention);
      await scene.store.upkeep.tidy();
      expect(await groupOf(followUp)).toEqual([{ id, ended: 'dead' }]);
      expect(await isDue(followUp)).toBe(true);
    });
  });

  test('a group without tasks has ended at once, and so has one of tasks that all existed', async () => {
    await scene.enqueue({ key: 'k' });
    for (const tasks of [[], [{ key: 'k' }]]) {
      const [id] = (await enqueueGroup(tasks)).slice(-1) as [number];
      expect(await isDue(id)).toBe(true);
      expect(await groupOf(id)).toEqual([]);
    }
  });

  test('a follow-up that existed already begins no other group', async () => {
    const first = await enqueueGroup([{}], { key: 'once' });
    const again = await receiptsOf([{}], { key: 'once' });
    expect(again.at(-1)).toMatchObject({ id: first.at(-1), created: false, state: 'scheduled' });
    expect(await groupOf(first.at(-1) as number)).toEqual([{ id: first[0] }]);
  });

  test('a task that a later one of the call replaced has ended', async () => {
    const unique = { key: 'u', while: 'unfinished', onConflict: 'replace' } as const;
    const [a, b, followUp] = (await enqueueGroup([{ unique }, { unique }])) as [number, number, number];
    expect(await groupOf(followUp)).toEqual([{ id: a, ended: 'cancelled' }, { id: b }]);
    await scene.move(b, { verb: 'cancel' });
    expect(await isDue(followUp)).toBe(true);
  });

  test('a follow-up may be held, and is due when it is released after its group', async () => {
    const [id, followUp] = (await enqueueGroup([{}])) as [number, number];
    await scene.move(followUp, { verb: 'hold' });
    await scene.move(id, { verb: 'cancel' });
    expect(await scene.stateOf(followUp)).toBe('held');
    expect(await scene.move(followUp, { verb: 'release' })).toMatchObject({ to: 'ready' });
    const [other, next] = (await enqueueGroup([{}])) as [number, number];
    await scene.move(next, { verb: 'hold' });
    expect(await scene.move(next, { verb: 'release' })).toMatchObject({ to: 'scheduled' });
    await scene.move(other, { verb: 'cancel' });
    expect(await isDue(next)).toBe(true);
  });

  test('a follow-up may be cancelled, run early by a person, or miss its deadline: its group does not call it again', async () => {
    const worker = await scene.join();
    const [a, cancelled] = (await enqueueGroup([{}])) as [number, number];
    await scene.move(cancelled, { verb: 'cancel' });
    const [b, early] = (await enqueueGroup([{}])) as [number, number];
    await scene.move(early, { verb: 'retry' });
    await scene.settle(await scene.claimTask(worker, early), succeeded());
    const [c, late] = (await enqueueGroup([{}], { deadline: scene.now() + 1_000 })) as [number, number];
    scene.advance(1_001);
    const [expired] = await scene.recover(worker);
    await scene.settle(expired as Claimed, ended('dead', 'deadline.passed'));
    for (const id of [a, b, c]) await scene.move(id, { verb: 'cancel' });
    expect(await Promise.all([cancelled, early, late].map((id) => scene.stateOf(id)))).toEqual([
      'cancelled',
      'succeeded',
      'dead',
    ]);
  });

  test('the tasks of a removed follow-up belong to no group', async () => {
    const [id, followUp] = (await enqueueGroup([{}])) as [number, number];
    await scene.move(followUp, { verb: 'cancel' });
    scene.advance(1_000);
    await scene.store.upkeep.prune({ succeeded: {}, dead: {}, cancelled: { default: 0 }, needs_manual: {} });
    expect(await groupOf(followUp)).toEqual([]);
    await scene.move(id, { verb: 'cancel' });
  });
}

type Claimed = Parameters<Scene['settle']>[0];
