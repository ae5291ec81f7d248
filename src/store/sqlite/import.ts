import { hasEnded, type TaskState } from '../../task.ts';
import { importedCounts, importedText } from '../imported.ts';
import type { ImportedTask, Receipt } from '../store.ts';
import type { Sql } from './driver.ts';
import type { Enqueuing } from './enqueue.ts';
import { type FactsRow, type FactsTable, UNTOUCHED } from './facts.ts';
import { type Found, mustBeLegal, type Places } from './places.ts';

/** A task of another queue with its new id. */
interface Arrival {
  readonly id: number;
  readonly task: ImportedTask;
}

/** Records tasks of another queue: first as new tasks, so that keys mean the same, then with their states and counts. */
export class Importing {
  readonly #sql: Sql;
  readonly #enqueuing: Enqueuing;
  readonly #places: Places;
  readonly #facts: FactsTable;

  constructor(sql: Sql, enqueuing: Enqueuing, places: Places, facts: FactsTable) {
    this.#sql = sql;
    this.#enqueuing = enqueuing;
    this.#places = places;
    this.#facts = facts;
  }

  import(tasks: readonly ImportedTask[], now: number): readonly Receipt[] {
    const receipts = this.#enqueuing.record(tasks, now);
    const arrivals = tasks.flatMap((task, i): Arrival[] => {
      const { id, created } = receipts[i] as Receipt;
      return created ? [{ id, task }] : [];
    });
    const states = arrivals.map((arrival) => this.#stand(arrival));
    const rests = arrivals.filter(({ task }) => task.stands !== 'waiting');
    this.#sql.insertAll(
      RESTING,
      6,
      rests.flatMap((one) => resting(one, now)),
    );
    this.#facts.writeAll(
      arrivals.filter(({ task }) => isRemembered(task)).map(({ id, task }) => [id, factsOf(task, now)]),
    );
    this.#sql.insertAll(
      ACTIONS,
      9,
      arrivals.flatMap((arrival, i) => action(arrival, states[i] as TaskState, now)),
    );
    return receipts;
  }

  /** A new task waits. A task that did not wait in the other queue leaves this place again. */
  #stand({ id, task }: Arrival): TaskState {
    const { stands } = task;
    const found = this.#places.find(id) as Found;
    const to = stands === 'waiting' ? found.state : stands;
    mustBeLegal('elsewhere', to);
    if (stands !== 'waiting') this.#places.leave(found);
    else if (to === 'scheduled' && isRemembered(task) && importedCounts(task).reason !== null)
      this.#places.noteFailed(found);
    return to;
  }
}

const RESTING = 'hf_resting (id, state, since, executions, reason, result)';

function resting({ id, task }: Arrival, now: number): unknown[] {
  const { stands, executions, reason, result, endedAt } = task;
  // The reason of a held task is in its facts, like that of any task that can go on.
  const itsReason = stands === 'held' || stands === 'succeeded' ? null : (reason ?? null);
  const since = stands !== 'waiting' && hasEnded(stands) ? (endedAt ?? now) : now;
  return [id, stands, since, executions, itsReason, result ?? null];
}

/** A task that succeeded and never failed has no facts, as after a success here. */
function isRemembered({ stands, executions, charged, deferrals, error }: ImportedTask): boolean {
  if (stands === 'succeeded') return charged.length > 0 || deferrals > 0 || error !== undefined;
  return executions > 0 || error !== undefined;
}

function factsOf(task: ImportedTask, now: number): FactsRow {
  const { executions, charged, deferrals } = task;
  const { inARow, reason, error } = importedCounts(task);
  return {
    ...UNTOUCHED,
    executions,
    charged: JSON.stringify(charged),
    deferrals,
    in_a_row: inARow,
    deferred_since: inARow > 0 ? now : null,
    reason,
    error,
  };
}

const ACTIONS = 'hf_acts (task, after_execution, at, actor, verb, note, from_state, to_state, brought)';

function action({ id, task }: Arrival, to: TaskState, now: number): unknown[] {
  const { actor, note } = task.by;
  return [id, 0, now, actor, 'imported', note ?? null, 'elsewhere', to, importedText(task)];
}
