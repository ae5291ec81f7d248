import { expect, test } from 'vitest';
import { StoreError } from '../../src/errors.ts';
import { Gathering } from '../../src/store/postgres/writer.ts';

const away = new StoreError('store_unavailable', 'It cannot be reached.', { retryable: true });
const refused = new StoreError('store_unavailable', 'It refused a statement.');

/** Calls one, two and three in one turn of a store that answers what `write` says. */
function callThree(write: (items: readonly string[]) => Promise<readonly string[]>) {
  const gathering = new Gathering<string, string>({
    write,
    sizeOf: () => 1,
    locksOf: () => [],
    mayBeBlocked: () => false,
    areIndependent: false,
    groupPatience: 0,
    patience: 0,
    explain: async (error) => error,
  });
  return Promise.allSettled(['one', 'two', 'three'].map((item) => gathering.call([item])));
}

test('a statement that is refused for the sake of one call is made again for each alone', async () => {
  const answers = await callThree(async (items) => {
    if (items.includes('two')) throw refused;
    return items;
  });

  expect(answers).toEqual([
    { status: 'fulfilled', value: ['one'] },
    { status: 'rejected', reason: refused },
    { status: 'fulfilled', value: ['three'] },
  ]);
});

test('a database that is away is not asked again for each call: it was asked for long enough, and may have heard', async () => {
  const asked: (readonly string[])[] = [];
  const answers = await callThree(async (items) => {
    asked.push(items);
    throw away;
  });

  expect(asked).toEqual([['one', 'two', 'three']]);
  expect(answers).toEqual(Array(3).fill({ status: 'rejected', reason: away }));
});

test('of many calls that wait for one key, one is made again each time, and a call that needs another key does not wait', async () => {
  const blocking = new StoreError('store_busy', 'Another transaction has the key.', {
    retryable: true,
    cause: Object.assign(new Error(), { code: '55P03' }),
  });
  const tried: string[] = [];
  let isHeld = true;
  const gathering = new Gathering<string, string>({
    write: async (items) => {
      tried.push(items.join());
      if (isHeld && items.some((item) => item.startsWith('held'))) throw blocking;
      if (items.includes('other')) isHeld = false;
      return items;
    },
    sizeOf: () => 1,
    locksOf: (item) => [item.split(' ')[0] as string],
    mayBeBlocked: () => true,
    areIndependent: false,
    groupPatience: 0,
    patience: 60_000,
    explain: async (error) => error,
  });
  const first = gathering.call(['held 0']);
  while (tried.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const waiting = Array.from({ length: 50 }, (_, n) => gathering.call([`held ${n + 1}`]));
  // Once made as a statement that others share, once alone; from then on the key is known to be held.
  while (tried.length < 5) await new Promise((resolve) => setImmediate(resolve));
  expect(tried).toEqual(Array(5).fill('held 0'));

  const other = gathering.call(['other']);
  await Promise.all([first, other, ...waiting]);
  expect(tried.filter((items) => items === 'other')).toHaveLength(1);
  expect(tried.filter((items) => /^held [1-9]/.test(items))).toHaveLength(50);
});

test('where many calls are blocked, each is tried for a short time, so that another call is soon tried', async () => {
  const blocking = new StoreError('store_busy', 'Another transaction has the key.', {
    retryable: true,
    cause: Object.assign(new Error(), { code: '55P03' }),
  });
  const waits: number[] = [];
  let areHeld = true;
  const gathering = new Gathering<string, string>({
    write: async (items, patience) => {
      if (items.length === 1) waits.push(patience);
      if (areHeld && items.some((item) => item.startsWith('held'))) throw blocking;
      if (items.includes('free')) areHeld = false;
      return items;
    },
    sizeOf: () => 1,
    locksOf: (item) => [item],
    mayBeBlocked: () => true,
    areIndependent: false,
    groupPatience: 500,
    patience: 10_000,
    explain: async (error) => error,
  });
  const held = Array.from({ length: 100 }, (_, n) => gathering.call([`held ${n}`]));
  expect(await gathering.call(['free'])).toEqual(['free']);
  expect(waits).toHaveLength(101);
  expect(Math.min(...waits)).toBeGreaterThan(0);
  expect(waits.reduce((sum, wait) => sum + wait)).toBeLessThan(300);
  await Promise.all(held);
});

test('calls that are too large for one statement together are made by several, and one that is too large by itself alone', async () => {
  const mebibytes = { a: 30, b: 30, c: 30, large: 100, d: 1 };
  const statements: string[] = [];
  const gathering = new Gathering<keyof typeof mebibytes, string>({
    write: async (items) => {
      statements.push(items.join());
      return items;
    },
    sizeOf: (item) => mebibytes[item] * 1_048_576,
    locksOf: () => [],
    mayBeBlocked: () => false,
    areIndependent: false,
    groupPatience: 0,
    patience: 0,
    explain: async (error) => error,
  });
  await Promise.all((['a', 'b', 'c', 'large', 'd'] as const).map((item) => gathering.call([item])));
  expect(statements).toEqual(['a,b', 'c', 'large', 'd']);
});
