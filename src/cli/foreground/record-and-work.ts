import { someoneWorks } from '../../documents/workers-alive.ts';
import type { Policy } from '../../failure/policy.ts';
import type { EnqueueOptions } from '../../queue/enqueue.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import type { Task } from '../../queue/task-view.ts';
import { hasEnded } from '../../task.ts';
import { documentOf, historyJson, taskJson } from '../../views/json-shapes.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { span } from '../flags/moment.ts';
import { foundByKey, hintAtWorkers, type RecordFlags, recordedLine } from '../flags/record-flags.ts';
import type { WholeAnswer } from '../output/whole-answer.ts';
import { exitOfTasks } from './exit-of-tasks.ts';
import { withForeground, workHere } from './foreground.ts';

/** Tasks that this process will run itself are recorded as due this much later, so that no other worker claims them first. */
const HEAD_START = '10s';

/** What a command records, and how it shows the outcome. */
export interface WorkToRecord {
  /** The command's name, for its JSON document. */
  readonly name: string;
  readonly type: string;
  readonly flags: RecordFlags;
  readonly inputs: readonly unknown[];
  /** The options of a task. Also called before the store is opened, so that a wrong flag does not create a store. */
  readonly options: (input: unknown, now: number, ofType?: Policy) => EnqueueOptions;
  /** Whether this process should work the tasks rather than another worker. If it ends early, a worker takes them. */
  readonly preferHere: boolean;
  /** Whether the last line of a task is this command's result. Default: it is progress. */
  readonly endsOnStdout?: boolean;
  /** Refuses what can only be checked with an open store. */
  readonly check?: (holdfast: Holdfast) => Promise<void>;
  /** The exit code for tasks that ran here, or had ended before. Default: by their states. */
  readonly exitOf?: (holdfast: Holdfast, tasks: readonly Task[], interrupted: boolean) => Promise<number>;
  /** The content of the document that `--json` prints. Default: the task and its history. */
  readonly content?: (tasks: readonly Task[]) => object;
  /** Shows the results of the tasks, without `--json`. */
  readonly show?: (tasks: readonly Task[]) => void | Promise<void>;
  /** Stores the whole body of a response that is received here. */
  readonly answer?: WholeAnswer | undefined;
}

/** Records tasks, runs them here unless `--detach` leaves them to a worker, shows how they ended, and returns the exit code. */
export async function recordAndWork(cli: Cli, work: WorkToRecord): Promise<number> {
  const { flags, inputs, options } = work;
  const timeoutMs = flags.timeout === undefined ? undefined : span(flags.timeout, '--timeout');
  for (const input of inputs) options(input, Date.now());
  const { answer } = work;
  return withForeground(cli, { create: true, ...(answer && { answer }) }, async (foreground) => {
    const { holdfast, detacher } = foreground;
    await work.check?.(holdfast);
    const contested = work.preferHere && !flags.detach && flags.at === undefined && (await someoneWorks(holdfast));
    const { tasks, created } = await record(holdfast, work, contested, () => {
      if (!flags.detach) detacher.listen();
    });
    const [first] = tasks as [Task];
    if (!created) foundByKey(cli, first, inputs[0], flags);
    if (flags.detach || (!created && hasEnded(first.state))) return endUnworked(cli, holdfast, work, tasks, created);

    const worked = await workHere(cli, foreground, tasks, {
      timeoutMs,
      takeNow: contested && created,
      endsOnStdout: work.endsOnStdout ?? false,
    });
    const exit = await (work.exitOf?.(holdfast, worked.tasks, worked.interrupted) ?? exitOfTasks(worked.tasks));
    if (cli.terminal.json) await print(cli, holdfast, work, worked.tasks, { created, detached: worked.detached, exit });
    else await work.show?.(worked.tasks);
    return exit;
  });
}

/** Enqueues all in one turn of the event loop, so that they share commits. None runs before all are recorded. */
async function record(
  holdfast: Holdfast,
  { type, inputs, options }: WorkToRecord,
  contested: boolean,
  whenRecorded: () => void,
): Promise<{ readonly tasks: readonly Task[]; readonly created: boolean }> {
  const { policy } = await holdfast.policyFor({ type });
  const now = holdfast.now();
  const delay = contested ? { delay: HEAD_START } : {};
  const receipts = await Promise.all(
    inputs.map((input) => holdfast.enqueue<unknown>(type, input, { ...delay, ...options(input, now, policy) })),
  );
  whenRecorded();
  const tasks: Task[] = [];
  for (const { id } of receipts) tasks.push(await holdfast.get(id));
  return { tasks, created: receipts.every((receipt) => receipt.created) };
}

/** Reports tasks that are recorded, now or earlier, and do not run here. */
async function endUnworked(
  cli: Cli,
  holdfast: Holdfast,
  work: WorkToRecord,
  tasks: readonly Task[],
  created: boolean,
): Promise<number> {
  const open = tasks.filter((task) => !hasEnded(task.state));
  const exit = open.length > 0 ? EXIT.done : await (work.exitOf?.(holdfast, tasks, false) ?? exitOfTasks(tasks));
  if (cli.terminal.json) await print(cli, holdfast, work, tasks, { created, detached: open.length > 0, exit });
  else for (const task of tasks) cli.terminal.result(await recordedLine(cli, holdfast, task));
  if (open.length > 0) await hintAtWorkers(cli, holdfast, open.length > 1 ? 'resume' : `resume ${open[0]?.id}`, open);
  return exit;
}

async function print(
  cli: Cli,
  holdfast: Holdfast,
  work: WorkToRecord,
  tasks: readonly Task[],
  end: object,
): Promise<void> {
  const content = work.content?.(tasks) ?? (await withHistory(holdfast, tasks[0] as Task));
  cli.terminal.document(documentOf(work.name, { ...end, ...content }));
}

async function withHistory(holdfast: Holdfast, task: Task): Promise<object> {
  return { task: taskJson(task), history: (await holdfast.history(task.id)).map(historyJson) };
}
