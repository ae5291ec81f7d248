import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineTask, openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { refuseOldSqlite } from '../../src/store/sqlite/library.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { claimRequest, LEASE, newTask } from '../contract/scene.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import Database from '../database.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each(['3.51.2', '3.50.9', '3.7.0', '2.99.99'])(
  'refuses SQLite %s, in which a WAL could be corrupted',
  (version) => {
    expect(() => refuseOldSqlite(version, 'better-sqlite3')).toThrow(
      expect.objectContaining({ code: 'store_unsupported', message: expect.stringContaining(version) }),
    );
  },
);

test.each(['3.51.3', '3.51.10', '3.52.0', '4.0.0'])('takes SQLite %s', (version) => {
  expect(() => refuseOldSqlite(version, 'better-sqlite3')).not.toThrow();
});

test('shows people the tasks in a view that they may query', async () => {
  const path = join(folder, 'tasks.db');
  const holdfast = await openHoldfast({ store: sqlite(path), tasks: [defineTask('mail', { run() {} })] });
  const { id } = await holdfast.enqueue('mail', { to: 'a' }, { key: 'k', delay: '1h', priority: 7 });
  const db = new Database(path, { readonly: true });

  expect(db.prepare('SELECT id, type, state, queue, source, key, priority FROM holdfast_tasks').all()).toEqual([
    { id, type: 'mail', state: 'scheduled', queue: 'default', source: 'mail', key: 'k', priority: 7 },
  ]);
  db.close();
  await holdfast.close();
});

test('lives in a file beside the tables of an application', async () => {
  const path = join(folder, 'app.db');
  const db = new Database(path);
  db.exec('CREATE TABLE tasks (mine TEXT); INSERT INTO tasks VALUES (1); PRAGMA user_version = 42');
  const holdfast = await openHoldfast({ store: sqlite(path) });
  await holdfast.enqueue('mail', {});
  await holdfast.close();

  expect(db.prepare('SELECT mine FROM tasks').all()).toEqual([{ mine: '1' }]);
  expect(db.pragma('user_version', { simple: true })).toBe(42);
  db.close();
});

test('does not put a task into a lane that an idle worker starts in the transaction that enqueues it', async () => {
  const path = join(folder, 'tasks.db');
  const store = await sqlite(path).open(virtualWorld());
  const worker = await store.tasks.join({ name: 'alice', leaseFor: LEASE, publishes: {} });
  const db = new Database(path);
  db.exec(
    'CREATE TABLE seen (lane); CREATE TRIGGER see AFTER INSERT ON hf_ready BEGIN INSERT INTO seen VALUES (NEW.lane); END',
  );
  const [[receipt], claim] = await Promise.all([
    store.tasks.enqueue([newTask()]),
    // As the loop of a worker: in the same turn.
    Promise.resolve().then(() => store.tasks.claim(claimRequest(worker))),
  ]);
  expect(claim.tasks.map(({ lease }) => lease.task)).toEqual([receipt?.id]);
  expect(db.prepare('SELECT * FROM seen').all()).toEqual([]);
  db.close();
  await store.upkeep.close();
});

test('says how durable its connection really is', async () => {
  const holdfast = await openHoldfast({ store: sqlite(join(folder, 'tasks.db')) });
  expect(holdfast.describe()).toMatchObject({ kind: 'sqlite', durability: 'full' });
  await holdfast.close();
});

test.each(['full', 'process'] as const)('runs with the durability %s, and says so', async (durability) => {
  const holdfast = await openHoldfast({ store: sqlite(join(folder, 'tasks.db'), { durability }) });
  expect(holdfast.describe()).toMatchObject({ durability });
  await holdfast.close();
});

test('refuses options that it does not have, and a durability that there is not', () => {
  expect(() => sqlite('tasks.db', { durabilty: 'full' } as never)).toThrow(/sqlite has no option 'durabilty'/);
  for (const durability of ['none', 'Full', '', null, 1]) {
    const refusal = {
      code: 'invalid_input',
      message: expect.stringMatching(/durability must be one of full, process/),
    };
    expect(() => sqlite('tasks.db', { durability } as never)).toThrow(expect.objectContaining(refusal));
  }
  for (const options of [null, [], 'full'])
    expect(() => sqlite('tasks.db', options as never)).toThrow(/object of options/);
});

test('stores once what equal failures have in common', async () => {
  const path = join(folder, 'tasks.db');
  const work = defineTask('work', {
    retry: { maxAttempts: 20, backoff: { fixed: '1ms' }, jitter: 'full' },
    run(_, task) {
      if (task.attempt < 20) throw new Error(`answer ${task.attempt} was wrong`);
    },
  });
  const { holdfast, advance, close } = await openTestHoldfast({ store: sqlite(path), tasks: [work] });
  for (let i = 0; i < 3; i += 1) await holdfast.enqueue(work, null);
  await advance('1s');
  const db = new Database(path, { readonly: true });

  // Only the first task that failed so has the whole text.
  const whole = db
    .prepare(
      `SELECT sum(length(because) > 50) FROM hf_executions WHERE outcome = 'failure' AND next = 'scheduled'
       GROUP BY execution ORDER BY execution`,
    )
    .pluck()
    .all();
  expect(whole).toEqual(Array(19).fill(1));
  const failures = db.prepare('SELECT sum(length(failure) > 50) FROM hf_executions').pluck().get();
  expect(failures).toBe(1);
  const [first] = await holdfast.history(3);
  expect(first).toMatchObject({
    failure: { message: 'answer 1 was wrong' },
    because: { text: expect.stringContaining('attempt 1 of 20') },
  });
  db.close();
  await close();
});

test('finds nothing to change in a file that is up to date', async () => {
  const path = join(folder, 'tasks.db');
  await (await openHoldfast({ store: sqlite(path) })).close();
  const db = new Database(path);
  const before = db.pragma('schema_version', { simple: true });
  await (await openHoldfast({ store: sqlite(path) })).close();

  expect(db.pragma('schema_version', { simple: true })).toBe(before);
  db.close();
});
