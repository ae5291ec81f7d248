import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import {
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rmdir,
  stat,
  symlink,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { Failed, NeedsManual, PermanentFailure } from '../failure/signals.ts';

/** Absolute paths. `to` is the final name, not a folder to put it into. */
export interface MoveInput {
  readonly from: string;
  readonly to: string;
}

/** `bytes` is the size of a regular file; folders and symbolic links have none. */
export interface MoveResult {
  readonly to: string;
  readonly how: 'linked' | 'copied' | 'folder' | 'already_moved';
  readonly bytes?: number;
}

interface MoveTask {
  readonly signal: AbortSignal;
  readonly execution: number;
  readonly id: number;
  heartbeat(): void;
}

/**
 * Moves a file, a folder or a symbolic link, and never onto something that exists. It may be killed before any system
 * call: the file is whole under one of its two names, `to` never shows a part of it, and the next execution goes on.
 *
 * ```
 * file, symbolic link        link(from, to) ─► unlink(from)
 * file on another device     write temporary ─► link(temporary, to) ─► unlink(from) ─► unlink(temporary)
 * link on another device     symlink(to) ─► unlink(from)
 * folder                     mkdir(to) ─► rename(from, to), which replaces only an empty folder
 * ```
 *
 * Across devices a file keeps its content, mode and times, and its owner where we may set it; extended attributes and
 * holes are lost. Errors of the system are thrown untouched: EEXIST from `link`, `symlink` or `mkdir` says that `to` is
 * taken. What the system cannot say is thrown as `fs.no_hard_links` and `fs.cross_device_folder` (a person is asked),
 * `fs.special_file` and `fs.same_file` (permanent), `fs.changed`, `fs.copy_differs` and `fs.temporary_exists` (transient).
 */
export async function move(input: MoveInput, task: MoveTask): Promise<MoveResult> {
  refuseRelative(input);
  task.signal.throwIfAborted();

  let source: BigIntStats;
  try {
    source = await lstat(input.from, { bigint: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT') && task.execution > 1) return movedBefore(input, task, error);
    throw error;
  }
  if (source.isDirectory()) return moveFolder(input, task, source);
  if (source.isFile() || source.isSymbolicLink()) return moveFile(input, task, source);
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
 * An earlier execution that was killed between its last step and its word left exactly this: nothing at `from`, something
 * at `to`. On a first execution the same picture is a wrong path.
 */
async function movedBefore(input: MoveInput, task: MoveTask, missing: unknown): Promise<MoveResult> {
  const target = await find(input.to);
  // Without `to`, what lies beside it may be the last copy of a source that somebody else removed: nothing is swept.
  if (target === undefined) throw missing;
  const halfStep = await sweep(input.to, task);
  for (const folder of [dirname(input.to), dirname(input.from)]) {
    if (await find(folder)) await syncFolder(folder);
  }
  if (halfStep !== undefined) await removeIfThere(halfStep);
  return resultOf(input.to, 'already_moved', target);
}

// ── Folders ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function moveFolder(input: MoveInput, task: MoveTask, source: BigIntStats): Promise<MoveResult> {
  const { from, to } = input;
  await makePlace(input, task, source);
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
async function makePlace({ from, to }: MoveInput, task: MoveTask, source: BigIntStats): Promise<void> {
  try {
    await mkdir(to, OUR_FOLDER_MODE);
  } catch (error) {
    const target = hasCode(error, 'EEXIST') ? await find(to) : undefined;
    if (target === undefined) throw error;
    if (isSame(source, target)) throw sameFile(from, to, error);
    if (task.execution === 1 || !couldBeOurs(target)) throw error;
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

async function moveFile(input: MoveInput, task: MoveTask, source: BigIntStats): Promise<MoveResult> {
  const halfStep = await sweep(input.to, task);
  // Elsewhere `link` may follow a symbolic link and give its target a second name.
  if (source.isSymbolicLink() && process.platform !== 'linux') return copySymlink(input, task, source);
  try {
    await link(input.from, input.to);
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return finishEarlier(input, task, source, halfStep, error);
    if (!hasCode(error, 'EXDEV')) throw await understood(error, input, task);
    return source.isSymbolicLink() ? copySymlink(input, task, source) : copyFile(input, task, source);
  }
  return finishLink(input, source, 'now');
}

/** `to` is taken. Unless it is what an earlier execution put there, the error of the system stands. */
async function finishEarlier(
  input: MoveInput,
  task: MoveTask,
  source: BigIntStats,
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
  if (halfStep !== undefined) {
    if (await haveSameContent(from, to, task)) return finishCopy(input, source, halfStep, 'before');
    // One of them was written to since, and only a person knows which one counts.
    await removeIfThere(halfStep);
    throw taken;
  }
  if (task.execution > 1 && source.isSymbolicLink() && target.isSymbolicLink()) {
    const [ours, theirs] = [await readlink(from, 'buffer'), await readlink(to, 'buffer')];
    if (ours.equals(theirs)) return finishSymlink(input, source, 'before');
  }
  throw taken;
}

/** Whether this execution gave the file its new name, or found it there. Only what it made itself may it take back. */
type Made = 'now' | 'before';

async function finishLink(input: MoveInput, source: BigIntStats, made: Made): Promise<MoveResult> {
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
function hasOtherName(file: BigIntStats, other: BigIntStats | undefined): boolean {
  return file.nlink >= 2n || (other !== undefined && other.size === file.size && other.mtimeNs === file.mtimeNs);
}

/** What the system answers when it left everything as it was. After others, such as EIO, nobody knows. */
const REFUSALS = ['EACCES', 'EPERM', 'EBUSY', 'EROFS'];

/**
 * Removes the old name, last. If that is refused, the new name is taken back, so that nobody sees two files. Between the
 * look at `to` and its `unlink` somebody could replace it, which no system call prevents: they would be overwriting it.
 */
async function removeSource(from: string, takeBack: () => Promise<void>): Promise<void> {
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

// ── File systems without hard links ──────────────────────────────────────────────────────────────────────────────────

/** ENOTSUP is also what EOPNOTSUPP is called on Linux. EMLINK: this file has as many names as it may have. */
const NO_HARD_LINKS = ['ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/**
 * EPERM from `link` means that the file system has no hard links (FAT, exFAT), or that this file may not be linked:
 * somebody else's under `protected_hardlinks`, an immutable one. Its owner does not tell the two apart (on FAT all files
 * belong to who mounted it; root's own file may be immutable), nor does the type of the file system (FUSE can be
 * anything). So we ask: a new file of our own beside `to` can be linked wherever hard links exist.
 */
async function understood(error: unknown, input: MoveInput, task: MoveTask): Promise<unknown> {
  if (hasCode(error, ...NO_HARD_LINKS)) return noHardLinks(input, task, error);
  if (!hasCode(error, 'EPERM')) return error;

  const temporary = temporaryName(input.to, task.id, task.execution);
  try {
    await create(temporary);
  } catch {
    // No evidence, so it is what the system said it is.
    return error;
  }
  try {
    return (await refusalToLink(temporary)) === undefined ? error : noHardLinks(input, task, error);
  } finally {
    await removeIfThere(temporary);
  }
}

/** @returns the error of a file system that has no hard links. */
async function refusalToLink(temporary: string): Promise<unknown> {
  const second = secondName(temporary);
  try {
    await link(temporary, second);
  } catch (error) {
    if (hasCode(error, 'EPERM', ...NO_HARD_LINKS)) return error;
    throw error;
  }
  await removeIfThere(second);
  return undefined;
}

function noHardLinks({ from, to }: MoveInput, task: MoveTask, cause: unknown): NeedsManual {
  return new NeedsManual(
    `The file system of ${quoted(dirname(to))} makes no hard link (${(cause as { code: string }).code}), and without one a file ` +
      `that appears at ${quoted(to)} meanwhile could be overwritten. If that name is free, move ${quoted(from)} by hand ` +
      `(mv -n) and resolve task #${task.id}; or choose a destination on another file system.`,
    { reason: 'fs.no_hard_links', cause },
  );
}

// ── Across devices ───────────────────────────────────────────────────────────────────────────────────────────────────

async function copyFile(input: MoveInput, task: MoveTask, source: BigIntStats): Promise<MoveResult> {
  const temporary = temporaryName(input.to, task.id, task.execution);
  await create(temporary);
  try {
    const refusal = await refusalToLink(temporary);
    if (refusal !== undefined) throw noHardLinks(input, task, refusal);
    await copy(input.from, temporary, source, task);
    await link(temporary, input.to);
  } catch (error) {
    // What cannot be removed now, the next execution sweeps. The first error is the one to tell.
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  return finishCopy(input, source, temporary, 'now');
}

async function create(temporary: string): Promise<void> {
  try {
    const file = await open(temporary, 'wx', 0o600);
    await file.close();
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    // Only a restored backup, or a second store with a task of this number and destination, gets here.
    throw new Failed(`${quoted(temporary)} exists, and another move may be writing to it.`, {
      reason: 'fs.temporary_exists',
      cause: error,
    });
  }
}

/** Leaves a durable copy that was read back, of a source that did not change meanwhile; or throws. */
async function copy(from: string, temporary: string, source: BigIntStats, task: MoveTask): Promise<void> {
  const reader = await open(from, 'r');
  try {
    const writer = await open(temporary, 'r+');
    try {
      const written = await copyContent(reader, writer, source, from, task);
      await dress(writer, source);
      await writer.sync();
      if ((await digestOf(writer, task)) !== written) throw differs(from);
    } finally {
      await writer.close();
    }
    const now = [await reader.stat({ bigint: true }), await lstat(from, { bigint: true })];
    if (!now.every((stats) => isUnchanged(stats, source))) throw changed(from, 'changed while it was copied');
  } finally {
    await reader.close();
  }
  task.signal.throwIfAborted();
}

/** @returns the digest of what was read. */
async function copyContent(
  reader: FileHandle,
  writer: FileHandle,
  source: BigIntStats,
  from: string,
  task: MoveTask,
): Promise<string> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of chunksOf(reader, task)) {
    hash.update(chunk);
    size = await write(writer, chunk, size);
    if (size > source.size) throw changed(from, 'grew while it was copied');
  }
  return hash.digest('hex');
}

/** @returns where the next chunk goes. */
async function write(writer: FileHandle, chunk: Buffer, at: number): Promise<number> {
  let written = 0;
  while (written < chunk.length) {
    const { bytesWritten } = await writer.write(chunk, written, chunk.length - written, at + written);
    written += bytesWritten;
  }
  return at + written;
}

/** Owner first: changing it clears setuid, and a file that stays ours must not become setuid as us. */
async function dress(writer: FileHandle, source: BigIntStats): Promise<void> {
  const ours = await writer.stat({ bigint: true });
  let mode = Number(source.mode) & 0o7777;
  if (ours.uid !== source.uid || ours.gid !== source.gid) {
    try {
      await writer.chown(Number(source.uid), Number(source.gid));
    } catch (error) {
      if (!hasCode(error, 'EPERM', 'EINVAL', 'ENOTSUP', 'ENOSYS')) throw error;
      mode &= 0o777;
    }
  }
  await writer.chmod(mode);
  await writer.utimes(Number(source.atimeNs) / 1e9, Number(source.mtimeNs) / 1e9);
}

/**
 * The temporary goes last: a second name of `to`, it is the proof for the next execution that `to` is this task's work.
 */
async function finishCopy(input: MoveInput, source: BigIntStats, temporary: string, made: Made): Promise<MoveResult> {
  const { from, to } = input;
  await syncFolder(dirname(to));

  const [left, target, copied] = [await find(from), await find(to), await find(temporary)];
  if (left && !isUnchanged(left, source)) throw changed(from, 'changed after it was copied');
  if (left && !hasOtherName(copied ?? left, target)) throw changed(to, 'was removed before its source was');
  await removeSource(from, async () => {
    const [origin, now] = [await find(from), await find(to)];
    if (made === 'before' || !copied || !origin || !now) return;
    if (!isUnchanged(origin, source) || !isSame(now, copied)) return;
    await unlink(to);
    await unlink(temporary);
  });
  await removeIfThere(temporary);
  return resultOf(to, 'copied', source);
}

async function haveSameContent(from: string, to: string, task: MoveTask): Promise<boolean> {
  const files: FileHandle[] = [];
  try {
    for (const path of [from, to]) files.push(await open(path, 'r'));
    const [ours, theirs] = files as [FileHandle, FileHandle];
    if ((await ours.stat()).size !== (await theirs.stat()).size) return false;
    return (await digestOf(ours, task)) === (await digestOf(theirs, task));
  } finally {
    for (const file of files) await file.close();
  }
}

async function digestOf(file: FileHandle, task: MoveTask): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of chunksOf(file, task)) hash.update(chunk);
  return hash.digest('hex');
}

const CHUNK = 128 * 1024;

/** The content from its start. Each chunk is only good until the next is asked for. */
async function* chunksOf(file: FileHandle, task: MoveTask): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK);
  for (let at = 0; ; ) {
    task.signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, CHUNK, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    task.heartbeat();
    yield buffer.subarray(0, bytesRead);
  }
}

async function copySymlink(input: MoveInput, task: MoveTask, source: BigIntStats): Promise<MoveResult> {
  try {
    await symlink(await readlink(input.from, 'buffer'), input.to);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
    return finishEarlier(input, task, source, undefined, error);
  }
  return finishSymlink(input, source, 'now');
}

async function finishSymlink(input: MoveInput, source: BigIntStats, made: Made): Promise<MoveResult> {
  const { from, to } = input;
  await syncFolder(dirname(to));
  const [left, target] = [await find(from), await find(to)];
  if (left && !isSame(left, source)) return resultOf(to, 'copied', source);
  if (left && !target) throw changed(to, 'was removed before its source was');
  await removeSource(from, async () => {
    const now = await find(to);
    if (made === 'now' && now && target && isSame(now, target)) await unlink(to);
  });
  return resultOf(to, 'copied', source);
}

// ── Temporaries ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** The part of the destination's name that a temporary keeps, for people. Names end at 255 bytes, on eCryptfs at 143. */
const KEPT_NAME_BYTES = 64;

/**
 * Beside the destination, one for each execution. A worker that lost its lease but still runs can then never link a
 * file that its successor is writing; and a leftover is removed, not written to: it may be a second name of `to`.
 */
function temporaryName(to: string, id: number, execution: number): string {
  let kept = '';
  for (const char of basename(to)) {
    if (Buffer.byteLength(kept + char) > KEPT_NAME_BYTES) break;
    kept += char;
  }
  return join(dirname(to), `.${kept}.holdfast-${id}-${execution}`);
}

/** What `refusalToLink` links a temporary to. */
function secondName(temporary: string): string {
  return `${temporary}.link`;
}

/**
 * Removes what earlier executions left.
 * @returns the temporary that one of them linked to `to`, which is kept while `from` exists: it proves whose `to` is.
 */
async function sweep(to: string, task: MoveTask): Promise<string | undefined> {
  if (task.execution === 1) return undefined;
  const target = await find(to);
  let halfStep: string | undefined;
  for (let execution = 1; execution < task.execution; execution += 1) {
    const temporary = temporaryName(to, task.id, execution);
    await removeIfThere(secondName(temporary));
    const left = await find(temporary);
    if (left && target && isSame(left, target)) halfStep = temporary;
    else if (left) await removeIfThere(temporary);
  }
  return halfStep;
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

// ── Small facts ──────────────────────────────────────────────────────────────────────────────────────────────────────

async function find(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Inode numbers use all 64 bits on some file systems: only `bigint` tells all of them apart. */
function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** A write that keeps the size, within one tick of the file system's clock, cannot be seen; nor one after the last look. */
function isUnchanged(now: BigIntStats, before: BigIntStats): boolean {
  return isSame(now, before) && now.size === before.size && now.mtimeNs === before.mtimeNs;
}

/** Makes names durable. Where folders cannot be opened or synced (Windows, some network shares, no right to read) they are not. */
async function syncFolder(path: string): Promise<void> {
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

function resultOf(to: string, how: MoveResult['how'], stats: BigIntStats): MoveResult {
  return stats.isFile() ? { to, how, bytes: Number(stats.size) } : { to, how };
}

function differs(from: string): Failed {
  return new Failed(`The copy of ${quoted(from)} does not read back as it was written. Is the disk failing?`, {
    reason: 'fs.copy_differs',
  });
}

function changed(path: string, what: string): Failed {
  return new Failed(`${quoted(path)} ${what}, so nothing more was done. It is tried again.`, { reason: 'fs.changed' });
}

function sameFile(from: string, to: string, cause: unknown): PermanentFailure {
  return new PermanentFailure(`${quoted(from)} and ${quoted(to)} are the same file: there is nothing to move.`, {
    reason: 'fs.same_file',
    cause,
  });
}

function specialKind(stats: BigIntStats): string {
  if (stats.isFIFO()) return 'a named pipe';
  if (stats.isSocket()) return 'a socket';
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'a device' : 'of an unknown kind';
}

function quoted(path: string): string {
  return `'${path}'`;
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' && codes.includes(code);
}
