import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { functionsOver } from '../../src/store/postgres/functions.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import type { Store } from '../../src/store/store.ts';
import { claimRequest, idsOf, LEASE, newTask } from '../contract/scene.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';

/*
 * A task whose enqueue commits late, while its source, its queue or its lane changes: it is claimed all the same.
 */

const world = { clock: systemClock, random: Math.random };
const { schema: functions } = functionsOver('"holdfast"');

let databases: TestDatabases;
let database: TestDatabase;
let store: Store;
let enqueuer: pg.Client;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(world)).upkeep.close();
  });
});
afterAll(() => databases.close());
beforeEach(async () => {
  database = await databases.take();
  store = await postgres(database.url).open(world);
  enqueuer = new pg.Client({ connectionString: database.directUrl });
  await enqueuer.connect();
});
afterEach(async () => {
  await enqueuer.end();
  expect(await store.upkeep.verify()).toEqual([]);
  await store.upkeep.close();
  database.drop();
});

/** Enqueues a task as a store does, in a transaction that stays open until what it answers is called. */
async function enqueueSlowly(queue: string, source: string): Promise<() => Promise<number>> {
  await enqueuer.query('BEGIN');
  const { rows } = await enqueuer.query(
    `SELECT (${functions}.enqueue_tasks(gen_random_uuid(), $1, '[{"g": 0, "p": 0, "b": "{}", "d": 0}]', false, true, NULL) -> 'receipts' -> 0 ->> 0)::int AS id`,
    [JSON.stringify([[queue, 'mail', '', '{}', source]])],
  );
  return async () => {
    await enqueuer.query('COMMIT');
    return rows[0].id;
  };
}

/** Enqueues a task in SQL, as a user does, and commits. Nothing has given it a lane yet. */
async function enqueueInSql(queue: string, source: string, priority = 0): Promise<number> {
  const { rows } = await enqueuer.query(
    `SELECT holdfast.enqueue('mail', '{}', queue => $1, source => $2, priority => $3)::int AS id`,
    [queue, source, priority],
  );
  return rows[0].id;
}

/** Runs one function of the store in a transaction that stays open until what it answers is called. */
async function callSlowly(call: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.directUrl });
  await client.connect();
  await client.query('BEGIN');
  await client.query(`SELECT ${functions}.${call}`);
  return async () => {
    await client.query('COMMIT');
    await client.end();
  };
}

/** Whether a call in this database waits for a lock. */
async function isSomebodyWaiting(): Promise<boolean> {
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return (await ask(database.directUrl, waiting)).length > 0;
}

/** What a call answers, which must not answer before `commit` was called. */
async function answerAfter<Answer>(call: Promise<Answer>, commit: () => Promise<void>): Promise<Answer> {
  let isAnswered = false;
  const answer = call.finally(() => {
    isAnswered = true;
  });
  while (!isAnswered && !(await isSomebodyWaiting()));
  expect(isAnswered).toBe(false);
  await commit();
  return answer;
}

const join = () => store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
const by = { actor: 'maria' };

test('a task that is committed after its source was held and released is claimed', async () => {
  const worker = await join();
  const first = await store.tasks.enqueue([newTask({ source: 's' })]);
  const commit = await enqueueSlowly('default', 's');
  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual(first.map(({ id }) => id));
  await store.sources.hold('s', by);
  await store.sources.release('s');
  const id = await commit();

  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual([id]);
});

test('a task of a new lane that is committed after the release of its source began is claimed', async () => {
  const worker = await join();
  await store.sources.hold('s', by);
  const commit = await enqueueSlowly('default', 's');
  let id = 0;
  await answerAfter(store.sources.release('s'), async () => {
    id = await commit();
  });

  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual([id]);
});

describe('while the release of a source is not committed yet', () => {
  let commit: () => Promise<void>;

  beforeEach(async () => {
    await store.sources.hold('s', by);
    commit = await callSlowly(`release_source(gen_random_uuid(), 's')`);
  });

  test('an enqueue that makes a lane of the source waits for it, and the task is claimed', async () => {
    const [receipt] = await answerAfter(store.tasks.enqueue([newTask({ source: 's' })]), commit);

    expect(idsOf((await store.tasks.claim(claimRequest(await join()))).tasks)).toEqual([receipt?.id]);
  });

  test('a claim that makes a lane of the source for a due task waits for it, and the task is claimed', async () => {
    const id = await enqueueInSql('default', 's');
    const { tasks } = await answerAfter(store.tasks.claim(claimRequest(await join())), commit);

    expect(idsOf(tasks)).toEqual([id]);
  });

  test('enqueues of other sources do not wait', async () => {
    expect(await store.tasks.enqueue([newTask({ source: 'other' })])).toMatchObject([{ created: true }]);
    await commit();
  });
});

describe('a source that begins to ramp while a lane of its new work is made', () => {
  const RAMPING = { cause: 'breaker', ramping: true, pace: { perSecond: 200, burst: 3 } } as const;

  /** Makes the lane that the call wants in a transaction of its own, and lets the source ramp before that commits. */
  async function rampDuring<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    await enqueuer.query(
      `BEGIN; INSERT INTO holdfast.lanes (class, source, track) SELECT id, 's', 0 FROM holdfast.classes`,
    );
    return answerAfter(call(), async () => {
      await store.sources.change('s', {
        revision: 0,
        change: { tokens: 0, refunds: [], memory: '{}', restriction: RAMPING },
      });
      await enqueuer.query('COMMIT');
    });
  }

  beforeEach(async () => {
    await store.tasks.enqueue([newTask({ source: 'other', delay: 60_000 })]);
  });

  test('an enqueued task is claimed', async () => {
    const [receipt] = await rampDuring(() => store.tasks.enqueue([newTask({ source: 's' })]));

    expect(idsOf((await store.tasks.claim(claimRequest(await join()))).tasks)).toEqual([receipt?.id]);
  });

  test('a due task is claimed', async () => {
    const id = await enqueueInSql('default', 's');
    const worker = await join();

    expect(idsOf((await rampDuring(() => store.tasks.claim(claimRequest(worker)))).tasks)).toEqual([id]);
  });
});

test('a task of a new lane that is committed after its source was held and released is claimed', async () => {
  const worker = await join();
  const commit = await enqueueSlowly('default', 's');
  await store.sources.hold('s', by);
  await store.sources.release('s');
  const id = await commit();

  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual([id]);
});

test('a task that is committed after its queue got turns is claimed', async () => {
  const worker = await join();
  await store.tasks.enqueue([newTask({ source: 'a' }), newTask({ source: 'b' })]);
  await store.tasks.claim(claimRequest(worker, { limit: 2 }));
  await store.sources.setUp('other', { fair: true });
  const commit = await enqueueSlowly('other', 'a');
  await store.tasks.claim(claimRequest(worker));
  const id = await commit();

  expect(idsOf((await store.tasks.claim(claimRequest(worker))).tasks)).toEqual([id]);
});

describe('while the settings of a queue are not committed yet', () => {
  const claimedSources = async (worker: number, limit: number) =>
    (await store.tasks.claim(claimRequest(worker, { limit }))).tasks.map((task) => task.source);

  test('a source whose first task becomes due gets a turn in a queue that becomes fair', async () => {
    const worker = await join();
    const busy = Array.from({ length: 40 }, (_, n) => newTask({ source: `busy ${n}` }));
    await store.tasks.enqueue([...busy, ...busy]);
    const commit = await callSlowly(`set_up_queue(gen_random_uuid(), 'default', true)`);
    await enqueueInSql('default', 'late');
    const { tasks } = await answerAfter(store.tasks.claim(claimRequest(worker, { limit: 1 })), commit);
    expect(tasks).toHaveLength(1);

    const sources: string[] = [];
    for (let n = 0; n < 41; n += 1) sources.push(...(await claimedSources(worker, 1)));
    expect(sources).toContain('late');
  });

  test('a task that becomes due takes its place in the new order', async () => {
    const worker = await join();
    await store.tasks.enqueue([newTask({ source: 'a' }), newTask({ source: 'a' })]);
    const commit = await callSlowly(`order_queue(gen_random_uuid(), 'default', 'priority')`);
    const urgent = await enqueueInSql('default', 'b', 9);
    // It is left to a claim that sees the new order.
    await store.tasks.claim(claimRequest(worker, { limit: 1 }));
    await commit();

    expect(idsOf((await store.tasks.claim(claimRequest(worker, { limit: 1 }))).tasks)).toEqual([urgent]);
  });

  test('a task that becomes due is not asked for again and again', async () => {
    const worker = await join();
    await store.tasks.enqueue([newTask()]);
    await store.tasks.claim(claimRequest(worker, { limit: 2 }));
    const commit = await callSlowly(`order_queue(gen_random_uuid(), 'default', 'priority')`);
    await enqueueInSql('default', 'b', 9);
    const claim = await store.tasks.claim(claimRequest(worker, { limit: 1 }));
    await commit();

    expect(claim).toMatchObject({ tasks: [], nextDueIn: 100 });
  });
});

test('tasks whose queue got another order are claimed meanwhile, and each in its place once they are all reordered', async () => {
  const worker = await join();
  const tasks = Array.from({ length: 6 }, (_, n) => newTask({ source: `s${n % 2}`, priority: n }));
  const ids = (await store.tasks.enqueue([...tasks, newTask({ queue: 'other' }), newTask({ delay: 60_000 })])).map(
    ({ id }) => id,
  );
  const inSql = async (call: string) => {
    const [row] = await ask(database.directUrl, `SELECT ${functions}.${call} AS answer`);
    return row?.answer;
  };
  const claimed = async (limit: number) =>
    idsOf((await store.tasks.claim(claimRequest(worker, { limit, queues: ['default'] }))).tasks);

  // Whoever changed the order ended in the middle of it.
  expect(await inSql("order_queue(gen_random_uuid(), 'default', 'priority')")).toBe(true);
  expect(await inSql('reorder(4)')).toBe(true);
  const [urgent] = await store.tasks.enqueue([newTask({ priority: 9 })]);
  expect(await claimed(1)).toEqual([urgent?.id]);
  expect(await claimed(1)).toHaveLength(1);

  await store.sources.setUp('default', { order: 'priority' });
  expect(await inSql('reorder(4)')).toBe(false);
  const left = await claimed(9);
  expect(left).toEqual(ids.toReversed().filter((id) => left.includes(id)));
  expect(left).toHaveLength(5);
});

test('a task that was enqueued before its queue got another order, and retried before it was due, takes its place in the new order', async () => {
  const worker = await join();
  await store.tasks.enqueue([newTask(), newTask()]);
  await enqueuer.query('BEGIN');
  const id = await enqueueInSql('default', 'b', 9);
  await store.sources.setUp('default', { order: 'priority' });
  await enqueuer.query('COMMIT');
  await store.tasks.move([id], { verb: 'retry', ...by });

  expect(idsOf((await store.tasks.claim(claimRequest(worker, { limit: 1 }))).tasks)).toEqual([id]);
});
