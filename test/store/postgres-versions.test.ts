import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { type PostgresOptions, postgres } from '../../src/store/postgres/index.ts';
import type { Claimed } from '../../src/store/store.ts';
import { claimRequest, LEASE, newTask, settlement, succeeded } from '../contract/scene.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * Versions side by side. The fixture is a dump of a database that was made by version 0.1.0 with schema 1, in which the functions
 * stood among the tables: a task that succeeded, a dead one, and four that wait.
 */

const FORMER = new URL('./fixtures/postgres-schema-1.sql', import.meta.url);
const world = { clock: systemClock, random: Math.random };
const token = '00000000-0000-4000-8000-000000000001';

let databases: TestDatabases;
let database: TestDatabase;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await ask(url, readFileSync(FORMER, 'utf8'));
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
});
afterEach(() => database.drop());

const taskOf = ({ lease }: Claimed) => lease.task;
const sql = (text: string) => ask(database.directUrl, text);
const open = (options: PostgresOptions = {}, url = database.url) => postgres(url, options).open(world);
const { schema: functions } = functionsOver('"holdfast"');
const name = functions.slice(1, -1);

async function answer(text: string): Promise<unknown> {
  const [row] = await sql(`SELECT ${text} AS answer`);
  return row?.answer;
}

/** A worker of the version that made the database: the functions among the tables are what it calls. */
const former = {
  join: () =>
    answer(`holdfast.join_worker(gen_random_uuid(),
      '{"name": "former", "leaseFor": ${LEASE}, "takes": "{}", "host": "elsewhere", "pid": 1}')`),
  enqueue: (source: string) =>
    answer(`holdfast.enqueue_tasks(gen_random_uuid(), '[["default","mail","","{}","${source}"]]',
      '[{"g": 0, "p": 0, "b": "null", "d": 0}]', false, true)`) as Promise<[[number, true]]>,
  async claim(worker: unknown, limit: number) {
    const claim = await answer(
      `holdfast.claim('{"worker": ${worker}, "limit": ${limit}, "suspect": true, "rotation": 0}', '${token}')`,
    );
    return ((claim as { tasks: [number][] | null }).tasks ?? []).map(([id]) => id);
  },
  settle: (id: number) => answer(`holdfast.settle('{${id}}', '{${token}}', NULL, '[["{}", 1]]', '{}', NULL)`),
};

test('a database of the version before is opened, and goes on with what is in it', async () => {
  const store = await open();
  expect(await store.upkeep.verify()).toEqual([]);
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: 10 }));
  expect(tasks.map(taskOf).sort()).toEqual([3, 4, 5, 6]);
  const settled = await store.tasks.settle(tasks.map((task) => settlement(task, succeeded())));
  expect(settled.map((one) => one.answer)).toEqual(['settled', 'settled', 'settled', 'settled']);
  expect((await store.records.list({ limit: 10 })).map(({ id, state }) => [id, state])).toEqual([
    [6, 'succeeded'],
    [5, 'succeeded'],
    [4, 'succeeded'],
    [3, 'succeeded'],
    [2, 'dead'],
    [1, 'succeeded'],
  ]);
  expect(await store.upkeep.verify()).toEqual([]);
  await store.upkeep.close();
});

test('workers of the version before go on beside new ones, with the same tasks', async () => {
  const formerWorker = await former.join();
  const store = await open();
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });

  const [[old]] = await former.enqueue('a');
  const [fresh] = await store.tasks.enqueue([newTask({ source: 'a', type: 'mail' })]);
  const claimed = await former.claim(formerWorker, 5);
  const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: 10 }));
  expect([...claimed, ...tasks.map(taskOf)].sort()).toEqual([3, 4, 5, 6, old, fresh?.id].sort());
  expect(tasks).not.toEqual([]);
  for (const id of claimed) await former.settle(id);
  await store.tasks.settle(tasks.map((task) => settlement(task, succeeded())));
  expect((await store.records.counts()).byState).toMatchObject({ succeeded: 7, dead: 1 });

  // What each recorded last is found by the other.
  const [[another]] = await former.enqueue('b');
  expect((await store.tasks.claim(claimRequest(worker))).tasks.map(taskOf)).toEqual([another]);
  const [last] = await store.tasks.enqueue([newTask({ source: 'b', type: 'mail' })]);
  expect(await former.claim(formerWorker, 5)).toEqual([last?.id]);
  expect(await store.upkeep.verify()).toEqual([]);
  await store.upkeep.close();
});

test('a role that worked with the version before works with this one, once the owner has opened it', async () => {
  await sql(`CREATE ROLE former_app LOGIN;
    GRANT USAGE ON SCHEMA holdfast TO former_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO former_app;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast TO former_app;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO former_app;
    REVOKE INSERT, UPDATE, DELETE ON holdfast.meta FROM former_app`);
  try {
    const url = Object.assign(new URL(database.directUrl), { username: 'former_app' }).href;
    await expect(open({ migrate: 'never' }, url)).rejects.toMatchObject({
      code: 'store_unsupported',
      message: expect.stringContaining("migrate: 'never'"),
    });
    await (await open()).upkeep.close();

    const store = await open({ migrate: 'never' }, url);
    const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
    const { tasks } = await store.tasks.claim(claimRequest(worker, { limit: 10 }));
    expect(tasks).toHaveLength(4);
    await store.tasks.settle(tasks.map((task) => settlement(task, succeeded())));
    await store.upkeep.tidy();
    await store.upkeep.close();
  } finally {
    await sql('DROP OWNED BY former_app CASCADE; DROP ROLE former_app');
  }
});

test("with migrate: 'never', tables without this version's functions are refused", async () => {
  await (await open()).upkeep.close();
  await sql(`DROP SCHEMA ${functions} CASCADE`);
  await expect(open({ migrate: 'never' })).rejects.toMatchObject({
    code: 'store_unsupported',
    message: expect.stringContaining("lacks this version's functions"),
  });
  // Opened without it, they are made again.
  await (await open()).upkeep.close();
  await (await open({ migrate: 'never' })).upkeep.close();
});

test('what people call from SQL is the newest version, also after an older one was opened again', async () => {
  await (await open()).upkeep.close();
  const path = () =>
    sql(`SELECT array_to_string(proconfig, ' ') AS settings FROM pg_proc WHERE proname = 'enqueue'
      AND pronamespace = 'holdfast'::regnamespace`);
  expect(await path()).toMatchObject([{ settings: expect.stringContaining(`search_path=${name}, holdfast,`) }]);

  // A newer version comes, and this one is opened anew where its functions were dropped.
  await sql(`INSERT INTO holdfast.functions (schema, used_at) VALUES ('holdfast_newer', holdfast.now_ms());
    ALTER FUNCTION holdfast.enqueue SET search_path = holdfast_newer, ${functions}, holdfast;
    DROP SCHEMA ${functions} CASCADE`);
  await (await open()).upkeep.close();
  expect(await path()).toMatchObject([{ settings: expect.stringContaining('search_path=holdfast_newer,') }]);
});

test('functions that no worker has used for long are dropped by the next version, and never those in use', async () => {
  await sql(`CREATE SCHEMA holdfast_unused; CREATE FUNCTION holdfast_unused.claim() RETURNS void LANGUAGE sql AS '';
    CREATE SCHEMA holdfast_used`);
  const store = await open();
  await sql(`INSERT INTO holdfast.functions (schema, used_at)
    VALUES ('holdfast_unused', 0), ('holdfast_used', holdfast.now_ms() - 80 * 86400000::bigint)`);
  await sql(`UPDATE holdfast.functions SET used_at = 0 WHERE schema = '${name}'`);
  // A worker at work says that its functions are in use.
  await store.upkeep.tidy();
  await store.upkeep.close();
  await sql(`DELETE FROM holdfast.functions WHERE schema = '${name}' AND used_at > 0;
    DROP SCHEMA ${functions} CASCADE`);
  await (await open()).upkeep.close();
  const schemas = await sql("SELECT nspname AS name FROM pg_namespace WHERE nspname LIKE 'holdfast%' ORDER BY 1");
  expect(schemas.map(({ name }) => name).sort()).toEqual(['holdfast', name, 'holdfast_used'].sort());
});
