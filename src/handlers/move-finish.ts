import type { BigIntStats } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { noteOf } from './move-attributes.ts';
import { changed, find, hasCode, isSame, syncFolder } from './move-facts.ts';
import type { MoveInput, MoveResult } from './move-task.ts';

/** Whether this execution gave the file its new name, or found it there. It may undo only what it did itself. */
export type Made = 'now' | 'before';

export async function finishLink(input: MoveInput, source: BigIntStats, made: Made): Promise<MoveResult> {
  const { from, to } = input;
  const result = resultOf(to, 'linked', source);
  await syncFolder(dirname(to));

  const [left, target] = [await find(from), await find(to)];
  if (left === undefined) return result;
  // Somebody put a new file at `from` after the link: it is theirs, as if it had come after the whole move.
  if (!isSame(left, source) && !(target && isSame(left, target))) return result;
  if (!hasOtherName(left, target)) throw changed(to, 'was removed before its old name was');

  await removeSource(from, async () => {
    if (made === 'before') return;
    const now = await find(to);
    if (now && isSame(now, left) && now.nlink >= 2n) await unlink(to);
  });
  return result;
}

/**
 * The last name of a file is never ours to remove, should somebody have removed `to` meanwhile. Some network file systems
 * count no links and number every name apart: there, looking alike must do.
 */
export function hasOtherName(file: BigIntStats, other: BigIntStats | undefined): boolean {
  return file.nlink >= 2n || (other !== undefined && other.size === file.size && other.mtimeNs === file.mtimeNs);
}

/** What the system answers when it left everything as it was. After others, such as EIO, nobody knows. */
const REFUSALS = ['EACCES', 'EPERM', 'EBUSY', 'EROFS'];

/**
 * Removes the old name, last. If that is refused, the new name is taken back, so that nobody sees two files. Between the
 * look at `to` and its `unlink` somebody could replace it, which no system call prevents: they would be overwriting it.
 */
export async function removeSource(from: string, takeBack: () => Promise<void>): Promise<void> {
  try {
    await unlink(from);
  } catch (error) {
    // Another execution that was still alive did the same.
    if (hasCode(error, 'ENOENT')) return;
    // If this fails too both names stay, and the next execution finds them. The first error is the one to tell.
    if (hasCode(error, ...REFUSALS)) await takeBack().catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(from));
}

export function resultOf(
  to: string,
  how: MoveResult['how'],
  stats: BigIntStats,
  lost: readonly string[] = [],
): MoveResult {
  const note = noteOf(lost);
  const result = stats.isFile() ? { to, how, bytes: Number(stats.size) } : { to, how };
  return note === undefined ? result : { ...result, note };
}
