// @ts-check
import { createHash } from 'node:crypto';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Failed } from 'holdfast';

/**
 * The files below a folder that end with one of these endings, as relative paths in alphabetic order. Hidden ones are left out.
 * @param {string} folder
 * @param {string} [ending]
 */
export async function filesBelow(folder, ending = '') {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !path.split('/').some((part) => part.startsWith('.')))
    .sort();
}

/**
 * The content of a file and a version of it.
 * @param {string} folder
 * @param {string} path
 * @param {(path: string) => void} onFile is called when the file is open
 * @throws Failed if somebody writes to it meanwhile: half of a file is no document.
 */
export async function readWhole(folder, path, onFile) {
  const file = await open(join(folder, path));
  try {
    const before = await file.stat({ bigint: true });
    onFile(path);
    const content = await file.readFile();
    const after = await file.stat({ bigint: true });
    if (after.size !== before.size || after.mtimeNs !== before.mtimeNs) {
      throw new Failed(`${path} was changed while it was read.`, { kind: 'transient', reason: 'file.changing' });
    }
    return { content, version: createHash('sha256').update(content).digest('hex') };
  } finally {
    await file.close();
  }
}
