import type { Holdfast } from '../queue/holdfast.ts';
import type { Task } from '../queue/task-view.ts';
import type { Cli } from './cli.ts';
import { Problem } from './problem.ts';
import { visible } from './visible.ts';

/**
 * The task that a person means by `12`, `#12` or its key. A number is a number first: a key `12` is only looked for where no
 * task has it.
 * @throws Problem where there is none.
 */
export async function findTask(cli: Cli, holdfast: Holdfast, text: string): Promise<Task> {
  const id = idFrom(text);
  const task = (id === undefined ? undefined : await holdfast.find(id)) ?? (await holdfast.find(text));
  if (task) return task;
  throw await notFound(cli, holdfast, text, id);
}

/** The tasks that a person means, each once, in their order. */
export async function findTasks(cli: Cli, holdfast: Holdfast, texts: readonly string[]): Promise<Task[]> {
  const found = new Map<number, Task>();
  for (const text of texts) {
    const task = await findTask(cli, holdfast, text);
    found.set(task.id, task);
  }
  return [...found.values()];
}

/** The number in `12` or `#12`; undefined for what can only be a key. */
function idFrom(text: string): number | undefined {
  const digits = /^#?(\d{1,15})$/.exec(text)?.[1];
  return digits === undefined || Number(digits) === 0 ? undefined : Number(digits);
}

async function notFound(cli: Cli, holdfast: Holdfast, text: string, id: number | undefined): Promise<Problem> {
  const [newest] = await holdfast.list({ limit: 1 });
  const what = id === undefined ? `no task with the key ${visible(text)}` : `no task #${id}`;
  return new Problem('task_not_found', `${what} in ${visible(holdfast.describe().where)}`, {
    why: [newest ? `The newest number is ${newest.id}.` : 'The store is empty.'],
    hints: [`all of them: ${cli.command('list')}`, 'another store: --store PATH'],
  });
}
