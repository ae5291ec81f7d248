import type { Task } from '../../queue/task-view.ts';
import { isOver } from '../../task.ts';
import { EXIT } from '../exit-codes.ts';

/**
 * The exit code for tasks: 75 if one is not finished, else 4 if one or its source needs a person, else 1 if one failed,
 * else 0.
 */
export function exitOfTasks(tasks: readonly Pick<Task, 'state' | 'heldBy'>[]): number {
  const states = new Set(tasks.map(({ state }) => state));
  if (tasks.some((task) => !isOver(task.state) && task.heldBy !== 'needs_person')) return EXIT.notFinished;
  if (states.has('needs_manual') || tasks.some(({ heldBy }) => heldBy === 'needs_person')) return EXIT.needsPerson;
  return states.has('dead') || states.has('cancelled') ? EXIT.failed : EXIT.done;
}
