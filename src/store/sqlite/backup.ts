import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { StoreError } from '../../errors.ts';
import { retryWhileBusy } from './busy-retry.ts';
import type { Sql } from './driver.ts';
import { storeError } from './failures.ts';
import { connect, libraryOf } from './library.ts';

/**
 * Copies the database to a new file, as it is at one moment; others can go on writing. The file gets its name when it is whole, checked
 * and on the disk. It is its owner's alone, as the store is.
 * @throws StoreError if the file exists or cannot be written.
 */
export async function backUp(sql: Sql, file: string): Promise<void> {
  if (existsSync(file)) throw new StoreError('store_unsupported', `${file} exists already. Name a new file.`);
  const unfinished = `${file}.${process.pid}.unfinished`;
  try {
    closeSync(openSync(unfinished, 'wx', 0o600));
    await retryWhileBusy(() => sql.run('VACUUM INTO ?', unfinished));
    await refuseDamaged(unfinished);
    flush(unfinished, 'r+');
    renameSync(unfinished, file);
    flush(dirname(file), 'r');
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw storeError(error, file);
  }
}

async function refuseDamaged(file: string): Promise<void> {
  const copy = connect(file, await libraryOf());
  try {
    const found = copy.prepare('PRAGMA quick_check(1)').pluck().get();
    if (found !== 'ok') throw new StoreError('store_corrupt', `The copy of the store is damaged: ${found}. Try again.`);
  } finally {
    copy.close();
  }
}

/** Whether a file is a store of Holdfast, of any version. */
export async function isStore(file: string): Promise<boolean> {
  const found = connect(file, await libraryOf());
  try {
    return found.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'hf_schema'").get() !== undefined;
  } catch (error) {
    throw storeError(error, file);
  } finally {
    found.close();
  }
}

/** Waits until a file or a folder is on the disk. */
export function flush(path: string, flags: 'r' | 'r+'): void {
  const file = openSync(path, flags);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
