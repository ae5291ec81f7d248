import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineTask, type Holdfast, openHoldfast, type Receipt, type Store } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import Database from '../database.ts';
import { refused, watchRejections } from '../queue/refused.ts';
import { gate } from '../worker/scene.ts';

watchRejections();

const mail = defineTask('mail', { source: (input: { to: string }) => `smtp:${input.to}`, run() {} });

let folder: string;
let path: string;
let holdfast: Holdfast;
let db: Database;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-within-'));
  path = join(folder, 'app.db');
  db = open(path);
  db.exec('CREATE TABLE orders (id INTEGER PRIMARY KEY, who TEXT NOT NULL)');
  holdfast = await openHoldfast({ store: sqlite(path), tasks: [mail] });
});
afterEach(async () => {
  expect(await holdfast.store.upkeep.verify()).toEqual([]);
  await holdfast.close();
  db.close();
  rmSync(folder, { recursive: true });
});

function open(file: string): Database {
  const handle = new Database(file);
  handle.pragma('journal_mode = WAL');
  handle.pragma('synchronous = FULL');
  return handle;
}

const order = (who: string) => db.prepare('INSERT INTO orders (who) VALUES (?)').run(who);
const tasks = () => holdfast.list();

describe('in a transaction of the caller', () => {
  test('the task is there exactly when it commits', async () => {
    const receipt = db
      .transaction(() => {
        order('ada');
        return holdfast.within(db).enqueue(mail, { to: 'ada' }, { key: 'k', priority: 3 });
      })
      .immediate();

    expect(receipt).toEqual({ id: expect.any(Number), created: true });
    expect(await holdfast.get('k')).toMatchObject({
      id: receipt.id,
      state: 'ready',
      source: 'smtp:ada',
      priority: 3,
      input: { to: 'ada' },
    });
  });

  test('the task is not there, nor its key, when it is rolled back', async () => {
    const given = { key: 'k', unique: { key: 'u' }, queue: 'never-seen' };
    const fails = db.transaction(() => {
      order('ada');
      holdfast.within(db).enqueue(mail, { to: 'ada' }, given);
      throw new Error('No.');
    });
    expect(() => fails()).toThrow('No.');

    expect(await tasks()).toEqual([]);
    expect(await holdfast.find('k')).toBeUndefined();
    // What was learned in the transaction that was undone, such as the number of the new queue, is learned anew.
    holdfast.within(db).enqueue(mail, { to: 'bob' }, { ...given, queue: 'another' });
    holdfast.within(db).enqueue(mail, { to: 'eve' }, { queue: 'never-seen' });
    expect(await tasks()).toMatchObject([{ queue: 'never-seen' }, { queue: 'another', key: 'k' }]);
    const claim = await holdfast.claim({ queues: ['never-seen'] });
    expect(claim?.input).toEqual({ to: 'eve' });
    await claim?.complete();
  });

  test('nobody sees the task before the commit', async () => {
    db.exec('BEGIN IMMEDIATE');
    holdfast.within(db).enqueue(mail, { to: 'ada' });
    expect(await tasks()).toEqual([]);
    db.exec('COMMIT');
    expect(await tasks()).toHaveLength(1);
  });

  test('a savepoint that is rolled back takes its tasks with it, and leaves those of the others', async () => {
    db.exec('BEGIN IMMEDIATE');
    holdfast.within(db).enqueue(mail, { to: 'kept' });
    db.exec('SAVEPOINT mine');
    holdfast.within(db).enqueue(mail, { to: 'undone' });
    db.exec('ROLLBACK TO mine');
    holdfast.within(db).enqueue(mail, { to: 'also kept' });
    db.exec('COMMIT');

    expect((await tasks()).map(({ input }) => input)).toEqual([{ to: 'also kept' }, { to: 'kept' }]);
  });

  test('an enqueue that is refused leaves nothing behind, and the rest goes on', async () => {
    const unique = { key: 'u', onConflict: 'reject' } as const;
    const { id } = await holdfast.enqueue(mail, { to: 'first' }, { unique });
    db.transaction(() => {
      order('ada');
      expect(() => holdfast.within(db).enqueue(mail, { to: 'second' }, { unique, queue: 'new' })).toThrow(
        expect.objectContaining({ code: 'unique_conflict', task: id }),
      );
      holdfast.within(db).enqueue(mail, { to: 'third' });
    }).immediate();

    expect(await tasks()).toHaveLength(2);
    expect(db.prepare('SELECT count(*) FROM orders').pluck().get()).toBe(1);
  });

  test('keys and unique keys know what was enqueued in any other way', async () => {
    const unique = { key: 'u', onConflict: 'replace' } as const;
    const first = await holdfast.enqueue(mail, { to: 'a' }, { key: 'k' });
    const waiting = await holdfast.enqueue(mail, { to: 'b' }, { unique });
    const answers = db
      .transaction((): Receipt[] => {
        const within = holdfast.within(db);
        return [
          within.enqueue(mail, { to: 'c' }, { key: 'k' }),
          within.enqueue(mail, { to: 'd' }, { unique }),
          within.enqueue(mail, { to: 'e' }, { key: 'l', unique: { key: 'u' } }),
        ];
      })
      .immediate();

    const id = answers[1]?.id as number;
    expect(answers).toEqual([
      { id: first.id, created: false, state: 'ready' },
      { id, created: true, replaced: waiting.id },
      { id, created: false, state: 'ready' },
    ]);
    expect(await holdfast.enqueue(mail, { to: 'f' }, { unique: { key: 'u' } })).toEqual({
      id,
      created: false,
      state: 'ready',
    });
  });

  test('a handle that answers every number as a BigInt is read right', async () => {
    db.defaultSafeIntegers(true);
    const { id } = holdfast.within(db).enqueue(mail, { to: 'a' }, { key: 'k', unique: { key: 'u' } });

    expect(holdfast.within(db).enqueue(mail, { to: 'a' }, { unique: { key: 'u', onConflict: 'replace' } })).toEqual({
      id: expect.any(Number),
      created: true,
      replaced: id,
    });
    expect(holdfast.within(db).enqueue(mail, { to: 'a' }, { key: 'k' })).toMatchObject({ id, created: false });
  });
});

describe('outside of a transaction', () => {
  test('the enqueue is one of its own', async () => {
    const { id } = holdfast.within(db).enqueue('mail', { to: 'ada' });
    expect(db.inTransaction).toBe(false);
    expect(await holdfast.get(id)).toMatchObject({ state: 'ready', source: 'smtp:ada' });
  });
});

test('a worker of the same process starts the task at the commit, and does not wait for its next poll', async () => {
  const ran = gate();
  const task = defineTask('quick', { run: () => ran.open() });
  const own = await openHoldfast({ store: sqlite(path), tasks: [task] });
  const idle = gate();
  const { claim } = own.store.tasks;
  vi.spyOn(own.store.tasks, 'claim').mockImplementation(async function (this: Store['tasks'], request) {
    const answer = await claim.call(this, request);
    if (answer.tasks.length === 0) idle.open();
    return answer;
  });
  const worker = own.work({ pollInterval: '1h' });
  await idle.passed;

  db.transaction(() => own.within(db).enqueue(task, {})).immediate();

  await ran.passed;
  await worker.stop();
  await own.close();
});

test('the clock goes on from where the store has come, though the wall clock was set back', async () => {
  const world = virtualWorld();
  const store = await sqlite(path).open(world);
  const given = { type: 'mail', queue: 'q', source: 's', priority: 0, payload: '{}', delay: 0 };
  const before = store.upkeep.now();
  world.clock.jumpWall(-3_600_000);
  const [receipt] = (store.within?.(db).enqueue([given]) ?? []) as readonly Receipt[];

  const record = await store.records.find((receipt as Receipt).id);
  expect(record?.createdAt).toBeGreaterThanOrEqual(before);
  expect(await store.upkeep.verify()).toEqual([]);
  await store.upkeep.close();
});

describe('refuses', () => {
  const refusal = (handle: unknown) => refused(() => holdfast.within(handle as never).enqueue(mail, { to: 'a' }));

  test('a handle on another file, and names both', async () => {
    const other = open(join(folder, 'other.db'));
    const error = await refusal(other);
    expect(error).toMatchObject({ code: 'invalid_input', message: expect.stringContaining(other.name) });
    expect(error.message).toContain(path);
    other.close();
    const memory = new Database(':memory:');
    expect((await refusal(memory)).message).toMatch(/a database in memory/);
    memory.close();
  });

  test('no handle that came to the same file by another name', async () => {
    const link = join(folder, 'link.db');
    symlinkSync(path, link);
    const other = open(link);
    expect(holdfast.within(other).enqueue(mail, { to: 'a' })).toMatchObject({ created: true });
    other.close();
  });

  test('every handle where the store is in memory', async () => {
    const memory = await openHoldfast({ store: sqlite(':memory:'), tasks: [mail] });
    const error = await refused(() => memory.within(db).enqueue(mail, { to: 'a' }));
    expect(error).toMatchObject({ code: 'invalid_input', message: expect.stringContaining('in memory') });
    await memory.close();
  });

  test('a handle that commits less safely than the store, and says what to set', async () => {
    db.pragma('synchronous = NORMAL');
    const error = await refusal(db);
    expect(error.message).toMatch(/synchronous=NORMAL.*db\.(pragma\('|exec\('PRAGMA )synchronous = FULL'\)/);

    const fast = await openHoldfast({ store: sqlite(path, { durability: 'process' }), tasks: [mail] });
    expect(fast.within(db).enqueue(mail, { to: 'a' })).toMatchObject({ created: true });
    db.pragma('synchronous = OFF');
    expect((await refused(() => fast.within(db))).message).toMatch(/synchronous = NORMAL/);
    db.pragma('synchronous = EXTRA');
    expect(holdfast.within(db).enqueue(mail, { to: 'a' })).toMatchObject({ created: true });
    await fast.close();
  });

  test('a handle that became less safe, or was closed, after it was taken', async () => {
    const within = holdfast.within(db);
    db.pragma('synchronous = NORMAL');
    expect((await refused(() => within.enqueue(mail, { to: 'a' }))).message).toMatch(/synchronous=NORMAL/);
    const closed = open(path);
    const taken = holdfast.within(closed);
    closed.close();
    expect((await refused(() => taken.enqueue(mail, { to: 'a' }))).message).toMatch(/closed/);
    expect((await refusal(closed)).message).toMatch(/closed/);
  });

  test('a handle for reading only', async () => {
    const reader = new Database(path, { readonly: true });
    reader.pragma('synchronous = FULL');
    expect((await refusal(reader)).message).toMatch(/reading only|is read-only/);
    reader.close();
  });

  test('what is no handle of the library that Holdfast uses', async () => {
    for (const given of [undefined, null, 'app.db', {}, 1, () => {}]) {
      expect((await refusal(given)).message).toMatch(/takes an open Database(Sync of node:sqlite| of better-sqlite3)/);
    }
    const lookalike = { prepare: () => ({}), exec: () => ({}), inTransaction: false, open: true };
    expect((await refusal(lookalike)).message).toMatch(
      /no Database(Sync of node:sqlite| of better-sqlite3), which Holdfast itself uses here/,
    );
  });

  test('an input whose schema answers later, in which nothing is left hanging', async () => {
    const input = z.string().refine(async (text) => text !== 'bad');
    const slow = defineTask('slow', { input, run() {} });
    for (const text of ['good', 'bad']) {
      const error = await refused(() => holdfast.within(db).enqueue(slow, text));
      expect(error).toMatchObject({
        code: 'invalid_input',
        message: expect.stringMatching(/'slow' is asynchronous; inside a transaction it must be synchronous/),
      });
    }
    expect(await tasks()).toEqual([]);
  });

  test('what `enqueue` refuses', async () => {
    const within = holdfast.within(db);
    expect(await refused(() => within.enqueue(mail, { to: 10n as never }))).toMatchObject({ code: 'payload_rejected' });
    expect(await refused(() => within.enqueue(mail, { to: 'a' }, { priority: -1 }))).toMatchObject({
      code: 'invalid_input',
    });
  });

  test('a store that a newer version wrote meanwhile', async () => {
    db.exec('UPDATE hf_schema SET version = 99, least_writer = 99');
    expect(await refusal(db)).toMatchObject({ code: 'store_too_new' });
    db.exec('UPDATE hf_schema SET version = 1, least_writer = 1');
  });

  test('to wait for another writer for longer than the handle does', async () => {
    const other = new Database(path, { timeout: 0 });
    other.pragma('synchronous = FULL');
    db.exec('BEGIN IMMEDIATE');
    const error = await refused(() => holdfast.within(other).enqueue(mail, { to: 'a' }));
    expect(error).toMatchObject({
      code: 'store_busy',
      retryable: true,
      message: expect.stringMatching(/immediate\(\)/),
    });
    expect(other.inTransaction).toBe(false);
    db.exec('COMMIT');
    expect(holdfast.within(other).enqueue(mail, { to: 'a' })).toMatchObject({ created: true });
    other.close();
  });

  test('a transaction that has read what somebody else has changed since, and leaves it to be rolled back', async () => {
    db.exec('BEGIN');
    db.prepare('SELECT count(*) FROM orders').get();
    await holdfast.enqueue(mail, { to: 'between' });
    const error = await refusal(db);
    expect(error).toMatchObject({ code: 'store_busy', retryable: true });
    expect(db.inTransaction).toBe(true);
    db.exec('ROLLBACK');
  });

  test('every call once Holdfast is closed', async () => {
    const own = await openHoldfast({ store: sqlite(path), tasks: [mail] });
    const within = own.within(db);
    const inside = own.store.within?.(db);
    await own.close();
    for (const call of [() => own.within(db), () => within.enqueue(mail, { to: 'a' }), () => inside?.enqueue([])]) {
      expect(await refused(call)).toMatchObject({ code: 'closed' });
    }
  });
});
