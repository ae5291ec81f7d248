import { formatDuration } from '../duration.ts';
import type { Task } from '../queue/task-view.ts';
import { mustRunAlone, probationOf } from '../suspects.ts';

/** How a task that was lost with its worker runs next: a few of such at a time beside others, or alone. */
export type SuspectRule = 'few_at_a_time' | 'alone';

/** The rule that may hold a waiting task because it was lost with its worker; undefined for any other task. */
export function suspectRuleOf({ state, lostInARow }: Pick<Task, 'state' | 'lostInARow'>): SuspectRule | undefined {
  if (lostInARow === 0 || (state !== 'ready' && state !== 'scheduled')) return undefined;
  return mustRunAlone(lostInARow) ? 'alone' : 'few_at_a_time';
}

/** The rule in words, to follow the name of the task. */
export function suspectWords(task: Pick<Task, 'state' | 'lostInARow'>): string | undefined {
  switch (suspectRuleOf(task)) {
    case 'alone':
      return `waits to run alone since it was lost with its worker ${timesWords(task.lostInARow)}`;
    case 'few_at_a_time':
      return 'waits for its turn among few since it was lost with its worker';
    case undefined:
      return undefined;
  }
}

/** What a worker does with such a task. */
export function suspectNext(task: Pick<Task, 'state' | 'lostInARow'>): string | undefined {
  switch (suspectRuleOf(task)) {
    case 'alone':
      return `A worker that runs nothing, or ends what it runs first, takes it, and takes nothing else for ${formatDuration(probationOf(task.lostInARow))}.`;
    case 'few_at_a_time':
      return 'A worker takes few such tasks at a time: one more for each that ends, or runs for 10 s, without taking the worker down.';
    case undefined:
      return undefined;
  }
}

function timesWords(times: number): string {
  return times === 2 ? 'twice' : `${times} times`;
}
