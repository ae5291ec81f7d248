import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from './ask.ts';
import { openDatabases, type TestDatabases } from './databases.ts';

let databases: TestDatabases;
let preparations = 0;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    preparations += 1;
    await ask(url, 'create table seen as select 1 as n');
  });
});
afterAll(() => databases.close());

test('gives each test a database of its own that is a copy of the prepared one', async () => {
  const [one, other] = [await databases.take(), await databases.take()];
  await ask(one.url, 'insert into seen values (2)');
  expect(await ask(one.url, 'select n from seen order by n')).toEqual([{ n: 1 }, { n: 2 }]);
  expect(await ask(other.url, 'select n from seen')).toEqual([{ n: 1 }]);
  expect(preparations).toBe(1);
});

test('leaves no database behind, of those that were dropped and those that were never taken', async () => {
  const others = await openDatabases(async () => {});
  const { directUrl, drop } = await others.take();
  const common = new URL(directUrl).pathname.replace(/^\/(.*)_\d+$/, '$1');
  drop();
  await others.close();
  const { directUrl: observer } = await databases.take();
  expect(await ask(observer, `select datname from pg_database where starts_with(datname, '${common}')`)).toEqual([]);
});

test('tells why a database could not be prepared', async () => {
  const opening = openDatabases(async (url) => {
    await ask(url, 'create tabel seen');
  });
  await expect(opening).rejects.toThrow('syntax error');
});
