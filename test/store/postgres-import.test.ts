import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Holdfast, openHoldfast } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * An import of many tasks, while others write to the same database.
 */

let databases: TestDatabases;
let database: TestDatabase;
let holdfast: Holdfast;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await openHoldfast({ store: postgres(url) })).close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
  holdfast = await openHoldfast({ store: postgres(database.url) });
});
afterEach(async () => {
  await holdfast.close();
  database.drop();
});

test('ten thousand dead tasks are recorded in ten transactions', async () => {
  const tasks = Array.from({ length: 10_000 }, (_, n) => ({
    type: 'mail',
    input: n,
    key: `k${n}`,
    state: 'dead' as const,
  }));
  const receipts = await holdfast.importTasks(tasks);
  expect(new Set(receipts.map(({ id }) => id)).size).toBe(10_000);
  expect(
    await ask(database.directUrl, 'SELECT count(*)::int AS tasks FROM holdfast.ended GROUP BY xmin::text ORDER BY 1'),
  ).toEqual(Array(10).fill({ tasks: 1_000 }));
  expect(await holdfast.importTasks(tasks.slice(0, 2))).toEqual(
    receipts.slice(0, 2).map(({ id }) => ({ id, created: false })),
  );
}, 60_000);

test('more payloads in one enqueue than a message can hold are refused in words', async () => {
  const input = ' '.repeat(1_000_000);
  await expect(holdfast.enqueueAll('mail', Array(202).fill(input))).rejects.toThrow(
    'The payloads of these 202 tasks have 193 MiB together, and one call takes 192 MiB. Enqueue fewer tasks at once.',
  );
});
