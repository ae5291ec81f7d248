import type { FailureGroup, Sightings } from '../../failure/groups.ts';
import { readStored } from '../../stored-json.ts';
import { type FailureStore, MOST_FAILURE_GROUPS } from '../failure-groups.ts';
import type { Counting } from './counters.ts';
import type { Sql } from './driver.ts';
import type { Read } from './records.ts';
import type { Writer } from './writer.ts';

export class SqliteFailures implements FailureStore {
  readonly #parts: { readonly sql: Sql; readonly writer: Writer; readonly read: Read; readonly counting: Counting };

  constructor(parts: { sql: Sql; writer: Writer; read: Read; counting: Counting }) {
    this.#parts = parts;
  }

  takeNew(): boolean {
    return this.#parts.counting.takeSeen();
  }

  entries(most: number): ReturnType<FailureStore['entries']> {
    return this.#parts.read((sql) => ({
      revision: revisionOf(sql),
      entries: sql
        .all<{ id: number; at: number; seen: string }>(
          'SELECT id, at, seen FROM hf_failure_entries ORDER BY id LIMIT ?',
          most,
        )
        .map(({ id, at, seen }) => ({ id, at, sightings: sightingsIn(seen) })),
    }));
  }

  groups(ids?: readonly string[]): Promise<readonly FailureGroup[]> {
    const where = ids ? 'WHERE id IN (SELECT value FROM json_each(?))' : '';
    const values = ids ? [JSON.stringify(ids)] : [];
    return this.#parts.read((sql) =>
      sql
        .column<string>(`SELECT data FROM hf_failure_groups ${where} ORDER BY last_at DESC, id`, ...values)
        .flatMap(groupsIn),
    );
  }

  write(revision: number, entries: readonly number[], groups: readonly FailureGroup[]): Promise<boolean> {
    const { sql, writer } = this.#parts;
    return writer.write(() => {
      if (revisionOf(sql) !== revision) return false;
      sql.run('UPDATE hf_failure_revision SET revision = revision + 1');
      sql.run('DELETE FROM hf_failure_entries WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(entries));
      for (const group of groups) {
        sql.run(
          `INSERT INTO hf_failure_groups (id, last_at, data) VALUES (?, ?, ?)
           ON CONFLICT (id) DO UPDATE SET last_at = excluded.last_at, data = excluded.data`,
          group.id,
          group.lastAt,
          JSON.stringify(group),
        );
      }
      sql.run(
        `DELETE FROM hf_failure_groups WHERE id IN
         (SELECT id FROM hf_failure_groups ORDER BY last_at DESC, id LIMIT -1 OFFSET ${MOST_FAILURE_GROUPS})`,
      );
      return true;
    });
  }
}

/** A damaged entry counts nothing, and is removed with the others. */
function sightingsIn(text: string): Sightings {
  const { samples, seen } = readStored<Partial<Sightings>>(text, 'seen', [], {});
  return samples && Array.isArray(seen) ? { samples, seen } : { samples: {}, seen: [] };
}

/** A damaged group is left out, so that the others can be read. Its next failure makes it anew. */
function groupsIn(text: string): readonly FailureGroup[] {
  const group = readStored<Partial<FailureGroup>>(text, 'data', [], {});
  return group.id === undefined || group.retries === undefined || !Array.isArray(group.actions)
    ? []
    : [group as FailureGroup];
}

function revisionOf(sql: Sql): number {
  return sql.column<number>('SELECT revision FROM hf_failure_revision')[0] ?? 0;
}
