import { expect, test } from 'vitest';
import { StoreError } from '../../src/errors.ts';
import { Gathering } from '../../src/store/postgres/writer.ts';

const away = new StoreError('store_unavailable', 'It cannot be reached.', { retryable: true });
const refused = new StoreError('store_unavailable', 'It refused a statement.');

/** Calls one, two and three in one turn of a store that answers what `write` says. */
function callThree(write: (items: readonly string[]) => Promise<readonly string[]>) {
  const gathering = new Gathering<string, string>({
    write,
    onWritten: () => {},
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
