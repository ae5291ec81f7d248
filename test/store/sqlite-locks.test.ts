import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { storeError } from '../../src/store/sqlite/failures.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { connect, libraryOf } from '../../src/store/sqlite/library.ts';
import Database, { DATABASE_MODULE } from '../database.ts';

const BUSY = Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' });

let folder: string;
let path: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-locks-'));
  path = join(folder, 'tasks.db');
  await (await openHoldfast({ store: sqlite(path) })).close();
});
afterEach(() => rmSync(folder, { recursive: true }));

test('never blocks the event loop for a locked database', async () => {
  const holder = new Database(path);
  holder.exec('BEGIN IMMEDIATE');
  const connection = connect(path, await libraryOf());
  // The shortest of many: any of them may be interrupted on a busy machine.
  const waited = Array.from({ length: 50 }, () => {
    const started = performance.now();
    expect(() => connection.exec('BEGIN IMMEDIATE')).toThrow(/locked/);
    return performance.now() - started;
  });
  expect(Math.min(...waited)).toBeLessThan(5);
  connection.close();
  holder.close();
});

test('writes when the lock is gone', async () => {
  const holdfast = await openHoldfast({ store: sqlite(path) });
  const holder = new Database(path);
  holder.exec('BEGIN IMMEDIATE');
  const enqueued = holdfast.enqueue('mail', {});
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  holder.exec('COMMIT');
  holder.close();
  await expect(enqueued).resolves.toMatchObject({ id: 1 });
  await holdfast.close();
});

test.runIf(process.platform === 'linux')('names the process that holds the lock', async () => {
  const program = `
    const { default: Better, DatabaseSync = Better } = await import('${DATABASE_MODULE}');
    const db = new DatabaseSync(${JSON.stringify(path)});
    db.exec('BEGIN IMMEDIATE');
    process.stdin.resume().on('end', () => process.exit());
    console.log('locked');`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', program, 'a-long-report'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const connection = new Database(path);
  connection.prepare('SELECT count(*) FROM hf_tasks').get();
  await once(holder.stdout, 'data');

  expect(storeError(BUSY, path)).toMatchObject({
    code: 'store_busy',
    retryable: true,
    message: expect.stringMatching(
      new RegExp(`Process ${holder.pid} \\(.*node --input-type=module.*holds a long transaction`),
    ),
  });
  const ended = once(holder, 'exit');
  holder.stdin.end();
  await ended;
  expect(storeError(BUSY, path)).toMatchObject({ message: expect.stringContaining('Something holds') });
  connection.close();
});

test.runIf(process.platform === 'linux')('says that another connection of the same process holds it', () => {
  const holder = new Database(path);
  holder.exec('BEGIN IMMEDIATE');
  expect(storeError(BUSY, path)).toMatchObject({
    message: expect.stringContaining('This process itself, through another connection, holds'),
  });
  holder.close();
});
