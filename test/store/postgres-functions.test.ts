import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { ACTIONS, actionLeads, isLegal, TASK_STATES } from '../../src/task.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';

/*
 * The tables, what the functions share with the rest of the code, and what plpgsql_check finds in them: columns and tables that are not there, types that do not fit, variables that nothing
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
    `SELECT p.proname, c.lineno, c.message FROM pg_proc p LEFT JOIN pg_trigger t ON t.tgfoid = p.oid
      CROSS JOIN LATERAL checks.plpgsql_check_function_tb(p.oid, coalesce(t.tgrelid, 0),
        oldtable => t.tgoldtable, newtable => t.tgnewtable) c
    WHERE p.pronamespace IN ('${schema}'::regnamespace, 'holdfast'::regnamespace)
      AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')
      AND (c.level = 'error' OR c.message LIKE 'unused variable%')`,
  );
  expect(found).toEqual([]);
});

test('the tables of transitions and actions mean the same in SQL, and nothing else can be written', async () => {
  const { directUrl } = await databases.take();
  const { schema } = functionsOver('"holdfast"');
  const froms = ['new', 'elsewhere', ...TASK_STATES] as const;
  const legal = froms.flatMap((from) => TASK_STATES.map((to) => ({ from, to, is: isLegal(from, to) })));
  expect(
    await ask(
      directUrl,
      `SELECT f AS from, t AS to, ${schema}.is_legal(f, t) AS is FROM unnest('{${froms}}'::text[]) WITH ORDINALITY a(f, m),
        unnest('{${TASK_STATES}}'::text[]) WITH ORDINALITY b(t, n) ORDER BY m, n`,
    ),
  ).toEqual(legal);

  const verbs = Object.keys(ACTIONS) as (keyof typeof ACTIONS)[];
  const answers = ['succeeded', 'retry', 'dead'] as const;
  const leads = verbs.flatMap((verb) =>
    TASK_STATES.flatMap((from) =>
      answers.flatMap((as) => [false, true].map((isDue) => actionLeads(verb, from, { isDue, as }) ?? null)),
    ),
  );
  const rows = await ask(
    directUrl,
    `SELECT ${schema}.action_leads(v, f, due, answer) AS to FROM unnest('{${verbs}}'::text[]) WITH ORDINALITY a(v, k),
      unnest('{${TASK_STATES}}'::text[]) WITH ORDINALITY b(f, l), unnest('{${answers}}'::text[]) WITH ORDINALITY c(answer, m),
      unnest('{f,t}'::boolean[]) WITH ORDINALITY d(due, n) ORDER BY k, l, m, n`,
  );
  expect(rows.map(({ to }) => to)).toEqual(leads);

  await expect(ask(directUrl, `SET search_path = ${schema}; SELECT must_be_legal('dead', 'held')`)).rejects.toThrow(
    'A task cannot go from dead to held.',
  );
});

test('every table has a primary key, so that a publication of all tables refuses no change', async () => {
  const { directUrl } = await databases.take();
  const without = await ask(
    directUrl,
    `SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p')
      AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)`,
  );
  expect(without).toEqual([]);
});
