import type { Milliseconds } from './duration.ts';
import { OVER_STATES } from './task.ts';

/** How often exactly one worker removes old tasks. */
export const PRUNE_EVERY: Milliseconds = 3_600_000;

/** The states in which a task can be removed. `needs_manual` has not ended, so its tasks are removed only if it is named. */
export const REMOVABLE_STATES = OVER_STATES;
export type RemovableState = (typeof REMOVABLE_STATES)[number];

/** How long a task is kept after it has ended. */
export type KeepFor = Milliseconds | 'never';

/**
 * When tasks are removed, by state: `never`, or this long after their end. Within a state, the time of the reason (`fs.locked`)
 * wins over that of its family (`fs.*`), and that over `default`.
 */
export type Retention = Readonly<Record<RemovableState, Readonly<Record<string, KeepFor>>>>;

/** How long a task with this state and reason is kept. */
export function keepFor(retention: Retention, state: RemovableState, reason: string | undefined): KeepFor {
  const said = retention[state];
  const names = reason === undefined ? ['default'] : [reason, `${reason.split('.', 1)[0]}.*`, 'default'];
  const name = names.find((each) => Object.hasOwn(said, each));
  return name === undefined ? 'never' : (said[name] as KeepFor);
}

/** The shortest time for which any task is kept; `never` if none is removed. */
export function shortestOf(retention: Retention): KeepFor {
  const all = REMOVABLE_STATES.flatMap((state) => Object.values(retention[state]));
  return all.reduce<KeepFor>((a, b) => (a === 'never' || (b !== 'never' && b < a) ? b : a), 'never');
}
