import { WHEN_GROUP_ENDS } from '../new-task.ts';
import type { NewTask, Receipt, TaskOfGroup } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import type { Sql } from './driver.ts';

/** The tasks of groups. While none is open, no statement looks for any. A trigger of the schema makes follow-ups due. */
export class Groups {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;

  constructor(sql: Sql, catalogue: Catalogue) {
    this.#sql = sql;
    this.#catalogue = catalogue;
  }

  /** Records the groups among new tasks. */
  record(tasks: readonly NewTask[], receipts: readonly Receipt[], now: number): void {
    for (let at = 0; at < tasks.length; at++) {
      const { groupOf } = tasks[at] as NewTask;
      if (groupOf === undefined) continue;
      const followUp = receipts[at] as Receipt;
      const created = receipts.slice(at - groupOf, at).filter((receipt) => receipt.created);
      if (followUp.created) this.#recordOne(followUp.id, JSON.stringify(created.map(({ id }) => id)), now);
    }
  }

  #recordOne(followUp: number, tasks: string, now: number): void {
    const recorded = this.#sql.run(
      'INSERT INTO hf_group_tasks (task, follow_up) SELECT value, ? FROM json_each(?)',
      followUp,
      tasks,
    );
    if (recorded.changes > 0) {
      this.#catalogue.beginGroup();
      // A later task of the call may have replaced one of them.
      this.#end(tasks);
      return;
    }
    this.#sql.run('UPDATE hf_tasks SET run_at = ? WHERE id = ?', now, followUp);
    this.#sql.run('UPDATE hf_scheduled SET run_at = ? WHERE run_at = ? AND id = ?', now, WHEN_GROUP_ENDS, followUp);
  }

  /** Called when tasks came to rest. Those of groups that have ended are counted, each once. */
  ended(tasks: readonly number[]): void {
    if (this.#catalogue.groups && tasks.length > 0) this.#end(JSON.stringify(tasks));
  }

  #end(tasks: string): void {
    this.#sql.run(
      `UPDATE hf_group_tasks SET ended = e.state, ended_at = e.since FROM hf_resting e
       WHERE task IN (SELECT value FROM json_each(?)) AND ended IS NULL AND e.id = task
         AND e.state IN ('succeeded', 'dead', 'cancelled')`,
      tasks,
    );
  }
}

export function groupOf(sql: Sql, followUp: number): readonly TaskOfGroup[] {
  return sql
    .rows<[id: number, ended: TaskOfGroup['ended'] | null, result: string | null]>(
      `SELECT g.task, g.ended, e.result FROM hf_group_tasks g
       LEFT JOIN hf_resting e ON e.id = g.task AND e.state = 'succeeded' WHERE g.follow_up = ? ORDER BY g.task`,
      followUp,
    )
    .map(([id, ended, result]) => ({ id, ...(ended && { ended }), ...(result !== null && { result }) }));
}
