import type { Milliseconds } from '../duration.ts';
import type { ChargedCount } from '../failure/decide.ts';
import type { ReadOptions } from '../failure/policy.ts';
import type { HeldBy, TaskRecord, Unique } from '../store/store.ts';
import { readStored, unreadableMember } from '../stored-json.ts';
import type { Json, Needs, TaskState } from '../task.ts';

/** A task as it is in the store now. */
export interface Task {
  readonly id: number;
  readonly type: string;
  readonly state: TaskState;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category?: string;
  readonly needs?: Needs;
  readonly key?: string;
  readonly unique?: Unique;
  readonly input: Json;
  /** The result of its handler, if it succeeded. */
  readonly result?: Json;
  /** Its own policy options. */
  readonly retry?: ReadOptions;
  readonly idempotent: boolean;
  readonly submittedAt: Date;
  readonly createdAt: Date;
  /** When a scheduled task is due. */
  readonly dueAt?: Date;
  readonly deadline?: Date;
  readonly endedAt?: Date;
  /** How often its handler was started, over all rounds. */
  readonly executions: number;
  /** Failures that were charged to it in this round. */
  readonly attempts: number;
  readonly attemptsByReason: readonly ChargedCount[];
  readonly deferrals: number;
  readonly recoveries: number;
  /** It was lost with its worker, and no execution has had an outcome since. */
  readonly suspect: boolean;
  /** How many of its last executions were lost with their workers. From 2 on it runs alone. */
  readonly lostInARow: number;
  /** The reason of its last decision. */
  readonly reason?: string;
  /**
   * The damaged columns of its row, which are not JSON. They are null, empty or absent here. Such a task is not run; it needs a
   * person.
   */
  readonly unreadable?: readonly string[];
  /** For a ready task that cannot start: what holds it. */
  readonly heldBy?: HeldBy;
  /** How long until this ends by itself, if it is known. */
  readonly heldFor?: Milliseconds;
  readonly running?: { readonly worker: string; readonly since: Date; readonly cancelRequested: boolean };
}

/** Reads a store's record: times become dates, JSON text becomes values. */
export function taskFrom(record: TaskRecord): Task {
  const {
    payload,
    result,
    policy,
    unreadable: unread = [],
    submittedAt,
    createdAt,
    dueAt,
    deadline,
    endedAt,
    charged,
    running,
    ...same
  } = record;
  const unreadable = [...unread];
  const retry =
    policy === undefined ? undefined : readStored<ReadOptions | undefined>(policy, 'policy', unreadable, undefined);
  return {
    ...same,
    input: readStored<Json>(payload, 'payload', unreadable, null),
    suspect: record.lostInARow > 0,
    submittedAt: new Date(submittedAt),
    createdAt: new Date(createdAt),
    attempts: charged.reduce((sum, { count }) => sum + count, 0),
    attemptsByReason: charged,
    ...(result !== undefined && { result: readStored<Json>(result, 'result', unreadable, null) }),
    ...(retry && { retry }),
    ...(dueAt !== undefined && { dueAt: new Date(dueAt) }),
    ...(deadline !== undefined && { deadline: new Date(deadline) }),
    ...(endedAt !== undefined && { endedAt: new Date(endedAt) }),
    ...(running && { running: { ...running, since: new Date(running.since) } }),
    ...unreadableMember(unreadable),
  };
}
