// @ts-check
// Moves one file, so that it may be killed at any moment and run again.
import { constants, copyFile, link, lstat, mkdir, open, realpath, unlink, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failed, NeedsManual } from 'holdfast';
import { keyOf } from './plan.js';

/**
 * @typedef {import('./plan.js').Move} Move
 * @typedef {Pick<import('holdfast').RunningTask, 'id' | 'execution' | 'signal'>} Execution
 * @typedef {import('node:fs').BigIntStats} Stats
 */

/**
 * Moves a file, never onto something that exists. Whenever it is killed, the file is whole under one of its names or under
 * both, and the next execution goes on from there. What the system refuses is thrown untouched: the policy knows what EBUSY,
 * EACCES and EEXIST mean.
 *
 * @param {Move} move
 * @param {Execution} task
 * @returns {Promise<{ to: string, how: 'linked' | 'copied' | 'moved before' }>}
 */
export async function moveFile(move, task) {
  const source = await sourceOf(move, task);
  if (source === undefined) return finish(move, task, 'moved before');
  if (!source.isFile()) {
    throw new NeedsManual(`'${move.from}' is not a file, and a plan moves files one by one.`, { reason: 'fs.invalid' });
  }
  await mkdir(dirname(move.to), { recursive: true });
  const how = await giveNewName(move, task, source);
  task.signal.throwIfAborted();
  await removeOldName(move, task, how);
  return finish(move, task, how);
}

/**
 * Undefined where an earlier execution moved it, and was killed before it could say so. At the first, nothing at `from` is an
 * error, whatever is at `to`.
 *
 * @param {Move} move
 * @param {Execution} task
 */
async function sourceOf({ from, to }, task) {
  try {
    return await lstat(from, { bigint: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT') && task.execution > 1 && (await find(to))) return undefined;
    throw error;
  }
}

/**
 * @param {Move} move
 * @param {Execution} task
 * @param {Stats} source
 */
async function giveNewName(move, task, source) {
  try {
    // Unlike a rename, a link never replaces what has the name.
    await link(move.from, move.to);
    return 'linked';
  } catch (error) {
    if (hasCode(error, 'EEXIST') && (await isOurs(move, task, source))) return 'moved before';
    if (!hasCode(error, 'EXDEV')) throw error;
  }
  await copy(move, task, source);
  return 'copied';
}

/**
 * Whether `to` is what an earlier execution made of the file: a second name of it, or of a copy that is as the file is now.
 *
 * @param {Move} move
 * @param {Execution} task
 * @param {Stats} source
 */
async function isOurs(move, task, source) {
  const target = await find(move.to);
  if (!target) return false;
  if (isSame(source, target)) return !(await isOneName(move, source));
  for (const temporary of temporaries(move, task)) {
    const copied = await find(temporary);
    if (copied && isSame(copied, target)) return looksLike(target, source);
  }
  return false;
}

/**
 * Whether both paths lead to the same entry of the same folder, by way of a link. Removing one would remove the other.
 *
 * @param {Move} move
 * @param {Stats} source
 */
async function isOneName({ from, to }, source) {
  if (source.nlink < 2n) return true;
  return basename(from) === basename(to) && (await realpath(dirname(from))) === (await realpath(dirname(to)));
}

/**
 * To another file system: nothing has the new name before all of it is there, and on the disk.
 *
 * @param {Move} move
 * @param {Execution} task
 * @param {Stats} source
 */
async function copy(move, task, source) {
  const temporary = temporaryOf(move, task);
  try {
    await copyFile(move.from, temporary, constants.COPYFILE_EXCL);
    await utimes(temporary, Number(source.atimeNs) / 1e9, Number(source.mtimeNs) / 1e9);
    const file = await open(temporary, 'r');
    await file.sync().finally(() => file.close());
    const [now, copied] = [await find(move.from), await find(temporary)];
    if (!now || !looksLike(now, source) || copied?.size !== source.size) {
      throw new Failed(`'${move.from}' changed while it was copied. It is tried again.`, { reason: 'fs.changed' });
    }
    await link(temporary, move.to);
  } catch (error) {
    await removeIfThere(temporary);
    throw error;
  }
}

/** What the system answers when it left everything as it was. */
const REFUSALS = ['EACCES', 'EPERM', 'EBUSY', 'EROFS'];

/**
 * The last step. Where it is refused, a name that was given just now is taken back, so that nobody sees two files.
 *
 * @param {Move} move
 * @param {Execution} task
 * @param {'linked' | 'copied' | 'moved before'} how
 */
async function removeOldName(move, task, how) {
  try {
    await unlink(move.from);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    if (hasCode(error, ...REFUSALS) && how !== 'moved before') {
      await removeIfThere(move.to);
      await removeIfThere(temporaryOf(move, task));
    }
    throw error;
  }
}

/**
 * Copies go last: a second name of `to`, they prove to the next execution whose it is.
 *
 * @param {Move} move
 * @param {Execution} task
 * @param {'linked' | 'copied' | 'moved before'} how
 */
async function finish(move, task, how) {
  for (const temporary of temporaries(move, task)) await removeIfThere(temporary);
  return { to: move.to, how };
}

/**
 * Each execution has its own, for one that was thought dead may still be writing.
 *
 * @param {Move} move
 * @param {Pick<Execution, 'id' | 'execution'>} task
 */
function temporaryOf(move, { id, execution }) {
  return join(dirname(move.to), `.${keyOf(move).replace(':', '-')}-${id}-${execution}`);
}

/**
 * Those of all executions, up to this one.
 *
 * @param {Move} move
 * @param {Execution} task
 */
function temporaries(move, { id, execution }) {
  return Array.from({ length: execution }, (_, earlier) => temporaryOf(move, { id, execution: earlier + 1 }));
}

/** @param {string} path */
async function find(path) {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** @param {string} path */
async function removeIfThere(path) {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

/**
 * @param {Stats} a
 * @param {Stats} b
 */
function isSame(a, b) {
  return a.dev === b.dev && a.ino === b.ino;
}

/**
 * As far as size and time tell. The time of a copy is set in microseconds; where a file system keeps only seconds it looks
 * different, and a person is asked.
 *
 * @param {Stats} a
 * @param {Stats} b
 */
function looksLike(a, b) {
  return a.size === b.size && Math.abs(Number(a.mtimeNs - b.mtimeNs)) < 2_000;
}

/**
 * @param {unknown} error
 * @param {...string} codes
 */
function hasCode(error, ...codes) {
  return codes.includes(Object(error).code);
}
