import type { TaskState } from '../task.ts';

/** The note in the history of a success that counts although its lease was lost. */
export const LATE_SUCCESS = 'Its lease had been lost, but nobody had begun the task again, so its success counts.';

/** The facts about a task for which a worker with a lost lease reports a success. */
export interface LostTask {
  readonly state: TaskState;
  /** The execution that was lost, and the latest one of the task. */
  readonly lost: number;
  readonly latest: number;
  /** How many executions the rounds before the present one had. */
  readonly roundBase: number;
  /** Why it is leased, if it is. */
  readonly why: string | null;
  /** The last outcome that was decided about. */
  readonly lastOutcome: string | null;
}

/**
 * Whether a success counts although its lease was lost: the task was not started again, and it waits, is being recovered, or
 * needs a person because of this loss and nobody has acted on it.
 */
export function mayStillSucceed({ state, lost, latest, roundBase, why, lastOutcome }: LostTask): boolean {
  if (latest !== lost) return false;
  switch (state) {
    case 'running':
      return why === 'loss';
    case 'scheduled':
    case 'ready':
    case 'held':
    case 'needs_manual':
      return lastOutcome === 'loss' && roundBase < lost;
    case 'succeeded':
    case 'dead':
    case 'cancelled':
      return false;
  }
}
