import type { Command } from 'commander';
import { endLine } from '../../documents/next-steps.ts';
import { isFilter } from '../../filter.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { taskJson } from '../../views/json-shapes.ts';
import { summaryOf } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { FILTER_HELP } from '../flags/filter.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { findTask } from '../flags/task-ids.ts';
import { withStore } from '../opening/open-store.ts';
import { Problem, usage } from '../problem.ts';
import { Prompt } from '../terminal/prompt.ts';
import { actOnFilter, BULK_HELP, type BulkFlags } from './bulk-action.ts';

const ANSWERS = ['succeeded', 'retry', 'dead'] as const;
type Answer = (typeof ANSWERS)[number];

interface Flags {
  readonly as?: string;
  readonly result?: string;
  readonly note?: string;
}

interface Resolution {
  readonly as: Answer;
  readonly result?: unknown;
  readonly note?: string;
}

export function declare(command: Command): void {
  command
    .argument('<id|filter...>')
    .option('--as <answer>', 'it happened (succeeded), it did not and should be tried again (retry), or give up (dead)')
    .option('--result <json>', 'what came of it, with --as succeeded')
    .option('--note <text>', 'how you know, for the history')
    .option('--dry-run', 'with a filter: only show how many match, and some of them')
    .addHelpText('after', `\nWithout --as it asks, if a person is there.${BULK_HELP}\n${FILTER_HELP}`);
  act<Flags & BulkFlags>(command, (cli, args, flags) => {
    const [id, ...others] = args as [string, ...string[]];
    if (isFilter(id)) return resolveAll(cli, args, flags);
    if (others.length > 0) throw usage('resolve takes one task, or a filter');
    return resolve(cli, id, flags);
  });
}

async function resolve(cli: Cli, id: string, flags: Flags): Promise<void> {
  const given = resolutionFrom(flags);
  if (!given && !cli.terminal.mayAsk) {
    throw usage('--as is missing: what do you know of it?', {
      hints: ANSWERS.map((answer) => cli.command(`resolve ${visible(id)} --as ${answer}`)),
    });
  }
  return withStore(cli, {}, async (holdfast) => {
    const task = await findTask(cli, holdfast, id);
    if (task.state !== 'needs_manual') throw notAsked(cli, task);
    const resolution = given ?? (await askFor(cli, holdfast, task));
    await holdfast.resolve(task.id, { ...resolution, actor: cli.actor });
    await report(cli, holdfast, task.id, resolution);
  });
}

async function resolveAll(cli: Cli, filter: readonly string[], flags: Flags & BulkFlags): Promise<number> {
  const given = resolutionFrom(flags);
  if (!given) throw usage('--as is missing: with a filter, one answer is for all that match');
  const { as, result } = given;
  const answer = { verb: 'resolve', as, ...(result !== undefined && { result: JSON.stringify(result) }) } as const;
  return actOnFilter(cli, filter, flags, answer);
}

async function report(cli: Cli, holdfast: Operations, id: number, { as }: Resolution): Promise<void> {
  const { terminal } = cli;
  const task = await holdfast.get(id);
  const became = as === 'retry' ? 'due now, in a new round' : as;
  terminal.answer('resolve', { exit: 0, task: taskJson(task) }, () =>
    terminal.result(`${terminal.out.glyph(task)} #${id} ${became} (decided by ${visible(cli.actor)})`),
  );
  if (as === 'retry') await hintAtWorkers(cli, holdfast, `resume ${id}`, [task.type]);
  const { needs_manual: more } = (await holdfast.counts()).byState;
  const need = more === 1 ? 'needs' : 'need';
  if (more > 0) terminal.note(`${more} more ${need} a decision: ${cli.command('inbox')}`);
}

function notAsked(cli: Cli, { id, state }: Task): Problem {
  return new Problem('state_conflict', `#${id} needs no decision: it is ${state}`, {
    hints: [`look: ${cli.command(`show ${id}`)}`],
  });
}

function resolutionFrom({ as, result, note }: Flags): Resolution | undefined {
  if (as === undefined) {
    if (result !== undefined) throw usage('--result says what came of it, so it needs --as succeeded');
    return undefined;
  }
  const answer = ANSWERS.find((each) => each === as);
  if (!answer) throw usage(`--as is one of ${ANSWERS.join(', ')}, got "${visible(as)}"`);
  if (result !== undefined && answer !== 'succeeded')
    throw usage(`--result goes with --as succeeded, not with ${answer}`);
  return {
    as: answer,
    ...(result !== undefined && { result: parsed(result) }),
    ...(note !== undefined && { note }),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? visible(error.message) : 'it cannot be read';
    throw usage(`--result is not JSON: ${why}`, {
      hints: [`text goes in quotes: --result '"done by hand"'`],
      cause: error,
    });
  }
}

async function askFor({ terminal }: Cli, holdfast: Operations, task: Task): Promise<Resolution> {
  terminal.warn(`#${task.id} ${summaryOf(task)}`);
  terminal.warn(`${endLine(task, await holdfast.history(task.id))}`);
  using prompt = new Prompt();
  const as = await askForAnswer(prompt);
  const text = as === 'succeeded' ? await prompt.ask('? Result (JSON, empty for none) > ') : '';
  const note = await prompt.ask('? Note (empty for none) > ');
  return { as, ...(text !== '' && { result: parsed(text) }), ...(note !== '' && { note }) };
}

async function askForAnswer(prompt: Prompt): Promise<Answer> {
  for (;;) {
    const typed = await prompt.ask('? What do you know?  (1) it happened  (2) it did not, retry  (3) give up  > ');
    const answer = ANSWERS[Number(typed) - 1] ?? ANSWERS.find((each) => each === typed);
    if (answer) return answer;
  }
}
