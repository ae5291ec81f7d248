import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { postgres } from '../../src/store/postgres/index.ts';
import type { Claimed, Store } from '../../src/store/store.ts';
import {
  cancelled,
  claimRequest,
  deferredFor,
  ended,
  handedBack,
  imported,
  LEASE,
  newTask,
  retryIn,
  settlement,
  succeeded,
} from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';
import { type Loss, startProxy, type TestProxy } from '../postgres/proxy.ts';

/*
 * A statement is carried out and its answer is lost, or it never arrives: whoever asked cannot tell which. Either way a call
 * answers as if nothing had happened, and what it does is done once.
 */

let databases: TestDatabases;
let database: TestDatabase;
let proxy: TestProxy;
let world: ReturnType<typeof virtualWorld>;
let store: Store;

beforeAll(async () => {
  databases = await openDatabases(async (url) => {
    await (await postgres(url).open(virtualWorld())).upkeep.close();
  });
});
afterAll(() => databases.close());

beforeEach(async () => {
  database = await databases.take();
  proxy = await startProxy(database.url);
  world = virtualWorld();
  store = await postgres(proxy.url(database.url)).open(world);
});
afterEach(async () => {
  try {
    expect(await store.upkeep.verify()).toEqual([]);
  } finally {
    await store.upkeep.close();
    await proxy.close();
    database.drop();
  }
});

const count = async (of: string): Promise<number> => {
  const [row] = await ask(database.directUrl, `SELECT count(*)::int AS count FROM holdfast.${of}`);
  return row?.count as number;
};
const join = () => store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
const enqueue = (n: number) => store.tasks.enqueue(Array.from({ length: n }, () => newTask()));
const claim = async (worker: number, request = {}): Promise<readonly Claimed[]> =>
  (await store.tasks.claim(claimRequest(worker, request))).tasks;
const by = { actor: 'maria' };

async function started(): Promise<{ readonly worker: number; readonly task: Claimed }> {
  await enqueue(1);
  const worker = await join();
  const [task] = await claim(worker);
  return { worker, task: task as Claimed };
}

describe.each<Loss>(['answer', 'statement'])('where the %s is lost', (loss) => {
  /** Makes the call while a statement that has this text, or its answer, is lost. */
  async function losing<T>(text: string, call: () => Promise<T>): Promise<T> {
    const lost = proxy.lose(loss, text);
    const answer = await call();
    await lost;
    return answer;
  }

  test('enqueue records its tasks once', async () => {
    const receipts = await losing('.enqueue_tasks(', () => enqueue(3));
    expect(receipts.map(({ created }) => created)).toEqual([true, true, true]);
    expect(await count('bodies')).toBe(3);
  });

  test('calls of enqueue that share a statement record each task once', async () => {
    const receipts = await losing('.enqueue_tasks(', () => Promise.all([enqueue(1), enqueue(2), enqueue(1)]));
    expect(new Set(receipts.flat().map(({ id }) => id)).size).toBe(4);
    expect(await count('bodies')).toBe(4);
  });

  test('enqueue with a key and unique keys answers what it did the first time', async () => {
    const { tasks } = store;
    const unique = (onConflict: 'reject' | 'replace') => ({ key: 'u', while: 'unfinished', onConflict }) as const;
    const [first] = await losing('.enqueue_tasks(', () =>
      tasks.enqueue([newTask({ key: 'k', unique: unique('reject') })]),
    );
    expect(first).toEqual({ id: expect.any(Number), created: true });
    expect(await losing('.enqueue_tasks(', () => tasks.enqueue([newTask({ key: 'k' })]))).toEqual([
      { id: first?.id, created: false, state: 'ready' },
    ]);
    const [second] = await losing('.enqueue_tasks(', () => tasks.enqueue([newTask({ unique: unique('replace') })]));
    expect(second).toMatchObject({ created: true, replaced: first?.id });
    await expect(
      losing('.enqueue_tasks(', () => tasks.enqueue([newTask({ unique: unique('reject') })])),
    ).rejects.toMatchObject({ code: 'unique_conflict', task: second?.id });
    expect(await count('bodies')).toBe(1);
  });

  test('import records its tasks once', async () => {
    const receipts = await losing('.import_tasks(', () =>
      store.tasks.import([imported(), imported({ stands: 'held' })]),
    );
    expect(receipts.map(({ created }) => created)).toEqual([true, true]);
    expect([await count('bodies'), await count('acts')]).toEqual([2, 2]);
  });

  test('join makes one worker', async () => {
    const worker = await losing('.join_worker(', join);
    expect((await store.records.workers()).map(({ id }) => id)).toEqual([worker]);
  });

  test('publish publishes', async () => {
    await losing('.publish(', () => store.tasks.publish({ mail: '{"a":1}' }, []));
    expect(await store.records.published('mail')).toBe('{"a":1}');
  });

  test('claim leases what it answers, and nothing else', async () => {
    await enqueue(10);
    const worker = await join();
    const claimed = await losing('.claim(', () => claim(worker, { limit: 3 }));
    expect(claimed).toHaveLength(3);
    expect(await count("live WHERE state = 'running'")).toBe(3);
    expect(claimed.every(({ lease }) => lease.execution === 1)).toBe(true);
    // The next claim is a new one.
    expect(await claim(worker, { limit: 3 })).toHaveLength(3);
    expect(await count("live WHERE state = 'running'")).toBe(6);
  });

  test('claim that finds nothing is asked once more', async () => {
    const worker = await join();
    expect(await losing('.claim(', () => claim(worker))).toEqual([]);
  });

  test('settle and claim in one statement are both done once', async () => {
    await enqueue(4);
    const worker = await join();
    const [first] = await claim(worker, { limit: 1 });
    const [settled, claimed] = await losing('.claim(', () =>
      Promise.all([store.tasks.settle([settlement(first as Claimed, succeeded())]), claim(worker, { limit: 2 })]),
    );
    expect(['settled', 'already']).toContain(settled[0]?.answer);
    expect(claimed).toHaveLength(2);
    expect([await count("live WHERE state = 'running'"), await count('succeeded')]).toEqual([2, 1]);
  });

  test('renew renews', async () => {
    const { worker, task } = await started();
    expect(await losing('.renew(', () => store.tasks.renew(worker, [task.lease]))).toMatchObject({
      known: true,
      lost: [],
      cancelled: [],
    });
  });

  test.each([
    ['succeeded', succeeded(), 'succeeded', 0],
    ['a failure that waits', retryIn(60_000), 'scheduled', 1],
    ['a deferral', deferredFor(60_000), 'scheduled', 1],
    ['handed back', handedBack(), 'ready', 1],
    ['dead', ended('dead'), 'dead', 1],
    ['needs_manual', ended('needs_manual'), 'needs_manual', 1],
    ['cancelled', cancelled(), 'cancelled', 1],
  ])('settle writes its decision once: %s', async (_, decision, state, entries) => {
    const { task } = await started();
    const [answer] = await losing('.settle(', () => store.tasks.settle([settlement(task, decision)]));
    expect(['settled', 'already']).toContain(answer?.answer);
    const { task: id } = task.lease;
    const record = await store.records.find(id);
    expect(record?.state).toBe(state);
    expect(await store.records.history(id)).toHaveLength(entries);
    expect(record?.deferrals).toBe(decision.next === 'scheduled' && decision.charge.to === 'deferrals' ? 1 : 0);
  });

  test('a settlement with old facts gets `changed`', async () => {
    const { task } = await started();
    await store.tasks.move([task.lease.task], { ...by, verb: 'cancel' });
    const [answer] = await losing('.settle(', () => store.tasks.settle([settlement(task, retryIn(1_000))]));
    expect(answer).toMatchObject({ answer: 'changed', facts: { cancelRequested: true } });
  });

  test('recover hands out what was lost, and what is too late, once', async () => {
    const [alice, bob] = [await join(), await join()];
    await enqueue(4);
    expect(await claim(alice, { limit: 3 })).toHaveLength(3);
    await store.tasks.leave(alice);
    await store.tasks.enqueue([newTask({ delay: 60_000, deadline: store.upkeep.now() + 1_000 })]);
    world.clock.advance(2_000);
    await store.tasks.renew(bob, []);
    const { tasks: recovered } = await losing('.take_over(', () => store.tasks.recover(bob, 10));
    expect(recovered.map(({ why }) => why).sort()).toEqual(['expiry', 'loss', 'loss', 'loss']);
    expect((await store.tasks.recover(bob, 10)).tasks).toEqual([]);
    expect(await count("live WHERE state = 'running'")).toBe(4);
  });

  test('move takes its step once', async () => {
    const [receipt] = await enqueue(1);
    const ids = [receipt?.id as number];
    const steps = [
      ['hold', { moved: true, from: 'ready', to: 'held' }],
      ['release', { moved: true, from: 'held', to: 'ready' }],
      ['cancel', { moved: true, from: 'ready', to: 'cancelled' }],
      ['retry', { moved: true, from: 'cancelled', to: 'ready' }],
    ] as const;
    for (const [verb, answer] of steps) {
      expect(await losing('.move_tasks(', () => store.tasks.move(ids, { ...by, verb }))).toEqual([
        { id: ids[0], ...answer },
      ]);
    }
    expect(await store.records.history(ids[0] as number)).toHaveLength(steps.length);
  });

  test('sources and queues are held, paused and set up', async () => {
    const { sources, records } = store;
    await losing('.hold_source(', () => sources.hold('imap:INBOX', by));
    await losing('.pause_queue(', () => sources.pause('default', by));
    await losing('.order_queue(', () => sources.setUp('default', { order: 'lifo' }));
    await losing('.set_up_queue(', () => sources.setUp('default', { fair: true }));
    expect(await records.sources()).toMatchObject([{ name: 'imap:INBOX', hold: { actor: 'maria' } }]);
    expect(await records.queues()).toMatchObject([{ order: 'lifo', fair: true, paused: { actor: 'maria' } }]);
    await losing('.release_source(', () => sources.release('imap:INBOX'));
    await losing('.resume_queue(', () => sources.resume('default'));
    expect(await records.sources()).toEqual([]);
    expect((await records.queues())[0]).not.toHaveProperty('paused');
  });

  test('leave takes the worker away', async () => {
    const worker = await join();
    await losing('.leave(', () => store.tasks.leave(worker));
    expect(await store.records.workers()).toEqual([]);
  });

  test('prune says everything that it removed', async () => {
    await enqueue(3);
    const worker = await join();
    const claimed = await claim(worker);
    await store.tasks.settle(claimed.map((task) => settlement(task, succeeded())));
    world.clock.advance(10_000);
    const retention = { succeeded: { default: 1_000 }, dead: {}, cancelled: {}, needs_manual: {} };
    const { removed } = await losing('.prune(', () => store.upkeep.prune(retention));
    expect(removed.map(({ id }) => id)).toEqual(claimed.map(({ lease }) => lease.task));
    expect(await count('succeeded')).toBe(0);
  });

  test('the process that took a turn learns it, and actions are handed out once', async () => {
    expect(await losing('.take_turn(', () => store.upkeep.takeTurn('prune', 60_000))).toBe(true);
    const [receipt] = await enqueue(1);
    await store.tasks.move([receipt?.id as number], { ...by, verb: 'cancel' });
    expect(await losing('.take_steps(', () => store.upkeep.takeActions(10))).toMatchObject([{ verb: 'cancel' }]);
    expect(await store.upkeep.takeActions(10)).toEqual([]);
  });
});

describe('where the statement is still under way when it is made again', () => {
  /** Makes the call while somebody holds a lock that it needs, and cuts its connection; then both of its statements go on. */
  async function interrupted<T>(lock: string, call: () => Promise<T>): Promise<T> {
    const holder = new pg.Client({ connectionString: database.directUrl });
    await holder.connect();
    await holder.query(`BEGIN; SET search_path = holdfast; ${lock}`);
    const waiting = () =>
      ask(
        database.directUrl,
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
    const answer = call();
    await expect.poll(waiting).toHaveLength(1);
    proxy.cut();
    await expect.poll(waiting).toHaveLength(2);
    await holder.query('COMMIT');
    await holder.end();
    return answer;
  }

  const CALLS = 'LOCK TABLE calls IN SHARE MODE';

  test('enqueue, import and join record once', async () => {
    expect(await interrupted(CALLS, () => enqueue(2))).toMatchObject([{ created: true }, { created: true }]);
    const keyed = () => store.tasks.enqueue([newTask({ key: 'k' })]);
    expect(await interrupted(CALLS, keyed)).toMatchObject([{ created: true }]);
    expect(await interrupted(CALLS, () => store.tasks.import([imported()]))).toMatchObject([{ created: true }]);
    await interrupted(CALLS, join);
    expect([await count('bodies'), await count('acts'), await count('workers')]).toEqual([4, 1, 1]);
  });

  test('claim leases what it answers, and nothing else', async () => {
    await enqueue(10);
    const worker = await join();
    const claimed = await interrupted('SELECT 1 FROM workers FOR UPDATE', () => claim(worker, { limit: 3 }));
    expect(claimed).toHaveLength(3);
    expect(await count("live WHERE state = 'running'")).toBe(3);
  });

  test('recover hands out what was lost, and what is too late, once', async () => {
    const [alice, bob] = [await join(), await join()];
    await enqueue(2);
    await claim(alice);
    await store.tasks.leave(alice);
    await store.tasks.enqueue([newTask({ delay: 60_000, deadline: store.upkeep.now() + 1_000 })]);
    world.clock.advance(2_000);
    const { tasks: recovered } = await interrupted(`SELECT 1 FROM workers WHERE id = ${bob} FOR UPDATE`, () =>
      store.tasks.recover(bob, 10),
    );
    expect(recovered).toHaveLength(3);
    expect(await count("live WHERE state = 'running'")).toBe(3);
  });

  test('settle writes its decision once', async () => {
    for (const decision of [succeeded(), retryIn(60_000), ended('dead')]) {
      const { task } = await started();
      const [answer] = await interrupted('SELECT 1 FROM live FOR UPDATE', () =>
        store.tasks.settle([settlement(task, decision)]),
      );
      expect(['settled', 'already']).toContain(answer?.answer);
      expect((await store.records.find(task.lease.task))?.state).toBe(decision.next);
      expect(await store.records.history(task.lease.task)).toHaveLength(decision.next === 'succeeded' ? 0 : 1);
    }
  });

  test('move takes its step once', async () => {
    const [receipt] = await enqueue(1);
    const ids = [receipt?.id as number];
    const hold = () => store.tasks.move(ids, { ...by, verb: 'hold' });
    expect(await interrupted('SELECT 1 FROM live FOR UPDATE', hold)).toMatchObject([{ moved: true, to: 'held' }]);
    expect(await store.records.history(ids[0] as number)).toHaveLength(1);
  });
});
