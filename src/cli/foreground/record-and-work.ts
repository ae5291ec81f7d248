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
import { exitOfTasks, withForeground, workHere } from './foreground.ts';
import { someoneWorks } from './workers-alive.ts';

/** For this long after it was recorded only we know that a task is to be worked now. */
const HEAD_START = '10s';

/** What a command records, and how it tells what became of it. */
export interface Errand {
  /** Of the command, which its document is named for. */
  readonly name: string;
  readonly type: string;
  readonly flags: RecordFlags;
  readonly inputs: readonly unknown[];
  /** What is recorded with an input. Asked before anything is opened too, so that a wrong flag leaves no trace. */
  readonly options: (input: unknown, now: number, ofType?: Policy) => EnqueueOptions;
  /** A worker that took it first would do it less well. Should we be gone by then, it is the worker's. */
  readonly ours: boolean;
  /** Whether the last line of a task is this command's result. Default: it is progress. */
  readonly endsOnStdout?: boolean;
  /** Refuses what could not be known before the store was open. */
  readonly check?: (holdfast: Holdfast) => Promise<void>;
  /** The exit code of what was worked here. `left`: somebody detached, or lost patience. Default: by the tasks' states. */
  readonly exitOf?: (holdfast: Holdfast, tasks: readonly Task[], left: boolean) => Promise<number>;
  /** The exit code of what was not worked here. Default: 0. */
  readonly exitUnworked?: (tasks: readonly Task[]) => number;
  /** The content of the document that `--json` prints. Default: the task and its history. */
  readonly content?: (tasks: readonly Task[]) => object;
  /** Shows, without `--json`, what came of the tasks. */
  readonly show?: (tasks: readonly Task[]) => void;
}

/** Records tasks, works them here unless they are left to a worker, tells how they ended, and answers the exit code. */
export async function recordAndWork(cli: Cli, errand: Errand): Promise<number> {
  const { flags, inputs, options } = errand;
  const timeoutMs = flags.timeout === undefined ? undefined : span(flags.timeout, '--timeout');
  for (const input of inputs) options(input, Date.now());
  return withForeground(cli, { create: true }, async (foreground) => {
    const { holdfast, departure } = foreground;
    await errand.check?.(holdfast);
    const contested = errand.ours && !flags.detach && flags.at === undefined && (await someoneWorks(holdfast));
    const { tasks, created } = await record(holdfast, errand, contested, () => {
      if (!flags.detach) departure.listen();
    });
    const [first] = tasks as [Task];
    if (!created) foundByKey(cli, first, inputs[0]);
    if (flags.detach || (!created && hasEnded(first.state))) return leave(cli, holdfast, errand, tasks, created);

    const worked = await workHere(cli, foreground, tasks, {
      timeoutMs,
      takeNow: contested && created,
      endsOnStdout: errand.endsOnStdout ?? false,
    });
    const exit = await (errand.exitOf?.(holdfast, worked.tasks, worked.left) ?? exitOfTasks(worked.tasks));
    if (cli.terminal.json)
      await print(cli, holdfast, errand, worked.tasks, { created, detached: worked.detached, exit });
    else errand.show?.(worked.tasks);
    return exit;
  });
}

/** In one turn of the event loop, so that they share their commits. Nothing is worked before all are recorded. */
async function record(
  holdfast: Holdfast,
  { type, inputs, options }: Errand,
  contested: boolean,
  whenRecorded: () => void,
): Promise<{ readonly tasks: readonly Task[]; readonly created: boolean }> {
  const { policy } = await holdfast.policyFor({ type });
  const now = holdfast.store.upkeep.now();
  const delay = contested ? { delay: HEAD_START } : {};
  const receipts = await Promise.all(
    inputs.map((input) => holdfast.enqueue<unknown>(type, input, { ...delay, ...options(input, now, policy) })),
  );
  whenRecorded();
  const tasks: Task[] = [];
  for (const { id } of receipts) tasks.push(await holdfast.get(id));
  return { tasks, created: receipts.every((receipt) => receipt.created) };
}

/** Recorded, or there already, and not worked here. */
async function leave(
  cli: Cli,
  holdfast: Holdfast,
  errand: Errand,
  tasks: readonly Task[],
  created: boolean,
): Promise<number> {
  const open = tasks.filter((task) => !hasEnded(task.state));
  const exit = errand.exitUnworked?.(tasks) ?? EXIT.done;
  if (cli.terminal.json) await print(cli, holdfast, errand, tasks, { created, detached: open.length > 0, exit });
  else for (const task of tasks) cli.terminal.result(await recordedLine(cli, holdfast, task));
  if (open.length > 0) await hintAtWorkers(cli, holdfast, open.length > 1 ? 'resume' : `resume ${open[0]?.id}`);
  return exit;
}

async function print(cli: Cli, holdfast: Holdfast, errand: Errand, tasks: readonly Task[], end: object): Promise<void> {
  const content = errand.content?.(tasks) ?? (await withHistory(holdfast, tasks[0] as Task));
  cli.terminal.document(documentOf(errand.name, { ...end, ...content }));
}

async function withHistory(holdfast: Holdfast, task: Task): Promise<object> {
  return { task: taskJson(task), history: (await holdfast.history(task.id)).map(historyJson) };
}
