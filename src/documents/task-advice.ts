import { accessSync, constants, lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Task } from '../queue/task-view.ts';
import { adviceFor } from '../views/advice.ts';
import { plural } from '../views/plural.ts';
import { FILE_MOVE, SHELL_COMMAND } from '../views/task-text.ts';
import { rfc3339 } from '../views/times.ts';
import { visible } from '../views/visible.ts';

/** What a person should look at before answering: lines with the paths or the address of this task. */
export function taskAdvice({ id, type, reason, source, input }: Task, ambiguous: boolean): string[] {
  const { from, to, url, method } = Object(input) as Readonly<Record<string, unknown>>;
  if (ambiguous) {
    const address = typeof url === 'string' ? `${String(method ?? '')} ${visible(url)}`.trim() : visible(source);
    const where = source === type && typeof url !== 'string' ? '' : `: ${address}`;
    const printed = type === SHELL_COMMAND ? [`What it printed: holdfast logs ${id}`] : [];
    return [`Check first whether its effect happened${where}`, ...printed];
  }
  const advice = adviceFor(reason);
  const lines = advice === undefined ? [] : [advice];
  if (type !== FILE_MOVE || typeof from !== 'string' || typeof to !== 'string') return lines;
  if (reason === 'fs.dest_exists') return [...lines, ...[from, to].flatMap(whatIsThere)];
  if (reason !== 'fs.permission') return lines;
  return [...lines, ...[...new Set([from, dirname(from), to, dirname(to)])].flatMap(ownerAndMode)];
}

/** The size and age of what stands at a path, to compare. Nothing if this machine does not have it. */
function whatIsThere(path: string): string[] {
  try {
    const found = lstatSync(path);
    const what = found.isDirectory() ? 'folder' : found.isSymbolicLink() ? 'link' : plural(found.size, 'byte', 'bytes');
    return [`${visible(path)}  ${what}, changed ${rfc3339(found.mtimeMs)}`];
  } catch {
    return [];
  }
}

/** Nothing if this user cannot see it: then the folder above it is the one to look at. */
function ownerAndMode(path: string): string[] {
  try {
    const { uid, gid, mode } = lstatSync(path);
    const said = `${visible(path)}  owner ${uid}, group ${gid}, mode ${(mode & 0o7777).toString(8).padStart(4, '0')}`;
    return [mayUse(path, mode) ? said : `${said}   ← this user may not ${isFolder(mode) ? 'change it' : 'read it'}`];
  } catch {
    return [];
  }
}

function isFolder(mode: number): boolean {
  return (mode & constants.S_IFMT) === constants.S_IFDIR;
}

/** Whether this user may do what a move needs: change the entries of a folder, read a file. */
function mayUse(path: string, mode: number): boolean {
  try {
    accessSync(path, isFolder(mode) ? constants.W_OK | constants.X_OK : constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
