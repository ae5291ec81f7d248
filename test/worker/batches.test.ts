import { describe, expect, test } from 'vitest';
import { type BatchedTask, type BatchReturn, defineTask, NeedsManual, RetryLater } from '../../src/index.ts';
import { useKits } from './scene.ts';

const openKit = useKits();

type Answer = (tasks: readonly BatchedTask<number>[]) => BatchReturn<unknown> | Promise<BatchReturn<unknown>>;

/** A worker of tasks in batches, and the inputs of each call of `runBatch`. */
async function stage(answer: Answer, batch: { size?: number; wait?: `${number}s` } = {}, concurrency = 10) {
  const calls: number[][] = [];
  const index = defineTask<number>('index', {
    batch: { size: 4, ...batch },
    retry: { maxAttempts: 2, backoff: 'immediate' },
    runBatch(tasks) {
      calls.push(tasks.map(({ input }) => input));
      return answer(tasks);
    },
  });
  const kit = await openKit({ tasks: [index], worker: { concurrency } });
  const enqueue = async (...inputs: number[]) => (await kit.holdfast.enqueueAll(index, inputs)).map(({ id }) => id);
  const states = (ids: readonly number[]) =>
    Promise.all(
      ids.map(async (id) => {
        const { state, result, reason, attempts } = (await kit.holdfast.get(id)) ?? {};
        return { state, attempts, ...(result !== undefined && { result }), ...(reason !== undefined && { reason }) };
      }),
    );
  return { kit, index, calls, enqueue, states };
}

const succeeded = (result?: unknown) => ({ state: 'succeeded', attempts: 0, ...(result !== undefined && { result }) });

describe('tasks of a type with batches', () => {
  test('run together, at most `size` at once, and each has its own result', async () => {
    const { kit, calls, enqueue, states } = await stage((tasks) =>
      tasks.map(({ input, attempt }) => input * 10 + attempt),
    );
    const ids = await enqueue(1, 2, 3, 4, 5, 6);
    await kit.advance('1s');
    expect(calls).toEqual([
      [1, 2, 3, 4],
      [5, 6],
    ]);
    expect(await states(ids)).toEqual([11, 21, 31, 41, 51, 61].map(succeeded));
  });

  test('pay nothing for the wait for their batch, however long it is', async () => {
    const calls: number[] = [];
    const patient = defineTask<number>('patient', {
      batch: { size: 4, wait: '20s' },
      retry: { maxAttempts: 1, timeout: '5s' },
      async runBatch(tasks) {
        calls.push(tasks.length);
        if (tasks.length === 1) await new Promise((_, reject) => tasks[0]?.signal.addEventListener('abort', reject));
      },
    });
    const kit = await openKit({ tasks: [patient], worker: { concurrency: 10 } });
    const receipts = await kit.holdfast.enqueueAll(patient, [1, 2]);
    await kit.advance('21s');
    expect(calls).toEqual([2]);
    for (const { id } of receipts) expect(await kit.holdfast.get(id)).toMatchObject(succeeded());
    // The limit counts from the call of `runBatch`.
    const { id } = await kit.holdfast.enqueue(patient, 3);
    await kit.advance('24s');
    expect((await kit.holdfast.get(id)).state).toBe('running');
    await kit.advance('2s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
  });

  test('succeed all if `runBatch` returns nothing', async () => {
    const { kit, enqueue, states } = await stage(() => {});
    const ids = await enqueue(1, 2);
    await kit.advance('1s');
    expect(await states(ids)).toEqual([succeeded(), succeeded()]);
  });

  test.each<[string, Answer]>([
    [
      'a list',
      () => ['done', new NeedsManual('Look.'), new RetryLater('1h'), Object.assign(new Error('x'), { code: 'EBUSY' })],
    ],
    [
      'a Map by id',
      ([a, b, c, d]) =>
        new Map<number, unknown>([
          [d?.id as number, Object.assign(new Error('x'), { code: 'EBUSY' })],
          [c?.id as number, new RetryLater('1h')],
          [b?.id as number, new NeedsManual('Look.')],
          [a?.id as number, 'done'],
        ]),
    ],
    [
      'what allSettled gives',
      () =>
        Promise.allSettled([
          'done',
          Promise.reject(new NeedsManual('Look.')),
          Promise.reject(new RetryLater('1h')),
          Promise.reject(Object.assign(new Error('x'), { code: 'EBUSY' })),
        ]),
    ],
  ])('end as %s says, each by itself', async (_, answer) => {
    let first = true;
    const { kit, enqueue, states } = await stage((tasks) => {
      if (!first) return;
      first = false;
      return answer(tasks);
    });
    const ids = await enqueue(1, 2, 3, 4);
    await kit.advance('1ms');
    expect(await states(ids)).toMatchObject([
      { state: 'succeeded', result: 'done' },
      { state: 'needs_manual', attempts: 0 },
      { state: 'scheduled', attempts: 0 },
      { attempts: 1 },
    ]);
  });

  test.each<[string, Answer, string]>([
    [
      'an error',
      () => {
        throw Object.assign(new Error('x'), { code: 'EBUSY' });
      },
      'fs.locked',
    ],
    ['a list of another length', () => ['a'], 'code.bug'],
    ['a value', () => 'a' as never, 'code.bug'],
    ['a Map without it', () => new Map(), 'code.bug'],
  ])('are charged once each for %s', async (_, answer, reason) => {
    const { kit, enqueue } = await stage(answer);
    const ids = await enqueue(1, 2, 3);
    await kit.advance('1m');
    for (const id of ids) {
      const history = await kit.holdfast.history(id);
      const charged = history.flatMap((entry) =>
        entry.kind === 'execution' ? [[entry.charge, entry.failure?.reason]] : [],
      );
      expect(charged).toEqual(charged.map(() => ['task', reason]));
      expect((await kit.holdfast.get(id))?.attempts).toBe(charged.length);
    }
  });

  test('wait for more, until the wait is over or no more can come', async () => {
    const { kit, calls, enqueue } = await stage(() => {}, { size: 3, wait: '5s' });
    await enqueue(1);
    await kit.advance('3s');
    await enqueue(2);
    await kit.advance('1s');
    expect(calls).toEqual([]);
    await kit.advance('1s');
    expect(calls).toEqual([[1, 2]]);

    await enqueue(3, 4, 5);
    await kit.advance('1ms');
    expect(calls).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);

    const full = await stage(() => {}, { size: 100, wait: '5s' }, 2);
    await full.enqueue(1, 2, 3);
    await full.kit.advance('1ms');
    expect(full.calls).toEqual([[1, 2]]);
  });

  test('do not begin if they were cancelled while they waited', async () => {
    const { kit, calls, enqueue, states } = await stage(() => {}, { wait: '5s' });
    const [first, second] = (await enqueue(1, 2)) as [number, number];
    await kit.advance('1ms');
    await kit.holdfast.cancel(first);
    await kit.advance('6s');
    expect(calls).toEqual([[2]]);
    expect(await states([first, second])).toMatchObject([{ state: 'cancelled' }, { state: 'succeeded' }]);
  });

  test.each<[string, object, RegExp]>([
    ['no size', { batch: {}, runBatch() {} }, /batch\.size must be/],
    ['a batch of one', { batch: { size: 1 }, runBatch() {} }, /batch\.size must be/],
    ['no runBatch', { batch: { size: 2 } }, /needs both: batch: \{ size: 100 \} and runBatch/],
    ['no batch', { runBatch() {} }, /needs both/],
    ['run too', { batch: { size: 2 }, runBatch() {}, run() {} }, /takes `runBatch` in place of `run`/],
    ['another option', { batch: { size: 2, max: 3 }, runBatch() {} }, /max/],
  ])('are refused with %s', (_, options, message) => {
    expect(() => defineTask('index', options as never)).toThrow(message);
  });
});
