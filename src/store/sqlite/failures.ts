import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StoreError } from '../../errors.ts';
import { lockHolders } from './lock-holders.ts';

/** Whether another process has locked the file. This is not a failure: the call is repeated. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(?:BUSY|LOCKED)/.test(codeOf(error));
}

/** Whether SQLite says that the file is damaged. It says the same when a read fails once. */
export function isDamage(error: unknown): boolean {
  return /^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error));
}

/** The error for a failure of SQLite: what happened to which file, why, and what to do next. */
export function storeError(error: unknown, path: string): unknown {
  if (error instanceof StoreError) return error;
  const code = codeOf(error);
  // A bug of ours is not a failure of the database, and must not be reported as one.
  if (!code.startsWith('SQLITE_')) return error;
  const cause = { cause: error };
  switch (code.replace(/^SQLITE_/, '').split('_', 1)[0]) {
    case 'BUSY':
    case 'LOCKED':
      return busy(error, path);
    case 'READONLY':
    case 'PERM':
      return readOnly(error, path);
    case 'CANTOPEN':
      return notOpened(error, path);
    case 'FULL':
      return full(error, path);
    case 'CORRUPT':
    case 'NOTADB':
      return new StoreError(
        'store_corrupt',
        `${path} is damaged, or is not an SQLite database. It was not changed. Restore a backup, or save what can be read with: sqlite3 ${path} .recover`,
        cause,
      );
    case 'IOERR':
      // The file beside it that processes share could not grow, which each process needs before it reads.
      if (code === 'SQLITE_IOERR_SHMSIZE') return full(error, path);
      return new StoreError(
        'store_io',
        `The disk failed while ${path} was being read or written (${code}). The last write may or may not be stored.`,
        { ...cause, retryable: true },
      );
    default:
      return new StoreError('store_unavailable', `SQLite refused a statement on ${path}: ${messageOf(error)}`, cause);
  }
}

/** SQLite does not say why: the file system does. */
function notOpened(cause: unknown, path: string): StoreError {
  const folder = dirname(path);
  const refused = (why: string, code: 'store_unavailable' | 'store_read_only' = 'store_unavailable') =>
    new StoreError(code, `${path} cannot be opened: ${why}.`, { cause });
  try {
    const folderIs = statSync(folder, { throwIfNoEntry: false });
    if (!folderIs) return refused('its folder does not exist');
    const fileIs = statSync(path, { throwIfNoEntry: false });
    if (fileIs?.isDirectory()) return refused('it is a folder itself');
    if (!fileIs && !mayWrite(folder)) {
      return refused(`it does not exist, and this user must not make files in ${folder}`, 'store_read_only');
    }
  } catch {
    // A folder on the way to it may not be entered, or is a file.
  }
  return refused('this user must not open it');
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function full(cause: unknown, path: string): StoreError {
  return new StoreError(
    'store_full',
    `There is no space left for ${path}. The last write was rolled back, and everything before it is intact. Free some space, then repeat the call.`,
    { cause, retryable: true },
  );
}

function busy(cause: unknown, path: string): StoreError {
  const holders = lockHolders(path);
  const who = holders === undefined ? 'Something' : holders[0]?.toUpperCase() + holders.slice(1);
  return new StoreError(
    'store_busy',
    `${path} is locked by another process, so nothing was changed. ${who} holds a long transaction on it. End that transaction, or try again.`,
    { cause, retryable: true },
  );
}

export function readOnly(cause: unknown, path: string): StoreError {
  return new StoreError(
    'store_read_only',
    `${path} cannot be written: the file, its folder or its file system is read-only for this user. Nothing was changed.`,
    { cause },
  );
}

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (typeof code === 'string') return code;
  // better-sqlite3 looks for the folder itself, and says so without a code.
  return messageOf(error).includes('directory does not exist') ? 'SQLITE_CANTOPEN' : '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
