import type { Milliseconds } from '../duration.ts';
import type { TaskFilter } from '../filter.ts';
import type { RedrivableState, RedriveProgress, RedriveSkip, RedriveState } from '../redrive.ts';

/** Which tasks a redrive puts back. */
export interface RedriveFilter extends TaskFilter {
  readonly states: readonly RedrivableState[];
}

export interface NewRedrive {
  readonly filter: RedriveFilter;
  readonly actor: string;
  readonly note: string;
  readonly perSecond: number;
  /** Whether it also puts back tasks that must not run twice and whose last execution may have had its effect. */
  readonly acceptDuplicate: boolean;
}

/** A redrive: what it puts back, and its progress. */
export interface RedriveRecord extends NewRedrive {
  readonly id: number;
  readonly startedAt: number;
  readonly state: RedriveState;
  /** Since when it is in this state, and who put it into this state; absent if it ended by itself. */
  readonly since: number;
  readonly by?: { readonly actor: string; readonly note?: string };
  /** Why it ended by itself. */
  readonly because?: string;
  /** Its tasks are still being selected. */
  readonly selecting: boolean;
  readonly selected: number;
  readonly putBack: number;
  readonly skipped: number;
  /** The tasks that were put back, by their first outcome since then. */
  readonly succeeded: number;
  readonly failedAgain: number;
  readonly endedOtherwise: number;
}

/** What a redrive with this filter would select in one slice of the tasks. */
export interface RedrivePreview {
  readonly matches: number;
  /** How many of them may have had their effect in their last execution. */
  readonly mayHaveHappened: number;
  /** How many of the latter must not run twice. */
  readonly mustNotRunTwice: number;
  /** The id after which to continue; absent when all tasks were checked. */
  readonly next?: number;
}

/** The newest redrive that selected a task, and its outcome for this task. */
export interface RedriveOfTask {
  readonly redrive: RedriveRecord;
  /** `waits`: it is selected and was not put back yet. That counts only while the redrive runs or is paused. */
  readonly is: 'waits' | 'put_back' | 'skipped';
  readonly why?: RedriveSkip;
  readonly at?: number;
}

/**
 * Redrives: ended tasks that are put back in stages. The store selects, puts back and counts. `nextStep` decides the next step,
 * in the one process that has claimed the redrive.
 */
export interface RedriveStore {
  /** Records a redrive of the tasks that have ended by now. They are selected by `select`. */
  start(redrive: NewRedrive): Promise<number>;
  /** Selects some more of its tasks. True if there may be more. Several processes may do this at the same time. */
  select(id: number): Promise<boolean>;
  /** Counts what a filter would select in the slice of tasks after this one. Reads only. */
  preview(filter: RedriveFilter, after?: number): Promise<RedrivePreview>;
  find(id: number): Promise<RedriveRecord | undefined>;
  /** The newest first. */
  list(limit: number): Promise<readonly RedriveRecord[]>;
  /** How many of its tasks were skipped, by the cause. */
  skips(id: number): Promise<Readonly<Partial<Record<RedriveSkip, number>>>>;
  ofTask(task: number): Promise<RedriveOfTask | undefined>;
  /**
   * Pauses, resumes or cancels a redrive. False if its state does not allow it: a running one can be paused, a paused one can be
   * resumed, and both can be cancelled.
   */
  change(
    id: number,
    to: 'paused' | 'running' | 'cancelled',
    by: { readonly actor: string; readonly note?: string },
  ): Promise<boolean>;

  /** The running redrives that this process has claimed, or that no process has claimed. Reads only. */
  open(driver: string): Promise<readonly number[]>;
  /**
   * Claims a redrive, or extends the claim, and records the outcomes of its tasks. Undefined if it does not run, or another
   * process has it.
   */
  advance(
    id: number,
    driver: string,
    claimFor: Milliseconds,
  ): Promise<{ readonly record: RedriveRecord; readonly progress: RedriveProgress } | undefined>;
  /**
   * Puts the next `count` tasks back as part of a stage: ready now, in a new round. Tasks that cannot be put back are skipped.
   * `nextIn`: when the pace allows the next one. Does nothing unless the redrive runs and this process has it.
   */
  putBack(
    id: number,
    driver: string,
    step: { readonly stage: number; readonly count: number; readonly nextIn: Milliseconds },
  ): Promise<void>;
  /** Ends a redrive. False unless it runs and this process has it. */
  end(id: number, driver: string, state: 'stopped' | 'done', because: string): Promise<boolean>;
  /** Gives up all redrives that this process has claimed. */
  release(driver: string): Promise<void>;
}
