import { statSync } from 'node:fs';
import type { Space } from '../store.ts';
import type { Sql } from './driver.ts';

/** Free pages are given back to the disk while more than this part of the file is free. */
const MOST_FREE = 0.25;

/** A file with less free space is left as it is, because new tasks use that space soon. */
const KEPT_BYTES = 8 * 1024 * 1024;

/** How many pages one transaction gives back. */
const AT_ONCE = 1_000;

interface Pages {
  readonly count: number;
  readonly free: number;
  readonly size: number;
}

export function spaceOf(sql: Sql, path: string): Space {
  const { count, free, size } = pagesOf(sql);
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return { bytes: count * size, free: free * size, log };
}

/** Gives some free pages back to the disk, if there are many. Returns how many. A file of an old version has to be vacuumed once first. */
export function shrink(sql: Sql): number {
  const before = pagesOf(sql);
  if (before.free * before.size <= KEPT_BYTES || before.free <= before.count * MOST_FREE) return 0;
  sql.exec(`PRAGMA incremental_vacuum(${AT_ONCE})`);
  return before.free - pagesOf(sql).free;
}

function pagesOf(sql: Sql): Pages {
  return sql.get<Pages>(
    `SELECT page_count AS count, freelist_count AS free, page_size AS size
     FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
  ) as Pages;
}
