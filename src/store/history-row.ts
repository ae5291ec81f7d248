import type { Because, Charge } from '../failure/decide.ts';
import type { Failure } from '../failure/outcome.ts';
import { readStored, unreadableMember } from '../stored-json.ts';
import type { TaskState } from '../task.ts';
import { joinBecause, joinFailure } from './history-text.ts';
import type { EventSpan, ExecutionEntry, HistoryEntry, Imported, TaskEvent } from './store.ts';

/** An execution as the stores keep it; SQLite has 0 and 1 for false and true. */
export interface ExecutionRow {
  readonly execution: number;
  readonly late: boolean | 0 | 1;
  readonly worker: string;
  readonly started_at: number;
  readonly ended_at: number;
  readonly outcome: string;
  readonly next: string;
  readonly after_ms: number | null;
  readonly charge: Charge['to'] | 'refunded';
  readonly failure: string | null;
  readonly message: string | null;
  readonly because: string;
  /** What `failure` and `because` share with other executions; then those hold only what is their own. */
  readonly shared_failure?: string | null;
  readonly shared_because?: string | null;
}

/** An operator's action, or a stray error of an execution. */
export interface ActionRow {
  readonly at: number;
  readonly actor: string;
  readonly verb: string;
  readonly note: string | null;
  readonly from_state: TaskState | 'elsewhere';
  readonly to_state: TaskState;
  readonly brought: string | null;
}

export function executionEntry(row: ExecutionRow): ExecutionEntry {
  const unreadable: string[] = [];
  const because = becauseOf(row, unreadable);
  const failure = failureOf(row, unreadable);
  return {
    kind: 'execution',
    execution: row.execution,
    worker: row.worker,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    outcome: row.outcome,
    next: row.next,
    charge: row.charge,
    late: Boolean(row.late),
    ...(row.after_ms !== null && { after: row.after_ms }),
    ...(row.message !== null && { message: row.message }),
    ...(because && { because }),
    ...(failure && { failure }),
    ...unreadableMember(unreadable),
  };
}

function becauseOf({ because: own, shared_because: shared, after_ms }: ExecutionRow, unreadable: string[]) {
  if (shared != null) return joinBecause({ shared, own }, after_ms, unreadable);
  return readStored<Because | undefined>(own, 'because', unreadable, undefined);
}

function failureOf({ failure: own, shared_failure: shared }: ExecutionRow, unreadable: string[]) {
  if (own !== null && shared != null) return joinFailure({ shared, own }, unreadable);
  return readStored<Failure | null>(own ?? 'null', 'failure', unreadable, null);
}

/** Stray errors are stored with the actions, with this verb. The note is JSON with the error and its execution. */
export const STRAY_VERB = 'stray';

export function actionEntry({ at, actor, verb, note, from_state, to_state, brought: text }: ActionRow): HistoryEntry {
  const unreadable: string[] = [];
  if (verb === STRAY_VERB) {
    const stray = readStored(note ?? '', 'stray', unreadable, { execution: 0 });
    return { kind: 'stray', at, worker: actor, ...stray, ...unreadableMember(unreadable) };
  }
  const imported = readStored<Imported | null>(text ?? 'null', 'brought', unreadable, null);
  return {
    kind: 'action',
    at,
    actor,
    verb,
    from: from_state,
    to: to_state,
    ...(imported && { imported }),
    ...unreadableMember(unreadable),
    ...(note !== null && { note }),
  };
}

/** A row of the history of any task, with what its task is. */
interface EventRow {
  readonly id: number;
  readonly task: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
}

/** The first of these events in the order of their times, of rows that are in this order each. */
export function eventsFrom(
  executions: readonly (EventRow & ExecutionRow)[],
  actions: readonly (EventRow & ActionRow)[],
  { limit, newestFirst }: EventSpan,
): readonly TaskEvent[] {
  const of = ({ id, task, type, queue, source }: EventRow, prefix: string) => {
    return { id: `${prefix}${id}`, task, type, queue, source };
  };
  const events = [
    ...executions.map((row) => ({ ...of(row, 'e'), at: row.ended_at, entry: executionEntry(row) })),
    ...actions.map((row) => ({ ...of(row, 'a'), at: row.at, entry: actionEntry(row) })),
  ];
  const sign = newestFirst ? -1 : 1;
  return events.sort((a, b) => sign * (a.at - b.at)).slice(0, limit);
}
