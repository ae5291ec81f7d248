import type { Command } from 'commander';
import { isTroubled, listContent, MOST_LISTED, MOST_SEARCHED, type Page, pageOf } from '../../documents/list.ts';
import { parseFilter } from '../../filter.ts';
import type { Operations } from '../../queue/operations.ts';
import { type Answered, PolicyCache } from '../../queue/policy-cache.ts';
import type { Task } from '../../queue/task-view.ts';
import type { ExecutionEntry } from '../../store/store.ts';
import { shownState, signOf } from '../../views/glyphs.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { suspectRuleOf } from '../../views/suspect-rule.ts';
import { attemptsOf, endOf, heldWords, progressWords, summaryOf } from '../../views/task-text.ts';
import { ago, lasting, until } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { FILTER_HELP, filterFrom } from '../flags/filter.ts';
import { wholeNumberFlag } from '../flags/policy-flags.ts';
import { withStore } from '../opening/open-store.ts';
import { type Problem, usage } from '../problem.ts';
import { type LiveView, live, type Size, timeNow } from '../terminal/live.ts';
import { type Cell, type Column, table } from '../terminal/table.ts';
import { cut } from '../terminal/width.ts';

export interface ListFlags {
  readonly limit?: string;
  readonly all?: boolean;
  readonly before?: string;
  readonly ids?: boolean;
  readonly held?: boolean;
  readonly watch?: boolean;
}

const LIMIT = 50;

export function declare(command: Command): void {
  declareListFlags(command).addHelpText(
    'after',
    `
ATTEMPTS  the attempts that were charged, of those that its policy allows. An
          attempt that succeeds is not charged, nor is a failure that is not
          the task's fault (a rate limit, an outage): so 0/5 may have run often

${FILTER_HELP}`,
  );
  act<ListFlags>(command, list);
}

/** The arguments and flags of a list, also of `quarantine list`. */
export function declareListFlags(command: Command): Command {
  return command
    .argument('[filter...]')
    .option('--limit <number>', `how many, the newest first (default: ${LIMIT}, at most ${MOST_LISTED})`)
    .option('--all', 'all that match')
    .option('--before <id>', 'only those with a smaller number')
    .option('--held', 'only those that are held: ready tasks that something keeps from starting, and tasks put aside')
    .option('--ids', 'numbers only, one on a line, for xargs')
    .option('--watch', 'show it again each second, as it is then; q ends it');
}

export async function list(cli: Cli, terms: readonly string[], flags: ListFlags): Promise<void> {
  const given = filterFrom(terms);
  // The names of its members do not depend on the time.
  const { states } = parseFilter(given, new Date(0));
  if (flags.held && states) throw usage('--held and state: contradict each other: --held is of ready and held tasks');
  if (flags.ids && cli.terminal.json) throw usage('--ids and --json are two forms of the answer: choose one');
  if (flags.all && flags.limit !== undefined) throw usage('--all and --limit contradict each other');
  refuseWatch(cli, flags);
  const limit = flags.all ? Number.POSITIVE_INFINITY : limitFrom(flags.limit);
  const before =
    flags.before === undefined ? undefined : wholeNumberFlag(flags.before.replace(/^#/, ''), '--before', 1);
  return withStore(cli, {}, async (holdfast) => {
    const read = () => pageOf(holdfast, { filter: given, limit, before, held: flags.held === true });
    if (flags.watch) return live(cli.terminal, new WatchedList(cli, holdfast, read));
    const page = await read();
    if (cli.terminal.json) cli.terminal.document(documentOf('list', await listContent(holdfast, page)));
    else if (flags.ids) for (const { id } of page.tasks) cli.terminal.result(String(id));
    else await print(cli, holdfast, page, limit);
  });
}

function limitFrom(text: string | undefined): number {
  return text === undefined ? LIMIT : wholeNumberFlag(text, '--limit', 1, MOST_LISTED);
}

/** Watching needs a terminal, on which the list can be drawn again. */
function refuseWatch(cli: Cli, { watch = false, ids = false }: ListFlags): void {
  if (!watch) return;
  const { terminal } = cli;
  if (ids || terminal.json)
    throw usage(`--watch is for people, and ${ids ? '--ids' : '--json'} for programs: choose one`);
  if (terminal.out.isTerminal && process.stdin.isTTY) return;
  throw usage('--watch draws the list again and again, which needs a terminal', {
    hints: [`what happens, line by line: ${cli.command('events -f')}`, 'the list as it is now: without --watch'],
  });
}

/** As many rows as the terminal has. */
class WatchedList implements LiveView {
  paused = false;
  readonly #cli: Cli;
  readonly #holdfast: Operations;
  readonly #next: () => Promise<Page>;
  #page: Page | undefined;
  #rows: readonly Cell[][] = [];
  /** Why what is shown is old. */
  #trouble = '';
  #readAt = '';

  constructor(cli: Cli, holdfast: Operations, next: () => Promise<Page>) {
    this.#cli = cli;
    this.#holdfast = holdfast;
    this.#next = next;
  }

  async read(): Promise<void> {
    const page = await this.#next();
    this.#rows = await rowsOf(this.#holdfast, page.tasks.slice(0, MOST_WATCHED));
    this.#page = page;
    this.#trouble = '';
    this.#readAt = timeNow();
  }

  markOld(problem?: Problem): void {
    this.#trouble = `  of ${this.#readAt}: ${problem ? visible(problem.message) : 'the store does not answer'}`;
  }

  draw({ rows }: Size): readonly string[] {
    const { out } = this.#cli.terminal;
    const last = `${timeNow()}  q: quit  p: ${this.paused ? 'go on' : 'pause'}${this.#trouble}`;
    return [...this.#lines(rows - 1), out.paint('idle', cut(last, out.columns))];
  }

  async press(): Promise<boolean> {
    return false;
  }

  #lines(room: number): readonly string[] {
    const page = this.#page;
    if (!page) return [];
    if (page.tasks.length === 0) {
      return [page.next === null ? 'No task matches.' : `No task matches among the newest ${MOST_SEARCHED}.`];
    }
    const all = page.next === null && page.tasks.length <= Math.min(room - 1, MOST_WATCHED);
    const shown = this.#rows.slice(0, all ? room - 1 : room - 2);
    const lines = table(COLUMNS, shown, this.#cli.terminal.out);
    return all ? lines : [...lines, shownOf(page, shown.length)];
  }
}

/** No terminal has more rows. */
const MOST_WATCHED = 200;

function shownOf({ tasks, next, total }: Page, shown: number): string {
  const all = next === null ? tasks.length : total.value;
  return all === null ? `The newest ${shown} are shown.` : `${shown} of ${all} shown.`;
}

/** The columns of tasks in a list. */
export const COLUMNS: readonly Column[] = [
  ' ',
  '#',
  ['TASK', 12, 16],
  ['SOURCE', 0, 12],
  ['REASON', 8, 12],
  'ATTEMPTS',
  'WHEN',
  ['ERROR', 10, 24],
];

async function print(cli: Cli, holdfast: Operations, { tasks, next, total }: Page, limit: number): Promise<void> {
  const { terminal } = cli;
  terminal.table(COLUMNS, await rowsOf(holdfast, tasks), next === null ? 'No task matches.' : undefined);
  if (next === null) return;
  const shown =
    tasks.length < limit
      ? `Not all tasks were searched: ${plural(tasks.length, 'task matches', 'tasks match')} among the newest ${MOST_SEARCHED}.`
      : shownOf({ tasks, next, total }, tasks.length);
  terminal.note(`${shown} Go on: --before ${next} · all of them: --all`);
}

/** The rows of tasks in a list. */
export async function rowsOf(holdfast: Operations, tasks: readonly Task[]): Promise<Cell[][]> {
  const now = holdfast.now();
  const rows: Cell[][] = [];
  const policies = new PolicyCache(holdfast);
  const decisions = await holdfast.administration.lastExecutions(tasks.filter(isTroubled), 'any');
  for (const task of tasks) rows.push(rowOf(task, await policies.answerTo(task), decisions.get(task.id), now));
  return rows;
}

function rowOf(task: Task, answered: Answered, last: ExecutionEntry | undefined, now: number): Cell[] {
  const state = shownState(task);
  const { how, said } = endOf(last?.failure ? last : {});
  return [
    signOf(state),
    task.id,
    summaryOf(task),
    { text: visible(task.source), style: 'idle' },
    isTroubled(task) ? visible(task.reason ?? '') : '',
    attemptsOf(task, answered),
    whenOf(task, last, now),
    [how, said].filter((part) => part !== '').join(': '),
  ];
}

/** When it continues, or since when it does not. */
function whenOf(task: Task, last: ExecutionEntry | undefined, now: number): string {
  if (task.endedAt) return ago(task.endedAt.getTime(), now);
  if (task.state === 'needs_manual') return last ? `since ${lasting(last.endedAt, now)}` : '';
  if (task.running) {
    const since = `since ${lasting(task.running.since.getTime(), now)}`;
    return task.progress === undefined ? since : `${since}: ${progressWords(task.progress)}`;
  }
  if (task.waitsForGroup) return 'after its group';
  if (task.dueAt) return until(task.dueAt.getTime(), now);
  if (task.state !== 'ready') return '';
  const held = heldWords(task);
  if (held !== '') return `held: ${held}`;
  return suspectRuleOf(task) === 'alone' ? 'due, to run alone' : 'due';
}
