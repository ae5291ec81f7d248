import { afterAll, beforeAll, expect, test } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';
import { at, blocksOf } from './blocks.ts';

let databases: TestDatabases;
beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    const holdfast = await openHoldfast({ store: postgres(url) });
    await holdfast.close();
  });
});
afterAll(() => databases.close());

/** Roles belong to the whole server, which other tests use too. */
const ownRoles = (code: string): string => code.replace(/\b(to|from|role) (app|producer)\b/gi, '$1 docs_$2');

test('each SQL statement that a page shows is accepted by a database with a store', async () => {
  const { url } = await databases.take();
  await ask(url, 'CREATE ROLE docs_app; CREATE ROLE docs_producer');
  const blocks = blocksOf('sql');
  expect(blocks.length).toBeGreaterThan(6);
  const refused: string[] = [];
  for (const block of blocks) {
    // A page about SQLite names the view without the schema.
    const code = `SET search_path TO public, holdfast; ${ownRoles(block.code)}`;
    await ask(url, code).catch((error: Error) => refused.push(`${at(block)}: ${error.message}`));
  }
  await ask(url, 'DROP OWNED BY docs_app, docs_producer; DROP ROLE docs_app, docs_producer');
  expect(refused).toEqual([]);
  const [{ tasks } = {}] = await ask(url, 'SELECT count(*)::int AS tasks FROM holdfast.holdfast_tasks');
  expect(tasks).toBe(3);
});
