import { link, lstat, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { find, hasCode, syncFolder } from './move-facts.ts';

/**
 * Gives what stands at the destination of a move another name, and replaces nothing there.
 * @throws the error of the file system; EEXIST if the name is taken.
 */
export async function putAside(to: string, aside: string): Promise<void> {
  const isFolder = (await lstat(to)).isDirectory();
  if (isFolder || !(await linked(to, aside))) {
    if (await find(aside)) throw Object.assign(new Error(`${aside} exists already`), { code: 'EEXIST' });
    await rename(to, aside);
  } else await unlink(to);
  await syncFolder(dirname(to));
}

/** A link fails if the name is taken, where a rename would replace what has it. False where there are no links. */
async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS')) return false;
    throw error;
  }
}

/** Removes a file or a link at the destination of a move. @throws the error of the file system; EISDIR for a folder. */
export async function removeDestination(to: string): Promise<void> {
  if ((await lstat(to)).isDirectory()) throw Object.assign(new Error(`${to} is a folder`), { code: 'EISDIR' });
  await unlink(to);
  await syncFolder(dirname(to));
}
