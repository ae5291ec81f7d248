import type { Command } from 'commander';
import { parseFilter } from '../../filter.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import type { HistoryEntry } from '../../store/store.ts';
import { taskJson } from '../../views/json-shapes.ts';
import { lastDecision } from '../../views/last-decision.ts';
import { plural } from '../../views/plural.ts';
import { endOf, summaryOf } from '../../views/task-text.ts';
import { ago, rfc3339 } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { FILTER_HELP, filterFrom } from '../flags/filter.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { endLine, nextSteps } from '../foreground/progress.ts';
import { withStore } from '../opening/open-store.ts';
import { usage } from '../problem.ts';

interface Flags {
  readonly limit?: string;
}

const LIMIT = 10;
const MOST = 1_000;

export function declare(command: Command): void {
  command
    .argument('[filter...]')
    .option('--limit <number>', `how many are shown, the oldest first (default: ${LIMIT}, at most ${MOST})`)
    .addHelpText(
      'after',
      `
These tasks wait until a person answers: what happened, since when they wait, and the commands that answer. What is dead waits for
nobody: holdfast quarantine lists both, and puts them back.
${FILTER_HELP}`,
    );
  act<Flags>(command, inbox);
}

async function inbox(cli: Cli, args: readonly string[], { limit }: Flags): Promise<void> {
  const most = limit === undefined ? LIMIT : wholeNumberFlag(limit, '--limit', 1, MOST);
  return withStore(cli, {}, async (holdfast) => {
    const { states, ...filter } = parseFilter(filterFrom(args), new Date(holdfast.now()));
    if (states) throw usage('the inbox has only tasks that need a person, so its filter has no state');
    const ids = await holdfast.administration.select({ ...filter, states: ['needs_manual'] });
    const shown = ids.slice(-most).reverse();
    const items = await Promise.all(shown.map((id) => itemOf(cli, holdfast, id)));
    const open = items.filter((item) => item !== undefined);
    const content = { total: ids.length, items: open.map(itemJson) };
    cli.terminal.answer('inbox', content, () => print(cli, open, ids.length, holdfast.now()));
  });
}

/** A task that waits for a person, and what that person should know. */
interface Item {
  readonly task: Task;
  readonly since: number | undefined;
  readonly question: string;
  /** The end of its last execution. */
  readonly error: string;
  /** What to look at, and the commands that answer. */
  readonly steps: readonly string[];
}

async function itemOf(cli: Cli, holdfast: Operations, id: number): Promise<Item | undefined> {
  const task = await holdfast.find(id);
  if (task?.state !== 'needs_manual') return undefined;
  const history = await holdfast.history(id);
  const last = lastDecision(history);
  return {
    task,
    since: sinceOf(history),
    question: endLine(task, history),
    error: last?.failure ? endOf(last).said : '',
    steps: nextSteps(cli, task, history),
  };
}

/** When it began to wait: its last execution, or the import of a task that waited elsewhere. */
function sinceOf(history: readonly HistoryEntry[]): number | undefined {
  const last = history.findLast((entry) => entry.kind !== 'stray' && !(entry.kind === 'execution' && entry.late));
  return last && (last.kind === 'execution' ? last.endedAt : last.at);
}

function itemJson({ task, since, question, error, steps }: Item): object {
  return { since: rfc3339(since), question, error: error === '' ? null : error, steps, task: taskJson(task) };
}

function print({ terminal }: Cli, items: readonly Item[], total: number, now: number): void {
  if (total === 0) terminal.note('Nothing waits for a person.');
  for (const { task, since, question, error, steps } of items) {
    const waits = since === undefined ? '' : `  since ${ago(since, now)}`;
    terminal.result(`${terminal.out.glyph(task)} #${task.id} ${summaryOf(task)}  ${visible(task.source)}${waits}`);
    for (const line of [question, ...(error === '' ? [] : [error]), ...steps]) terminal.result(`    ${line}`);
  }
  if (total > items.length) {
    terminal.note(`${items.length} of ${plural(total, 'task', 'tasks')} shown. More: --limit ${Math.min(MOST, total)}`);
  }
}
