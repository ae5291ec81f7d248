import type { TaskState } from '../task.ts';

/** What a success is remembered with that came after its lease was lost, and counts. */
export const LATE_SUCCESS = 'Its lease had been lost, but nobody had begun the task again, so its success counts.';

/** What is known of a task whose lost lease now reports a success. */
export interface LostTask {
  readonly state: TaskState;
  /** The execution that was lost, and the latest one of the task. */
  readonly lost: number;
  readonly latest: number;
  /** How many executions the rounds before the present one had. */
  readonly roundBase: number;
  /** Why it is leased, if it runs. */
  readonly why: string | null;
  /** The outcome that was decided about last. */
  readonly lastOutcome: string | null;
}

/**
 * Whether a success counts although its lease was lost: nobody has begun the task since, and it waits, is being recovered, or
 * needs a person for that very loss and nobody has acted.
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
