import type { RedriveProgress, RedriveSkip, RedriveState, StageCounts } from '../redrive.ts';
import type { RedriveFilter, RedriveOfTask, RedriveRecord } from './redrives.ts';

/** A redrive as the stores keep it; SQLite has 0 and 1 for false and true. */
export interface RedriveRow {
  readonly id: number;
  readonly filter: string;
  readonly actor: string;
  readonly note: string;
  readonly per_second: number;
  readonly accept_duplicate: boolean | 0 | 1;
  readonly started_at: number;
  readonly state: RedriveState;
  readonly since: number;
  readonly by_actor: string | null;
  readonly by_note: string | null;
  readonly because: string | null;
  /** The last task up to which tasks were selected; null: all are. */
  readonly selected_to: number | null;
  readonly selected: number;
  readonly put_back: number;
  readonly skipped: number;
  readonly succeeded: number;
  readonly failed_again: number;
  readonly ended_otherwise: number;
  /** The last task up to which all were put back or skipped. */
  readonly put_back_to: number;
  readonly next_at: number;
}

/** A task of a redrive. */
export interface RedriveTaskRow {
  readonly stage: number | null;
  readonly skipped: RedriveSkip | null;
  readonly at: number | null;
}

export function redriveRecord(row: RedriveRow): RedriveRecord {
  return {
    id: row.id,
    filter: JSON.parse(row.filter) as RedriveFilter,
    actor: row.actor,
    note: row.note,
    perSecond: row.per_second,
    acceptDuplicate: Boolean(row.accept_duplicate),
    startedAt: row.started_at,
    state: row.state,
    since: row.since,
    ...(row.by_actor !== null && { by: { actor: row.by_actor, ...(row.by_note !== null && { note: row.by_note }) } }),
    ...(row.because !== null && { because: row.because }),
    selecting: row.selected_to !== null,
    selected: row.selected,
    putBack: row.put_back,
    skipped: row.skipped,
    succeeded: row.succeeded,
    failedAgain: row.failed_again,
    endedOtherwise: row.ended_otherwise,
  };
}

export function redriveProgress(row: RedriveRow, stages: readonly StageCounts[], now: number): RedriveProgress {
  return {
    left: row.selected - row.put_back - row.skipped,
    undecided: undecidedOf(row),
    stages,
    nextIn: row.next_at - now,
  };
}

/** How many tasks were put back whose first outcome is not known yet. */
export function undecidedOf(row: RedriveRow): number {
  return row.put_back - row.succeeded - row.failed_again - row.ended_otherwise;
}

export function redriveOfTask(redrive: RedriveRow, { stage, skipped, at }: RedriveTaskRow): RedriveOfTask {
  return {
    redrive: redriveRecord(redrive),
    is: skipped !== null ? 'skipped' : stage === null ? 'waits' : 'put_back',
    ...(skipped !== null && { why: skipped }),
    ...(at !== null && { at }),
  };
}

/** The note about a redrive in the history of its tasks. */
export function redriveNote({ id, note }: Pick<RedriveRow, 'id' | 'note'>): string {
  return `Redrive ${id}: ${note}`;
}

/** The states in which an operator can change a redrive. */
export const REDRIVE_CHANGES = {
  paused: ['running'],
  running: ['paused'],
  cancelled: ['running', 'paused'],
} as const satisfies Partial<Record<RedriveState, readonly RedriveState[]>>;

/** How many of the newest stages are checked. */
export const STAGES_LOOKED_AT = 4;

/** How many tasks are checked in one step of a selection. */
export const SELECTED_AT_ONCE = 1_000;

/** How many tasks one step may skip. */
export const SKIPPED_AT_ONCE = 200;

/** How long a redrive is listed after it ended. */
export const LISTED_FOR_MS = 30 * 24 * 3_600_000;
