import type { Claimed } from '../store/store.ts';
import type { ExecutionOf } from '../telemetry/events.ts';

/** An execution whose outcome was not written. Another worker takes its task over, so it may run once more. */
export type Unwritten = ExecutionOf;

/** The result of a stop or a close. `unwritten` is empty if the store can be reached. */
export interface Stopped {
  readonly unwritten: readonly Unwritten[];
}

export function unwrittenOf({ lease, type, queue, source }: Claimed): Unwritten {
  return { task: lease.task, execution: lease.execution, type, queue, source };
}
