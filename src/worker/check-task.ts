import { InvalidInputError } from '../errors.ts';
import { show } from '../show.ts';
import type { AnyTask } from './define-task.ts';

/** @throws InvalidInputError for anything but what `defineTask` returned, or a copy of it. */
export function checkTask(task: unknown, what: string): AnyTask {
  const { run, type, policy } = (typeof task === 'object' && task !== null ? task : {}) as Partial<AnyTask>;
  if (typeof run === 'function' && typeof type === 'string' && typeof policy?.version === 'string') {
    return task as AnyTask;
  }
  throw new InvalidInputError(`${what} takes what defineTask returns, got ${show(task)}.`);
}
