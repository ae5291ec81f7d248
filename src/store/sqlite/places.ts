import { isLegal, type TaskState, type UniqueScope } from '../../task.ts';
import type { Sql } from './driver.ts';
import type { FactsRow, FactsTable } from './facts.ts';
import { among } from './ids.ts';
import type { Lanes, Place } from './lanes.ts';

export interface TaskRow {
  readonly id: number;
  readonly class: number;
  readonly source: string;
  readonly state: TaskState | null;
  readonly priority: number;
  readonly submitted_at: number;
  readonly run_at: number;
  readonly deadline: number | null;
  /** If it has a unique key: how long. */
  readonly unique_while: UniqueScope | null;
  /** Its executions when it ended or was put aside; 0 while it waits or runs. */
  readonly executions: number;
}

/** A task with its facts and its state. */
export interface Found {
  readonly row: TaskRow;
  readonly facts: FactsRow;
  readonly state: TaskState;
}

const TASKS = `
  SELECT t.id, t.class, t.source, e.state, t.priority, t.submitted_at, t.run_at, t.deadline, t.unique_while,
    coalesce(e.executions, 0) AS executions
  FROM hf_tasks t LEFT JOIN hf_resting e ON e.id = t.id`;

/**
 * The tables of waiting tasks: scheduled tasks, ready tasks in their lanes, and deadlines. Only this class adds and removes
 * waiting tasks.
 */
export class Places {
  readonly #sql: Sql;
  readonly #lanes: Lanes;
  readonly #facts: FactsTable;

  constructor(sql: Sql, lanes: Lanes, facts: FactsTable) {
    this.#sql = sql;
    this.#lanes = lanes;
    this.#facts = facts;
  }

  /** Adds a waiting task: to the scheduled ones until it is due, otherwise to the ready ones. */
  enter(from: TaskState | 'new', place: Place, runAt: number, deadline: number | null, now: number): TaskState {
    const to = runAt > now ? 'scheduled' : 'ready';
    mustBeLegal(from, to);
    if (to === 'ready') this.#lanes.add(place);
    else {
      const failed = place.hasFailed ? 1 : 0;
      this.#sql.run('INSERT INTO hf_scheduled (run_at, id, failed) VALUES (?, ?, ?)', runAt, place.id, failed);
    }
    if (deadline !== null) this.#sql.run('INSERT INTO hf_deadlines (deadline, id) VALUES (?, ?)', deadline, place.id);
    return to;
  }

  /** Adds so many new tasks that are due, and have no deadline: `first`, and those with the next ids. */
  enterReady(first: Place, count: number): void {
    mustBeLegal('new', 'ready');
    this.#lanes.addSeries(first, count);
  }

  /** A scheduled task gets facts that say that it has failed before. */
  noteFailed(found: Found): void {
    this.#sql.run('UPDATE hf_scheduled SET failed = 1 WHERE run_at = ? AND id = ?', dueAt(found), found.row.id);
  }

  /** Removes a waiting task; does nothing for any other task. */
  leave(found: Found): void {
    const { row, state } = found;
    if (state === 'scheduled') {
      this.#sql.run('DELETE FROM hf_scheduled WHERE run_at = ? AND id = ?', dueAt(found), row.id);
    }
    if (state === 'ready') this.#lanes.remove(placeOf(row, found.facts));
    if (row.deadline !== null) this.dropDeadline(row.deadline, row.id);
  }

  dropDeadline(deadline: number, id: number): void {
    this.#sql.run('DELETE FROM hf_deadlines WHERE deadline = ? AND id = ?', deadline, id);
  }

  /** Makes due tasks ready, the earliest first. */
  promote(now: number, most: number): void {
    const due = this.#sql.all<{ run_at: number; id: number }>(
      'SELECT run_at, id FROM hf_scheduled WHERE run_at <= ? ORDER BY run_at, id LIMIT ?',
      now,
      most,
    );
    const last = due.at(-1);
    if (!last) return;
    this.#sql.run('DELETE FROM hf_scheduled WHERE (run_at, id) <= (?, ?)', last.run_at, last.id);
    for (const place of this.placesOf(due.map(({ id }) => id))) this.#lanes.add(place);
  }

  find(id: number): Found | undefined {
    const row = this.#sql.get<TaskRow>(`${TASKS} WHERE t.id = ?`, id);
    if (!row) return undefined;
    const facts = this.#facts.of(id);
    if (row.state) return { row, facts, state: row.state };
    if (this.#sql.get('SELECT 1 FROM hf_running WHERE id = ?', id)) return { row, facts, state: 'running' };
    const due = facts.run_at ?? row.run_at;
    const scheduled = this.#sql.get('SELECT 1 FROM hf_scheduled WHERE run_at = ? AND id = ?', due, id);
    return { row, facts, state: scheduled ? 'scheduled' : 'ready' };
  }

  /** The states of tasks that exist. */
  statesOf(ids: readonly number[]): ReadonlyMap<number, TaskState> {
    const rows = this.#sql.rows<[id: number, state: TaskState]>(
      `SELECT t.id, coalesce(e.state, iif(r.id IS NOT NULL, 'running', iif(s.id IS NOT NULL, 'scheduled', 'ready')))
       FROM json_each(?) j JOIN hf_tasks t ON t.id = j.value LEFT JOIN hf_resting e ON e.id = t.id
       LEFT JOIN hf_running r ON r.id = t.id LEFT JOIN hf_facts f ON f.task = t.id
       LEFT JOIN hf_scheduled s ON s.run_at = coalesce(f.run_at, t.run_at) AND s.id = t.id`,
      JSON.stringify(ids),
    );
    return new Map(rows);
  }

  /** Changes the facts of a task. A ready task moves to the lane that fits them. */
  remember(id: number, facts: FactsRow): void {
    const found = this.find(id);
    const isReady = found?.state === 'ready';
    if (isReady) this.#lanes.remove(placeOf(found.row, found.facts));
    this.#facts.write(id, facts);
    if (isReady) this.#lanes.add(placeOf(found.row, facts));
  }

  /** The values of tasks that decide their places, in the order of the ids. */
  placesOf(ids: readonly number[]): readonly Place[] {
    const bare = this.bareOf(ids);
    const facts = this.#facts.ofAll(ids);
    return ids.map((id) => {
      const place = bare.get(id) as Place;
      return { ...place, ...pastOf(facts.get(id)) };
    });
  }

  /** The same by id, without their executions. */
  bareOf(ids: readonly number[]): ReadonlyMap<number, Place> {
    const { sql, values } = among(ids);
    const rows = this.#sql.rows<[id: number, class_: number, source: string, priority: number, submittedAt: number]>(
      `SELECT id, class, source, priority, submitted_at FROM hf_tasks WHERE id ${sql}`,
      ...values,
    );
    const byId = new Map<number, Place>();
    for (const [id, class_, source, priority, submittedAt] of rows) {
      byId.set(id, { id, class: class_, source, priority, submittedAt, ...NO_PAST });
    }
    return byId;
  }
}

/** When a waiting task is, or was, due. */
export function dueAt({ row, facts }: Found): number {
  return facts.run_at ?? row.run_at;
}

export function placeOf(
  row: Pick<TaskRow, 'id' | 'class' | 'source' | 'priority' | 'submitted_at'>,
  facts: FactsRow | undefined,
): Place {
  return {
    id: row.id,
    class: row.class,
    source: row.source,
    priority: row.priority,
    submittedAt: row.submitted_at,
    ...pastOf(facts),
  };
}

/** The values of a task that has never run. */
export const NO_PAST = { lostInARow: 0, ranAt: null, needsToken: false, hasFailed: false } as const;

/** The values that come from its executions. */
export function pastOf(facts: FactsRow | undefined): Pick<Place, keyof typeof NO_PAST> {
  if (!facts) return NO_PAST;
  return {
    lostInARow: facts.suspect,
    ranAt: facts.last_started_at,
    needsToken: facts.needs_token === 1,
    hasFailed: facts.reason !== null,
  };
}

/** A state change that is not in the table of transitions is a bug, and is not written. */
export function mustBeLegal(from: TaskState | 'new' | 'elsewhere', to: TaskState): void {
  if (!isLegal(from, to)) throw new Error(`A task cannot go from ${from} to ${to}.`);
}
