import type { Command } from 'commander';
import type { Holdfast } from '../../queue/holdfast.ts';
import type { ActionOptions } from '../../queue/operate.ts';
import type { Task } from '../../queue/task-view.ts';
import { documentOf, taskJson } from '../../views/json-shapes.ts';
import { glyphOf, shownState, styleOf } from '../../views/task-text.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { findTask } from '../flags/task-ids.ts';
import { withStore } from '../opening/open-store.ts';
import { type Problem, problemJson, problemLines, problemOf } from '../problem.ts';
import { Prompt } from '../terminal/prompt.ts';

export interface ActionFlags {
  readonly note?: string;
}

/** An operator's step that can be taken with several tasks. */
export interface Step<Flags extends ActionFlags> {
  readonly name: 'retry' | 'cancel' | 'hold' | 'release';
  /** Asked before it is taken with more than one task, if a person is there. */
  readonly asks?: (count: number) => string;
  /** Throws where the task had better not take it. */
  readonly check?: (cli: Cli, holdfast: Holdfast, task: Task, flags: Flags) => Promise<void>;
  readonly take: (holdfast: Holdfast, id: number, act: ActionOptions) => Promise<void>;
  /** What has become of the task, after its glyph and number. */
  readonly words: (after: Task, before: Task, now: number) => string;
  /** Whether tasks may be due after it, so that a worker is needed. */
  readonly needsWorker?: boolean;
}

interface Taken {
  readonly task: Task;
  readonly from: string;
}

/** Gives a command the arguments, the flag and the action of a step. */
export function declareAction<Flags extends ActionFlags>(command: Command, step: Step<Flags>): void {
  command.argument('<ids...>').option('--note <text>', 'a note about why, for the history');
  act<Flags>(command, (cli, ids, flags) =>
    withStore(cli, {}, (holdfast) => takeAll(cli, holdfast, [...new Set(ids)], flags, step)),
  );
}

async function takeAll<Flags extends ActionFlags>(
  cli: Cli,
  holdfast: Holdfast,
  ids: readonly string[],
  flags: Flags,
  step: Step<Flags>,
): Promise<number> {
  if (!(await mayGoOn(cli, ids.length, step.asks))) return EXIT.failed;
  const taken: Taken[] = [];
  const problems: Problem[] = [];
  for (const id of ids) {
    try {
      taken.push(await takeOne(cli, holdfast, id, flags, step));
    } catch (error) {
      // Of one task the problem is the answer; of several each gets its own.
      if (ids.length === 1) throw error;
      const problem = problemOf(error);
      problems.push(problem);
      if (!cli.terminal.json) for (const line of problemLines(problem)) cli.terminal.warn(line);
    }
  }
  const exit = problems[0]?.exit ?? EXIT.done;
  if (cli.terminal.json) {
    const items = taken.map(({ task, from }) => ({ id: task.id, from, to: task.state, task: taskJson(task) }));
    cli.terminal.document(documentOf(step.name, { exit, items, problems: problems.map(problemJson) }));
  }
  if (step.needsWorker && taken.some(({ task }) => task.state === 'ready')) {
    await hintAtWorkers(cli, holdfast, taken.length === 1 ? `resume ${taken[0]?.task.id}` : 'resume');
  }
  return exit;
}

async function takeOne<Flags extends ActionFlags>(
  cli: Cli,
  holdfast: Holdfast,
  text: string,
  flags: Flags,
  step: Step<Flags>,
): Promise<Taken> {
  const before = await findTask(cli, holdfast, text);
  await step.check?.(cli, holdfast, before, flags);
  await step.take(holdfast, before.id, { actor: cli.actor, ...(flags.note !== undefined && { note: flags.note }) });
  const task = await holdfast.get(before.id);
  const { terminal } = cli;
  if (!terminal.json) {
    const glyph = terminal.out.paint(styleOf(shownState(task)), glyphOf(task));
    terminal.result(`${glyph} #${task.id} ${step.words(task, before, holdfast.now())}`);
  }
  return { task, from: before.state };
}

/** In a script the ids were written down; a person who typed several is asked once more. */
async function mayGoOn(cli: Cli, count: number, asks: ((count: number) => string) | undefined): Promise<boolean> {
  if (!asks || count < 2 || cli.yes || !cli.terminal.mayAsk) return true;
  using prompt = new Prompt();
  if (await prompt.confirm(asks(count))) return true;
  cli.terminal.note('Nothing was changed.');
  return false;
}
