// SQLite stores, as files of one folder.
import { closeSync, copyFileSync, existsSync, fsyncSync, mkdtempSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { runHoldfast } from './child.mjs';

export function atFile({ dir }, use) {
  return inFolder(dir, (folder) => use(join(folder, 'tasks.db')));
}

export function atFileLike(name, { dir, size }, use) {
  return atFile({ dir }, async (path) => {
    copyToDisk(await built(name, { dir, size }), path);
    return use(path);
  });
}

/** A folder for as long as it is used. */
export async function inFolder(dir, use) {
  const folder = mkdtempSync(join(dir, 'scenario-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function built(name, { dir, size }) {
  const path = join(dir, `${name}.db`);
  if (existsSync(path)) return path;
  const unfinished = `${path}.new`;
  await runHoldfast(`build ${name}`, { address: unfinished, size });
  leaveNoFreePages(unfinished);
  renameSync(unfinished, path);
  return path;
}

/** What making it has left free would spare a drain the growth of the file, and so flatter it. */
function leaveNoFreePages(path) {
  const database = new Database(path);
  database.exec('VACUUM');
  database.close();
}

function copyToDisk(from, to) {
  copyFileSync(from, to);
  const file = openSync(to, 'r+');
  fsyncSync(file);
  closeSync(file);
}
