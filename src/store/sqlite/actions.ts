import type { TaskState } from '../../task.ts';
import { STRAY_VERB } from '../history-row.ts';
import type { By, Stray } from '../store.ts';
import type { Sql } from './driver.ts';

/** An action on a task, for its history. */
export interface Action extends By {
  readonly task: number;
  readonly verb: string;
  readonly from: TaskState;
  readonly to: TaskState;
}

/** The actor of the actions that follow from unique keys. */
const HOLDFAST = 'holdfast';

/** The reason of a task that was superseded by another one with the same unique key. */
export const SUPERSEDED = 'unique.superseded';

export function recordAction(sql: Sql, { task, actor, verb, note, from, to }: Action, now: number): void {
  sql.run(
    `INSERT INTO hf_acts (task, after_execution, at, actor, verb, note, from_state, to_state)
     VALUES (:task, (SELECT coalesce(max(id), 0) FROM hf_executions WHERE task = :task), :now, :actor, :verb, :note, :from, :to)`,
    { task, now, actor, verb, note: note ?? null, from, to },
  );
}

/** It is stored with the actions. `takeActions` leaves it out, because its state before is `elsewhere`. */
export function recordStray(sql: Sql, { task, worker, execution, failure }: Stray, now: number): void {
  sql.run(
    `INSERT INTO hf_acts (task, after_execution, at, actor, verb, note, from_state, to_state)
     SELECT id, (SELECT coalesce(max(id), 0) FROM hf_executions WHERE task = :task), :now, :worker, :verb, :note, 'running', 'elsewhere'
     FROM hf_tasks WHERE id = :task`,
    { task, now, worker, verb: STRAY_VERB, note: JSON.stringify({ execution, failure }) },
  );
}

/** A task is superseded by another one with the same unique key. */
export function superseding(task: number, by: number, from: TaskState): Action {
  const note = `Task #${by} has the same unique key and replaces it.`;
  return { task, actor: HOLDFAST, verb: 'supersede', note, from, to: 'cancelled' };
}

/** A task that replaces a held one is held too, because a person put this work aside. */
export function holding(task: number, replaced: number, from: TaskState): Action {
  return { task, actor: HOLDFAST, verb: 'hold', note: `It replaces #${replaced}, which was held.`, from, to: 'held' };
}
