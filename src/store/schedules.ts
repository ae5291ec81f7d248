import type { Milliseconds } from '../duration.ts';
import type { By, NewTask, Receipt } from './new-task.ts';

/** Where a schedule was defined. Only a program that reads the same file may say that the file has it no more. */
export type ScheduleOrigin = { readonly by: 'code' } | { readonly by: 'file'; readonly file: string };

export interface NewSchedule {
  readonly name: string;
  /** JSON that the store does not read: when it fires, and what it enqueues. */
  readonly definition: string;
  readonly origin: ScheduleOrigin;
  /** Its progress if it is new or its definition has changed, as JSON that the store does not read. */
  readonly progress: string;
  readonly lookAt: number | undefined;
}

export interface ScheduleRecord extends Omit<NewSchedule, 'lookAt'> {
  /** Grows with each change and turn. */
  readonly revision: number;
  /** When a worker looks at it next. Absent: never, or it is paused. 0: the clock was reset, so its next time is to be found anew. */
  readonly lookAt?: number;
  readonly paused?: By & { readonly at: number };
  /** The newest task that it enqueued. */
  readonly lastTask?: number;
  readonly createdAt: number;
}

/** A step of a schedule. It counts only if nobody has changed the schedule or taken the step meanwhile. */
export interface ScheduleTurn {
  readonly name: string;
  readonly revision: number;
  readonly tasks: readonly NewTask[];
  readonly step: ScheduleStep;
  /** Used instead if a task was not recorded, because its key or unique key was taken. */
  readonly otherwise?: ScheduleStep;
}

export interface ScheduleStep {
  readonly progress: string;
  readonly lookAt: number | undefined;
}

/** Schedules: definitions of tasks that are enqueued by the clock. A worker decides what is due; the store keeps it. */
export interface ScheduleStore {
  /**
   * Records a schedule, or replaces its definition. A pause stays. `expected` is the revision that it has, 0 for none. False: it has
   * another one now, so nothing was written.
   */
  define(schedule: NewSchedule, expected: number): Promise<boolean>;
  /** False if there is none. Its tasks stay. */
  remove(name: string): Promise<boolean>;
  find(name: string): Promise<ScheduleRecord | undefined>;
  /** By name. */
  list(): Promise<readonly ScheduleRecord[]>;
  /** Keeps who paused it first. False if there is none. */
  pause(name: string, by: By): Promise<boolean>;
  /** Ends a pause, with this step. False if it has another revision or is not paused. */
  resume(name: string, revision: number, step: ScheduleStep): Promise<boolean>;
  /** The schedules to look at now, a bounded number, and when the next one is due. Reads only. */
  due(): Promise<{ readonly schedules: readonly ScheduleRecord[]; readonly nextIn?: Milliseconds }>;
  /**
   * Takes a step: enqueues its tasks and writes the progress, in one transaction. Undefined: the schedule has another revision or
   * is paused, so nothing was written.
   */
  turn(turn: ScheduleTurn): Promise<readonly Receipt[] | undefined>;
}
