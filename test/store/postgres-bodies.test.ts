import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { retryIn, Scene, succeeded } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * A task that succeeds in its first execution leaves its row of `bodies`, with the payload, where it is.
 */

let databases: TestDatabases;
let database: TestDatabase;
let client: pg.Client;

const scene = new Scene({
  async open(world) {
    database = await databases.take();
    return postgres(database.url).open(world);
  },
  async close() {
    database.drop();
  },
});

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(virtualWorld())).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  await scene.begin();
  client = new pg.Client(database.directUrl);
  await client.connect();
});
afterEach(async () => {
  expect(await scene.store.upkeep.verify()).toEqual([]);
  await client.end();
  await scene.end();
});

const payload = '{"to":"ann"}';

/** Where the payload of a task is. */
async function where(id: number): Promise<string[]> {
  const { rows } = await client.query(
    `SELECT 'bodies' AS at FROM holdfast.bodies WHERE id = $1 AND payload IS NOT NULL
      UNION ALL SELECT 'succeeded' FROM holdfast.succeeded WHERE id = $1 AND payload IS NOT NULL`,
    [id],
  );
  return rows.map(({ at }) => at);
}

async function succeed(): Promise<number> {
  const worked = await scene.start(await scene.join(), { payload });
  await scene.settle(worked, succeeded());
  return worked.lease.task;
}

/** A program of the version before: these functions had no condition on the payload, and removed no row of `bodies`. */
const former = {
  async retry(id: number): Promise<void> {
    await client.query(
      `SET search_path = ${functionsOver('"holdfast"').schema}, holdfast;
       WITH well AS (DELETE FROM succeeded s WHERE s.id = ${id} RETURNING s.*),
       wide AS (INSERT INTO bodies (id, source, priority, submitted_at, created_at, key, unique_key, unique_while, policy, payload)
         SELECT id, source, priority, submitted_at, created_at, key, unique_key, unique_while, policy, payload FROM well)
       INSERT INTO live (id, class, state, order_key, seq, run_at, idempotent, since, executions, round_base)
         SELECT id, class, 'scheduled', 0, id, now_ms(), idempotent, now_ms(), executions, executions FROM well;
       SELECT make_ready(${id}, now_ms());
       SELECT wake_lanes(ARRAY[lane], ARRAY[order_key], ARRAY[seq]) FROM live WHERE id = ${id}`,
    );
  },
  async prune(id: number): Promise<void> {
    await client.query('DELETE FROM holdfast.succeeded WHERE id = $1', [id]);
  },
};

test('the payload of a task that succeeded at once is written once, and is found', async () => {
  const id = await succeed();
  expect(await where(id)).toEqual(['bodies']);
  expect(await scene.find(id)).toMatchObject({ state: 'succeeded', payload });
});

test('it can be put back, and runs with its payload', async () => {
  const id = await succeed();
  await scene.move(id, { verb: 'retry' });
  expect(await where(id)).toEqual(['bodies']);
  const again = await scene.claimTask(await scene.join('bob'), id);
  expect(again).toMatchObject({ payload });
  await scene.settle(again, succeeded());
  expect(await where(id)).toEqual(['succeeded']);
  expect(await scene.find(id)).toMatchObject({ state: 'succeeded', payload });
});

test('a task that failed before it succeeded moves with its payload', async () => {
  const worker = await scene.join();
  const worked = await scene.start(worker, { payload });
  await scene.settle(worked, retryIn(0));
  await scene.settle(await scene.claimTask(worker, worked.lease.task), succeeded());
  expect(await where(worked.lease.task)).toEqual(['succeeded']);
});

test('retention and a removal remove both rows', async () => {
  const [first, second, third] = [await succeed(), await succeed(), await succeed()];
  const { lease } = await scene.start(await scene.join(), { payload });
  await scene.store.upkeep.remove([second as number], ['succeeded']);
  expect(await where(second as number)).toEqual([]);
  const retention = { succeeded: { default: 0 }, dead: {}, cancelled: {}, needs_manual: {} };
  const { removed } = await scene.store.upkeep.prune(retention);
  expect(removed.map(({ id }) => id)).toEqual([first, third]);
  const { rows } = await client.query('SELECT id::integer FROM holdfast.bodies');
  expect(rows).toEqual([{ id: lease.task }]);
});

test('a program of the version before removes both rows too', async () => {
  const id = await succeed();
  await former.prune(id);
  expect(await where(id)).toEqual([]);
});

test('a program of the version before can put such a task back', async () => {
  const id = await succeed();
  await former.retry(id);
  expect(await where(id)).toEqual(['bodies']);
  expect(await scene.claimTask(await scene.join('bob'), id)).toMatchObject({ payload });
});
