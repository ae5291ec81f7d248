import type { Lease, Saved } from '../store.ts';
import type { Sql } from './driver.ts';

/** What executions save of their task: its checkpoint and its progress. */
export class Checkpoints {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns whether it was saved. It is not if the lease is over, or was taken over only to decide about the task. */
  save({ task, execution, token }: Lease, { checkpoint, progress }: Saved, now: number): boolean {
    const { changes } = this.#sql.run(
      `INSERT INTO hf_checkpoints (task, value, progress, progress_at)
       SELECT id, :checkpoint, :progress, iif(:progress IS NULL, NULL, :now) FROM hf_running
       WHERE id = :task AND execution = :execution AND token = :token AND why IS NULL
       ON CONFLICT (task) DO UPDATE SET value = coalesce(excluded.value, value), progress = coalesce(excluded.progress, progress),
         progress_at = coalesce(excluded.progress_at, progress_at)`,
      { task, execution, token, checkpoint: checkpoint ?? null, progress: progress ?? null, now },
    );
    return changes > 0;
  }

  /** The checkpoints of those tasks that have one. */
  of(ids: readonly number[]): ReadonlyMap<number, string> {
    if (ids.length === 0) return NONE;
    const rows = this.#sql.rows<[task: number, value: string]>(
      'SELECT task, value FROM hf_checkpoints WHERE task IN (SELECT value FROM json_each(?)) AND value IS NOT NULL',
      JSON.stringify(ids),
    );
    return new Map(rows);
  }
}

const NONE: ReadonlyMap<number, string> = new Map();
