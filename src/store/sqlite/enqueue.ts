import { UniqueConflictError } from '../../errors.ts';
import { occupies, type TaskState } from '../../task.ts';
import type { NewTask, Receipt } from '../store.ts';
import { holding, recordAction, SUPERSEDED, superseding } from './actions.ts';
import type { Catalogue } from './catalogue.ts';
import type { Sql } from './driver.ts';
import type { Groups } from './groups.ts';
import { type Found, mustBeLegal, NO_PAST, type Places } from './places.ts';
import { type Uniques, uniqueNameOf } from './uniques.ts';

/** A task with its new id. */
interface Added {
  readonly id: number;
  readonly task: NewTask;
  /** The task with the same unique key that it replaces. */
  readonly replaced?: Found | undefined;
}

/** Records new tasks with few statements. */
export class Enqueuing {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;
  readonly #places: Places;
  readonly #uniques: Uniques;
  readonly #groups: Groups;

  constructor(sql: Sql, catalogue: Catalogue, places: Places, uniques: Uniques, groups: Groups) {
    this.#groups = groups;
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#places = places;
    this.#uniques = uniques;
  }

  /** Records tasks. The receipts of existing tasks say in which state these are now. */
  enqueue(tasks: readonly NewTask[], now: number): readonly Receipt[] {
    const receipts = this.record(tasks, now);
    if (receipts.every(({ created }) => created)) return receipts;
    const states = this.#places.statesOf(receipts.flatMap(({ id, created }) => (created ? [] : [id])));
    return receipts.map((receipt) =>
      receipt.created ? receipt : { ...receipt, state: states.get(receipt.id) as TaskState },
    );
  }

  record(tasks: readonly NewTask[], now: number): readonly Receipt[] {
    if (tasks.every(hasNoKey)) return this.#recordKeyless(tasks, now);
    const known = this.#knownKeys(tasks);
    const occupants = this.#uniques.occupants(tasks, now);
    const added: Added[] = [];
    let next = this.#lastId() + 1;
    const receipts = tasks.map((task): Receipt => {
      const name = nameOf(task);
      const before = name === undefined ? undefined : known.get(name);
      if (before !== undefined) return { id: before, created: false };

      const uniqueName = uniqueNameOf(task);
      const occupant = uniqueName === undefined ? undefined : occupants.get(uniqueName);
      const replaced = occupant === undefined ? undefined : this.#replace(occupant, { id: next, task }, added, now);
      if (occupant !== undefined && !replaced) return { id: occupant, created: false };

      if (name !== undefined) known.set(name, next);
      if (uniqueName !== undefined) occupants.set(uniqueName, next);
      added.push({ id: next, task, replaced });
      const id = next++;
      return replaced ? { id, created: true, replaced: replaced.row.id } : { id, created: true };
    });
    this.#add(added, now);
    this.#groups.record(tasks, receipts, now);
    return receipts;
  }

  /** Records tasks that are new for certain. */
  #recordKeyless(tasks: readonly NewTask[], now: number): readonly Receipt[] {
    const first = this.#lastId() + 1;
    const others: Added[] = [];
    for (let from = 0; from < tasks.length; ) {
      const to = endOfAlike(tasks, from, now);
      if (to - from >= SERIES) {
        // In their order, because a new source of a fair queue gets its turn when its first task is added.
        this.#add(others.splice(0), now);
        this.#addAlike(tasks.slice(from, to), first + from, now);
      } else {
        for (let i = from; i < to; i++) others.push({ id: first + i, task: tasks[i] as NewTask });
      }
      from = to;
    }
    this.#add(others, now);
    const receipts = tasks.map((_, i): Receipt => ({ id: first + i, created: true }));
    this.#groups.record(tasks, receipts, now);
    return receipts;
  }

  /** Adds due tasks that differ only in their payloads. */
  #addAlike(tasks: readonly NewTask[], first: number, now: number): void {
    const task = tasks[0] as NewTask;
    const { source, priority, submittedAt = now } = task;
    const group = this.#catalogue.classIdOf(task.queue, task.type, task.category, task.needs);
    this.#places.enterReady({ id: first, class: group, source, priority, submittedAt, ...NO_PAST }, tasks.length);
    const runAt = task.dueAt ?? now;
    const idempotent = numberOf(task.idempotent);
    const common = {
      first,
      class: group,
      source,
      priority,
      submittedAt,
      now,
      runAt,
      idempotent,
      policy: task.policy ?? null,
    };
    this.#sql.insertAlike(
      ALIKE_TASKS,
      alikeRow,
      tasks.length,
      common,
      tasks.map(({ payload }) => payload),
    );
  }

  /**
   * Replaces the task that has the unique key of a new one. Undefined if it stays, because the new task does not say `replace`,
   * or because it runs or needs a person.
   */
  #replace(occupant: number, { id, task }: Added, pending: Added[], now: number): Found | undefined {
    const { key, onConflict } = task.unique as NonNullable<NewTask['unique']>;
    if (onConflict === 'reject') throw new UniqueConflictError(occupant, task.type, key);
    if (onConflict === 'ignore') return undefined;
    // It may be a task of this batch.
    this.#add(pending.splice(0), now);
    const found = this.#places.find(occupant) as Found;
    const { state, row, facts } = found;
    if (!occupies('waiting', state)) return undefined;
    mustBeLegal(state, 'cancelled');
    this.#uniques.follow(occupant, row.unique_while, state, 'cancelled', now);
    this.#places.leave(found);
    this.#sql.run(
      `INSERT INTO hf_resting (id, state, since, executions, reason) VALUES (:occupant, 'cancelled', :now, :executions, :reason)
       ON CONFLICT (id) DO UPDATE SET state = 'cancelled', since = :now, reason = :reason`,
      { occupant, now, executions: facts.executions, reason: SUPERSEDED },
    );
    recordAction(this.#sql, superseding(occupant, id, state), now);
    this.#groups.ended([occupant]);
    return found;
  }

  /** Holds a new task, because the task that it replaces was held. When it is released, it has the times that it was given. */
  #hold({ id }: Added, replaced: Found, runAt: number, now: number): void {
    const from = runAt > now ? 'scheduled' : 'ready';
    mustBeLegal('new', from);
    mustBeLegal(from, 'held');
    this.#sql.run(`INSERT INTO hf_resting (id, state, since, executions) VALUES (?, 'held', ?, 0)`, id, now);
    recordAction(this.#sql, holding(id, replaced.row.id, from), now);
  }

  /** Records tasks without keys that are leased in the same transaction, so that they wait nowhere. Returns their ids. */
  recordLeased(tasks: readonly NewTask[], now: number): readonly number[] {
    const first = this.#lastId() + 1;
    const added = tasks.map((task, i): Added => ({ id: first + i, task }));
    this.#add(added, now, false);
    return added.map(({ id }) => id);
  }

  #add(added: readonly Added[], now: number, mustWait = true): void {
    const rows: unknown[] = [];
    const uniqueRows: unknown[] = [];
    const keys: unknown[] = [];
    const uniques: unknown[] = [];
    for (const one of added) {
      const { id, task, replaced } = one;
      const { type, queue, source, priority, key, unique } = task;
      const group = this.#catalogue.classIdOf(queue, type, task.category, task.needs);
      const submittedAt = task.submittedAt ?? now;
      const runAt = task.dueAt ?? now + task.delay;
      const deadline = task.deadline ?? null;
      const idempotent = numberOf(task.idempotent);
      const policy = task.policy ?? null;
      const row = unique ? uniqueRows : rows;
      row.push(id, group, source, priority, submittedAt, now, runAt, deadline, idempotent, key, policy, task.payload);
      if (unique) {
        uniqueRows.push(unique.key, unique.while);
        uniques.push(type, unique.key, id, unique.for === undefined ? null : now + unique.for);
      }
      if (key !== undefined) keys.push(type, key, id);
      if (!mustWait) continue;
      const place = { id, class: group, source, priority, submittedAt, ...NO_PAST };
      if (replaced?.state === 'held') this.#hold(one, replaced, runAt, now);
      else this.#places.enter('new', place, runAt, deadline, now);
    }
    this.#sql.insertAll(`${TASKS})`, 12, rows);
    this.#sql.insertAll(`${TASKS}, unique_key, unique_while)`, 14, uniqueRows);
    this.#uniques.takeAll(uniques);
    this.#sql.insertAll('hf_keys (type, key, task)', 3, keys);
  }

  /** Ids are never reused: SQLite keeps the last one, even if its task was deleted. */
  #lastId(): number {
    return this.#sql.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'hf_tasks'")?.seq ?? 0;
  }

  /** The tasks that have these keys already, by name. */
  #knownKeys(tasks: readonly NewTask[]): Map<string, number> {
    if (!tasks.some(({ key }) => key !== undefined)) return new Map();
    const asked = tasks.filter(({ key }) => key !== undefined).map(({ type, key }) => [type, key]);
    const rows = this.#sql.rows<[type: string, key: string, task: number]>(
      `SELECT k.type, k.key, k.task FROM json_each(?) j
       JOIN hf_keys k ON k.key = j.value ->> 1 AND k.type = j.value ->> 0`,
      JSON.stringify(asked),
    );
    return new Map(rows.map(([type, key, task]) => [`${type}\0${key}`, task]));
  }
}

/** From this number on, tasks that are alike are inserted together. */
const SERIES = 8;

const ALIKE_TASKS =
  'hf_tasks (id, class, source, priority, submitted_at, created_at, run_at, idempotent, policy, payload)';

function alikeRow(n: number): string {
  return `(@first + ${n}, @class, @source, @priority, @submittedAt, @now, @runAt, @idempotent, @policy, ?)`;
}

function hasNoKey({ key, unique }: NewTask): boolean {
  return key === undefined && unique === undefined;
}

/** The index after the last one of the tasks from `from` on that are due, have no deadline, and differ only in their payloads. */
function endOfAlike(tasks: readonly NewTask[], from: number, now: number): number {
  const first = tasks[from] as NewTask;
  let to = from + 1;
  if (first.deadline !== undefined || (first.dueAt ?? now + first.delay) > now) return to;
  while (to < tasks.length && isAlike(tasks[to] as NewTask, first)) to += 1;
  return to;
}

function isAlike(one: NewTask, other: NewTask): boolean {
  return (
    one.type === other.type &&
    one.source === other.source &&
    one.queue === other.queue &&
    one.priority === other.priority &&
    one.delay === other.delay &&
    one.dueAt === other.dueAt &&
    one.submittedAt === other.submittedAt &&
    one.deadline === undefined &&
    one.idempotent === other.idempotent &&
    one.policy === other.policy &&
    one.category === other.category &&
    one.needs === other.needs
  );
}

function numberOf(truth: boolean | undefined): number | null {
  return truth === undefined ? null : truth ? 1 : 0;
}

const TASKS = `hf_tasks (id, class, source, priority, submitted_at, created_at, run_at, deadline, idempotent, key, policy,
  payload`;

/** Types do not share keys. Neither contains a NUL. */
function nameOf({ type, key }: NewTask): string | undefined {
  return key === undefined ? undefined : `${type}\0${key}`;
}
