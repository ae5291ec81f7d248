import { keepFor, type RemovableState, type Retention, shortestOf } from '../../retention.ts';
import type { PruneCount, Pruned, PrunedTask } from '../store.ts';
import type { StoreClock } from './clock.ts';
import type { Sql } from './driver.ts';
import type { Read } from './records.ts';
import type { Writer } from './writer.ts';

/** How many ended tasks are checked, without a lock, before old ones are removed. */
const LOOKED_AT = 5_000;

/** A transaction ends after this time. Its last removals may take longer than the others. */
const LONGEST_MS = 5;

/** How many tasks are removed between two checks of the time. */
const AT_ONCE = 10;

/**
 * If the history of a task is longer than this, its oldest part is removed first, so that one task does not lock the file for
 * long.
 */
const MOST_EXECUTIONS = 500;

/** A task whose retention is over, as it was found. */
interface Due {
  readonly id: number;
  readonly state: RemovableState;
  readonly since: number;
  readonly reason: string | null;
}

type RestingRow = [id: number, state: RemovableState, since: number, reason: string | null];

/**
 * Removes tasks whose retention is over. It reads the ended tasks in slices by id. There is no index by age, because it would
 * make every success slower, and reading needs no lock.
 */
export class Pruning {
  readonly #sql: Sql;
  readonly #writer: Writer;
  readonly #read: Read;
  readonly #clock: StoreClock;

  constructor(sql: Sql, writer: Writer, read: Read, clock: StoreClock) {
    this.#sql = sql;
    this.#writer = writer;
    this.#read = read;
    this.#clock = clock;
  }

  prunable(retention: Retention): Promise<readonly PruneCount[]> {
    return this.#read((sql) => {
      // All statements see the same tasks.
      sql.run('BEGIN');
      try {
        return [...this.#succeededFor(sql, retention), ...this.#othersFor(sql, retention)];
      } finally {
        sql.run('COMMIT');
      }
    });
  }

  #succeededFor(sql: Sql, retention: Retention): readonly PruneCount[] {
    const kept = keepFor(retention, 'succeeded', undefined);
    if (kept === 'never') return [];
    const [count = 0] = sql.column<number>(
      "SELECT count(*) FROM hf_resting WHERE state = 'succeeded' AND since <= ?",
      this.#clock.read() - kept,
    );
    return count === 0 ? [] : [{ state: 'succeeded', count }];
  }

  /** With the index, which does not contain succeeded tasks. */
  #othersFor(sql: Sql, retention: Retention): readonly PruneCount[] {
    const now = this.#clock.read();
    const limits = sql
      .all<{ state: RemovableState; reason: string | null }>(
        "SELECT DISTINCT state, reason FROM hf_resting WHERE state <> 'succeeded' AND state <> 'held'",
      )
      .flatMap(({ state, reason }) => {
        const kept = keepFor(retention, state, reason ?? undefined);
        return kept === 'never' ? [] : [[state, reason, now - kept]];
      });
    return sql
      .all<{ state: RemovableState; reason: string | null; count: number }>(
        `SELECT e.state, e.reason, count(*) AS count FROM hf_resting e
         JOIN json_each(?) j ON e.state = j.value ->> 0 AND e.reason IS j.value ->> 1 AND e.since <= j.value ->> 2
         WHERE e.state <> 'succeeded' GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2`,
        JSON.stringify(limits),
      )
      .map(({ state, reason, count }) => ({ state, ...reasonOf(state, reason), count }));
  }

  async prune(retention: Retention, after = 0): Promise<Pruned> {
    if (this.#clock.describe().removesIn !== undefined) return { removed: [] };
    const { due, next } = await this.#read((sql) => this.#look(sql, retention, after));
    if (due.length === 0) return { removed: [], ...(next !== undefined && { next }) };
    const { removed, last } = await this.#writer.write(() => this.#remove(due));
    const goOn = last ?? next;
    return { removed, ...(goOn !== undefined && { next: goOn }) };
  }

  async remove(ids: readonly number[], states: readonly RemovableState[], after = 0): Promise<Pruned> {
    const due = await this.#read((sql) =>
      sql
        .rows<RestingRow>(
          `SELECT id, state, since, reason FROM hf_resting WHERE id IN (SELECT value FROM json_each(?)) AND id > ?
             AND state IN (SELECT value FROM json_each(?)) ORDER BY id`,
          JSON.stringify(ids),
          after,
          JSON.stringify(states),
        )
        .map(([id, state, since, reason]): Due => ({ id, state, since, reason })),
    );
    if (due.length === 0) return { removed: [] };
    const { removed, last } = await this.#writer.write(() => this.#remove(due));
    return { removed, ...(last !== undefined && { next: last }) };
  }

  /** The tasks of a slice whose retention is over, and where the next slice begins. */
  #look(sql: Sql, retention: Retention, after: number): { readonly due: readonly Due[]; readonly next?: number } {
    const shortest = shortestOf(retention);
    if (shortest === 'never') return { due: [] };
    const now = this.#clock.read();
    const [next] = sql.column<number>(
      'SELECT id FROM hf_resting WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?',
      after,
      LOOKED_AT - 1,
    );
    const due = sql
      .rows<RestingRow>(
        `SELECT id, state, since, reason FROM hf_resting WHERE id > ? AND id <= ? AND since <= ? AND state <> 'held' ORDER BY id`,
        after,
        next ?? Number.MAX_SAFE_INTEGER,
        now - shortest,
      )
      .map(([id, state, since, reason]): Due => ({ id, state, since, reason }))
      .filter(({ state, since, reason }) => {
        const kept = keepFor(retention, state, reason ?? undefined);
        return kept !== 'never' && now - since >= kept;
      });
    return next === undefined ? { due } : { due, next };
  }

  /** Removes tasks until the time is over. `last` is where it stopped, if it did not reach all. */
  #remove(due: readonly Due[]): { readonly removed: readonly PrunedTask[]; readonly last?: number } {
    const started = performance.now();
    const removed: PrunedTask[] = [];
    for (let at = 0; at < due.length; at += AT_ONCE) {
      if (at > 0 && performance.now() - started > LONGEST_MS) return { removed, last: (due[at - 1] as Due).id };
      const some = this.#stillDue(due.slice(at, at + AT_ONCE));
      const ids = JSON.stringify(some.map(({ id }) => id));
      const [long] = this.#sql.column<number>(
        'SELECT task FROM hf_executions WHERE task IN (SELECT value FROM json_each(?)) GROUP BY task HAVING count(*) > ? LIMIT 1',
        ids,
        MOST_EXECUTIONS,
      );
      if (long !== undefined) {
        this.#shorten(long);
        return { removed, last: at === 0 ? (due[0] as Due).id - 1 : (due[at - 1] as Due).id };
      }
      this.#removeAll(ids);
      removed.push(...some);
    }
    return { removed };
  }

  /** The tasks that are unchanged since they were found: others may have been retried meanwhile. */
  #stillDue(due: readonly Due[]): PrunedTask[] {
    return this.#sql
      .all<{ id: number; type: string; state: RemovableState; reason: string | null }>(
        `SELECT e.id, c.type, e.state, e.reason FROM json_each(?) j
         CROSS JOIN hf_resting e ON e.id = j.value ->> 0 AND e.state = j.value ->> 1 AND e.since = j.value ->> 2
         CROSS JOIN hf_tasks t ON t.id = e.id CROSS JOIN hf_classes c ON c.id = t.class`,
        JSON.stringify(due.map(({ id, state, since }) => [id, state, since])),
      )
      .map(({ id, type, state, reason }) => ({ id, type, state, ...reasonOf(state, reason) }));
  }

  #shorten(task: number): void {
    this.#sql.run(
      'DELETE FROM hf_executions WHERE id IN (SELECT id FROM hf_executions WHERE task = ? ORDER BY id LIMIT ?)',
      task,
      MOST_EXECUTIONS,
    );
  }

  /** Everything that belongs to the tasks of a JSON list of ids. */
  #removeAll(ids: string): void {
    for (const statement of BELONGINGS) this.#sql.run(statement, ids);
    // Numbers of removed actions are reused.
    this.#sql.run(
      `UPDATE hf_clock SET acts_told = (SELECT coalesce(max(id), 0) FROM hf_acts)
       WHERE acts_told > (SELECT coalesce(max(id), 0) FROM hf_acts)`,
    );
  }
}

const OF_THESE = 'IN (SELECT value FROM json_each(?))';

const BELONGINGS = [
  `DELETE FROM hf_keys WHERE (key, type) IN (SELECT t.key, c.type FROM hf_tasks t JOIN hf_classes c ON c.id = t.class
     WHERE t.id ${OF_THESE} AND t.key IS NOT NULL)`,
  `DELETE FROM hf_unique WHERE (key, type, task) IN (SELECT t.unique_key, c.type, t.id FROM hf_tasks t JOIN hf_classes c ON c.id = t.class
     WHERE t.id ${OF_THESE} AND t.unique_key IS NOT NULL)`,
  `DELETE FROM hf_executions WHERE task ${OF_THESE}`,
  `DELETE FROM hf_acts WHERE task ${OF_THESE}`,
  `DELETE FROM hf_checkpoints WHERE task ${OF_THESE}`,
  `DELETE FROM hf_redrive_tasks WHERE task ${OF_THESE}`,
  `DELETE FROM hf_group_tasks WHERE follow_up ${OF_THESE}`,
  // It needed a person, and nobody answered.
  `UPDATE hf_group_tasks SET ended = 'dead', ended_at = (SELECT since FROM hf_resting e WHERE e.id = task) WHERE task ${OF_THESE} AND ended IS NULL`,
  `DELETE FROM hf_facts WHERE task ${OF_THESE}`,
  `DELETE FROM hf_lost WHERE task ${OF_THESE}`,
  `DELETE FROM hf_resting WHERE id ${OF_THESE}`,
  `DELETE FROM hf_tasks WHERE id ${OF_THESE}`,
];

/** Succeeded tasks have none. */
function reasonOf(state: RemovableState, reason: string | null): { readonly reason?: string } {
  return state === 'succeeded' || reason === null ? {} : { reason };
}
