import type { Milliseconds } from '../duration.ts';
import type { Needs, TaskState, UniqueConflict, UniqueScope } from '../task.ts';

export interface NewTask {
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category?: string;
  readonly needs?: Needs;
  readonly payload: string;
  /** Absent if the process that enqueues has no definition of the type: then the worker's definition says it. */
  readonly idempotent?: boolean;
  readonly key?: string;
  readonly unique?: NewUnique;
  /** This task's own options, as `ownText` of the worker writes them. */
  readonly policy?: string;
  /** Due this long after the store's now; 0 is at once. */
  readonly delay: Milliseconds;
  /** Times given by a person or another system, in milliseconds since 1970. */
  readonly dueAt?: number;
  readonly submittedAt?: number;
  readonly deadline?: number;
  /**
   * It is the follow-up of a group: the tasks directly before it in the call, this many. Its `dueAt` is `WHEN_GROUP_ENDS`. It is due
   * when each of them that this call creates has ended once.
   */
  readonly groupOf?: number;
}

/** The due time of a task that waits until its group has ended. No person asks for this time: it is in the year 275760. */
export const WHEN_GROUP_ENDS = 8_639_999_999_999_999;

/** A key that only one task of a type has at a time. */
export interface Unique {
  readonly key: string;
  /** How long the task has it: until it has ended, or until it starts. */
  readonly while: UniqueScope;
}

interface NewUnique extends Unique {
  readonly onConflict: UniqueConflict;
  /** The task has its key for at least this long after its enqueue, also when it has ended or started. */
  readonly for?: Milliseconds;
}

export interface Receipt {
  readonly id: number;
  /** False if a task with this key or unique key existed before. Then the id is that of the existing task. */
  readonly created: boolean;
  /** The input was merged into that of the existing task. */
  readonly merged?: true;
  /** The task with the same unique key that waited, and was cancelled in favour of this one. */
  readonly replaced?: number;
  /** The state of the existing task just after the call. An import does not look it up. */
  readonly state?: TaskState;
}

/** Who did it, and why. */
export interface By {
  readonly actor: string;
  readonly note?: string;
}
