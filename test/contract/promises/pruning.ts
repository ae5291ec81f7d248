import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Retention } from '../../../src/retention.ts';
import type { Pruned, PrunedTask, Store } from '../../../src/store/store.ts';
import { TASK_STATES, type TaskState } from '../../../src/task.ts';
import { deferredFor, ended, newTask, retryIn, type StoreFactory, settlement, succeeded, useScene } from '../scene.ts';

const DAY = 86_400_000;

/** Nothing is removed but what is named. */
function only(retention: Partial<Retention>): Retention {
  return { succeeded: {}, dead: {}, cancelled: {}, needs_manual: {}, ...retention };
}

const MONTH = only({ succeeded: { default: 30 * DAY }, dead: { default: 30 * DAY }, cancelled: { default: 30 * DAY } });

export function promisesOfPruning(factory: StoreFactory): void {
  const scene = useScene(factory);

  /** Removes all that there is to remove. */
  async function pruneAll(retention: Retention): Promise<PrunedTask[]> {
    const all: PrunedTask[] = [];
    let after: number | undefined;
    do {
      const { removed, next } = await scene.store.upkeep.prune(retention, after);
      all.push(...removed);
      after = next;
    } while (after !== undefined);
    return all;
  }

  const idsOfAll = async () =>
    (await scene.store.records.list({ limit: 1_000 })).map(({ id }) => id).sort((a, b) => a - b);

  test.each(['succeeded', 'dead', 'cancelled'] as const)(
    'removes what is %s once its time is up, and not before',
    async (state) => {
      const id = await scene.taskIn(state);
      scene.advance(30 * DAY - 1);
      expect(await scene.store.upkeep.prunable(MONTH)).toEqual([]);
      expect(await pruneAll(MONTH)).toEqual([]);
      scene.advance(1);

      const { reason } = await scene.find(id);
      const told = { state, ...(reason !== undefined && { reason }) };
      expect(await scene.store.upkeep.prunable(MONTH)).toEqual([{ ...told, count: 1 }]);
      expect(await pruneAll(MONTH)).toEqual([{ ...told, id, type: 'mail' }]);
      expect(await scene.store.records.find(id)).toBeUndefined();
      expect(await scene.store.upkeep.prunable(MONTH)).toEqual([]);
    },
  );

  test('removes those of the named tasks that are in a named state, whatever their age', async () => {
    const ids = new Map<TaskState, number>();
    for (const state of TASK_STATES) ids.set(state, await scene.taskIn(state));
    const dead = await scene.taskIn('dead');
    const all = [...ids.values()];
    const removed: PrunedTask[] = [];
    for (let after: number | undefined = 0; after !== undefined; ) {
      const some: Pruned = await scene.store.upkeep.remove(all, ['dead', 'succeeded', 'needs_manual'], after);
      removed.push(...some.removed);
      after = some.next;
    }
    const gone = (['succeeded', 'needs_manual', 'dead'] as const).map((state) => ids.get(state) as number);
    expect(removed.map(({ id }) => id).sort((a, b) => a - b)).toEqual(gone.sort((a, b) => a - b));
    expect(removed.find(({ id }) => id === ids.get('dead'))).toMatchObject({
      type: 'mail',
      state: 'dead',
      reason: 'fs.locked',
    });
    expect(await idsOfAll()).toEqual([...all.filter((id) => !gone.includes(id)), dead].sort((a, b) => a - b));
    for (const id of gone) expect(await scene.store.records.history(id)).toEqual([]);
    expect(await scene.store.upkeep.verify()).toEqual([]);
    expect(await scene.store.upkeep.remove(gone, ['dead'])).toEqual({ removed: [] });
    expect(await scene.store.upkeep.remove([], ['dead'])).toEqual({ removed: [] });
  });

  test('removes thousands of named tasks in batches', async () => {
    const made = await scene.enqueue(...Array.from({ length: 1_200 }, () => ({})));
    for (const id of made) await scene.move(id, { verb: 'cancel' });
    const removed = new Set<number>();
    for (let after: number | undefined = 0; after !== undefined; ) {
      const some: Pruned = await scene.store.upkeep.remove(made, ['cancelled'], after);
      for (const { id } of some.removed) removed.add(id);
      after = some.next;
    }
    expect(removed.size).toBe(1_200);
    expect(await idsOfAll()).toEqual([]);
  });

  test('never removes a task that has not ended, however old it is', async () => {
    const ids = [];
    for (const state of ['scheduled', 'ready', 'running', 'held', 'needs_manual'] as const)
      ids.push(await scene.taskIn(state));
    scene.advance(3_000 * DAY);
    const everything = only({ succeeded: { default: 0 }, dead: { default: 0 }, cancelled: { default: 0 } });
    expect(await scene.store.upkeep.prunable(everything)).toEqual([]);
    expect(await pruneAll(everything)).toEqual([]);
    expect(await idsOfAll()).toEqual(ids);
  });

  test('removes what needs a person only where that is named', async () => {
    const id = await scene.taskIn('needs_manual');
    scene.advance(DAY);
    const named = only({ needs_manual: { default: DAY } });
    expect(await scene.store.upkeep.prunable(named)).toEqual([
      { state: 'needs_manual', reason: 'fs.locked', count: 1 },
    ]);
    expect(await pruneAll(named)).toEqual([{ id, type: 'mail', state: 'needs_manual', reason: 'fs.locked' }]);
    expect(await idsOfAll()).toEqual([]);
  });

  test('goes by the reason, else by its family, else by the default of the state', async () => {
    const worker = await scene.join();
    const deadOf = async (reason: string) => {
      const claimed = await scene.start(worker);
      await scene.settle(claimed, ended('dead', reason));
      return claimed.lease.task;
    };
    const locked = await deadOf('fs.locked');
    const full = await deadOf('fs.no_space');
    const bug = await deadOf('code.bug');
    const http = await deadOf('http.5xx');
    const retention = only({ dead: { default: 2 * DAY, 'fs.*': 3 * DAY, 'fs.locked': DAY, 'http.5xx': 'never' } });
    const removedAfter = async (days: number) => {
      scene.advance(days * DAY);
      return (await pruneAll(retention)).map(({ id }) => id);
    };
    expect(await removedAfter(1)).toEqual([locked]);
    expect(await removedAfter(1)).toEqual([bug]);
    expect(await removedAfter(1)).toEqual([full]);
    expect(await removedAfter(1_000)).toEqual([]);
    expect(await idsOfAll()).toEqual([http]);
  });

  test('counts exactly what it would remove, by state and reason, and changes nothing by counting', async () => {
    const worker = await scene.join();
    for (const reason of ['fs.locked', 'fs.locked', 'code.bug']) {
      await scene.settle(await scene.start(worker), ended('dead', reason));
    }
    for (let n = 0; n < 4; n++) await scene.settle(await scene.start(worker), succeeded());
    await scene.taskIn('cancelled');
    scene.advance(30 * DAY);
    await scene.taskIn('dead');
    const before = await idsOfAll();
    const counts = await scene.store.upkeep.prunable(MONTH);

    expect(counts).toEqual([
      { state: 'succeeded', count: 4 },
      { state: 'dead', reason: 'fs.locked', count: 2 },
      { state: 'cancelled', reason: 'cancelled', count: 1 },
      { state: 'dead', reason: 'code.bug', count: 1 },
    ]);
    expect(await idsOfAll()).toEqual(before);
    expect(await pruneAll(MONTH)).toHaveLength(8);
    expect(await idsOfAll()).toHaveLength(1);
  });

  test('removes everything that belongs to a task, and frees its key', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker, {
      key: 'invoice-7',
      unique: { key: 'u', while: 'unfinished', onConflict: 'ignore' },
    });
    const id = claimed.lease.task;
    await scene.settle(claimed, retryIn(1_000));
    scene.advance(1_000);
    await scene.settle(await scene.claimTask(worker, id), deferredFor(1_000));
    await scene.move(id, { verb: 'hold', note: 'wait' });
    await scene.move(id, { verb: 'release' });
    scene.advance(1_000);
    await scene.settle(await scene.claimTask(worker, id), ended('needs_manual'));
    expect((await scene.store.records.history(id)).length).toBeGreaterThan(4);
    scene.advance(DAY);

    expect(await pruneAll(only({ needs_manual: { default: DAY } }))).toHaveLength(1);

    expect(await scene.store.records.find(id)).toBeUndefined();
    expect(await scene.store.records.find({ key: 'invoice-7' })).toBeUndefined();
    expect(await scene.store.records.history(id)).toEqual([]);
    const [again] = await scene.store.tasks.enqueue([
      newTask({ key: 'invoice-7', unique: { key: 'u', while: 'unfinished', onConflict: 'reject' } }),
    ]);
    expect(again).toMatchObject({ created: true });
    expect(again?.id).toBeGreaterThan(id);
  });

  test('leaves the key of the same name to the task of another type', async () => {
    const id = await scene.taskIn('succeeded');
    const worker = await scene.join();
    await scene.settle(await scene.start(worker, { key: 'k' }), succeeded());
    scene.advance(DAY);
    const other = await scene.enqueueOne({ type: 'report', key: 'k' });
    expect((await pruneAll(only({ succeeded: { default: DAY } }))).map((task) => task.id)).toEqual([id, id + 1]);
    expect(await scene.store.records.find({ key: 'k' })).toMatchObject({ id: other });
    expect(await scene.store.tasks.enqueue([newTask({ type: 'report', key: 'k' })])).toMatchObject([
      { id: other, created: false },
    ]);
  });

  test('keeps a task that was retried, and counts its age anew when it ends again', async () => {
    const id = await scene.taskIn('dead');
    scene.advance(40 * DAY);
    await scene.move(id, { verb: 'retry' });
    expect(await pruneAll(MONTH)).toEqual([]);
    await scene.settle(await scene.claimTask(await scene.join(), id), ended('dead'));
    expect(await pruneAll(MONTH)).toEqual([]);
    scene.advance(30 * DAY);
    expect(await pruneAll(MONTH)).toHaveLength(1);
  });

  test('tells a worker whose task was removed meanwhile that its lease is gone', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.store.tasks.leave(worker);
    const other = await scene.join('bob');
    const {
      tasks: [taken],
    } = await scene.store.tasks.recover(other, 10);
    await scene.settle(taken as NonNullable<typeof taken>, ended('dead'));
    scene.advance(30 * DAY);
    expect(await pruneAll(MONTH)).toHaveLength(1);

    expect(await scene.settle(claimed, succeeded())).toEqual({ answer: 'stale' });
    expect(await scene.move(claimed.lease.task, { verb: 'retry' })).toMatchObject({ moved: false, why: 'missing' });
  });

  test('continues after the last id, and misses nothing if that id is lost', async () => {
    const worker = await scene.join();
    const count = 1_200;
    await scene.enqueue(...Array(count).fill({}));
    const claimed = await scene.claim(worker, { limit: count });
    await scene.store.tasks.settle(claimed.map((one) => settlement(one, ended('dead'))));
    scene.advance(30 * DAY);
    const first = await scene.store.upkeep.prune(MONTH);
    const again = await pruneAll(MONTH);
    expect(first.removed.length + again.length).toBe(count);
    expect(new Set([...first.removed, ...again].map(({ id }) => id)).size).toBe(count);
    expect(await idsOfAll()).toEqual([]);
  });

  test('removes a task with a very long history', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    for (let n = 0; n < 1_100; n++) await scene.settle(await scene.claimTask(worker, id), retryIn(0));
    await scene.move(id, { verb: 'cancel' });
    scene.advance(30 * DAY);
    expect(await pruneAll(MONTH)).toMatchObject([{ id, state: 'cancelled' }]);
    expect(await scene.store.records.history(id)).toEqual([]);
  }, 60_000);

  test.runIf(scene.hasSecond)('may be done by two processes at once: each task is removed by one of them', async () => {
    const worker = await scene.join();
    await scene.enqueue(...Array(300).fill({}));
    const claimed = await scene.claim(worker, { limit: 300 });
    await scene.store.tasks.settle(claimed.map((one) => settlement(one, ended('dead'))));
    scene.advance(30 * DAY);
    const second = await scene.openSecond();
    const both = await Promise.all([scene.store.upkeep.prune(MONTH), second.upkeep.prune(MONTH)]);
    const ids = [...both.flatMap(({ removed }) => removed), ...(await pruneAll(MONTH))].map(({ id }) => id);
    expect(ids).toHaveLength(300);
    expect(new Set(ids).size).toBe(300);
  });

  test('gives a chore to one caller in so long', async () => {
    const { upkeep } = scene.store;
    expect(await Promise.all([upkeep.takeTurn('sweep', 1_000), upkeep.takeTurn('sweep', 1_000)])).toEqual([
      true,
      false,
    ]);
    expect(await upkeep.takeTurn('other', 1_000)).toBe(true);
    scene.advance(999);
    expect(await upkeep.takeTurn('sweep', 1_000)).toBe(false);
    scene.advance(1);
    expect(await upkeep.takeTurn('sweep', 1_000)).toBe(true);
    expect(await upkeep.takeTurn('sweep', 1_000)).toBe(false);
  });

  test('hands out each step of an operator once, oldest first', async () => {
    const [held, gone] = await scene.enqueue({}, { queue: 'q', source: 's' });
    await scene.move(held as number, { verb: 'hold', note: 'wait' });
    await scene.move(gone as number, { verb: 'cancel', actor: 'eva' });
    const now = scene.now();

    expect(await scene.store.upkeep.takeActions(1)).toEqual([
      {
        task: held,
        type: 'mail',
        queue: 'default',
        source: 'imap:INBOX',
        at: now,
        actor: 'maria',
        verb: 'hold',
        note: 'wait',
        from: 'ready',
        to: 'held',
      },
    ]);
    expect(await scene.store.upkeep.takeActions(9)).toMatchObject([
      { task: gone, queue: 'q', source: 's', actor: 'eva', to: 'cancelled' },
    ]);
    expect(await scene.store.upkeep.takeActions(9)).toEqual([]);
    await scene.move(held as number, { verb: 'release' });
    expect(await scene.store.upkeep.takeActions(9)).toMatchObject([
      { task: held, verb: 'release', from: 'held', to: 'ready' },
    ]);
  });

  test.runIf(scene.hasSecond)('hands out a step to one of two processes that ask at once', async () => {
    const second = await scene.openSecond();
    for (let n = 0; n < 5; n++) await scene.taskIn('cancelled');
    const both = await Promise.all([scene.store.upkeep.takeActions(9), second.upkeep.takeActions(9)]);
    const rest = await second.upkeep.takeActions(9);
    expect([...both.flat(), ...rest]).toHaveLength(5);
  });

  test('hands out cancellations by unique keys, but not those that settlements return, imports, or old actions', async () => {
    const unique = { key: 'u', while: 'waiting', onConflict: 'replace' } as const;
    const replaced = await scene.enqueueOne({ unique });
    await scene.enqueueOne({ unique });
    expect(await scene.store.upkeep.takeActions(9)).toMatchObject([
      { task: replaced, verb: 'supersede', to: 'cancelled' },
    ]);

    const worker = await scene.join();
    const running = await scene.start(worker, { unique: { ...unique, key: 'v' } });
    await scene.enqueueOne({ unique: { ...unique, key: 'v' } });
    expect(await scene.settle(running, retryIn(1_000))).toEqual({ answer: 'settled', state: 'cancelled' });
    await scene.import(...Array(20).fill({ stands: 'dead', executions: 1, reason: 'fs.locked', error: 'no' }));
    const gone = await scene.taskIn('cancelled');
    expect(await scene.store.upkeep.takeActions(9)).toMatchObject([{ task: gone, verb: 'cancel' }]);
    expect(await scene.store.upkeep.takeActions(9)).toEqual([]);

    await scene.move(await scene.enqueueOne(), { verb: 'cancel' });
    scene.advance(DAY + 1);
    expect(await scene.store.upkeep.takeActions(9)).toEqual([]);
  });

  test('hands out new steps after those before them were removed with their tasks', async () => {
    const old = await scene.taskIn('cancelled');
    await scene.taskIn('cancelled');
    await scene.store.upkeep.takeActions(9);
    scene.advance(30 * DAY);
    expect(await pruneAll(MONTH)).toHaveLength(2);
    const id = await scene.taskIn('cancelled');
    expect(id).toBeGreaterThan(old);
    expect(await scene.store.upkeep.takeActions(9)).toMatchObject([{ task: id, verb: 'cancel' }]);
  });

  test('removes exactly the tasks that it may, for any set of tasks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ state: fc.constantFrom(...TASK_STATES), age: fc.nat(3) }), { maxLength: 12 }),
        fc.record({
          succeeded: fc.constantFrom('never' as const, DAY, 2 * DAY),
          dead: fc.constantFrom('never' as const, 0, 2 * DAY),
          cancelled: fc.constantFrom('never' as const, DAY),
          needs_manual: fc.constantFrom('never' as const, 3 * DAY),
        }),
        async (tasks, times) => {
          const made: { id: number; state: TaskState; since: number }[] = [];
          for (const { state, age } of tasks) {
            const id = await scene.taskIn(state);
            made.push({ id, state, since: scene.now() });
            scene.advance(age * DAY);
          }
          const retention = only(
            Object.fromEntries(Object.entries(times).map(([state, time]) => [state, { default: time }])),
          );
          const mayGo = made.filter(({ state, since }) => {
            const time = state in times ? times[state as keyof typeof times] : 'never';
            return time !== 'never' && scene.now() - since >= time;
          });
          const counted = await scene.store.upkeep.prunable(retention);
          const others = (await idsOfAll()).filter((id) => !made.some((one) => one.id === id));
          const gone = (await pruneAll(retention)).map(({ id }) => id);

          expect(gone.filter((id) => !others.includes(id)).sort((a, b) => a - b)).toEqual(mayGo.map(({ id }) => id));
          expect(counted.reduce((sum, { count }) => sum + count, 0)).toBe(gone.length);
          expect(await scene.store.upkeep.verify()).toEqual([]);
        },
      ),
      { numRuns: 25 },
    );
  });

  test.runIf(scene.hasSecond && factory.keepsNames !== true)(
    'forgets sources that nothing uses, and knows them again when they come back',
    async () => {
      const second = await scene.openSecond();
      const worker = await scene.join();
      const sources = Array.from({ length: 10_300 }, (_, n) => `mailbox:${n}`);
      const enqueue = (store: Store) => store.tasks.enqueue(sources.map((source) => newTask({ source })));
      await second.sources.setUp('default', { fair: true });
      const settleAll = async () => {
        const ids: number[] = [];
        for (
          let all = await scene.claim(worker, { limit: 5_000 });
          all.length > 0;
          all = await scene.claim(worker, { limit: 5_000 })
        ) {
          ids.push(...all.map(({ lease }) => lease.task));
          await scene.store.tasks.settle(all.map((claimed) => settlement(claimed, succeeded())));
        }
        return ids;
      };
      await enqueue(second);
      expect(await settleAll()).toHaveLength(sources.length);
      const waiting = await scene.enqueueOne({ source: 'mailbox:7' });
      while ((await scene.store.upkeep.tidy()) > 0);
      expect(await scene.stateOf(waiting)).toBe('ready');
      await enqueue(second);
      await enqueue(scene.store);
      expect(await settleAll()).toHaveLength(2 * sources.length + 1);
    },
  );

  test('has nothing to tidy where there are few names', async () => {
    await scene.taskIn('succeeded');
    expect(await scene.store.upkeep.tidy()).toBe(0);
  });
}
