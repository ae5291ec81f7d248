import type { RedriveSkip } from '../redrive.ts';
import { doneBy } from './done-by.ts';
import type { Known } from './readiness.ts';

type Of = Pick<Known, 'task' | 'now' | 'redrive'>;

/** What a redrive will do with a task; undefined unless it is still to put the task back. */
export function nextInRedrive({ task, redrive: found }: Of): string | undefined {
  if (found?.is !== 'waits' || !(found.redrive.filter.states as readonly string[]).includes(task.state))
    return undefined;
  const { id, state } = found.redrive;
  if (state === 'running') return `Redrive ${id} puts it back in its turn.`;
  return state === 'paused' ? `Redrive ${id} puts it back in its turn, once that is resumed.` : undefined;
}

/** Which redrive the task waits in, or why a redrive skipped it. What was put back says so in its history. */
export function redriveWords(known: Of): string | undefined {
  const { now, redrive: found } = known;
  if (!found) return undefined;
  const { redrive } = found;
  const whose = `redrive ${redrive.id} (${doneBy(redrive, redrive.startedAt, now)})`;
  if (nextInRedrive(known) !== undefined) return `it waits in ${whose}`;
  return found.why === undefined || redrive.state === 'cancelled'
    ? undefined
    : `${whose} skipped it: ${SKIPPED[found.why]}`;
}

/** Why a redrive skips tasks. */
export const SKIPPED: Readonly<Record<RedriveSkip, string>> = {
  changed: 'somebody acted on it after the redrive had started',
  missing: 'it was removed',
  unique_key: 'another task has its unique key',
  may_have_happened: 'it must not run twice, and its last execution may have had its effect',
};
