import { afterEach, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineTask, NeedsManual, openHoldfast, PermanentFailure, type Task } from '../../src/index.ts';
import { openTestHoldfast, type TestHoldfast } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';
import { refused } from './refused.ts';

const add = defineTask('add', {
  input: z.object({ a: z.coerce.number(), b: z.number().default(1) }),
  run: ({ a, b }) => ({ sum: a + b, at: new Date(0) }),
});
const end = defineTask('end', {
  run({ how }: { how: string }) {
    if (how === 'dead') throw new PermanentFailure('It is closed', { reason: 'order.closed' });
    if (how === 'manual') throw new NeedsManual();
  },
});

let kit: TestHoldfast;
afterEach(() => kit.close());
const open = async () => {
  kit = await openTestHoldfast({ tasks: [add, end], store: aStore() });
  return kit.holdfast;
};

describe('the result of a task', () => {
  test('has the type that its handler returns, as JSON carries it', async () => {
    const holdfast = await open();
    const { id } = await holdfast.enqueue(add, { a: '2' }, { key: 'k' });
    const waiting = holdfast.result(id, { task: add });
    await kit.drain();
    const result = await waiting;
    expectTypeOf(result).toEqualTypeOf<{ sum: number; at: string }>();
    expect(result).toEqual({ sum: 3, at: '1970-01-01T00:00:00.000Z' });
    for (const name of [id, 'k']) {
      const task = await holdfast.get(name, add);
      expectTypeOf(task).toEqualTypeOf<Task<{ sum: number; at: string }>>();
      expect(task.result?.sum).toBe(3);
    }
    expect(await holdfast.result('k')).toEqual(result);
  });

  test('is waited for over retries, on the clock of the task', async () => {
    const holdfast = await open();
    const { id } = await holdfast.enqueue(add, { a: 1 }, { delay: '3d' });
    const waiting = holdfast.result(id, { task: add, timeout: '4d' });
    await kit.advance('3d');
    expect((await waiting).sum).toBe(2);
  });

  test('of one that died or needs a person is refused, with what can be done', async () => {
    const holdfast = await open();
    const [dead, manual] = await holdfast.enqueueAll(end, [{ how: 'dead' }, { how: 'manual' }]);
    await kit.drain();
    const error = await refused(() => holdfast.result(dead?.id as number));
    expect(error).toMatchObject({ code: 'task_failed', state: 'dead', reason: 'order.closed' });
    expect(error.message).toMatch(/is dead, so it has no result.*order.closed: It is closed\. `explain\(1\)`/);
    await expect(holdfast.result(manual?.id as number)).rejects.toMatchObject({ state: 'needs_manual' });
  });

  test('that does not come in time is refused, and the task goes on', async () => {
    const holdfast = await open();
    const { id } = await holdfast.enqueue(end, { how: 'well' }, { delay: '2h' });
    const waiting = refused(() => holdfast.result(id, { timeout: '1h' }));
    await kit.advance('1h');
    expect(await waiting).toMatchObject({ code: 'result_timeout', state: 'scheduled' });
    await kit.advance('1h');
    expect(await holdfast.result(id)).toBeUndefined();
  });

  test('with the definition of another type is refused', async () => {
    const holdfast = await open();
    const { id } = await holdfast.enqueue(end, { how: 'well' });
    expect((await refused(() => holdfast.get(id, add))).message).toMatch(/is of the type 'end', not 'add'/);
  });
});

test('a type is enqueued by one definition only', async () => {
  const holdfast = await open();
  const other = defineTask('add', { run() {} });
  expect((await refused(() => holdfast.enqueue(other, {}))).message).toMatch(/another definition of the type 'add'/);
  const elsewhere = [defineTask('elsewhere', { run() {} }), defineTask('elsewhere', { run() {} })] as const;
  await holdfast.enqueue(elsewhere[0], {});
  await holdfast.enqueue(elsewhere[0], {}, { delay: '1h' });
  expect((await refused(() => holdfast.enqueueAll(elsewhere[1], [{}]))).message).toMatch(/was enqueued before/);
  await expect(openHoldfast({ store: aStore(), tasks: [add, other] })).rejects.toThrow('defined twice');
});
