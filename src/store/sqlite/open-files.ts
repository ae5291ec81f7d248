import { type BigIntStats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { StoreError } from '../../errors.ts';
import type { Sql } from './driver.ts';

/** A file's device and inode, which no other file has while it exists. */
interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

type OpenFile = readonly [path: string, file: Identity];

/**
 * The files that SQLite has open, by device and inode. SQLite continues to write to a file that was removed, renamed or replaced,
 * and these commits are lost. So every commit checks whether the path still leads to the same files.
 */
export class OpenFiles {
  readonly #path: string;
  /** The paths, and the files that they led to when the store was opened. The database comes first. */
  readonly #opened: readonly OpenFile[];

  private constructor(path: string, opened: readonly OpenFile[]) {
    this.#path = path;
    this.#opened = opened;
  }

  /**
   * Notes the files of a connection that was just opened. `before` is the file at the path before.
   * @throws StoreError if they were replaced meanwhile, or the database has a second hard link.
   */
  static of(sql: Sql, path: string, before: Identity | undefined): OpenFiles {
    if (path === ':memory:') return new OpenFiles(path, []);
    const named = resolve(path);
    const found = identify(named);
    if (!found || (before && !isSame(found, before))) throw replaced(path, named, 'Nothing was changed.');
    // SQLite keeps its log beside the file itself, not beside a symbolic link to it.
    const real = sql.get<{ file: string }>("SELECT file FROM pragma_database_list WHERE name = 'main'")?.file ?? named;
    const beside = [`${real}-wal`, `${real}-shm`].flatMap((name) => {
      const file = identify(name);
      return file ? [[name, file] as const] : [];
    });
    return new OpenFiles(path, [[named, found], ...beside]);
  }

  /**
   * Called before a write, and before the result of a read is used. @throws StoreError if the database is not there, or has a
   * second hard link.
   */
  check(): void {
    const [main] = this.#opened;
    if (main) refuseHardLink(this.#refuseOther(main, 'Nothing was changed.'), this.#path);
  }

  /** Called before a commit is acknowledged. @throws StoreError if it was written to a file that is no longer there. */
  checkCommitted(): void {
    for (const one of this.#opened)
      this.#refuseOther(one, 'What was being written is not in the file that is there now.');
  }

  #refuseOther([name, opened]: OpenFile, consequence: string): BigIntStats {
    const found = identify(name);
    if (!found || !isSame(found, opened)) throw replaced(this.#path, name, consequence);
    return found;
  }
}

/** The file at a path; undefined if there is none that this process can reach. */
export function identify(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/**
 * SQLite names its log after the path. Two processes that open one file under two names would have two logs, and the tasks in one
 * of them would be lost.
 */
export function refuseHardLink({ nlink, ino }: BigIntStats, path: string): void {
  if (nlink <= 1n) return;
  throw new StoreError(
    'store_unsupported',
    `${path} has ${nlink} hard links. Opened by two names, it would lose tasks, for SQLite keeps one log for each name. ` +
      `Nothing was changed. Remove the other name (find it with: find / -xdev -inum ${ino}); a symbolic link is fine.`,
  );
}

function isSame(one: Identity, other: Identity): boolean {
  return one.ino === other.ino && one.dev === other.dev;
}

function replaced(path: string, name: string, consequence: string): StoreError {
  const file = resolve(path) === name ? path : name;
  return new StoreError(
    'store_replaced',
    `${file} was removed or replaced while this process had it open. ${consequence} ` +
      'Close this store and open it again, on the file that is there now; to replace a store, first stop every process that uses it.',
  );
}
