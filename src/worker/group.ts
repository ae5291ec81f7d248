import { decodeJson } from '../json.ts';
import type { TaskOfGroup } from '../store/store.ts';
import type { EndedState, Json } from '../task.ts';

/** The tasks of a group, and how they ended. */
export interface Group {
  /** How many have not ended yet. */
  readonly open: number;
  readonly succeeded: number;
  readonly dead: number;
  readonly cancelled: number;
  /** In the order in which they were enqueued. */
  readonly tasks: readonly GroupTask[];
}

export interface GroupTask {
  readonly id: number;
  /** How it ended for the first time; absent: it has not. A person's retry after that does not change it. */
  readonly ended?: EndedState;
  /** Its result, if it has succeeded and the store keeps it. */
  readonly result?: Json;
}

export function groupFrom(tasks: readonly TaskOfGroup[]): Group {
  const counts = { open: 0, succeeded: 0, dead: 0, cancelled: 0 };
  for (const { ended = 'open' } of tasks) counts[ended] += 1;
  return {
    ...counts,
    tasks: tasks.map(({ result, ...task }) => ({
      ...task,
      ...(result !== undefined && { result: decodeJson(result) }),
    })),
  };
}
