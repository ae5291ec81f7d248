import type { Milliseconds } from './duration.ts';
import type { TaskState } from './task.ts';

/** The states in which a task may be removed. `needs_manual` has not ended: such a task goes only where it is named. */
export const REMOVABLE_STATES = [
  'succeeded',
  'dead',
  'cancelled',
  'needs_manual',
] as const satisfies readonly TaskState[];
export type RemovableState = (typeof REMOVABLE_STATES)[number];

/** How long a task is kept after it came to rest. */
export type KeepFor = Milliseconds | 'never';

/**
 * When tasks are removed, by state: `never`, or so long after they came to rest. In a state it goes by the reason (`fs.locked`)
 * if that is named, else by its family (`fs.*`), else by `default`.
 */
export type Retention = Readonly<Record<RemovableState, Readonly<Record<string, KeepFor>>>>;

/** How long a task in this state is kept that came to rest for this reason. */
export function keepFor(retention: Retention, state: RemovableState, reason: string | undefined): KeepFor {
  const said = retention[state];
  const names = reason === undefined ? ['default'] : [reason, `${reason.split('.', 1)[0]}.*`, 'default'];
  const name = names.find((each) => Object.hasOwn(said, each));
  return name === undefined ? 'never' : (said[name] as KeepFor);
}

/** The shortest time that any task is kept; `never` where none is removed. */
export function shortestOf(retention: Retention): KeepFor {
  const all = REMOVABLE_STATES.flatMap((state) => Object.values(retention[state]));
  return all.reduce<KeepFor>((a, b) => (a === 'never' || (b !== 'never' && b < a) ? b : a), 'never');
}
