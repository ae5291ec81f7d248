import type { Task } from '../queue/task-view.ts';
import { SHELL_COMMAND } from '../views/task-text.ts';
import { rfc3339 } from '../views/times.ts';

export type Stream = 'stdout' | 'stderr';

/** Something that an execution printed, and when. */
export interface Printed {
  readonly execution: number;
  readonly stream: Stream;
  /** In milliseconds of the epoch. */
  readonly at: number;
  readonly text: string;
}

/** What is kept of the output of a task's commands. */
export interface Output {
  readonly pieces: readonly Printed[];
  /** Whether nothing of it was lost. */
  readonly complete: boolean;
}

/** The content of `holdfast logs ID --json`. */
export function logsContent({ id, state }: Task, exit: number, { pieces, complete }: Output): object {
  const items = pieces.map(({ execution, stream, at, text }) => ({ execution, stream, at: rfc3339(at), text }));
  return { exit, task: id, state, complete, items };
}

/** The output in the result of a success: its end, for where there is no other. */
export function outputInResult({ type, result, executions: execution, endedAt }: Task): readonly Printed[] {
  const { stdout } = Object(result) as { stdout?: unknown };
  if (type !== SHELL_COMMAND || typeof stdout !== 'string' || stdout === '') return [];
  return [{ execution, stream: 'stdout', at: endedAt?.getTime() ?? 0, text: stdout }];
}

/** The last pieces with at most so many characters; the first of them may be cut. */
export function endOfOutput({ pieces, complete }: Output, most: number): Output {
  const kept: Printed[] = [];
  let room = most;
  for (const piece of pieces.toReversed()) {
    if (room === 0) return { pieces: kept.reverse(), complete: false };
    const text = piece.text.slice(-room);
    room -= text.length;
    kept.push({ ...piece, text });
    if (text.length < piece.text.length) return { pieces: kept.reverse(), complete: false };
  }
  return { pieces: kept.reverse(), complete };
}
