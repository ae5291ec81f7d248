import type { Claimed } from '../store/store.ts';

/** An execution of which the store had not taken what became of it. Others take its task over, so it may run once more. */
export interface Unwritten {
  readonly task: number;
  readonly execution: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
}

/** What a stop or a close came to. Where the store can be reached, `unwritten` is empty. */
export interface Stopped {
  readonly unwritten: readonly Unwritten[];
}

export function unwrittenOf({ lease, type, queue, source }: Claimed): Unwritten {
  return { task: lease.task, execution: lease.execution, type, queue, source };
}
