import { Inspector } from '../../queue/inspect.ts';
import type { Store } from '../../store/store.ts';
import { OWN_TYPES } from '../../views/task-text.ts';
import { type Configuration, UNCONFIGURED } from '../../worker/configuration.ts';
import { type AnyTask, defineTask } from '../../worker/define-task.ts';

/** Our own types without their handlers: each has the preset of its name. */
export function ownTypes(): readonly AnyTask[] {
  const run = () => {
    throw new Error('This command works no tasks.');
  };
  return OWN_TYPES.map((type) => defineTask(type, { run }));
}

/** Answers questions about policies: those of our own types, of the configuration, and of what workers published. */
export function inspectorOf(store: Store, config: Configuration | undefined): Inspector {
  return new Inspector(store, new Map(ownTypes().map((task) => [task.type, task])), config ?? UNCONFIGURED);
}
