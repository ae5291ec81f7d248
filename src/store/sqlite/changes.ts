import {
  CHANGES_KEPT_FOR_MS,
  type ChangedKind,
  type ChangeFacts,
  type ChangeFilter,
  type ChangeRecord,
  type ChangeRow,
  changeRecord,
  MOST_CHANGES,
} from '../changes.ts';
import type { Sql } from './driver.ts';

/** `facts`: `ChangeFacts` as JSON. */
export function recordChange(sql: Sql, kind: ChangedKind, name: string, facts: string, now: number): void {
  sql.run('INSERT INTO hf_changes (at, kind, name, facts) VALUES (?, ?, ?, ?)', now, kind, name, facts);
}

export function recordAction(sql: Sql, kind: ChangedKind, name: string, facts: ChangeFacts, now: number): void {
  recordChange(sql, kind, name, JSON.stringify(facts), now);
}

/** The newest first. */
export function readChanges(sql: Sql, filter: ChangeFilter): readonly ChangeRecord[] {
  const { kind = null, name = null, since = 0, before = Number.MAX_SAFE_INTEGER, actions, limit } = filter;
  // Without statistics, SQLite would rather walk by id than use the index by name.
  const from = name === null ? 'hf_changes' : 'hf_changes INDEXED BY hf_changes_of';
  const where = name === null ? '(:kind IS NULL OR kind = :kind)' : 'kind = :kind AND name = :name';
  return sql
    .all<ChangeRow>(
      `SELECT id, at, kind, name, facts FROM ${from}
       WHERE ${where} AND id < :before AND at >= :since ${actions ? "AND facts ->> '$.by' IS NOT NULL" : ''}
       ORDER BY id DESC LIMIT :limit`,
      { kind, since, before, limit, ...(name !== null && { name }) },
    )
    .map(changeRecord);
}

/** Removes some old changes, and returns how many. */
export function forgetChanges(sql: Sql, now: number, most: number): number {
  return sql.run(
    `DELETE FROM hf_changes WHERE id IN (SELECT id FROM hf_changes ORDER BY id LIMIT :most)
       AND (at < :old OR id <= (SELECT max(id) FROM hf_changes) - :kept)`,
    { most, old: now - CHANGES_KEPT_FOR_MS, kept: MOST_CHANGES },
  ).changes;
}
