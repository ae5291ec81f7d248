import type { BigIntStats } from 'node:fs';
import { lstat, open, unlink } from 'node:fs/promises';
import { Failed, PermanentFailure } from '../failure/signals.ts';

export async function find(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Inode numbers use all 64 bits on some file systems: only `bigint` tells all of them apart. */
export function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** A write that keeps the size, within one tick of the file system's clock, cannot be seen; nor one after the last look. */
export function isUnchanged(now: BigIntStats, before: BigIntStats): boolean {
  return isSame(now, before) && now.size === before.size && now.mtimeNs === before.mtimeNs;
}

/** Makes names durable. Where folders cannot be opened or synced (Windows, some network shares, no right to read) they are not. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (error) {
    if (!hasCode(error, 'EISDIR', 'EPERM', 'EINVAL', 'EACCES')) throw error;
  }
}

export async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

export function changed(path: string, what: string): Failed {
  return new Failed(`${quoted(path)} ${what}, so nothing more was done. It will be tried again.`, {
    reason: 'fs.changed',
  });
}

export function sameFile(from: string, to: string, cause: unknown): PermanentFailure {
  return new PermanentFailure(`${quoted(from)} and ${quoted(to)} are the same file: there is nothing to move.`, {
    reason: 'fs.same_file',
    cause,
  });
}

export function quoted(path: string): string {
  return `'${path}'`;
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' && codes.includes(code);
}
