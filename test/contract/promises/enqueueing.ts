import { describe, expect, test } from 'vitest';
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
