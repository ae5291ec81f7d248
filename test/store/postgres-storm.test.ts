import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { dice } from '../../src/testing/dice.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';
import { storm } from '../postgres/storm.mjs';

const STORES = 14;

let databases: TestDatabases;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    const store = await postgres(url).open({ clock: systemClock, random: Math.random });
    await store.upkeep.close();
  });
});
afterAll(() => databases.close());

test('many processes that open an empty database at once find its tables, whoever makes them', async () => {
  const empty = await openDatabases(async () => {});
  const { url } = await empty.take();
  const open = () => postgres(url, { connections: 2, listen: false }).open({ clock: systemClock, random: Math.random });
  const stores = await Promise.all(Array.from({ length: STORES }, open));
  await Promise.all(stores.map((store) => store.upkeep.close()));
  await empty.close();
});

test('everything at once loses no task, gives none to two, leaves none behind, and never comes to a deadlock', async () => {
  const database = await databases.take();
  const seed = Date.now() % 1_000_000;
  const random = dice(seed);
  const open = () => postgres(database.url, { connections: 3, listen: false }).open({ clock: systemClock, random });
  const stores = await Promise.all(Array.from({ length: STORES }, open));
  const { wrong, claimed } = await storm({ stores, rounds: 60, random, reorders: false }).finally(() =>
    Promise.all(stores.map((store) => store.upkeep.close())),
  );
  expect(wrong.join('\n'), `seed ${seed}`).toBe('');
  expect(claimed).toBeGreaterThan(100);
  expect(await deadlocksOf(database.directUrl), `seed ${seed}`).toBe(0);
  database.drop();
});

/** Told by each connection when it has ended. */
async function deadlocksOf(url: string): Promise<number> {
  const question = `SELECT deadlocks::integer, numbackends FROM pg_stat_database WHERE datname = current_database()`;
  for (let tries = 0; ; tries++) {
    const [row] = (await ask(url, question)) as unknown as [{ deadlocks: number; numbackends: number }];
    if (row.numbackends <= 1 || tries === 100) return row.deadlocks;
  }
}
