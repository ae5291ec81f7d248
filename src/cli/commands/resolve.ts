import type { Command } from 'commander';
import {
  ANSWERS,
  type Answer,
  asideOf,
  type Choice,
  COLLISION_CHOICES,
  type CollisionChoice,
  choicesOf,
  collisionOf,
} from '../../documents/choices.ts';
import { endLine } from '../../documents/next-steps.ts';
import { taskAdvice } from '../../documents/task-advice.ts';
import { isFilter } from '../../filter.ts';
import { putAside, removeDestination } from '../../handlers/move-destination.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { taskJson } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { isAmbiguous, summaryOf } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { FILTER_HELP } from '../flags/filter.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { findTask } from '../flags/task-ids.ts';
import { withStore } from '../opening/open-store.ts';
import { Problem, usage } from '../problem.ts';
import { mayGoOn, Prompt } from '../terminal/prompt.ts';
import { actOnFilter, BULK_HELP, type BulkFlags } from './bulk-action.ts';

interface Flags {
  readonly as?: string;
  readonly result?: string;
  readonly note?: string;
}

interface Resolution {
  readonly as: Answer | CollisionChoice;
  readonly result?: unknown;
  readonly note?: string;
}

export function declare(command: Command): void {
  command
    .argument('<id|filter...>')
    .option('--as <answer>', 'it happened (succeeded), it did not and should be tried again (retry), or give up (dead)')
    .addHelpText('after', COLLISION_HELP)
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

const COLLISION_HELP = `
For a move whose destination exists, --as has three more answers. They change files on this machine:
  keep-both   what is there gets another name (NAME.before-ID), and the move is tried again
  overwrite   what is there is removed, and the move is tried again
  skip        the source stays where it is, and the task is dead`;

async function resolve(cli: Cli, id: string, flags: Flags): Promise<number> {
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
    const { as, note, ...others } = resolution;
    const carried = await carriedOut(cli, task, as, given !== undefined);
    if (!carried) return EXIT.failed;
    const { answer, done } = carried;
    const notes = [done, note].filter((text) => text !== undefined).join('. ');
    await holdfast.resolve(task.id, { ...others, as: answer, actor: cli.actor, ...(notes !== '' && { note: notes }) });
    if (done !== undefined) cli.terminal.note(visible(done));
    await report(cli, holdfast, task.id, answer);
    return EXIT.done;
  });
}

const QUESTIONS: Readonly<Record<CollisionChoice, string>> = {
  'keep-both': 'keep both files of',
  overwrite: 'remove for good what is at the destinations of',
  skip: 'skip the moves of',
};

async function resolveAll(cli: Cli, filter: readonly string[], flags: Flags & BulkFlags): Promise<number> {
  const given = resolutionFrom(flags);
  if (!given) throw usage('--as is missing: with a filter, one answer is for all that match');
  const { as, result } = given;
  if (!isAnswer(as)) {
    const answer = as === 'skip' ? 'dead' : 'retry';
    return actOnFilter(
      cli,
      filter,
      flags,
      { verb: 'resolve', as: answer },
      {
        words: (count) => `${QUESTIONS[as]} ${plural(count, 'task', 'tasks')}`,
        does: (task) => changeFiles(task, as),
      },
    );
  }
  const answer = { verb: 'resolve', as, ...(result !== undefined && { result: JSON.stringify(result) }) } as const;
  return actOnFilter(cli, filter, flags, answer);
}

async function report(cli: Cli, holdfast: Operations, id: number, as: Answer): Promise<void> {
  const { terminal } = cli;
  const task = await holdfast.get(id);
  const became = as === 'retry' ? 'due now, in a new round' : as;
  terminal.answer('resolve', { exit: 0, task: taskJson(task) }, () =>
    terminal.result(`${terminal.out.glyph(task)} #${id} ${became} (decided by ${visible(cli.actor)})`),
  );
  if (as === 'retry') await hintAtWorkers(cli, holdfast, `resume ${id}`, [task]);
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
  const answer = [...ANSWERS, ...COLLISION_CHOICES].find((each) => each === as);
  if (!answer) {
    const hint = `for a move whose destination exists also ${COLLISION_CHOICES.join(', ')}`;
    throw usage(`--as is one of ${ANSWERS.join(', ')}, got "${visible(as)}"`, { hints: [hint] });
  }
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

async function askFor(cli: Cli, holdfast: Operations, task: Task): Promise<Resolution> {
  const { terminal } = cli;
  const history = await holdfast.history(task.id);
  const ambiguous = isAmbiguous(task, history);
  terminal.warn(`#${task.id} ${summaryOf(task)}`);
  for (const line of [endLine(task, history), ...taskAdvice(task, ambiguous)]) terminal.warn(line);
  const choices = choicesOf(task, ambiguous);
  const width = Math.max(...choices.map(({ words }) => words.length));
  for (const [i, { words, does = '' }] of choices.entries()) {
    terminal.warn(`  (${i + 1}) ${words.padEnd(width)}  ${does}`.trimEnd());
  }
  using prompt = new Prompt();
  const as = await askForChoice(prompt, choices);
  const result = as === 'succeeded' ? await askForResult(cli, prompt) : undefined;
  const note = await prompt.ask('? Note (empty for none) > ');
  return { as, ...(result !== undefined && { result }), ...(note !== '' && { note }) };
}

async function askForResult({ terminal }: Cli, prompt: Prompt): Promise<unknown> {
  for (;;) {
    const typed = await prompt.ask('? Result (JSON, empty for none) > ');
    try {
      return typed === '' ? undefined : JSON.parse(typed);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      terminal.warn('That is not JSON. Text goes in quotes: "done by hand"');
    }
  }
}

async function askForChoice(prompt: Prompt, choices: readonly Choice[]): Promise<Choice['as']> {
  for (;;) {
    const typed = await prompt.ask(`? Which (1–${choices.length}) > `);
    const choice = choices[Number(typed) - 1] ?? choices.find(({ as, words }) => as === typed || words === typed);
    if (choice) return choice.as;
  }
}

function isAnswer(as: Choice['as']): as is Answer {
  return (ANSWERS as readonly string[]).includes(as);
}

/** Does what a choice does to files. Returns the answer to the task, and what was done, for its history; nothing after a no. */
async function carriedOut(
  cli: Cli,
  task: Task,
  as: Choice['as'],
  asks: boolean,
): Promise<{ readonly answer: Answer; readonly done?: string } | undefined> {
  if (isAnswer(as)) return { answer: as };
  const to = collisionOf(task);
  if (to === undefined) throw usage(`--as ${as} is for a move whose destination exists`);
  if (as === 'overwrite' && asks && !(await mayGoOn(cli, `Remove ${visible(to)}, for good?`))) return undefined;
  const done = (await changeFiles(task, as)) as string;
  return { answer: as === 'skip' ? 'dead' : 'retry', done };
}

/** Does what a choice does to files, and returns what was done. Nothing for a task that is no move whose destination exists. */
async function changeFiles(task: Task, as: CollisionChoice): Promise<string | undefined> {
  const to = collisionOf(task);
  if (to === undefined) return undefined;
  if (as === 'skip') return 'skip: the source stays where it is';
  const aside = asideOf(to, task.id);
  try {
    await (as === 'keep-both' ? putAside(to, aside) : removeDestination(to));
  } catch (error) {
    throw unchanged(task, to, error);
  }
  return as === 'keep-both' ? `keep both: ${to} is now ${aside}` : `overwrite: removed ${to}`;
}

function unchanged({ id }: Task, to: string, error: unknown): Problem {
  const { code, message } = error as NodeJS.ErrnoException;
  const hint: Readonly<Record<string, string>> = {
    ENOENT: `if the worker is on another machine, do it there; if it is gone, retry: holdfast resolve ${id} --as retry`,
    EISDIR: 'move or remove the folder yourself, then resolve --as retry',
  };
  return new Problem('state_conflict', `what is at ${visible(to)} stays as it is: ${visible(message)}`, {
    hints: [hint[code ?? ''] ?? 'nothing was changed; change it yourself, then resolve --as retry'],
    cause: error,
  });
}
