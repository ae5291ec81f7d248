import { randomUUID } from 'node:crypto';
import { importedCounts, importedText } from '../imported.ts';
import { failedAs, lastError } from '../last-error.ts';
import { isPlain, NO_SOURCE_STATE, reasonOf } from '../settlement.ts';
import type { ImportedTask, Lease, NewTask, Report, Settlement } from '../store.ts';
import { needsText } from '../takes.ts';

/** The token that proves the leases of one claim. */
export function newToken(): string {
  return randomUUID();
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A token for the database. A text that is not a token belongs to nobody. */
export function tokenOf({ token }: Pick<Lease, 'token'>): string {
  return UUID.test(token) ? token : '00000000-0000-0000-0000-000000000000';
}

/** Tasks in the form of `enqueue_tasks`: values that many tasks share are given once. */
export interface Enqueued {
  readonly groups: string;
  readonly tasks: string;
  /** Whether any task has a key or unique key. */
  readonly keyed: boolean;
  /** The queues, types, categories and needs, as `kindOf` names them. */
  readonly kinds: readonly string[];
  /** The follow-ups of groups: the place of each, and how many tasks before it are its group. Absent if there are none. */
  readonly followUps?: readonly (readonly [at: number, groupOf: number])[];
}

/** Names the queue, type, category and needs of a task. */
export function kindOf({ queue, type, category = '', needs }: NewTask): string {
  return JSON.stringify([queue, type, category, needsText(needs)]);
}

export function enqueued(tasks: readonly (NewTask | ImportedTask)[], hasPayloads = true): Enqueued {
  const groups: string[][] = [];
  const numbers = new Map<string, number>();
  let keyed = false;
  const list = tasks.map((task) => {
    const group = [task.queue, task.type, task.category ?? '', needsText(task.needs), task.source];
    const name = group.join('\0');
    let number = numbers.get(name);
    if (number === undefined) {
      number = groups.push(group) - 1;
      numbers.set(name, number);
    }
    const unique = 'unique' in task ? task.unique : undefined;
    if (task.key !== undefined || unique !== undefined) keyed = true;
    return {
      g: number,
      p: task.priority,
      b: hasPayloads ? task.payload : undefined,
      i: task.idempotent,
      d: task.delay,
      da: task.dueAt,
      sa: task.submittedAt,
      dl: task.deadline,
      k: task.key,
      po: task.policy,
      uk: unique?.key,
      uw: unique?.while,
      uc: unique?.onConflict,
      uf: unique?.for,
    };
  });
  const kinds = [...new Set(groups.map((group) => JSON.stringify(group.slice(0, 4))))];
  const followUps = tasks.flatMap(({ groupOf }, at) => (groupOf === undefined ? [] : [[at, groupOf] as const]));
  return {
    groups: JSON.stringify(groups),
    tasks: JSON.stringify(list),
    keyed,
    kinds,
    ...(followUps.length > 0 && { followUps }),
  };
}

/**
 * The same, with the payloads apart if the tasks differ only in these, which is usual. Then `tasks` has one of them without its payload.
 * Reading many values from JSON would take PostgreSQL a fifth of its time.
 */
export function withPayloadsApart(tasks: readonly NewTask[]): Enqueued & { readonly payloads: string | null } {
  const [first] = tasks;
  const isPlain = first && first.key === undefined && !first.unique && first.groupOf === undefined;
  if (!isPlain || !tasks.every((task) => isAlike(first, task))) {
    return { ...enqueued(tasks), payloads: null };
  }
  return { ...enqueued([first], false), payloads: tasks.map(({ payload }) => payload).join(SEPARATOR) };
}

/** JSON writes this character as an escape, so no payload has it. */
const SEPARATOR = '\x1e';

/** Whether two tasks differ in nothing but their payloads. */
function isAlike(a: NewTask, b: NewTask): boolean {
  return (
    a.source === b.source &&
    a.type === b.type &&
    a.queue === b.queue &&
    a.category === b.category &&
    a.needs === b.needs &&
    a.priority === b.priority &&
    a.delay === b.delay &&
    a.dueAt === b.dueAt &&
    a.submittedAt === b.submittedAt &&
    a.deadline === b.deadline &&
    a.idempotent === b.idempotent &&
    a.policy === b.policy &&
    a.key === b.key &&
    a.unique === b.unique &&
    a.groupOf === b.groupOf
  );
}

/** A settlement in the form of `settle_items`. */
export function item(settlement: Settlement, place: number): object {
  const { lease, revision, decision, result, report, source = NO_SOURCE_STATE } = settlement;
  const charge = 'charge' in decision ? decision.charge : ({ to: 'nobody' } as const);
  return {
    id: lease.task,
    x: lease.execution,
    t: tokenOf(lease),
    r: revision,
    n: decision.next,
    a: decision.next === 'scheduled' ? Math.ceil(decision.after) : undefined,
    s: decision.next === 'scheduled' ? decision.lostInARow : 0,
    c: charge.to,
    cr: charge.to === 'task' ? charge.reason : undefined,
    ck: charge.to === 'task' ? charge.kind : undefined,
    u: report.unbegun === true,
    re: reasonOf(decision),
    er: report.failure && lastError(report.failure.message),
    fa: report.failure && failedAs(report.failure),
    rs: result,
    pl: isPlain(settlement),
    oc: report.outcome,
    f: report.failure && saidJson(report.failure),
    m: report.message,
    b: JSON.stringify(decision.because),
    rf: ranFor(report),
    nt: decision.next === 'scheduled' && decision.needsToken === true,
    vd: decision.next === 'scheduled' ? decision.verdict : undefined,
    so: place,
    sr: source === 'any' ? undefined : source.revision,
    sc: source === 'any' ? undefined : source.change,
  };
}

export function ranFor(report: Report): number {
  return Math.round(report.ranFor);
}

export function imported(task: ImportedTask): object {
  const { stands, executions, charged, deferrals, result, endedAt, by } = task;
  const { inARow, reason, error } = importedCounts(task);
  return {
    stands,
    executions,
    charged,
    deferrals,
    in_a_row: inARow,
    reason,
    error,
    result,
    ended_at: endedAt,
    actor: by.actor,
    note: by.note,
    imported: importedText(task),
  };
}

/** JSON of handlers' messages that PostgreSQL accepts: without lone surrogates and NUL. */
export function saidJson(value: unknown): string {
  const text = JSON.stringify(value);
  // JSON writes both as escapes. Calling a function for each value takes several times as long, so it is only done if it may be needed.
  if (!/\\u(?:0000|d[89a-f])/.test(text)) return text;
  return JSON.stringify(value, (_, part) =>
    typeof part === 'string' ? part.toWellFormed().replaceAll('\0', '\ufffd') : part,
  );
}
