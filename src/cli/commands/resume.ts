import type { Command } from 'commander';
import { missingWorkers } from '../../documents/workers-alive.ts';
import { StateConflictError } from '../../errors.ts';
import { isFilter } from '../../filter.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import type { Task } from '../../queue/task-view.ts';
import { documentOf, taskJson } from '../../views/json-shapes.ts';
import { isOwnType, OWN_TYPES, OWN_TYPES_TEXT } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { FILTER_HELP, filterFrom } from '../flags/filter.ts';
import { span } from '../flags/moment.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { findTask, findTasks } from '../flags/task-ids.ts';
import { exitOfTasks } from '../foreground/exit-of-tasks.ts';
import { type Foreground, type Worked, withForeground, workHere } from '../foreground/foreground.ts';
import { NextOfRedrives } from '../foreground/next-of-redrives.ts';
import { unfinished } from '../foreground/unfinished.ts';
import { Problem } from '../problem.ts';

interface Flags {
  readonly now?: boolean;
  readonly concurrency?: string;
  readonly timeout?: string;
}

/** More tasks than this are left to `holdfast worker`, which does not claim each by its number. */
const MOST = 1_000;

export function declare(command: Command): void {
  command
    .argument('[ids|filter...]')
    .option('--now', 'make waiting tasks due at once')
    .option('--concurrency <number>', 'how many at a time (default: 1)')
    .option('--timeout <duration>', 'wait so long, then detach; the tasks stay')
    .addHelpText(
      'after',
      `\nWithout IDs it also works the tasks that a running redrive puts back meanwhile, and ends with the redrive.\n${FILTER_HELP}`,
    );
  act<Flags>(command, resume);
}

async function resume(cli: Cli, ids: readonly string[], flags: Flags): Promise<number> {
  const timeoutMs = flags.timeout === undefined ? undefined : span(flags.timeout, '--timeout');
  const concurrency =
    flags.concurrency === undefined ? 1 : wholeNumberFlag(flags.concurrency, '--concurrency', 1, 1_000);
  return withForeground(cli, { create: false }, async (foreground) => {
    const { holdfast } = foreground;
    const byFilter = ids[0] === undefined || isFilter(ids[0]);
    const chosen = await (byFilter ? allUnfinished(cli, holdfast, filterFrom(ids)) : findTasks(cli, holdfast, ids));
    for (const task of chosen) await refuseForeign(cli, holdfast, task);
    if (chosen.length === 0)
      cli.terminal.note(
        ids.length > 0
          ? 'No unfinished task of this command matches.'
          : `There are no unfinished tasks that resume runs: ${OWN_TYPES_TEXT}.`,
      );
    const tasks = flags.now ? await dueNow(cli, holdfast, chosen) : chosen;
    const options = { concurrency, timeoutMs };
    const find = () => allUnfinished(cli, holdfast, filterFrom(ids));
    const worked = byFilter
      ? await workWithRedrives(cli, foreground, tasks, options, find)
      : await work(cli, foreground, tasks, options);
    const exit = worked.detached ? EXIT.notFinished : exitOfTasks(worked.tasks);
    if (cli.terminal.json) {
      const { detached } = worked;
      cli.terminal.document(documentOf('resume', { exit, detached, items: worked.tasks.map(taskJson) }));
    }
    return exit;
  });
}

interface Options {
  readonly concurrency: number;
  readonly timeoutMs: number | undefined;
}

/** Also works the tasks that running redrives put back meanwhile. */
async function workWithRedrives(
  cli: Cli,
  foreground: Foreground,
  tasks: readonly Task[],
  { concurrency, timeoutMs = Number.POSITIVE_INFINITY }: Options,
  find: () => Promise<readonly Task[]>,
): Promise<Worked> {
  const began = performance.now();
  const { detacher } = foreground;
  const next = new NextOfRedrives(cli, foreground, find, tasks);
  let worked: Worked = { tasks: [], interrupted: false, detached: false };
  for (let more = tasks; more.length > 0; more = await next.next(more, timeLeft())) {
    const left = timeLeft();
    const round = await work(cli, foreground, more, { concurrency, timeoutMs: left });
    worked = { ...round, tasks: [...worked.tasks, ...round.tasks] };
    if (worked.interrupted) return worked;
  }
  return detacher.detached ? { ...worked, interrupted: true, detached: true } : worked;

  function timeLeft(): number | undefined {
    return timeoutMs === Number.POSITIVE_INFINITY ? undefined : Math.max(0, timeoutMs - (performance.now() - began));
  }
}

async function work(cli: Cli, foreground: Foreground, tasks: readonly Task[], options: Options): Promise<Worked> {
  return tasks.length === 0
    ? { tasks, interrupted: false, detached: false }
    : workHere(cli, foreground, tasks, options);
}

async function allUnfinished(cli: Cli, holdfast: Holdfast, filter: string): Promise<readonly Task[]> {
  const found = await unfinished(holdfast, filter === '' ? { types: OWN_TYPES } : { filter });
  const tasks = found.filter(({ type }) => isOwnType(type));
  if (tasks.length < found.length)
    cli.terminal.note(
      `${found.length - tasks.length} that match are of other types: the programs that define them work them`,
    );
  if (tasks.length <= MOST) return tasks;
  cli.terminal.note(
    `${tasks.length} tasks are unfinished: here are the ${MOST} oldest, the rest is for ${cli.command('worker')}`,
  );
  return tasks.slice(0, MOST);
}

async function refuseForeign(cli: Cli, holdfast: Holdfast, task: Task): Promise<void> {
  if (isOwnType(task.type)) return;
  const { types, toStart } = await missingWorkers(holdfast, [task]);
  const hint = types.length > 0 ? toStart(task.type) : `a running worker takes it: ${cli.command(`wait ${task.id}`)}`;
  throw new Problem('unknown_type', `#${task.id} is a ${visible(task.type)}, which this command cannot run`, {
    why: [`It runs ${OWN_TYPES_TEXT}.`],
    hints: [hint],
    exit: EXIT.conflict,
  });
}

async function dueNow(cli: Cli, holdfast: Holdfast, tasks: readonly Task[]): Promise<readonly Task[]> {
  const due: Task[] = [];
  for (const task of tasks) {
    if (task.state === 'scheduled') await hurry(cli, holdfast, task);
    due.push(await findTask(cli, holdfast, `#${task.id}`));
  }
  return due;
}

async function hurry(cli: Cli, holdfast: Holdfast, task: Task): Promise<void> {
  try {
    await holdfast.retry(task.id, { actor: cli.actor, note: 'resume --now' });
  } catch (error) {
    // It fell due or was claimed since it was read, which is enough.
    if (!(error instanceof StateConflictError)) throw error;
  }
}
