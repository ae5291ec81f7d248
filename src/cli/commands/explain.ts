import type { Command } from 'commander';
import {
  assumedContent,
  commandOf,
  explainedErrorContent,
  explanationContent,
  pastContent,
  wordsOf,
} from '../../documents/explain.ts';
import type { Task } from '../../queue/task-view.ts';
import { adviceFor } from '../../views/advice.ts';
import type { Explanation } from '../../views/explain.ts';
import type { ExplainedFailure } from '../../views/explain-failure.ts';
import { visible, visibleLines } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { errorGiven } from '../flags/error-given.ts';
import { parsePastMoment } from '../flags/moment.ts';
import { findTask } from '../flags/task-ids.ts';
import { withStore } from '../opening/open-store.ts';
import { withPolicies } from '../policies/policies-here.ts';
import { usage } from '../problem.ts';

interface Flags {
  readonly error?: string;
  readonly type?: string;
  readonly if?: string;
  readonly at?: string;
}

export function declare(command: Command): void {
  command
    .argument('[id]')
    .option('--error <json>', 'what if it failed like this? A message, or an error as JSON, as `classify` takes it')
    .option('--type <type>', 'with --error: of a task of this type, at its first attempt')
    .option('--if <options>', 'what if its policy had these options? As under `retry:` of holdfast.yaml, or JSON')
    .option('--at <time>', 'what it did and waited for at this time, such as 14:30, 2h (so long ago) or a date')
    .addHelpText(
      'after',
      `
Says why a task is where it is, what must hold before it starts, what would follow from its next failure, and what happens next.
With --error: what kind of failure that is, which rule answers it, how it counts, the delay and its jitter, and what ends it.
With --if: what would have been decided for its last failure, and what would come next. Nothing is changed.
With --at: its state at that time, from its history.
It uses the same code as workers, with the policies that apply here and now.

  holdfast explain 12
  holdfast explain 12 --if 'maxAttempts: 9'
  holdfast explain 12 --at '2026-11-27 14:00'
  holdfast explain 12 --error 'connect ECONNREFUSED 10.0.0.5:5432'
  holdfast explain --type imap_mailbox --error '{"status": 429, "headers": {"retry-after": "120"}}'`,
    );
  act<Flags>(command, (cli, [id], flags) => explain(cli, id, flags));
}

async function explain(cli: Cli, id: string | undefined, flags: Flags): Promise<void> {
  const { error, type, if: options, at } = flags;
  if ([error, options, at].filter((flag) => flag !== undefined).length > 1)
    throw usage('--error, --if and --at are three questions: ask one');
  if (options !== undefined || at !== undefined) {
    const flag = at === undefined ? '--if' : '--at';
    if (id === undefined || type !== undefined) throw usage(`${flag} is about a task: holdfast explain ID ${flag} …`);
    return at === undefined ? explainTaskIf(cli, id, options as string) : explainTaskAt(cli, id, at);
  }
  if (id === undefined && error === undefined) {
    throw usage('there is nothing to explain', {
      hints: [`a task: ${cli.command('explain ID')}`, `an error: ${cli.command("explain --type TYPE --error '…'")}`],
    });
  }
  if (id !== undefined && type !== undefined) throw usage('a task has its type: --type is for an error without a task');
  if (error === undefined) return explainTask(cli, id as string);
  if (type === '') throw usage('--type is empty');
  const thrown = errorGiven(error);
  if (id === undefined) return explainErrorOf(cli, thrown, type ?? 'task');
  return withStore(cli, { purpose: 'explain' }, async (holdfast) => {
    const task = await findTask(cli, holdfast, id);
    printError(cli, await holdfast.explainError(thrown, task.id), task);
  });
}

/** A type can be explained without a store. Then no worker has published a policy. */
async function explainErrorOf(cli: Cli, thrown: unknown, type: string): Promise<void> {
  return withPolicies(cli, async ({ explainError, policyFor }) => {
    printError(cli, await explainError(thrown, { type }), undefined);
    const { values } = await policyFor({ type });
    if (!values.some(({ from }) => from.level === 'type')) {
      cli.terminal.note(`No definition of the type ${visible(type)} is known here, so its policy is the default one.`);
    }
  });
}

async function explainTask(cli: Cli, id: string): Promise<void> {
  return withStore(cli, { purpose: 'explain' }, async (holdfast) => {
    const { id: number } = await findTask(cli, holdfast, id);
    const explanation = await holdfast.explain(number);
    cli.terminal.answer('explain', explanationContent(cli, explanation), () => print(cli, explanation));
  });
}

async function explainTaskIf(cli: Cli, id: string, options: string): Promise<void> {
  const { optionsIn } = await import('../../config/assumed-options.ts');
  const assumed = optionsIn(options, '--if');
  return withStore(cli, { purpose: 'explain' }, async (holdfast) => {
    const answer = await holdfast.explainIf((await findTask(cli, holdfast, id)).id, assumed);
    cli.terminal.answer('explain.if', assumedContent(answer), () => printLines(cli, answer.text));
  });
}

async function explainTaskAt(cli: Cli, id: string, time: string): Promise<void> {
  return withStore(cli, { purpose: 'explain' }, async (holdfast) => {
    const at = parsePastMoment(time, new Date(holdfast.now()), '--at');
    if (at.getTime() > holdfast.now()) {
      throw usage('--at is in the future', { hints: [`what happens next: ${cli.command(`explain ${id}`)}`] });
    }
    const past = await holdfast.explainAt((await findTask(cli, holdfast, id)).id, at);
    cli.terminal.answer('explain.at', pastContent(past, at), () => printLines(cli, past.text));
  });
}

function printLines({ terminal }: Cli, text: string): void {
  for (const line of visibleLines(text)) terminal.result(line);
}

function print(cli: Cli, explanation: Explanation): void {
  for (const line of explanationLines(cli, explanation)) cli.terminal.result(line);
}

/** The lines of `explain ID`. */
export function explanationLines(cli: Cli, { task, text, actions }: Explanation): string[] {
  const glyph = cli.terminal.out.glyph(task);
  const [headline = '', ...lines] = visibleLines(text);
  const advice = task.state === 'needs_manual' ? adviceFor(task.reason) : undefined;
  const width = Math.max(0, ...actions.filter((each) => commandOf(cli, task, each)).map(({ words }) => words.length));
  return [
    `${glyph} ${headline}`,
    ...lines,
    ...(advice === undefined ? [] : [`  advice  ${advice}`]),
    ...actions.map((action, i) => {
      const command = commandOf(cli, task, action);
      const words = command === undefined ? wordsOf(task, action) : `${action.words.padEnd(width)}  ${command}`;
      return `  ${i === 0 ? 'change' : '      '}  ${visible(words)}`;
    }),
  ];
}

function printError(cli: Cli, explained: ExplainedFailure, task: Task | undefined): void {
  cli.terminal.answer('explain.error', explainedErrorContent(explained, task), () => printLines(cli, explained.text));
}
