import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';

/*
 * What plpgsql_check finds in the functions: columns and tables that are not there, types that do not fit, variables that nothing
 * uses. The Debian package postgresql-15-plpgsql-check brings it.
 */

let databases: TestDatabases;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    const store = await postgres(url).open({ clock: systemClock, random: Math.random });
    await store.upkeep.close();
  });
});
afterAll(() => databases.close());

test('every function is sound, where plpgsql_check is installed', async () => {
  const { directUrl } = await databases.take();
  const available = await ask(directUrl, "SELECT 1 FROM pg_available_extensions WHERE name = 'plpgsql_check'");
  if (available.length === 0) return;
  const { schema } = functionsOver('"holdfast"');
  const { pathname } = new URL(directUrl);
  // Functions that only others call have no search path of their own.
  await ask(
    directUrl,
    `CREATE SCHEMA checks; CREATE EXTENSION plpgsql_check SCHEMA checks;
    ALTER DATABASE ${pathname.slice(1)} SET search_path = ${schema}, holdfast`,
  );
  const found = await ask(
    directUrl,
    `SELECT p.proname, c.lineno, c.message FROM pg_proc p CROSS JOIN LATERAL checks.plpgsql_check_function_tb(p.oid) c
    WHERE p.pronamespace IN ('${schema}'::regnamespace, 'holdfast'::regnamespace)
      AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')
      AND (c.level = 'error' OR c.message LIKE 'unused variable%')`,
  );
  expect(found).toEqual([]);
});
