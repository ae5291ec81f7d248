import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineTask, type Holdfast, openHoldfast } from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { gate } from '../worker/scene.ts';
import { nonsense, refused, watchRejections } from './refused.ts';

watchRejections();

let holdfast: Holdfast;
let before: number;
const work = defineTask('work', { run() {} });
beforeAll(async () => {
  holdfast = await openHoldfast({ store: aStore(), tasks: [work] });
});
afterAll(() => holdfast.close());
const countOf = async () => Object.values((await holdfast.counts()).byState).reduce((sum, n) => sum + n, 0);
beforeEach(async () => {
  before = await countOf();
});

describe('enqueueAll', () => {
  test('records each input, and answers a receipt for each in their order', async () => {
    const receipts = await holdfast.enqueueAll(work, ['a', 'b', 'c']);

    expect(receipts.every(({ created }) => created)).toBe(true);
    const tasks = await Promise.all(receipts.map(({ id }) => holdfast.get(id)));
    expect(tasks.map(({ input }) => input)).toEqual(['a', 'b', 'c']);
  });

  test('takes nothing, and answers nothing', async () => {
    expect(await holdfast.enqueueAll(work, [])).toEqual([]);
    expect(await countOf()).toBe(before);
  });

  test('takes a type by text, whose worker says whether it may run twice', async () => {
    const [receipt] = await holdfast.enqueueAll('elsewhere', [{ n: 1 }]);
    expect(await holdfast.get(receipt?.id as number)).toMatchObject({ type: 'elsewhere', input: { n: 1 } });
  });

  test('gives all of them the same options, or each its own', async () => {
    const [a] = await holdfast.enqueueAll(work, [1, 2], { queue: 'q', delay: '1h' });
    expect(await holdfast.get(a?.id as number)).toMatchObject({ queue: 'q', state: 'scheduled' });

    const users = [{ id: 'ada' }, { id: 'bob' }, { id: 'ada' }];
    const receipts = await holdfast.enqueueAll(work, users, (user, index) => ({ key: user.id, priority: index }));

    expect(receipts.map(({ created }) => created)).toEqual([true, true, false]);
    expect(receipts[2]?.id).toBe(receipts[0]?.id);
    expect(await holdfast.get('bob')).toMatchObject({ input: { id: 'bob' }, priority: 1 });
    expect(await holdfast.enqueueAll(work, users, ({ id }) => ({ key: id }))).toEqual(
      receipts.map(({ id }) => ({ id, created: false, state: 'ready' })),
    );
  });

  test('asks the functions and the schema of the definition about each', async () => {
    const task = defineTask('typed', {
      input: z.object({ box: z.string().toLowerCase() }),
      source: ({ box }) => `imap:${box}`,
      idempotent: ({ box }) => box !== 'once',
      run() {},
    });
    const receipts = await holdfast.enqueueAll(task, [{ box: 'INBOX' }, { box: 'once' }]);
    const tasks = await Promise.all(receipts.map(({ id }) => holdfast.get(id)));
    expect(tasks).toMatchObject([
      { source: 'imap:inbox', idempotent: true, input: { box: 'INBOX' } },
      { source: 'imap:once', idempotent: false },
    ]);
  });

  test('waits for a schema that answers promises, and keeps the order of the inputs', async () => {
    const slow = gate();
    const input = z.string().refine(async (text) => {
      if (text === 'slow') await slow.passed;
      return text !== 'bad';
    });
    const task = defineTask('checked', { input, run() {} });
    const recorded = holdfast.enqueueAll(task, ['slow', 'quick']);
    slow.open();

    const tasks = await Promise.all((await recorded).map(({ id }) => holdfast.get(id)));
    expect(tasks.map(({ input: text }) => text)).toEqual(['slow', 'quick']);

    const error = await refused(() => holdfast.enqueueAll(task, ['good', 'bad', 'bad']));
    expect(error).toMatchObject({ code: 'invalid_input', index: 1 });
    const early = await refused(() => holdfast.enqueueAll(task, ['bad', { n: 10n } as never]));
    expect(early).toMatchObject({ code: 'payload_rejected', index: 1 });
    expect(await countOf()).toBe(before + 2);
  });

  test('of what is still being checked when Holdfast closes is recorded before the end', async () => {
    const store = aStore();
    const slow = gate();
    const input = z.string().refine(() => slow.passed.then(() => true));
    const task = defineTask('checked', { input, run() {} });
    const closing = await openHoldfast({ store });
    const recorded = closing.enqueueAll(task, ['a', 'b']);
    const closed = closing.close();
    slow.open();

    expect(await recorded).toHaveLength(2);
    await closed;
  });

  test('records all or none: one that the database cannot take leaves nothing of them', async () => {
    const [kept, refusedOnes] = await Promise.allSettled([
      holdfast.enqueueAll(work, [1, 2]),
      // What a store cannot take never comes so far, so it is slipped in behind the checks.
      holdfast.store.tasks.enqueue([
        { type: 'work', queue: 'default', source: 'work', priority: 0, payload: '1', delay: 0 },
        { type: 'work', queue: 'default', source: 'work', priority: 0, payload: undefined as never, delay: 0 },
      ]),
    ]);
    expect([kept.status, refusedOnes.status]).toEqual(['fulfilled', 'rejected']);
    expect(await countOf()).toBe(before + 2);
    expect(await holdfast.store.upkeep.verify()).toEqual([]);
  });

  test('takes 10,000 at once, and no more', async () => {
    expect(await holdfast.enqueueAll(work, Array(10_000).fill(null))).toHaveLength(10_000);
    const error = await refused(() => holdfast.enqueueAll(work, Array(10_001).fill(null)));
    expect(error.message).toMatch(/at most 10000 inputs.*got 10001/);
    expect(await countOf()).toBe(before + 10_000);
  });
});

describe('enqueueAll refuses', () => {
  const all = (inputs: unknown, options?: unknown) =>
    refused(() => holdfast.enqueueAll(work, inputs as never, options as never));

  test('the first input that is wrong, by its place, and records nothing', async () => {
    const error = await all([1, { a: [Number.NaN] }, { n: 10n }]);

    expect(error).toMatchObject({
      code: 'payload_rejected',
      index: 1,
      path: '$.a[0]',
      cause: { code: 'payload_rejected' },
    });
    expect(error.message).toMatch(
      /^inputs\[1\] is refused, so nothing was enqueued\. The payload holds NaN at \$\.a\[0\]/,
    );
    expect(await all([1, 'x'.repeat(1_100_000)])).toMatchObject({ code: 'payload_too_large', index: 1 });
    expect(await countOf()).toBe(before);
  });

  test('the first options that are wrong, by their place', async () => {
    const wrong = await all([1, 2], (_: unknown, index: number) => ({ priority: index === 1 ? -1 : 0 }));
    expect(wrong).toMatchObject({ code: 'invalid_input', index: 1 });
    expect(wrong.message).toMatch(/priority must be a whole number/);
    const policy = await all([1, 2], () => ({ retry: { maxAttempts: 0 } }));
    expect(policy).toMatchObject({ code: 'invalid_policy', index: 0 });
    const threw = await all([{}, { user: {} }], (input: { user: { id: string } }) => ({ key: input.user.id }));
    expect(threw).toMatchObject({ code: 'invalid_input', index: 0, cause: expect.any(TypeError) });
    for (const [, options] of nonsense(['an object', 'a hostile object', 'an invalid Date', 'a function'])) {
      expect(await all([1], () => options)).toMatchObject({ code: 'invalid_input', index: 0 });
    }
    expect(await countOf()).toBe(before);
  });

  test('what it cannot use for a task, inputs or options', async () => {
    for (const [, task] of nonsense(['a text'])) {
      expect((await refused(() => holdfast.enqueueAll(task as never, [1]))).code).toBe('invalid_input');
    }
    for (const [, inputs] of nonsense(['an array']))
      expect((await all(inputs)).message).toMatch(/inputs must be a list/);
    for (const [, options] of nonsense(['a hostile object', 'an invalid Date', 'a function'])) {
      expect((await all([1], options)).code).toBe('invalid_input');
    }
    expect((await all([], { dealy: 1 })).message).toMatch(/no option 'dealy'/);
    expect(await countOf()).toBe(before);
  });

  test('one key for all', async () => {
    expect((await all([1, 2], { key: 'k' })).message).toMatch(/`key` names one task.*\(input\) => \(\{ key: … \}\)/);
  });
});

test('what no schema has to wait for goes to the store in the turn of its call', async () => {
  const own = await openHoldfast({ store: aStore() });
  const reached = vi.spyOn(own.store.tasks, 'enqueue');
  const checked = defineTask('checked', { input: z.string(), source: (text) => text, run() {} });

  const recorded = [own.enqueue(work, 1), own.enqueueAll(work, [1, 2]), own.enqueue(checked, 's'), own.enqueue('t', 1)];

  expect(reached).toHaveBeenCalledTimes(recorded.length);
  await Promise.all(recorded);
  await own.close();
});
