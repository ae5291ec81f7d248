import { actionLeads, isWaiting, type TaskState } from '../../task.ts';
import type { Move, Moved } from '../store.ts';
import { type Action, recordAction } from './actions.ts';
import type { Sql } from './driver.ts';
import { type FactsTable, newRound } from './facts.ts';
import type { Groups } from './groups.ts';
import { dueAt, type Found, mustBeLegal, type Places, placeOf } from './places.ts';
import type { Uniques } from './uniques.ts';

/** An operator's actions. */
export class Moving {
  readonly #sql: Sql;
  readonly #places: Places;
  readonly #facts: FactsTable;
  readonly #uniques: Uniques;
  readonly #groups: Groups;

  constructor(sql: Sql, places: Places, facts: FactsTable, uniques: Uniques, groups: Groups) {
    this.#groups = groups;
    this.#sql = sql;
    this.#places = places;
    this.#facts = facts;
    this.#uniques = uniques;
  }

  move(id: number, move: Move, now: number): Moved {
    const found = this.#places.find(id);
    if (!found) return { id, moved: false, why: 'missing' };
    const from = found.state;
    if (move.from && !move.from.includes(from)) return { id, moved: false, from, why: 'conflict' };
    if (move.executions !== undefined && move.executions !== this.#executions(found)) {
      return { id, moved: false, from, why: 'conflict' };
    }
    if (from === 'running') return this.#moveRunning(id, move, now);
    const to = actionLeads(move.verb, from, {
      isDue: dueAt(found) <= now,
      ...(move.verb === 'resolve' && { as: move.as }),
    });
    if (to === undefined) return { id, moved: false, from, why: 'conflict' };
    const occupiedBy = this.#uniques.follow(id, found.row.unique_while, from, to, now);
    if (occupiedBy !== undefined) return { id, moved: false, from, why: 'conflict', occupiedBy };
    this.#places.leave(found);
    if (isWaiting(to)) this.#wait(found, move, now);
    else this.#rest(found, to, move, now);
    recordAction(this.#sql, { ...actionOf(id, move), from, to }, now);
    return { id, moved: true, from, to };
  }

  /** How many executions it has had, with the one that runs. */
  #executions({ row, facts, state }: Found): number {
    if (state !== 'running') return Math.max(facts.executions, row.executions);
    return this.#sql.column<number>('SELECT execution FROM hf_running WHERE id = ?', row.id)[0] as number;
  }

  /** A running task belongs to its worker. The cancel is a request, which the worker finds at its next renewal or earlier. */
  #moveRunning(id: number, move: Move, now: number): Moved {
    if (move.verb !== 'cancel') return { id, moved: false, from: 'running', why: 'conflict' };
    const asked = this.#sql.run(
      'UPDATE hf_running SET cancel = 1, revision = revision + 1 WHERE id = ? AND cancel = 0',
      id,
    );
    if (asked.changes > 0) recordAction(this.#sql, { ...actionOf(id, move), from: 'running', to: 'running' }, now);
    return { id, moved: false, from: 'running', why: 'requested' };
  }

  /** The task waits again; after a retry it is due now, and if it had ended or needed a person, in a new round. */
  #wait(found: Found, move: Move, now: number): void {
    const { row, facts, state } = found;
    const begins = state !== 'scheduled' && state !== 'held';
    const next = begins ? newRound(facts, row.executions) : facts;
    const again = move.verb === 'retry' || move.verb === 'redrive' || move.verb === 'resolve';
    const due = again ? now : dueAt(found);
    // A deadline that has passed is removed. Otherwise the task would end again at once.
    const deadline = begins && row.deadline !== null && row.deadline <= now ? null : row.deadline;
    const hasNewKey = move.verb === 'retry' && move.newKey;
    if (again) this.#facts.write(row.id, { ...next, run_at: now, ...(hasNewKey && { key_from: next.executions }) });
    this.#sql.run('DELETE FROM hf_resting WHERE id = ?', row.id);
    if (deadline !== row.deadline) this.#sql.run('UPDATE hf_tasks SET deadline = ? WHERE id = ?', deadline, row.id);
    this.#places.enter(state, placeOf(row, next), due, deadline, now);
  }

  /** The task does not wait or run any more; its state is stored. */
  #rest({ row, facts, state }: Found, to: TaskState, move: Move, now: number): void {
    mustBeLegal(state, to);
    this.#sql.run(
      `INSERT INTO hf_resting (id, state, since, executions, reason, result)
       VALUES (:id, :to, :now, :executions, iif(:to = 'cancelled', 'cancelled', NULL), :result)
       ON CONFLICT (id) DO UPDATE SET state = :to, since = :now, executions = max(executions, :executions), result = :result,
         reason = CASE :to WHEN 'dead' THEN reason WHEN 'cancelled' THEN 'cancelled' END`,
      {
        to,
        now,
        result: move.verb === 'resolve' ? (move.result ?? null) : null,
        executions: facts.executions,
        id: row.id,
      },
    );
    this.#groups.ended([row.id]);
  }
}

function actionOf(task: number, { actor, verb, note }: Move): Omit<Action, 'from' | 'to'> {
  return { task, actor, verb, ...(note !== undefined && { note }) };
}
