import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { defineTask, type Holdfast, openHoldfast, StoreError } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import Database from '../database.ts';

let folder: string;
let path: string;
let holdfast: Holdfast;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-files-'));
  path = join(folder, 'tasks.db');
  holdfast = await open(path);
  await holdfast.enqueue('mail', {});
});
afterEach(async () => {
  await holdfast.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(at: string): Promise<Holdfast> {
  return openHoldfast({ store: sqlite(at), tasks: [defineTask('mail', { run() {} })] });
}

/** How many of twenty enqueues were acknowledged; every refusal must carry this code. */
async function acknowledged(code: string): Promise<number> {
  const calls = await Promise.allSettled(Array.from({ length: 20 }, () => holdfast.enqueue('mail', {})));
  for (const call of calls) {
    if (call.status === 'rejected') expect(call.reason).toMatchObject({ name: 'StoreError', code, retryable: false });
  }
  return calls.filter(({ status }) => status === 'fulfilled').length;
}

const REMOVALS: readonly [string, () => void][] = [
  ['removed', () => rmSync(path)],
  ['renamed', () => renameSync(path, join(folder, 'old.db'))],
  [
    'removed with its log',
    () => {
      for (const end of ['', '-wal', '-shm']) rmSync(path + end);
    },
  ],
  [
    'replaced by an empty file',
    () => {
      rmSync(path);
      writeFileSync(path, '');
    },
  ],
  [
    'replaced by another store',
    () => {
      const other = join(folder, 'other.db');
      const db = new Database(other);
      db.exec('CREATE TABLE other (x)');
      db.close();
      renameSync(other, path);
    },
  ],
  ['still there while its log was removed', () => rmSync(`${path}-wal`)],
  ['still there while its shared memory was removed', () => rmSync(`${path}-shm`)],
  ['gone with its folder', () => renameSync(folder, `${folder}-moved`)],
];

test.each(REMOVALS)('acknowledges nothing when its file is %s', async (_, remove) => {
  remove();
  expect(await acknowledged('store_replaced')).toBe(0);
  rmSync(`${folder}-moved`, { recursive: true, force: true });
});

test('a new store is its owner’s alone, with the files beside it; one that is there keeps its mode', async () => {
  const modes = () => ['', '-wal', '-shm'].map((end) => statSync(`${path}${end}`).mode & 0o777);
  expect(modes()).toEqual([0o600, 0o600, 0o600]);
  await holdfast.close();
  chmodSync(path, 0o660);
  holdfast = await open(path);
  expect(modes()).toEqual([0o660, 0o660, 0o660]);
});

test('says that its file was replaced, and what to do', async () => {
  rmSync(path);
  const error = await holdfast.enqueue('mail', {}).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StoreError);
  expect((error as StoreError).message).toBe(
    `${path} was removed or replaced while this process had it open. Nothing was changed. Close this store and open it again, ` +
      'on the file that is there now; to replace a store, first stop every process that uses it.',
  );
});

test('answers no reads and no claims from a file that is not there', async () => {
  rmSync(path);
  await expect(holdfast.list()).rejects.toMatchObject({ code: 'store_replaced' });
  await expect(holdfast.worker().drain()).rejects.toMatchObject({ code: 'store_replaced' });
});

test('writes nothing into the file that was renamed', async () => {
  const renamed = join(folder, 'old.db');
  renameSync(path, renamed);
  expect(await acknowledged('store_replaced')).toBe(0);
  renameSync(renamed, path);
  expect(await holdfast.list()).toHaveLength(1);
});

test('goes on when the very same file is back', async () => {
  renameSync(path, join(folder, 'old.db'));
  expect(await acknowledged('store_replaced')).toBe(0);
  renameSync(join(folder, 'old.db'), path);
  expect(await acknowledged('none')).toBe(20);
});

test('acknowledges nothing when a symbolic link leads elsewhere now', async () => {
  const link = join(folder, 'link.db');
  symlinkSync(path, link);
  await holdfast.close();
  holdfast = await open(link);
  expect(await acknowledged('none')).toBe(20);
  rmSync(link);
  symlinkSync(join(folder, 'elsewhere.db'), link);
  expect(await acknowledged('store_replaced')).toBe(0);
  expect(existsSync(join(folder, 'elsewhere.db'))).toBe(false);
});

test('enqueues nothing within a caller’s transaction when the file was removed', async () => {
  const db = new Database(path);
  db.pragma('synchronous = FULL');
  rmSync(path);
  await expect(async () => holdfast.within(db).enqueue('mail', {})).rejects.toMatchObject({ code: 'store_replaced' });
  const inside = db.transaction(() => holdfast.within(db).enqueue('mail', {}));
  await expect(async () => inside()).rejects.toMatchObject({ code: 'store_replaced' });
  db.close();
});

test('refuses to open a file that has two hard links, and leaves it as it is', async () => {
  await holdfast.close();
  const second = join(folder, 'second.db');
  linkSync(path, second);
  for (const name of [path, second]) {
    await expect(open(name)).rejects.toMatchObject({
      code: 'store_unsupported',
      message: expect.stringMatching(/has 2 hard links.*Remove the other name/),
    });
    expect(existsSync(`${name}-wal`)).toBe(false);
  }
  rmSync(second);
  await (await open(path)).close();
});

test('acknowledges nothing while its file has a second hard link, and goes on when that is gone', async () => {
  const second = join(folder, 'second.db');
  linkSync(path, second);
  expect(await acknowledged('store_unsupported')).toBe(0);
  rmSync(second);
  expect(await acknowledged('none')).toBe(20);
  expect(await holdfast.list()).toHaveLength(21);
});

test('is no other file when the process changes its folder', async () => {
  const before = process.cwd();
  const inner = join(folder, 'inner');
  mkdirSync(inner);
  try {
    process.chdir(folder);
    await holdfast.close();
    holdfast = await open('tasks.db');
    process.chdir(inner);
    expect(await acknowledged('none')).toBe(20);
  } finally {
    process.chdir(before);
  }
});

test('cuts its log back after a long read has made it grow', async () => {
  const reader = new Database(path, { readonly: true });
  reader.exec('BEGIN; SELECT * FROM holdfast_tasks');
  const padding = 'x'.repeat(900_000);
  for (let n = 0; n < 80; n += 1) await holdfast.enqueue('mail', { padding });
  expect(size()).toBeGreaterThan(64 * 2 ** 20);
  reader.exec('COMMIT');
  reader.close();
  for (let n = 0; n < 3; n += 1) await holdfast.enqueue('mail', { padding });
  expect(size()).toBeLessThanOrEqual(64 * 2 ** 20);

  function size(): number {
    return statSync(`${path}-wal`).size;
  }
});
