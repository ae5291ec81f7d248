import type { Milliseconds } from '../duration.ts';
import type { TaskState } from '../task.ts';
import type { By } from './new-task.ts';

/** An action of a person on a task. */
export interface ActRecord extends By {
  readonly id: number;
  readonly task: number;
  readonly at: number;
  readonly verb: string;
  readonly from: TaskState | 'elsewhere';
  readonly to: TaskState;
}

/** How many settlements have a key. */
export interface Counted {
  readonly countedAs: string;
  readonly count: number;
}

/** How many settlements have a key, by the periods of one length. A key is there once for each length. */
export interface CountedPeriods extends Counted {
  readonly span: Milliseconds;
  /** The beginnings of the periods, and the counts of each. */
  readonly at: readonly number[];
  readonly counted: readonly number[];
}

/** Which scheduled tasks are looked at, the next one first. */
export interface DueQuestion {
  readonly from: number;
  /** Not included. */
  readonly until: number;
  readonly span: Milliseconds;
  /** How many are counted at most, and of how many of these type, source and reason are read. */
  readonly mostCounted: number;
  readonly mostRead: number;
}

/** What falls due in a time. */
export interface FallingDue {
  /** By the number of the span in which they fall due, from 0. */
  readonly counts: readonly { readonly span: number; readonly count: number }[];
  /** Of the first ones. Without a reason: they have not failed yet. */
  readonly kinds: readonly {
    readonly span: number;
    readonly type: string;
    readonly source: string;
    readonly reason: string | null;
    readonly count: number;
  }[];
}

/** An action as both stores read it. */
export interface ActRow extends Omit<ActRecord, 'note'> {
  readonly note: string | null;
}

export function actRecord({ note, ...row }: ActRow): ActRecord {
  return { ...row, ...(note !== null && { note }) };
}
