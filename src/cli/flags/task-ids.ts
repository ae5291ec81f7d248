import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { Problem, usage } from '../problem.ts';

/**
 * The task that a person means by `12`, `#12`, its key or `key:KEY`. `#12` is always a number, and `key:12` always a key. Digits
 * that begin with a zero, as in `0012`, are a key.
 * @throws Problem if there is none, or if `12` is the number of one task and the key of another.
 */
export async function findTask(cli: Cli, holdfast: Operations, text: string): Promise<Task> {
  const id = idFrom(text);
  const byId = id === undefined ? undefined : await holdfast.find(id);
  if (byId && text.startsWith('#')) return byId;
  const byKey = (await keyed(holdfast, text)) ?? (await holdfast.find(text));
  if (byId && byKey && byId.id !== byKey.id) throw ambiguous(text, byId, byKey);
  const task = byId ?? byKey;
  if (task) return task;
  throw await notFound(cli, holdfast, text, id);
}

/** The task that is meant by `key:KEY`. */
async function keyed(holdfast: Operations, text: string): Promise<Task | undefined> {
  return text.startsWith(KEY) && text.length > KEY.length ? holdfast.find(text.slice(KEY.length)) : undefined;
}

const KEY = 'key:';

function ambiguous(text: string, byId: Task, byKey: Task): Problem {
  return usage(`${text} is the number of task #${byId.id} and the key of task #${byKey.id}, so nothing was done`, {
    hints: [`the task with this number: '#${text}'`, `the task with this key: ${KEY}${text}`],
  });
}

/** The tasks that a person means, each once, in their order. */
export async function findTasks(cli: Cli, holdfast: Operations, texts: readonly string[]): Promise<Task[]> {
  const found = new Map<number, Task>();
  for (const text of texts) {
    const task = await findTask(cli, holdfast, text);
    found.set(task.id, task);
  }
  return [...found.values()];
}

/** The number in `12` or `#12`; undefined for any other text, which can only be a key. */
function idFrom(text: string): number | undefined {
  const digits = /^#?([1-9]\d{0,14})$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

async function notFound(cli: Cli, holdfast: Operations, text: string, id: number | undefined): Promise<Problem> {
  const [newest] = await holdfast.list({ limit: 1 });
  const what = id === undefined ? `no task with the key ${visible(text)}` : `no task #${id}`;
  return new Problem('task_not_found', `${what} in ${visible(holdfast.describe().where)}`, {
    why: [newest ? `The newest number is ${newest.id}.` : 'The store is empty.'],
    hints: [`all of them: ${cli.command('list')}`, 'another store: --store PATH'],
  });
}
