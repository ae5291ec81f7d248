import { expect, test } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { aStore } from '../a-store.ts';

test('a search ends after so many tasks that were compared, and says where to go on', async () => {
  const holdfast = await openHoldfast({ store: aStore() });
  const { administration } = holdfast;
  const receipts = await holdfast.enqueueAll(
    'work',
    Array.from({ length: 9 }, (_, n) => ({ n })),
    ({ n }) => ({ priority: n % 3 }),
  );
  const ids = receipts.map(({ id }) => id);
  const search = async (options: Parameters<typeof administration.search>[1]) => {
    const { tasks, next } = await administration.search({ priority: [{ from: 1, to: 1 }] }, options);
    return { found: tasks.map(({ id }) => id), next };
  };

  expect(await search({ limit: 9, most: 99 })).toEqual({ found: [ids[7], ids[4], ids[1]], next: null });
  expect(await search({ limit: 2, most: 99 })).toEqual({ found: [ids[7], ids[4]], next: ids[4] });
  expect(await search({ limit: 3, most: 99 })).toEqual({ found: [ids[7], ids[4], ids[1]], next: null });
  expect(await search({ limit: 9, most: 4 })).toEqual({ found: [ids[7]], next: ids[5] });
  expect(await search({ limit: 9, most: 4, before: ids[5] })).toEqual({ found: [ids[4], ids[1]], next: ids[1] });
  expect(await search({ limit: 9, most: 99, keep: ({ id }) => id !== ids[7] })).toEqual({
    found: [ids[4], ids[1]],
    next: null,
  });
  await holdfast.close();
});
