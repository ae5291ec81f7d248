import { describe, expect, test } from 'vitest';
import type { NewTask } from '../../../src/store/store.ts';
import { QUEUE_ORDERS } from '../../../src/task.ts';
import { idsOf, newTask, type StoreFactory, succeeded, useScene } from '../scene.ts';

export function promisesOfEnqueueing(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('answers a receipt for each task, in the order in which they were given, with ids that rise', async () => {
    const given = ['"a"', JSON.stringify('\x1e\t"\\{ü},'), '""'];
    const receipts = await scene.store.tasks.enqueue(given.map((payload) => newTask({ payload })));

    expect(receipts.map(({ created }) => created)).toEqual([true, true, true]);
    const ids = receipts.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(new Set(ids).size).toBe(3);
    const payloads = await Promise.all(ids.map(async (id) => (await scene.find(id)).payload));
    expect(payloads).toEqual(given);
  });

  describe('tasks of one call that differ only in their payloads', () => {
    const many = (task: Partial<NewTask>) => Array.from({ length: 9 }, () => task);

    test.each([1, 7, 8, 9, 99, 100, 143])('%i of them keep their payloads, in their order', async (count) => {
      const payloads = Array.from({ length: count }, (_, n) => JSON.stringify({ n }));
      const ids = await scene.enqueue(...payloads.map((payload) => ({ payload })));

      const claimed = await scene.claim(await scene.join(), { limit: 200 });

      expect(idsOf(claimed)).toEqual(ids);
      expect(claimed.map(({ payload }) => payload)).toEqual(payloads);
    });

    test('are told from tasks that differ in one other value, each of which it keeps', async () => {
      const now = scene.now();
      const others = [
        { source: 'imap:Sent' },
        { priority: 3 },
        { submittedAt: now - 5_000 },
        { dueAt: now - 1_000 },
        { delay: 60_000 },
        { dueAt: now + 60_000 },
        { deadline: now + 60_000 },
        { idempotent: false },
        { policy: '{"maxAttempts":2}' },
        { category: 'nightly' },
        { needs: { gpu: true } },
        { type: 'charge' },
        { queue: 'billing' },
      ];

      for (const given of others) {
        const ids = await scene.enqueue(...many({}), given, ...many({}), ...many(given));

        const [first, last, between, after] = await Promise.all([0, 8, 9, 10].map((n) => scene.find(ids[n] as number)));
        const plain = await scene.find(await scene.enqueueOne());
        const alone = await scene.find(await scene.enqueueOne(given));
        for (const one of [first, last, after]) expect(one).toEqual({ ...plain, id: one?.id });
        for (const one of [between, await scene.find(ids[19] as number), await scene.find(ids[27] as number)]) {
          expect(one).toEqual({ ...alone, id: one?.id });
        }
      }
    });

    test('and one with a key among them is found again', async () => {
      const ids = await scene.enqueue(...many({}), { key: 'k' }, ...many({}));

      const [again] = await scene.store.tasks.enqueue([newTask({ key: 'k' })]);

      expect(new Set(ids).size).toBe(19);
      expect(again).toMatchObject({ id: ids[9], created: false });
    });

    test.each(QUEUE_ORDERS)('are claimed in the order %s, between those of other calls', async (order) => {
      await scene.store.sources.setUp('default', { order });
      const calls: number[][] = [];
      for (const count of [3, 20, 1, 9]) {
        calls.push(await scene.enqueue(...Array.from({ length: count }, () => ({ priority: 2 }))));
        scene.advance(10);
      }

      const claimed = idsOf(await scene.claim(await scene.join(), { limit: 200 }));

      const submitted = calls.flat();
      if (order === 'weighted_random') expect([...claimed].sort((a, b) => a - b)).toEqual(submitted);
      else expect(claimed).toEqual(order === 'lifo' ? submitted.toReversed() : submitted);
    });
  });

  test('takes an empty batch', async () => {
    expect(await scene.store.tasks.enqueue([])).toEqual([]);
  });

  test('keeps everything that it was given', async () => {
    const now = scene.now();
    const given = newTask({
      type: 'charge',
      queue: 'billing',
      source: 'api:stripe',
      priority: 4_095,
      category: 'nightly',
      needs: { cpu: 4, gpu: 'RTX5090', ssd: true },
      payload: '{"n":1}',
      idempotent: false,
      key: 'invoice-1',
      policy: '{"maxAttempts":2}',
      submittedAt: now - 5_000,
      deadline: now + 90_000,
    });

    const id = await scene.enqueueOne(given);

    const { delay, ...kept } = given;
    expect(await scene.find(id)).toEqual({
      ...kept,
      id,
      heldBy: 'no_worker',
      state: 'ready',
      createdAt: now,
      executions: 0,
      charged: [],
      deferrals: 0,
      recoveries: 0,
      lostInARow: 0,
    });
  });

  test('leaves out of the record what a task does not have', async () => {
    const record = await scene.find(await scene.enqueueOne());

    for (const name of ['category', 'needs', 'key', 'result', 'policy', 'dueAt', 'deadline', 'endedAt', 'running']) {
      expect(record, name).toHaveProperty('id');
      expect(Object.keys(record), name).not.toContain(name);
    }
  });

  test('counts a delay from its own now, and takes a task without one as due', async () => {
    const [soon, later] = await scene.enqueue({}, { delay: 60_000 });

    expect(await scene.find(soon as number)).toMatchObject({ state: 'ready', submittedAt: scene.now() });
    expect(await scene.find(later as number)).toMatchObject({
      state: 'scheduled',
      dueAt: scene.now() + 60_000,
      submittedAt: scene.now(),
    });
  });

  test('takes the time that somebody named, and is due at once when that has passed', async () => {
    const [future, past] = await scene.enqueue({ dueAt: scene.now() + 7_000 }, { dueAt: scene.now() - 7_000 });

    expect(await scene.find(future as number)).toMatchObject({ state: 'scheduled', dueAt: scene.now() + 7_000 });
    expect(await scene.stateOf(past as number)).toBe('ready');
  });

  describe('with a key', () => {
    test('records only the first task, returns its receipt to all later calls, and does not change it', async () => {
      const [first] = await scene.store.tasks.enqueue([newTask({ key: 'k', payload: '1' })]);
      const [again] = await scene.store.tasks.enqueue([newTask({ key: 'k', payload: '2', priority: 9, delay: 5_000 })]);

      expect(first?.created).toBe(true);
      expect(again).toMatchObject({ id: first?.id, created: false });
      expect(await scene.find(first?.id as number)).toMatchObject({ payload: '1', priority: 0, state: 'ready' });
    });

    test('has keys of its own for each type', async () => {
      const receipts = await scene.store.tasks.enqueue([
        newTask({ key: 'k', type: 'a' }),
        newTask({ key: 'k', type: 'b' }),
      ]);

      expect(receipts.map(({ created }) => created)).toEqual([true, true]);
    });

    test('recognises a key again within one batch', async () => {
      const receipts = await scene.store.tasks.enqueue([
        newTask({ key: 'k', payload: '1' }),
        newTask({ key: 'other' }),
        newTask({ key: 'k', payload: '2' }),
      ]);

      expect(receipts.map(({ created }) => created)).toEqual([true, true, false]);
      expect(receipts[2]?.id).toBe(receipts[0]?.id);
    });

    test('records one task for many calls at the same time', async () => {
      const calls = Array.from({ length: 20 }, () => scene.store.tasks.enqueue([newTask({ key: 'k' })]));
      const receipts = (await Promise.all(calls)).flat();

      expect(receipts.filter(({ created }) => created)).toHaveLength(1);
      expect(new Set(receipts.map(({ id }) => id)).size).toBe(1);
    });

    test('recognises the key of a task that has ended', async () => {
      const claimed = await scene.start(await scene.join(), { key: 'k' });
      await scene.settle(claimed, succeeded());

      const [again] = await scene.store.tasks.enqueue([newTask({ key: 'k' })]);
      expect(again).toMatchObject({ id: claimed.lease.task, created: false });
    });

    test('never takes two tasks without a key for one', async () => {
      const ids = await scene.enqueue({ payload: 'same' }, { payload: 'same' });
      expect(new Set(ids).size).toBe(2);
    });
  });

  test.runIf(factory.openSecond)('lets another process see a task once it is acknowledged, and its key', async () => {
    const second = await scene.openSecond();
    const id = await scene.enqueueOne({ key: 'k' });

    expect(await second.records.find(id)).toMatchObject({ id, key: 'k', state: 'ready' });
    expect(await second.tasks.enqueue([newTask({ key: 'k' })])).toMatchObject([{ id, created: false }]);
  });

  test('takes a thousand tasks at once', async () => {
    const ids = await scene.enqueue(...Array.from({ length: 1_000 }, (_, n) => ({ payload: String(n) })));

    const claimed = await scene.claim(await scene.join(), { limit: 1_000 });
    expect(idsOf(claimed)).toEqual(ids);
    expect(claimed.map(({ payload }) => payload)).toEqual(ids.map((_, n) => String(n)));
  });
}
