import type { Charged } from '../failure/decide.ts';
import { readStored, unreadableMember } from '../stored-json.ts';
import type { Needs, TaskState, UniqueScope } from '../task.ts';
import { WHEN_GROUP_ENDS } from './new-task.ts';
import type { HeldBy, Takes, TaskRecord } from './store.ts';
import { takes } from './takes.ts';

/** A task as the view `holdfast_tasks` of both stores has it; SQLite has 0 and 1 for false and true. */
export interface TaskRow {
  readonly id: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly state: TaskState;
  readonly priority: number;
  readonly category: string | null;
  readonly needs: string | null;
  readonly key: string | null;
  readonly unique_key: string | null;
  readonly unique_while: UniqueScope | null;
  readonly payload: string;
  readonly result: string | null;
  readonly policy: string | null;
  readonly idempotent: boolean | 0 | 1;
  readonly submitted_at: number;
  readonly created_at: number;
  readonly due_at: number | null;
  readonly deadline: number | null;
  readonly ended_at: number | null;
  readonly executions: number;
  /** JSON as text, or as a value. */
  readonly charged: string | readonly Charged[] | null;
  readonly deferrals: number;
  /** Null if they cannot be read. */
  readonly recoveries: number | null;
  readonly lost_in_a_row: number;
  readonly reason: string | null;
  readonly held_by: Exclude<HeldBy, 'no_worker'> | null;
  /** When this ends by itself. */
  readonly held_until?: number | null;
  readonly worker: string | null;
  readonly running_since: number | null;
  readonly cancel_requested: boolean | 0 | 1 | null;
  readonly progress: string | null;
  readonly progress_at: number | null;
}

/** The columns of the view that a `TaskRow` has. Those for people, which cost more, are left out. */
export const TASK_COLUMNS = `id, type, queue, source, state, priority, category, needs, key, unique_key, unique_while, payload, result, policy,
  idempotent, submitted_at, created_at, due_at, deadline, ended_at, executions, charged, deferrals, recoveries, lost_in_a_row, reason,
  held_by, held_until, worker, running_since, cancel_requested, progress, progress_at`;

/** `takers`: what the workers with valid leases take. */
export function taskRecord(row: TaskRow, takers: readonly Takes[], now: number): TaskRecord {
  const unreadable: string[] = [];
  const charged =
    typeof row.charged === 'string'
      ? readStored<Charged[]>(row.charged, 'charged', unreadable, [])
      : (row.charged ?? []);
  const needs = row.needs === null ? undefined : readStored<Needs>(row.needs, 'needs', unreadable, {});
  if (row.recoveries === null) unreadable.push('recoveries');
  // A hold whose time is over is ended by the next claim.
  const until = row.held_until ?? null;
  const held = until !== null && until <= now ? null : row.held_by;
  const heldBy = held ?? (row.state === 'ready' && !isTaken(row, needs, takers) ? 'no_worker' : null);
  return {
    id: row.id,
    type: row.type,
    state: row.state,
    queue: row.queue,
    source: row.source,
    priority: row.priority,
    payload: row.payload,
    idempotent: Boolean(row.idempotent),
    submittedAt: row.submitted_at,
    createdAt: row.created_at,
    executions: row.executions,
    charged: charged.map(({ reason, kind, count }) => ({ reason, kind, count })),
    deferrals: row.deferrals,
    recoveries: row.recoveries ?? 0,
    lostInARow: row.lost_in_a_row,
    ...(row.category !== null && { category: row.category }),
    ...(needs !== undefined && { needs }),
    ...(row.key !== null && { key: row.key }),
    ...(row.unique_key !== null &&
      row.unique_while !== null && { unique: { key: row.unique_key, while: row.unique_while } }),
    ...(row.result !== null && { result: row.result }),
    ...(row.policy !== null && { policy: row.policy }),
    ...(row.progress !== null && { progress: row.progress, progressAt: row.progress_at ?? 0 }),
    ...(row.due_at !== null && (row.due_at === WHEN_GROUP_ENDS ? { waitsForGroup: true } : { dueAt: row.due_at })),
    ...(row.deadline !== null && { deadline: row.deadline }),
    ...(row.ended_at !== null && { endedAt: row.ended_at }),
    ...(row.reason !== null && { reason: row.reason }),
    ...unreadableMember(unreadable),
    ...(heldBy !== null && { heldBy }),
    ...(held !== null && until !== null && { heldFor: until - now }),
    ...(row.running_since !== null && {
      running: {
        worker: row.worker ?? 'a worker that left',
        since: row.running_since,
        cancelRequested: Boolean(row.cancel_requested),
      },
    }),
  };
}

function isTaken({ queue, type, category }: TaskRow, needs: Needs = {}, takers: readonly Takes[]): boolean {
  return takers.some((worker) => takes(worker, { queue, type, category: category ?? '', needs }));
}
