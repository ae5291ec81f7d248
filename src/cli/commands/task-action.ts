import type { Command } from 'commander';
import { isFilter } from '../../filter.ts';
import type { ActionOptions } from '../../queue/operate.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { documentOf, taskJson } from '../../views/json-shapes.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { FILTER_HELP } from '../flags/filter.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { findTask } from '../flags/task-ids.ts';
import { withStore } from '../opening/open-store.ts';
import { type Problem, problemJson, problemLines, problemOf } from '../problem.ts';
import { mayGoOn } from '../terminal/prompt.ts';
import { actOnFilter, BULK_HELP, type BulkFlags } from './bulk-action.ts';

export interface ActionFlags {
  readonly note?: string;
}

/** An action on one task or on several. */
export interface TaskAction<Flags extends ActionFlags> {
  readonly name: 'retry' | 'cancel' | 'hold' | 'release';
  /** The question before several tasks are changed, if a person can answer. */
  readonly asks?: (count: number) => string;
  /** Refuses the action if it would do harm. @throws Problem. */
  readonly check?: (cli: Cli, holdfast: Operations, task: Task, flags: Flags) => Promise<void>;
  readonly run: (holdfast: Operations, id: number, options: ActionOptions, flags: Flags) => Promise<void>;
  /** The new state of the task in words, to follow its glyph and number. */
  readonly words: (after: Task, before: Task, now: number) => string;
  /** Lines below it: what to know or do next. */
  readonly next?: (cli: Cli, holdfast: Operations, after: Task) => Promise<readonly string[] | undefined>;
  /** Whether the tasks may be due afterwards, so that a worker is needed. */
  readonly needsWorker?: boolean;
}

interface Done {
  readonly task: Task;
  readonly from: string;
}

/** Gives a command its arguments, its flag and its action. */
export function declareAction<Flags extends ActionFlags>(command: Command, action: TaskAction<Flags>): void {
  command
    .argument('<ids|filter...>')
    .option('--note <text>', 'a note about why, for the history')
    .option('--dry-run', 'with a filter: only show how many match, and some of them')
    .addHelpText('after', `${BULK_HELP}\n${FILTER_HELP}`);
  act<Flags & BulkFlags>(command, (cli, ids, flags) => {
    if (isFilter(ids[0] as string)) return actOnFilter(cli, ids, flags, { verb: action.name });
    return withStore(cli, {}, (holdfast) => actOnAll(cli, holdfast, [...new Set(ids)], flags, action));
  });
}

async function actOnAll<Flags extends ActionFlags>(
  cli: Cli,
  holdfast: Operations,
  ids: readonly string[],
  flags: Flags,
  action: TaskAction<Flags>,
): Promise<number> {
  if (action.asks && ids.length > 1 && !(await mayGoOn(cli, action.asks(ids.length)))) return EXIT.failed;
  const done: Done[] = [];
  const problems: Problem[] = [];
  for (const id of ids) {
    try {
      done.push(await actOn(cli, holdfast, id, flags, action));
    } catch (error) {
      // For one task the problem ends the command. For several, each problem is shown.
      if (ids.length === 1) throw error;
      const problem = problemOf(error);
      problems.push(problem);
      if (!cli.terminal.json) for (const line of problemLines(problem)) cli.terminal.warn(line);
    }
  }
  const exit = problems[0]?.exit ?? EXIT.done;
  if (cli.terminal.json) {
    const items = done.map(({ task, from }) => ({ id: task.id, from, to: task.state, task: taskJson(task) }));
    cli.terminal.document(documentOf(action.name, { exit, items, problems: problems.map(problemJson) }));
  }
  const ready = done.map(({ task }) => task).filter(({ state }) => state === 'ready');
  if (action.needsWorker && ready.length > 0) {
    await hintAtWorkers(cli, holdfast, done.length === 1 ? `resume ${ready[0]?.id}` : 'resume', ready);
  }
  return exit;
}

async function actOn<Flags extends ActionFlags>(
  cli: Cli,
  holdfast: Operations,
  text: string,
  flags: Flags,
  action: TaskAction<Flags>,
): Promise<Done> {
  const before = await findTask(cli, holdfast, text);
  await action.check?.(cli, holdfast, before, flags);
  const options = { actor: cli.actor, ...(flags.note !== undefined && { note: flags.note }) };
  await action.run(holdfast, before.id, options, flags);
  const task = await holdfast.get(before.id);
  const { terminal } = cli;
  if (!terminal.json) {
    const glyph = terminal.out.glyph(task);
    terminal.result(`${glyph} #${task.id} ${action.words(task, before, holdfast.now())}`);
    for (const line of (await action.next?.(cli, holdfast, task)) ?? []) terminal.note(`  ${line}`);
  }
  return { task, from: before.state };
}
