import type { Operations } from '../queue/operations.ts';
import type { Task } from '../queue/task-view.ts';
import { isAmbiguous } from '../views/task-text.ts';
import type { CommandLine } from './command-line.ts';

/** Why an action is refused, and what to do instead. */
export interface Refusal {
  readonly what: string;
  readonly why: readonly string[];
  readonly hints: readonly string[];
}

/** Why a retry of this task could do its work a second time; undefined if it could not. */
export async function duplicateRisk(
  commands: CommandLine,
  holdfast: Operations,
  task: Task,
): Promise<Refusal | undefined> {
  const { id, state } = task;
  const anyway = commands.command(`retry ${id} --accept-duplicate`);
  if (state === 'succeeded') {
    return {
      what: `#${id} has succeeded, so a retry would do it a second time`,
      why: [],
      hints: [`if that is meant: ${anyway}`],
    };
  }
  if (!isAmbiguous(task, await holdfast.history(id))) return undefined;
  return {
    what: `#${id} may have happened already, so it is not retried without a decision`,
    why: ['Running it again could do it twice.'],
    hints: [`decide: ${commands.command(`resolve ${id}`)}`, `or accept the risk: ${anyway}`],
  };
}
