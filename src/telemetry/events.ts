import type { Milliseconds } from '../duration.ts';
import type { Decision } from '../failure/decide.ts';
import type { Failure, Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import type { RemovableState } from '../retention.ts';
import type { RecordedCondition } from '../source/condition.ts';
import type { RedriveRecord } from '../store/redrives.ts';
import type { ActionTaken, Claimed } from '../store/store.ts';
import type { Json, TaskState } from '../task.ts';

/** One execution of a task. */
export interface ExecutionOf {
  readonly task: number;
  readonly execution: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
}

/** What a schedule did at one or more of its times. */
export interface ScheduleTurned {
  readonly schedule: string;
  readonly type: string;
  /** The newest of these times. */
  readonly tick: number;
  /** `skipped`: the task before has not ended. `missed`: no worker was there. */
  readonly was: 'enqueued' | 'skipped' | 'missed';
  /** The tasks that were enqueued. */
  readonly tasks: readonly number[];
  /** How many other times were passed over. */
  readonly passedOver: number;
}

/** Everything that happens. Each has one line in the log, made in `log-lines.ts`. */
export type EngineEvent =
  | WorkerEvent
  /** Somebody acted on a task, in any process. */
  | { readonly kind: 'action'; readonly action: ActionTaken }
  /** Tasks were removed by age: how many of each state. */
  | { readonly kind: 'pruned'; readonly removed: Readonly<Partial<Record<RemovableState, number>>> }
  /** A redrive stopped itself, or has put all of its tasks back. */
  | {
      readonly kind: 'redrive_ended';
      readonly redrive: RedriveRecord;
      readonly state: 'stopped' | 'done';
      readonly because: string;
    }
  /** A schedule came to a time: it enqueued a task, or passed the time over. */
  | ({ readonly kind: 'schedule' } & ScheduleTurned)
  /** The worker stopped before the outcome was written. */
  | { readonly kind: 'unwritten'; readonly execution: ExecutionOf }
  /** A handler left a promise or timer behind that failed. `isLast`: later ones of this execution are not recorded. */
  | { readonly kind: 'stray'; readonly execution: ExecutionOf; readonly failure: Failure; readonly isLast: boolean }
  /** An execution changed the condition of its source. */
  | {
      readonly kind: 'source';
      readonly source: string;
      readonly change: RecordedCondition;
      /** Of the failure. */
      readonly reason?: string;
      /** How long none of its tasks starts. */
      readonly heldForMs?: Milliseconds;
      /** How many attempts of its tasks were given back. */
      readonly refunded: number;
    }
  /** The worker itself has trouble, and claims only single tasks to test. */
  | { readonly kind: 'worker_paused'; readonly reason: string; readonly message: string }
  | { readonly kind: 'worker_resumed' };

/**
 * What `onEvent` of a worker gets: each execution's start, its progress, then its settlement. Tasks that other workers lost, and tasks whose
 * deadline passed, are settled without a start.
 */
export type WorkerEvent =
  | { readonly kind: 'started'; readonly task: Claimed; readonly policy: Policy }
  /** Its handler reported how far it is. At most once a second, and always the last value. */
  | { readonly kind: 'progress'; readonly task: Claimed; readonly progress: Json }
  | {
      readonly kind: 'settled';
      readonly task: Claimed;
      readonly outcome: Outcome;
      readonly decision: Decision;
      readonly state: TaskState;
      readonly ranFor: Milliseconds;
      /** What the handler threw, as it was thrown: for programs that track errors. */
      readonly error?: unknown;
    }
  /** The lease was lost: the report is kept as evidence and did not change the task. `error` is what the handler threw. */
  | { readonly kind: 'stale'; readonly task: Claimed; readonly outcome: Outcome; readonly error?: unknown };

/** The result of one execution. */
export type Finished = Extract<WorkerEvent, { kind: 'settled' | 'stale' }>;
