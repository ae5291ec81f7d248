import { link, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failed, NeedsManual } from '../failure/signals.ts';
import { find, hasCode, isSame, quoted, removeIfThere } from './move-facts.ts';
import type { MoveInput, MoveTask } from './move-task.ts';

/** The part of the destination's name that a temporary keeps, for people. Names end at 255 bytes, on eCryptfs at 143. */
const KEPT_NAME_BYTES = 64;

/**
 * Beside the destination, one for each execution. A worker that lost its lease but still runs can then never link a
 * file that its successor is writing; and a leftover is removed, not written to: it may be a second name of `to`.
 */
export function temporaryName(to: string, id: number, execution: number): string {
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
export async function sweep(to: string, task: MoveTask): Promise<string | undefined> {
  const halfStep = await linkedTemporary(to, task);
  for (let execution = 1; execution < task.execution; execution += 1) {
    const temporary = temporaryName(to, task.id, execution);
    await removeIfThere(secondName(temporary));
    if (temporary !== halfStep) await removeIfThere(temporary);
  }
  return halfStep;
}

/** A temporary of an earlier execution that is a second name of `to`: the proof that `to` is this task's work. */
export async function linkedTemporary(to: string, task: MoveTask): Promise<string | undefined> {
  const target = await find(to);
  for (let execution = task.execution - 1; target && execution >= 1; execution -= 1) {
    const temporary = temporaryName(to, task.id, execution);
    const left = await find(temporary);
    if (left && isSame(left, target)) return temporary;
  }
  return undefined;
}

export async function create(temporary: string): Promise<void> {
  try {
    const file = await open(temporary, 'wx', 0o600);
    await file.close();
  } catch (error) {
    throw hasCode(error, 'EEXIST') ? temporaryExists(temporary, error) : error;
  }
}

/** Only a restored backup, or a second store with a task of this number and destination, gets here. */
export function temporaryExists(temporary: string, cause: unknown): Failed {
  return new Failed(`${quoted(temporary)} exists, and another move may be writing to it.`, {
    reason: 'fs.temporary_exists',
    cause,
  });
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
export async function understood(error: unknown, input: MoveInput, task: MoveTask): Promise<unknown> {
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
export async function refusalToLink(temporary: string): Promise<unknown> {
  const second = secondName(temporary);
  try {
    await link(temporary, second);
  } catch (error) {
    if (mayLackHardLinks(error)) return error;
    throw error;
  }
  await removeIfThere(second);
  return undefined;
}

export function noHardLinks({ from, to }: MoveInput, task: MoveTask, cause: unknown): NeedsManual {
  return new NeedsManual(
    `The file system of ${quoted(dirname(to))} makes no hard link (${(cause as { code: string }).code}), and without one a file ` +
      `that appears at ${quoted(to)} meanwhile could be overwritten. If that name is free, move ${quoted(from)} by hand ` +
      `(mv -n) and resolve task #${task.id}; or choose a destination on another file system.`,
    { reason: 'fs.no_hard_links', cause },
  );
}

/** Whether a refused hard link may be a matter of the file system. */
export function mayLackHardLinks(error: unknown): boolean {
  return hasCode(error, 'EPERM', ...NO_HARD_LINKS);
}
