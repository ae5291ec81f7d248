import type { Milliseconds } from './duration.ts';
import { ACTIONS } from './task.ts';

/** `stopped`: it stopped itself. `done`: all tasks were put back, and their outcomes are known. The last three are final. */
export type RedriveState = 'running' | 'paused' | 'stopped' | 'done' | 'cancelled';

/** The tasks that a redrive can put back, by state. */
export const REDRIVABLE_STATES = ACTIONS.redrive.from;
export type RedrivableState = (typeof REDRIVABLE_STATES)[number];

/**
 * Why a selected task was not put back. `changed`: somebody acted on it since. `missing`: it was removed. `unique_key`: another task
 * has its unique key. `may_have_happened`: it must not run twice, and its last execution may have had its effect.
 */
export const REDRIVE_SKIPS = ['changed', 'missing', 'unique_key', 'may_have_happened'] as const;
export type RedriveSkip = (typeof REDRIVE_SKIPS)[number];

/** The sizes of the first stages. The next stage begins when the outcomes of all tasks of the stage before are known. */
const CANARY: readonly number[] = [1, 5, 25];

/** The stages after the canary hold what the pace allows in this time, within these bounds. */
const PACED_STAGE_LASTS: Milliseconds = 5_000;
const SMALLEST_PACED_STAGE = 50;
const LARGEST_PACED_STAGE = 1_000;

/** How many tasks may be put back whose first outcome is not known yet, in stages. Beyond that the redrive waits. */
const STAGES_UNDER_WAY = 2;

/** How often outcomes are checked. */
const LOOK_EVERY: Milliseconds = 1_000;

/** Tasks that the pace allows within this time are put back together. */
export const SHORTEST_PAUSE: Milliseconds = 250;

/** How many tasks are put back in one transaction, so that other calls do not wait long. */
const MOST_AT_ONCE = 100;

/** The outcomes of the tasks of one stage. `undecided`: the first outcome is not known yet. */
export interface StageCounts {
  readonly stage: number;
  readonly putBack: number;
  readonly undecided: number;
  /**
   * The tasks whose first outcome was the same failure as before: the same reason and, if both are known, the same fingerprint.
   */
  readonly failedAgain: number;
}

/** The progress of a redrive. */
export interface RedriveProgress {
  /** Selected tasks that were neither put back nor skipped yet. */
  readonly left: number;
  readonly undecided: number;
  /** The newest stages, in any order. Empty before the first. */
  readonly stages: readonly StageCounts[];
  /** When the pace allows the next task; negative if it did already, this long ago. */
  readonly nextIn: Milliseconds;
}

/** The next step of a redrive. `nextIn`: when the pace allows the next task after these. */
export type RedriveStep =
  | { readonly do: 'wait'; readonly for: Milliseconds }
  | {
      readonly do: 'put_back';
      readonly stage: number;
      readonly count: number;
      readonly nextIn: Milliseconds;
      /** How long to wait then, so that several are put back together. */
      readonly pause: Milliseconds;
    }
  | { readonly do: 'end'; readonly state: 'stopped' | 'done'; readonly because: string };

/**
 * Decides the next step of a redrive. The stages are 1, 5 and 25 tasks, each of which waits for the one before, then larger ones
 * at the given pace. It stops if half of a stage failed again in the same way and tasks are left.
 */
export function nextStep({ left, undecided, stages, nextIn }: RedriveProgress, perSecond: number): RedriveStep {
  const failing = stages.find((one) => one.failedAgain * 2 >= sizeOf(one.stage, perSecond));
  if (failing && left > 0) return { do: 'end', state: 'stopped', because: stoppedText(failing, perSecond, left) };
  if (left === 0) {
    if (undecided > 0) return { do: 'wait', for: LOOK_EVERY };
    return { do: 'end', state: 'done', because: 'All tasks have been put back, and how each went is known.' };
  }
  const stage = stageToFill(stages, perSecond);
  const before = stages.reduce((sum, one) => (one.stage < stage ? sum + one.undecided : sum), 0);
  const room = sizeOf(stage, perSecond) - (stages.find((one) => one.stage === stage)?.putBack ?? 0);
  if (stage <= CANARY.length + 1 ? before > 0 : undecided >= STAGES_UNDER_WAY * sizeOf(stage, perSecond)) {
    return { do: 'wait', for: LOOK_EVERY };
  }
  if (nextIn > 0) return { do: 'wait', for: Math.max(nextIn, SHORTEST_PAUSE) };
  const spacing = 1_000 / perSecond;
  const most = Math.min(MOST_AT_ONCE, Math.max(1, Math.ceil(SHORTEST_PAUSE / spacing)));
  const allowed = Math.min(most, Math.floor(-nextIn / spacing) + 1);
  const count = Math.min(allowed, room, left);
  // After a pause, at most one step is put back at once.
  const next = Math.max(nextIn, -(most - 1) * spacing) + count * spacing;
  const pause = Math.min(LOOK_EVERY, Math.max(next, Math.min(SHORTEST_PAUSE, most * spacing)));
  return { do: 'put_back', stage, count, nextIn: next, pause };
}

/** How long it takes at least to put back this many tasks at this pace, without the waits for the outcomes of the canary. */
export function redriveTime(count: number, perSecond: number): Milliseconds {
  return Math.round((Math.max(0, count - 1) / perSecond) * 1_000);
}

/** How many tasks a stage holds; stages count from 1. */
function sizeOf(stage: number, perSecond: number): number {
  const paced = Math.ceil((perSecond * PACED_STAGE_LASTS) / 1_000);
  return CANARY[stage - 1] ?? Math.min(LARGEST_PACED_STAGE, Math.max(SMALLEST_PACED_STAGE, paced));
}

/** The newest stage while it has room, else the one after it. */
function stageToFill(stages: readonly StageCounts[], perSecond: number): number {
  const newest = stages.reduce((highest, { stage }) => Math.max(highest, stage), 0);
  const there = stages.find(({ stage }) => stage === newest);
  return there && there.putBack < sizeOf(newest, perSecond) ? newest : newest + 1;
}

function stoppedText({ stage, failedAgain }: StageCounts, perSecond: number, left: number): string {
  const size = sizeOf(stage, perSecond);
  const failed = size === 1 ? 'The first task' : `${failedAgain} of ${size} tasks`;
  const others = left === 1 ? 'the one that is left stays as it is' : `the ${left} that are left stay as they are`;
  return `${failed} failed again as before, so ${others}.`;
}
