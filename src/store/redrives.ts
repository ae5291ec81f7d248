import type { Milliseconds } from '../duration.ts';
import type { RedrivableState, RedriveProgress, RedriveSkip, RedriveState } from '../redrive.ts';

/** Which tasks a redrive puts back. What is left out excludes nothing. */
export interface RedriveFilter {
  readonly states: readonly RedrivableState[];
  readonly types?: readonly string[];
  readonly queues?: readonly string[];
  readonly sources?: readonly string[];
  /** A task's last decision had one of these reasons, or one of these families, such as `fs` for `fs.locked`. */
  readonly reasons?: readonly string[];
  readonly families?: readonly string[];
  /** Of the last failure. */
  readonly fingerprints?: readonly string[];
  /** When the task ended, or began to wait for a person: in milliseconds of the epoch, the first included, the last not. */
  readonly endedFrom?: number;
  readonly endedBefore?: number;
}

export interface NewRedrive {
  readonly filter: RedriveFilter;
  readonly actor: string;
  readonly note: string;
  readonly perSecond: number;
  /** Whether it also puts back tasks that must not run twice and whose last execution may have had its effect. */
  readonly acceptDuplicate: boolean;
}

/** A redrive: what it is to put back, and how far it is. */
export interface RedriveRecord extends NewRedrive {
  readonly id: number;
  readonly startedAt: number;
  readonly state: RedriveState;
  /** Since when it is in this state, and whose action that was; nobody's where it ended by itself. */
  readonly since: number;
  readonly by?: { readonly actor: string; readonly note?: string };
  /** Why it ended by itself. */
  readonly because?: string;
  /** Its tasks are still being selected. */
  readonly selecting: boolean;
  readonly selected: number;
  readonly putBack: number;
  readonly skipped: number;
  /** Of those that were put back, by their first outcome since then. */
  readonly succeeded: number;
  readonly failedAgain: number;
  readonly endedOtherwise: number;
}

/** What a redrive with this filter would find among some of the tasks. */
export interface RedrivePreview {
  readonly matches: number;
  /** Of those, how many may have had their effect in their last execution. */
  readonly mayHaveHappened: number;
  /** Of those, how many must not run twice. */
  readonly mustNotRunTwice: number;
  /** Where to go on; absent when all were looked at. */
  readonly next?: number;
}

/** The redrive that has a task, and what became of the task in it. The newest one, if several had it. */
export interface RedriveOfTask {
  readonly redrive: RedriveRecord;
  /** `waits`: it is selected and was not put back yet. That counts only while the redrive runs or is paused. */
  readonly is: 'waits' | 'put_back' | 'skipped';
  readonly why?: RedriveSkip;
  readonly at?: number;
}

/**
 * Redrives: ended tasks that are put back in stages. The store selects, puts back and counts. What happens next is decided by
 * `nextStep`, in the one process that has claimed a redrive.
 */
export interface RedriveStore {
  /** Records a redrive of the tasks that have ended by now. They are selected by `select`. */
  start(redrive: NewRedrive): Promise<number>;
  /** Selects some more of its tasks. True where there may be more. Any process may do so, several at once too. */
  select(id: number): Promise<boolean>;
  /** Counts what a filter would select among some of the tasks, after this one. Reads only. */
  preview(filter: RedriveFilter, after?: number): Promise<RedrivePreview>;
  find(id: number): Promise<RedriveRecord | undefined>;
  /** The newest first. */
  list(limit: number): Promise<readonly RedriveRecord[]>;
  /** How many of its tasks were skipped, by why. */
  skips(id: number): Promise<Readonly<Partial<Record<RedriveSkip, number>>>>;
  ofTask(task: number): Promise<RedriveOfTask | undefined>;
  /** Pauses, resumes or cancels. False where its state does not allow it: what runs can be paused, what is paused can go on, and both cancelled. */
  change(
    id: number,
    to: 'paused' | 'running' | 'cancelled',
    by: { readonly actor: string; readonly note?: string },
  ): Promise<boolean>;

  /** The redrives that run and that this process has claimed, or that nobody has. Reads only. */
  open(driver: string): Promise<readonly number[]>;
  /**
   * Claims a redrive, or extends the claim, and records how its tasks went. Undefined where it does not run, or another process
   * has it.
   */
  advance(
    id: number,
    driver: string,
    claimFor: Milliseconds,
  ): Promise<{ readonly record: RedriveRecord; readonly progress: RedriveProgress } | undefined>;
  /**
   * Puts the next `count` tasks back, as a stage's: ready now, in a new round. Tasks that cannot be put back are skipped. `nextIn`:
   * when the pace allows the next one. Nothing happens unless the redrive runs and is this process's.
   */
  putBack(
    id: number,
    driver: string,
    step: { readonly stage: number; readonly count: number; readonly nextIn: Milliseconds },
  ): Promise<void>;
  /** Ends a redrive. False unless it runs and is this process's. */
  end(id: number, driver: string, state: 'stopped' | 'done', because: string): Promise<boolean>;
  /** Gives up what this process has claimed. */
  release(driver: string): Promise<void>;
}
