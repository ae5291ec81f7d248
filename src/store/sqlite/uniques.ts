import { occupies, type TaskState, type UniqueScope } from '../../task.ts';
import type { NewTask } from '../store.ts';
import type { Sql } from './driver.ts';

/**
 * Which task has which unique key. A row exists exactly while its task is in a state in which it has the key, by its own scope.
 * Tasks without a unique key have no rows.
 */
export class Uniques {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The tasks that have the wanted keys, by the names of `uniqueNameOf`. */
  occupants(tasks: readonly NewTask[]): Map<string, number> {
    if (!tasks.some(({ unique }) => unique !== undefined)) return new Map();
    const asked = tasks.flatMap(({ type, unique }) => (unique ? [[type, unique.key]] : []));
    const rows = this.#sql.rows<[type: string, key: string, task: number]>(
      `SELECT u.type, u.key, u.task FROM json_each(?) j
       JOIN hf_unique u ON u.key = j.value ->> 1 AND u.type = j.value ->> 0`,
      JSON.stringify(asked),
    );
    return new Map(rows.map(([type, key, task]) => [`${type}\0${key}`, task]));
  }

  /** New tasks take their keys, which must be free: type, key and id of each, in a row. */
  takeAll(rows: readonly unknown[]): void {
    this.#sql.insertAll('hf_unique (type, key, task)', 3, rows);
  }

  /**
   * Takes or frees the key of a task that goes from one state to another. If another task has the key, its id is returned and
   * nothing is changed.
   */
  follow(id: number, scope: UniqueScope | null, from: TaskState, to: TaskState): number | undefined {
    if (scope === null || occupies(scope, from) === occupies(scope, to)) return undefined;
    if (!occupies(scope, to)) {
      this.#sql.run(`DELETE FROM hf_unique WHERE (type, key) = (${NAME}) AND task = :id`, { id });
      return undefined;
    }
    const taken = this.#sql.run(
      `INSERT INTO hf_unique (type, key, task) SELECT *, :id FROM (${NAME}) WHERE true ON CONFLICT DO NOTHING`,
      { id },
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
