import type { Claimed } from '../store/store.ts';
import type { ExecutionOf } from '../telemetry/events.ts';

/** An execution whose outcome the store had not taken. Another worker takes its task over, so it may run once more. */
export type Unwritten = ExecutionOf;

/** What a stop or a close came to. Where the store can be reached, `unwritten` is empty. */
export interface Stopped {
  readonly unwritten: readonly Unwritten[];
}

export function unwrittenOf({ lease, type, queue, source }: Claimed): Unwritten {
  return { task: lease.task, execution: lease.execution, type, queue, source };
}
