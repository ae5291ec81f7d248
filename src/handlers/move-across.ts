import type { BigIntStats } from 'node:fs';
import { link, lstat, readlink, symlink, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { copyLinkAttributes } from './move-attributes.ts';
import { copy } from './move-content.ts';
import { changed, find, hasCode, isSame, isUnchanged, removeIfThere, syncFolder } from './move-facts.ts';
import { hasOtherName, type Made, removeSource, resultOf } from './move-finish.ts';
import type { MoveRecord } from './move-record.ts';
import type { MoveInput, MoveResult, MoveTask } from './move-task.ts';
import {
  create,
  mayLackHardLinks,
  noHardLinks,
  refusalToLink,
  temporaryExists,
  temporaryName,
} from './move-temporary.ts';

/** The file at the destination, and how it got there. */
interface Copied {
  /** Another name of it, beside it. */
  readonly temporary: string | undefined;
  readonly made: Made;
  readonly lost: readonly string[];
}

export async function copyFile(
  input: MoveInput,
  task: MoveTask,
  source: BigIntStats,
  record: MoveRecord,
): Promise<MoveResult> {
  const temporary = temporaryName(input.to, task.id, task.execution);
  await create(temporary);
  let lost: string[];
  try {
    const refusal = await refusalToLink(temporary);
    if (refusal !== undefined) throw noHardLinks(input, task, refusal);
    lost = await copy(input.from, temporary, source, task);
    await record.wrote(await lstat(temporary, { bigint: true }), lost);
    await link(temporary, input.to);
  } catch (error) {
    // What cannot be removed now, the next execution sweeps. The first error is the one to tell.
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  return finishCopy(input, source, { temporary, made: 'now', lost });
}

/**
 * The temporary goes last: a second name of `to`, it is proof for the next execution that `to` is this task's work.
 */
export async function finishCopy(
  input: MoveInput,
  source: BigIntStats,
  { temporary, made, lost }: Copied,
): Promise<MoveResult> {
  const { from, to } = input;
  await syncFolder(dirname(to));

  const [left, target] = [await find(from), await find(to)];
  const copied = temporary === undefined ? undefined : await find(temporary);
  if (left && !isUnchanged(left, source)) throw changed(from, 'changed after it was copied');
  if (left && !isSafe(copied, target)) throw changed(to, 'was removed before its source was');
  await removeSource(from, async () => {
    const [origin, now] = [await find(from), await find(to)];
    if (made === 'before' || !copied || temporary === undefined || !origin || !now) return;
    if (!isUnchanged(origin, source) || !isSame(now, copied)) return;
    await unlink(to);
    await unlink(temporary);
  });
  if (temporary !== undefined) await removeIfThere(temporary);
  return resultOf(to, 'copied', source, lost);
}

/** Whether the copy is still there under the name that it was given, or was taken elsewhere by another one. */
function isSafe(copied: BigIntStats | undefined, target: BigIntStats | undefined): boolean {
  return copied === undefined ? target !== undefined : hasOtherName(copied, target);
}

/**
 * Makes a symbolic link anew, like a file: under a temporary name first, so that the record can say which one is ours. Where it cannot
 * get a second name (no Linux, no hard links) it is made in place, and the record is written after that.
 */
export async function copySymlink(
  input: MoveInput,
  task: MoveTask,
  source: BigIntStats,
  record: MoveRecord,
): Promise<MoveResult> {
  const text = await readlink(input.from, 'buffer');
  if (process.platform !== 'linux') return makeInPlace(input, source, record, text);
  const temporary = temporaryName(input.to, task.id, task.execution);
  try {
    await symlink(text, temporary);
  } catch (error) {
    throw hasCode(error, 'EEXIST') ? temporaryExists(temporary, error) : error;
  }
  let lost: string[];
  try {
    lost = await copyLinkAttributes(temporary, source);
    await record.wrote(await lstat(temporary, { bigint: true }), lost);
    await link(temporary, input.to);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    if (!mayLackHardLinks(error)) throw error;
    return makeInPlace(input, source, record, text);
  }
  return finishSymlink(input, source, { temporary, made: 'now', lost });
}

async function makeInPlace(
  input: MoveInput,
  source: BigIntStats,
  record: MoveRecord,
  text: Buffer,
): Promise<MoveResult> {
  await symlink(text, input.to);
  const lost = await copyLinkAttributes(input.to, source);
  await record.wrote(await lstat(input.to, { bigint: true }), lost);
  return finishSymlink(input, source, { temporary: undefined, made: 'now', lost });
}

export async function finishSymlink(
  input: MoveInput,
  source: BigIntStats,
  { temporary, made, lost }: Copied,
): Promise<MoveResult> {
  const { from, to } = input;
  await syncFolder(dirname(to));
  const [left, target] = [await find(from), await find(to)];
  const isOurs = left && isSame(left, source);
  if (isOurs && !target) throw changed(to, 'was removed before its source was');
  if (isOurs) {
    await removeSource(from, async () => {
      const now = await find(to);
      if (made === 'before' || !now || !target || !isSame(now, target)) return;
      await unlink(to);
      if (temporary !== undefined) await unlink(temporary);
    });
  }
  if (temporary !== undefined) await removeIfThere(temporary);
  return resultOf(to, 'copied', source, lost);
}
