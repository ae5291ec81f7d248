import type { Lease } from '../store.ts';
import type { Sql } from './driver.ts';

/** The checkpoint of a task: a value that its executions save for later ones. */
export class Checkpoints {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns whether it was saved. It is not if the lease is over, or was taken over only to decide about the task. */
  save({ task, execution, token }: Lease, text: string): boolean {
    const { changes } = this.#sql.run(
      `INSERT INTO hf_checkpoints (task, value)
       SELECT id, :text FROM hf_running WHERE id = :task AND execution = :execution AND token = :token AND why IS NULL
       ON CONFLICT (task) DO UPDATE SET value = excluded.value`,
      { task, execution, token, text },
    );
    return changes > 0;
  }

  /** The saved values of those tasks that have one. */
  of(ids: readonly number[]): ReadonlyMap<number, string> {
    if (ids.length === 0) return NONE;
    const rows = this.#sql.rows<[task: number, value: string]>(
      'SELECT task, value FROM hf_checkpoints WHERE task IN (SELECT value FROM json_each(?))',
      JSON.stringify(ids),
    );
    return new Map(rows);
  }
}

const NONE: ReadonlyMap<number, string> = new Map();
