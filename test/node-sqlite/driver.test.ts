import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defineTask, openHoldfast, StoreError } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { libraryOf } from '../../src/store/sqlite/library.ts';

const { DatabaseSync } = process.getBuiltinModule('node:sqlite' as 'node:fs') as unknown as {
  DatabaseSync: new (path: string) => { exec(sql: string): void; prepare(sql: string): Rows; close(): void };
};
interface Rows {
  all(): unknown[];
}

const driver = 'node:sqlite';
const mail = defineTask('mail', { run() {} });

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-node-sqlite-'));
  path = join(folder, 'tasks.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

test('is taken where better-sqlite3 is not built for this Node', async () => {
  // CI installs for Node 20, whose compiled library no other version loads.
  expect((await libraryOf()).name).toBe('node:sqlite');
  const holdfast = await openHoldfast({ store: sqlite(path), tasks: [mail] });
  await holdfast.enqueue('mail', {});
  expect((await holdfast.counts()).byState.ready).toBe(1);
  await holdfast.close();
});

test('prints no warning that its interface may change', () => {
  const script = `import { sqlite } from './dist/store/sqlite/index.js'; import { openHoldfast } from './dist/index.js';
    await (await openHoldfast({ store: sqlite(':memory:', { driver: 'node:sqlite' }) })).close(); console.log('closed');`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', `${script}`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  expect(output).toBe('closed\n');
});

test('says what is wrong with a file that is no database', async () => {
  const { writeFileSync } = await import('node:fs');
  writeFileSync(path, 'no database '.repeat(200));
  await expect(openHoldfast({ store: sqlite(path, { driver }) })).rejects.toThrow(
    expect.objectContaining({ code: 'store_corrupt' }),
  );
});

test('waits for another process that writes, without blocking', async () => {
  const holdfast = await openHoldfast({ store: sqlite(path, { driver }), tasks: [mail] });
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  const enqueued = holdfast.enqueue('mail', {});
  await new Promise((resolve) => setImmediate(resolve));
  expect(other.prepare('SELECT id FROM holdfast_tasks').all()).toEqual([]);
  other.exec('COMMIT');
  expect((await enqueued).created).toBe(true);
  other.close();
  await holdfast.close();
});

describe('within', () => {
  test('enqueues in a transaction of the caller, or not at all', async () => {
    const holdfast = await openHoldfast({ store: sqlite(path, { driver }), tasks: [mail] });
    const db = new DatabaseSync(path);
    db.exec('PRAGMA synchronous = FULL; BEGIN IMMEDIATE');
    const { id } = holdfast.within(db).enqueue('mail', {});
    db.exec('COMMIT; BEGIN IMMEDIATE');
    holdfast.within(db).enqueue('mail', {});
    db.exec('ROLLBACK');
    expect((await holdfast.list()).map((task) => task.id)).toEqual([id]);
    db.close();
    await holdfast.close();
  });

  test('refuses a handle of another library', async () => {
    const holdfast = await openHoldfast({ store: sqlite(path, { driver }), tasks: [mail] });
    expect(() => holdfast.within({ prepare() {}, exec() {} })).toThrow(/no DatabaseSync of node:sqlite/);
    await holdfast.close();
  });
});

test('refuses better-sqlite3 that is not built, and says what to do', async () => {
  await expect(openHoldfast({ store: sqlite(path, { driver: 'better-sqlite3' }) })).rejects.toThrow(StoreError);
});
