import type { Operations } from '../queue/operations.ts';
import type { Task } from '../queue/task-view.ts';
import type { CommandLine } from './command-line.ts';
import { lostWorkers } from './workers-alive.ts';

/** What happens to a running task whose worker was lost, and the command if a worker must be started. Undefined for other tasks. */
export async function nextOfLost(
  commands: CommandLine,
  holdfast: Operations,
  { id, running }: Task,
): Promise<readonly string[] | undefined> {
  if (!running || !(await lostWorkers(holdfast)).has(running.worker)) return undefined;
  const { next, actions } = await holdfast.explain(id);
  const start = actions.find(({ verb }) => verb === 'work');
  return start ? [next, `${start.words}  ${commands.command('worker')}`] : [next];
}
