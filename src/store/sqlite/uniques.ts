import { occupies, type TaskState, type UniqueScope } from '../../task.ts';
import type { NewTask } from '../store.ts';
import type { Sql } from './driver.ts';

/**
 * Which task has which unique key. A row exists while its task is in a state in which it has the key, by its own scope. If the
 * task was to have the key for a time (`until`), its row stays after that state, as `released`: then the key is free from that
 * time on. Tasks without a unique key have no rows.
 */
export class Uniques {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The tasks that have the wanted keys, by the names of `uniqueNameOf`. */
  occupants(tasks: readonly NewTask[], now: number): Map<string, number> {
    if (!tasks.some(({ unique }) => unique !== undefined)) return new Map();
    const asked = tasks.flatMap(({ type, unique }) => (unique ? [[type, unique.key]] : []));
    const rows = this.#sql.rows<[type: string, key: string, task: number]>(
      `SELECT u.type, u.key, u.task FROM json_each(?) j
       JOIN hf_unique u ON u.key = j.value ->> 1 AND u.type = j.value ->> 0 WHERE NOT u.released OR u.until > ?`,
      JSON.stringify(asked),
      now,
    );
    return new Map(rows.map(([type, key, task]) => [`${type}\0${key}`, task]));
  }

  /** New tasks take their keys, which must be free: type, key, id and `until` of each, in a row. */
  takeAll(rows: readonly unknown[]): void {
    this.#sql.insertAll(
      'hf_unique (type, key, task, until)',
      4,
      rows,
      'ON CONFLICT DO UPDATE SET task = excluded.task, until = excluded.until, released = 0',
    );
  }

  /**
   * Takes or frees the key of a task that goes from one state to another. If another task has the key, its id is returned and
   * nothing is changed.
   */
  follow(id: number, scope: UniqueScope | null, from: TaskState, to: TaskState, now: number): number | undefined {
    if (scope === null || occupies(scope, from) === occupies(scope, to)) return undefined;
    if (!occupies(scope, to)) {
      const own = `(type, key) = (${NAME}) AND task = :id`;
      const freed = this.#sql.run(`DELETE FROM hf_unique WHERE ${own} AND coalesce(until, 0) <= :now`, { id, now });
      if (freed.changes === 0) this.#sql.run(`UPDATE hf_unique SET released = 1 WHERE ${own}`, { id });
      return undefined;
    }
    const taken = this.#sql.run(
      `INSERT INTO hf_unique (type, key, task) SELECT *, :id FROM (${NAME}) WHERE true
       ON CONFLICT DO UPDATE SET until = iif(task = :id, until, NULL), task = :id, released = 0
       WHERE task = :id OR released AND until <= :now`,
      { id, now },
    );
    if (taken.changes > 0) return undefined;
    return this.#sql.get<{ task: number }>(`SELECT task FROM hf_unique WHERE (type, key) = (${NAME})`, { id })?.task;
  }
}

const NAME = 'SELECT c.type, t.unique_key FROM hf_tasks t JOIN hf_classes c ON c.id = t.class WHERE t.id = :id';

/** Types do not share unique keys. Neither contains a NUL. */
export function uniqueNameOf({ type, unique }: NewTask): string | undefined {
  return unique && `${type}\0${unique.key}`;
}
