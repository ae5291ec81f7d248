import {
  BULK_SAMPLE,
  type BulkAction,
  type BulkCounts,
  moveBatch,
  noCounts,
  SKIPPED,
  selection,
  skip,
  type Verb,
} from '../../documents/bulk.ts';
import { by } from '../../queue/operate.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import type { Move } from '../../store/store.ts';
import type { TaskState } from '../../task.ts';
import { documentOf, taskJson } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { summaryOf } from '../../views/task-text.ts';
import { quoted, visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { filterFrom } from '../flags/filter.ts';
import { hintAtWorkers } from '../flags/record-flags.ts';
import { withStore } from '../opening/open-store.ts';
import { Problem, usage } from '../problem.ts';
import { onInterrupt } from '../terminal/interrupts.ts';
import { ProgressBar } from '../terminal/progress-bar.ts';
import { mayGoOn, Prompt } from '../terminal/prompt.ts';

export interface BulkFlags {
  readonly note?: string;
  readonly dryRun?: boolean;
  readonly acceptDuplicate?: boolean;
}

const DONE: Readonly<Record<Verb, string>> = {
  retry: 'made due',
  cancel: 'cancelled',
  hold: 'held',
  release: 'released',
  resolve: 'resolved',
};

const BATCH = 100;
/** For more tasks than this, a person types their number. */
const MANY = 1_000;

export const BULK_HELP = `
With a filter instead of numbers it acts on all that match at this moment. It shows how many they are and asks; a script needs --yes.`;

/** What is done for each task before its action: `does` returns what was done, for its history; nothing if the action is not for this task. */
export interface DoneFirst {
  /** What it does, for the question before: `overwrite 3 files`. */
  readonly words: (count: number) => string;
  readonly does: (task: Task) => Promise<string | undefined>;
}

interface How {
  readonly move: Move;
  /** Whether tasks that may have happened already are left out. */
  readonly mayAsk: boolean;
  readonly first: DoneFirst | undefined;
}

/**
 * Acts on the tasks that match now: shows how many and a sample, asks, and goes on in batches. Tasks that come later or leave the states
 * of the filter meanwhile stay as they are.
 */
export async function actOnFilter(
  cli: Cli,
  args: readonly string[],
  flags: BulkFlags,
  action: BulkAction,
  first?: DoneFirst,
): Promise<number> {
  return withStore(cli, {}, async (holdfast) => {
    const filter = selection(filterFrom(args), action.verb, flags.acceptDuplicate === true, new Date(holdfast.now()));
    const ids = await holdfast.administration.select(filter);
    const sample = await Promise.all(ids.slice(0, BULK_SAMPLE).map((id) => holdfast.get(id)));
    if (flags.dryRun || ids.length === 0) {
      return tellPlan(cli, action.verb, filter.states, ids.length, sample, flags.dryRun === true);
    }
    if (
      !(await isConfirmed(
        cli,
        first?.words(ids.length) ?? `${action.verb} ${plural(ids.length, 'task', 'tasks')}`,
        ids.length,
        sample,
      ))
    )
      return EXIT.failed;
    const { note, acceptDuplicate = false } = flags;
    const whose = by({ actor: cli.actor, ...(note !== undefined && { note }) }, action.verb);
    const move: Move = { ...action, ...whose, from: filter.states };
    const mayAsk = action.verb === 'retry' && !acceptDuplicate && filter.states.includes('needs_manual');
    const { counts, interrupted } = await moveAll(cli, holdfast, ids, { move, mayAsk, first });
    report(cli, action.verb, ids.length, counts, interrupted ? args : undefined);
    const mayBeDue = action.verb === 'retry' || action.verb === 'release' || ('as' in action && action.as === 'retry');
    if (mayBeDue && counts.done > 0) await hintAtWorkers(cli, holdfast, 'resume', sample);
    return interrupted ? EXIT.interrupted : EXIT.done;
  });
}

function tellPlan(
  cli: Cli,
  verb: Verb,
  states: readonly TaskState[],
  matches: number,
  sample: readonly Task[],
  dryRun: boolean,
): number {
  const { terminal } = cli;
  const content = {
    exit: EXIT.done,
    dry_run: dryRun,
    matches,
    sample: sample.map(taskJson),
    done: 0,
    requested: 0,
    skipped: {},
  };
  terminal.answer(`${verb}.filter`, content, () => {
    if (matches === 0) {
      return terminal.note(
        `No task that is ${orList(states)} matches, and ${verb} changes no others. Nothing was changed.`,
      );
    }
    for (const line of planLines(cli, matches, sample)) terminal.result(line);
    terminal.note('Nothing was changed.');
  });
  return EXIT.done;
}

function orList(words: readonly string[]): string {
  return words.join(', ').replace(/, (?=[^,]+$)/, ' or ');
}

function planLines({ terminal }: Cli, matches: number, sample: readonly Task[]): string[] {
  return [
    plural(matches, 'task matches', 'tasks match'),
    ...sample.map((task) => {
      const reason = task.reason === undefined ? '' : `  ${visible(task.reason)}`;
      return `  ${terminal.out.glyph(task)} #${task.id} ${summaryOf(task)}  ${visible(task.source)}${reason}`;
    }),
    ...(matches > sample.length ? [`  and ${matches - sample.length} more`] : []),
  ];
}

async function isConfirmed(cli: Cli, what: string, matches: number, sample: readonly Task[]): Promise<boolean> {
  if (cli.yes) return true;
  const { terminal } = cli;
  if (!terminal.mayAsk) {
    throw usage(`${plural(matches, 'task matches', 'tasks match')}, and nobody can be asked, so nothing was changed`, {
      hints: ['look first: add --dry-run', 'without a question: add --yes'],
    });
  }
  for (const line of planLines(cli, matches, sample)) terminal.warn(line);
  if (matches <= MANY) return mayGoOn(cli, `${what}?`);
  using prompt = new Prompt();
  const typed = await prompt.ask(`To ${what}, type their number > `);
  if (typed.replaceAll(/[\s,]/g, '') === String(matches)) return true;
  terminal.note('Nothing was changed.');
  return false;
}

async function moveAll(
  cli: Cli,
  holdfast: Operations,
  ids: readonly number[],
  { move, mayAsk, first }: How,
): Promise<{ readonly counts: BulkCounts; readonly interrupted: boolean }> {
  const counts = noCounts();
  const bar = new ProgressBar(cli.terminal, cli.environment);
  let interrupted = false;
  const listening = onInterrupt(() => {
    interrupted = true;
  });
  try {
    for (let i = 0; i < ids.length && !interrupted; i += BATCH) {
      const batch = ids.slice(i, i + BATCH);
      if (first) await moveEach(cli, holdfast, batch, move, first, counts);
      else await moveBatch(holdfast, batch, move, mayAsk, counts);
      bar.update((i + batch.length) / ids.length, () => `${i + batch.length} of ${ids.length}`);
    }
  } catch (error) {
    bar.clear();
    cli.terminal.warn(
      `${counts.done + counts.requested} of ${ids.length} tasks were ${DONE[move.verb as Verb]} before this error.`,
    );
    throw error;
  } finally {
    bar.clear();
    listening();
  }
  return { counts, interrupted: interrupted && counts.done + counts.requested < ids.length };
}

/** One after the other. What cannot be done for a task leaves it as it is, and the others go on. */
async function moveEach(
  cli: Cli,
  holdfast: Operations,
  ids: readonly number[],
  move: Move,
  first: DoneFirst,
  counts: BulkCounts,
): Promise<void> {
  for (const id of ids) {
    const task = await holdfast.find(id);
    if (task && !move.from?.includes(task.state)) skip(counts, 'changed', 1);
    else if (task) {
      try {
        const done = await first.does(task);
        const note = [done, move.note].filter((text) => text !== undefined).join('. ');
        if (done === undefined) skip(counts, 'other_question', 1);
        else await moveBatch(holdfast, [id], { ...move, note }, false, counts);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        cli.terminal.warn(`#${id}: ${error.message}`);
        skip(counts, 'failed', 1);
      }
    } else skip(counts, 'missing', 1);
  }
}

function report(cli: Cli, verb: Verb, matches: number, counts: BulkCounts, goOn: readonly string[] | undefined): void {
  const { done, requested, skipped } = counts;
  const { terminal } = cli;
  const exit = goOn ? EXIT.interrupted : EXIT.done;
  if (terminal.json) {
    terminal.document(
      documentOf(`${verb}.filter`, { exit, dry_run: false, matches, sample: [], done, requested, skipped }),
    );
    return;
  }
  terminal.result(`${plural(done, 'task', 'tasks')} ${DONE[verb]}`);
  if (requested > 0) terminal.result(`${plural(requested, 'running task is', 'running tasks are')} asked to stop`);
  for (const [why, n] of Object.entries(skipped))
    terminal.note(`${n} skipped: ${SKIPPED[why as keyof typeof SKIPPED]}`);
  if (!goOn) return;
  terminal.warn(`stopped: ${done + requested} of ${matches} tasks were ${DONE[verb]}, the others are unchanged.`);
  terminal.warn(`go on: ${cli.command(`${verb} ${goOn.map(quoted).join(' ')}`)}`);
}
