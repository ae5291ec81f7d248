import type { ChargedCount } from '../failure/decide.ts';
import type { ReadOptions } from '../failure/policy.ts';
import type { TaskRecord } from '../store/store.ts';
import { readStored, unreadableMember } from '../stored-json.ts';
import type { Json } from '../task.ts';
import type { TraceHeaders } from '../telemetry/tracing.ts';
import { readOwn } from '../worker/own-options.ts';

/** A task as it is in the store now. */
export interface Task<Result = Json> extends Omit<TaskRecord, Stored> {
  readonly input: Json;
  /** The result of its handler, if it succeeded. */
  readonly result?: Result;
  /** What an execution reported last with `progress()`, and when. It stays after the end, and until a later execution reports. */
  readonly progress?: Json;
  readonly progressAt?: Date;
  /** Its own policy options. */
  readonly retry?: ReadOptions;
  /** The version of its input, if it is not 1. */
  readonly inputVersion?: number;
  /** The trace of its enqueue, as W3C headers, if it was enqueued with `telemetry`. */
  readonly trace?: TraceHeaders;
  readonly submittedAt: Date;
  readonly createdAt: Date;
  /** When a scheduled task is due. */
  readonly dueAt?: Date;
  readonly deadline?: Date;
  readonly endedAt?: Date;
  /** Failures that were charged to it in this round. */
  readonly attempts: number;
  readonly attemptsByReason: readonly ChargedCount[];
  /** It was lost with its worker, and no execution has had an outcome since. */
  readonly suspect: boolean;
  readonly running?: { readonly worker: string; readonly since: Date; readonly cancelRequested: boolean };
}

/** The members that a store keeps in another form. */
type Stored =
  | 'payload'
  | 'result'
  | 'policy'
  | 'progress'
  | 'progressAt'
  | 'submittedAt'
  | 'createdAt'
  | 'dueAt'
  | 'deadline'
  | 'endedAt'
  | 'charged'
  | 'running';

/** Reads a store's record: times become dates, JSON text becomes values. */
export function taskFrom(record: TaskRecord): Task {
  const {
    payload,
    result,
    policy,
    progress,
    progressAt,
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
  const own = policy === undefined ? {} : readOwn(readStored<object>(policy, 'policy', unreadable, {}));
  return {
    ...same,
    input: readStored<Json>(payload, 'payload', unreadable, null),
    suspect: record.lostInARow > 0,
    submittedAt: new Date(submittedAt),
    createdAt: new Date(createdAt),
    attempts: charged.reduce((sum, { count }) => sum + count, 0),
    attemptsByReason: charged,
    ...(result !== undefined && { result: readStored<Json>(result, 'result', unreadable, null) }),
    ...own,
    ...(progress !== undefined && { progress: readStored<Json>(progress, 'progress', unreadable, null) }),
    ...(progressAt !== undefined && { progressAt: new Date(progressAt) }),
    ...(dueAt !== undefined && { dueAt: new Date(dueAt) }),
    ...(deadline !== undefined && { deadline: new Date(deadline) }),
    ...(endedAt !== undefined && { endedAt: new Date(endedAt) }),
    ...(running && { running: { ...running, since: new Date(running.since) } }),
    ...unreadableMember(unreadable),
  };
}
