import type { BigIntStats } from 'node:fs';
import { link, lstat, mkdir, readdir, readlink, rename, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute } from 'node:path';
import { NeedsManual, PermanentFailure } from '../failure/signals.ts';
import { copyFile, copySymlink, finishCopy, finishSymlink } from './move-across.ts';
import { haveSameContent } from './move-content.ts';
import { find, hasCode, isSame, quoted, removeIfThere, sameFile, syncFolder } from './move-facts.ts';
import { finishLink, resultOf } from './move-finish.ts';
import { MoveRecord } from './move-record.ts';
import type { MoveInput, MoveResult, MoveTask } from './move-task.ts';
import { linkedTemporary, sweep, understood } from './move-temporary.ts';

export type { MoveInput, MoveResult } from './move-task.ts';

/**
 * Moves a file, a folder or a symbolic link, and never onto something that exists. It may be killed before any system
 * call: the file is whole under one of its two names, `to` never shows a part of it, and the next execution goes on. One exception:
 * a move of a folder that was killed after `mkdir(to)` and before that is saved fails with EEXIST, because the empty folder may be
 * somebody else's.
 *
 * ```
 * before any of it           save what the source is (see `MoveRecord`)
 * file, symbolic link        link(from, to) ─► unlink(from)
 * the same to another device write temporary ─► save what was written ─► link(temporary, to) ─► unlink(from) ─► unlink(temporary)
 * folder                     mkdir(to) ─► save which folder that is ─► rename(from, to), which replaces only an empty folder
 * ```
 *
 * Across devices a file keeps its content, holes, mode, times, owner, extended attributes and ACL as far as the destination takes
 * them; the result's `note` says what was lost. `already_moved` is answered only where the record proves that what is at `to` is this
 * task's work. Errors of the system are thrown untouched: EEXIST from `link`, `symlink` or `mkdir` says that `to` is
 * taken. What the system cannot say is thrown as `fs.no_hard_links` and `fs.cross_device_folder` (a person is asked),
 * `fs.special_file` and `fs.same_file` (permanent), `fs.changed`, `fs.copy_differs` and `fs.temporary_exists` (transient).
 */
export async function move(input: MoveInput, task: MoveTask): Promise<MoveResult> {
  refuseRelative(input);
  task.signal.throwIfAborted();
  const record = new MoveRecord(task);

  let source: BigIntStats;
  try {
    source = await lstat(input.from, { bigint: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT') && task.execution > 1) return movedBefore(input, task, record, error);
    throw error;
  }
  if (source.isDirectory()) return moveFolder(input, task, source, record);
  if (source.isFile() || source.isSymbolicLink()) return moveFile(input, task, source, record);
  throw new PermanentFailure(
    `${quoted(input.from)} is ${specialKind(source)}. Holdfast moves files, folders and symbolic links only.`,
    { reason: 'fs.special_file' },
  );
}

function refuseRelative({ from, to }: MoveInput): void {
  const relative = [from, to].find((path) => !isAbsolute(path));
  if (relative === undefined) return;
  throw new PermanentFailure(
    `A move needs absolute paths, got ${quoted(relative)}: a worker has another current folder than its caller.`,
    { reason: 'input.invalid' },
  );
}

/**
 * The source is gone. Where what is at `to` is proved to be this task's work, an earlier execution did it all and did not live to
 * say so. Anything else at `to` is somebody else's, and the source was never there, was removed, or is on a disk that is not mounted.
 */
async function movedBefore(
  input: MoveInput,
  task: MoveTask,
  record: MoveRecord,
  missing: unknown,
): Promise<MoveResult> {
  const target = await find(input.to);
  const halfStep = target && (await linkedTemporary(input.to, task));
  // Without `to`, what lies beside it may be the last copy of a source that somebody else removed: nothing is swept.
  if (target === undefined || !(record.proves(target) || halfStep !== undefined)) throw missing;
  await sweep(input.to, task);
  for (const folder of [dirname(input.to), dirname(input.from)]) {
    if (await find(folder)) await syncFolder(folder);
  }
  if (halfStep !== undefined) await removeIfThere(halfStep);
  return resultOf(input.to, 'already_moved', target, record.lostOf(target));
}

// ── Folders ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function moveFolder(
  input: MoveInput,
  task: MoveTask,
  source: BigIntStats,
  record: MoveRecord,
): Promise<MoveResult> {
  const { from, to } = input;
  await record.begin(source);
  await makePlace(input, source, record);
  try {
    await rename(from, to);
  } catch (error) {
    await removePlace(to, source);
    if (hasCode(error, 'EXDEV')) throw crossDeviceFolder(input, task, error);
    // Somebody filled our folder, or put a file in its place. `mkdir` says so in the one word for it: EEXIST.
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR')) {
      await mkdir(to);
      await rmdir(to);
    }
    throw error;
  }
  await syncFolder(dirname(to));
  await syncFolder(dirname(from));
  return resultOf(to, 'folder', source);
}

/** Private while it is empty, which is also how the next execution knows it. */
const OUR_FOLDER_MODE = 0o700;

/** Makes the empty folder that the rename replaces, or finds the one that an earlier execution made. */
async function makePlace({ from, to }: MoveInput, source: BigIntStats, record: MoveRecord): Promise<void> {
  try {
    await mkdir(to, OUR_FOLDER_MODE);
    const place = await find(to);
    if (place) await record.madePlace(place);
  } catch (error) {
    const target = hasCode(error, 'EEXIST') ? await find(to) : undefined;
    if (target === undefined) throw error;
    if (isSame(source, target)) throw sameFile(from, to, error);
    if (!record.isPlace(target) || !couldBeOurs(target)) throw error;
    // That it is empty is left to the rename, which asks in the same step.
  }
}

function couldBeOurs(folder: BigIntStats): boolean {
  const ourMode = (Number(folder.mode) & 0o777) === OUR_FOLDER_MODE;
  return folder.isDirectory() && ourMode && Number(folder.uid) === process.geteuid?.();
}

/**
 * Removes the place that we made, unless somebody filled it. Nor is it removed when it has become the source itself: an
 * execution that was thought dead moved it there meanwhile, and it may be an empty folder.
 */
async function removePlace(to: string, source: BigIntStats): Promise<void> {
  try {
    const place = await find(to);
    if (place && !isSame(place, source)) await rmdir(to);
  } catch {
    // An empty folder may stay behind. The error of the rename is the one to tell.
  }
}

function crossDeviceFolder({ from, to }: MoveInput, task: MoveTask, cause: unknown): NeedsManual {
  return new NeedsManual(
    `${quoted(from)} is a folder, and ${quoted(dirname(to))} is on another file system. Holdfast moves a folder only in one ` +
      `step, within a file system. Copy it (cp -a), compare the two, remove the original, then resolve task #${task.id}; ` +
      'or move its files one by one.',
    { reason: 'fs.cross_device_folder', cause },
  );
}

// ── Files and symbolic links on one device ───────────────────────────────────────────────────────────────────────────

async function moveFile(
  input: MoveInput,
  task: MoveTask,
  source: BigIntStats,
  record: MoveRecord,
): Promise<MoveResult> {
  const halfStep = await sweep(input.to, task);
  await record.begin(source);
  // Elsewhere `link` may follow a symbolic link and give its target a second name.
  const linkable = !source.isSymbolicLink() || process.platform === 'linux';
  try {
    if (!linkable) return await copySymlink(input, task, source, record);
    await link(input.from, input.to);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return finishEarlier(input, task, source, record, halfStep, error);
    if (!linkable) throw error;
    if (!hasCode(error, 'EXDEV')) throw await understood(error, input, task);
    return source.isSymbolicLink() ? copySymlink(input, task, source, record) : copyFile(input, task, source, record);
  }
  return finishLink(input, source, 'now');
}

/** `to` is taken. Unless it is what an earlier execution put there, the error of the system stands. */
async function finishEarlier(
  input: MoveInput,
  task: MoveTask,
  source: BigIntStats,
  record: MoveRecord,
  halfStep: string | undefined,
  taken: unknown,
): Promise<MoveResult> {
  const { from, to } = input;
  const target = await find(to);
  if (target === undefined) throw taken;
  if (isSame(source, target)) {
    if (await isOneEntry(input, source)) throw sameFile(from, to, taken);
    // A hard link that a user made looks the same, and finishing is right for it too: the file stays whole at `to`.
    return finishLink(input, source, 'before');
  }
  if (halfStep === undefined && !record.hasWritten(target)) throw taken;
  const lost = record.lostOf(target);
  if (source.isSymbolicLink()) {
    if (target.isSymbolicLink() && (await haveSameText(from, to))) {
      return finishSymlink(input, source, { temporary: halfStep, made: 'before', lost });
    }
  } else if (await haveSameContent(from, to, task)) {
    return finishCopy(input, source, { temporary: halfStep, made: 'before', lost });
  }
  // One of them was written to since, and only a person knows which one counts.
  if (halfStep !== undefined) await removeIfThere(halfStep);
  throw taken;
}

async function haveSameText(from: string, to: string): Promise<boolean> {
  return (await readlink(from, 'buffer')).equals(await readlink(to, 'buffer'));
}

/**
 * Whether both paths lead to one entry of one folder (`a/x` and `b/x` where `b` links to `a`; `x` and `X` where case is
 * ignored). Removing the one would remove the other.
 */
async function isOneEntry({ from, to }: MoveInput, source: BigIntStats): Promise<boolean> {
  if (source.nlink < 2n) return true;
  const folders = [await stat(dirname(from), { bigint: true }), await stat(dirname(to), { bigint: true })] as const;
  if (!isSame(...folders)) return false;

  const names = [basename(from), basename(to)] as const;
  if (names[0] === names[1]) return true;
  if (folded(names[0]) !== folded(names[1])) return false;
  const entries = await readdir(dirname(from));
  return !names.every((name) => entries.includes(name));
}

function folded(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

function specialKind(stats: BigIntStats): string {
  if (stats.isFIFO()) return 'a named pipe';
  if (stats.isSocket()) return 'a socket';
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'a device' : 'of an unknown kind';
}
