import type { Command } from 'commander';
import { nextOfLost } from '../../documents/lost-task.ts';
import { nextSteps } from '../../documents/next-steps.ts';
import { type ShownTask, showContent, shownTask } from '../../documents/show.ts';
import { missingWorkers } from '../../documents/workers-alive.ts';
import { formatDuration } from '../../duration.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Answered } from '../../queue/policy-cache.ts';
import type { Task } from '../../queue/task-view.ts';
import type { RedriveOfTask } from '../../store/redrives.ts';
import type { ActionEntry, ExecutionEntry, HistoryEntry, Imported, StrayEntry } from '../../store/store.ts';
import type { Json } from '../../task.ts';
import { budgetOf } from '../../views/budget.ts';
import { decisionOf } from '../../views/decision-words.ts';
import { GLYPHS, type ShownState, shownState, signOf, stateWords } from '../../views/glyphs.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { lastDecision } from '../../views/last-decision.ts';
import { beganRound, newRoundOf } from '../../views/new-round.ts';
import { plural } from '../../views/plural.ts';
import { redriveWords } from '../../views/redrive-of-task.ts';
import { REFUNDED } from '../../views/refunded.ts';
import { suspectWords } from '../../views/suspect-rule.ts';
import {
  endOf,
  heldWords,
  importedWords,
  isOwnType,
  numbered,
  policyWords,
  progressWords,
  SHELL_COMMAND,
  summaryOf,
} from '../../views/task-text.ts';
import { ago, clockTime, until } from '../../views/times.ts';
import { traceLines } from '../../views/trace-text.ts';
import { visible, visibleLines } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { findTask } from '../flags/task-ids.ts';
import { withStore } from '../opening/open-store.ts';
import { type Cell, table } from '../terminal/table.ts';

export function declare(command: Command): void {
  command.argument('<id>');
  act(command, (cli, ids) => show(cli, ids[0] as string));
}

export async function show(cli: Cli, id: string): Promise<void> {
  return withStore(cli, {}, async (holdfast) => {
    const task = await findTask(cli, holdfast, id);
    const shown = await shownTask(holdfast, task);
    const { terminal } = cli;
    if (terminal.json) terminal.document(documentOf('show', await showContent(cli, holdfast, shown)));
    else for (const line of await page(cli, holdfast, shown)) terminal.result(line);
  });
}

/** The lines of `show`. */
export async function page(
  cli: Cli,
  holdfast: Operations,
  { task, answer, history, redrive }: ShownTask,
): Promise<readonly string[]> {
  const now = holdfast.now();
  return [
    title(cli, task, answer, now),
    ...facts(task, answer, now),
    ...(await groupOf(holdfast, task)),
    ...whatHappened(cli, task, history, now),
    ...budget(task, answer, history, now),
    ...reasonWhy(history),
    ...inRedrive(task, redrive, now),
    ...(await whatNext(cli, holdfast, task, history)),
    ...whatItPrinted(cli, task),
    ...(task.unreadable ? [`unreadable: ${task.unreadable.join(', ')} (the row is damaged)`] : []),
    ...content('input', task.input),
    ...reported(task, now),
    ...(task.result === undefined ? [] : content('result', task.result)),
  ];
}

/** `#41 rsync …  ↻ retrying, attempt 3 of 8 in 4m10s (14:28:39)`. */
function title({ terminal }: Cli, task: Task, answer: Answered['answer'], now: number): string {
  const { text, style } = signOf(shownState(task));
  const words = terminal.out.paint(style, `${text} ${stateWords(shownState(task))}`);
  return `${terminal.out.paint('strong', `#${task.id}`)} ${summaryOf(task)}  ${words}${titleMore(task, answer, now)}`;
}

function titleMore(task: Task, { maxAttempts }: Answered['answer'], now: number): string {
  const attempt = `attempt ${task.attempts + 1} of ${maxAttempts}`;
  if (task.waitsForGroup) return ', waits for its group';
  if (task.dueAt) {
    const at = task.dueAt.getTime();
    return at <= now ? `, ${attempt} is due` : `, ${attempt} ${until(at, now)} (${clockTime(at, now)})`;
  }
  if (task.running) {
    const { worker, since, cancelRequested } = task.running;
    const stopping = cancelRequested ? ', asked to stop' : '';
    return `, ${attempt} for ${formatDuration(Math.max(0, now - since.getTime()))} on ${visible(worker)}${stopping}`;
  }
  if (task.endedAt) return ` at ${clockTime(task.endedAt.getTime(), now)}`;
  return task.state === 'ready' ? `, ${attempt} is due` : '';
}

/** How many tasks a follow-up waits for. */
async function groupOf(holdfast: Operations, { id, waitsForGroup }: Task): Promise<readonly string[]> {
  if (!waitsForGroup) return [];
  const { open, tasks } = await holdfast.group(id);
  const first = tasks.find(({ ended }) => ended === undefined);
  return [
    `group: ${open} of ${plural(tasks.length, 'task', 'tasks')} not ended${first ? `, the first is #${first.id}` : ''}`,
  ];
}

function facts(task: Task, answer: Answered['answer'], now: number): string[] {
  const { key, unique, queue, source, priority, category, needs, submittedAt, deadline, idempotent } = task;
  const suspect = suspectWords(task);
  const first = [
    `type ${visible(task.type)}`,
    `queue ${visible(queue)}`,
    `source ${visible(source)}`,
    ...(key === undefined ? [] : [`key ${visible(key)}`]),
    ...(unique === undefined ? [] : [`unique ${visible(unique.key)} while ${unique.while}`]),
    ...(priority === 0 ? [] : [`priority ${priority}`]),
    ...(category === undefined ? [] : [`category ${visible(category)}`]),
    ...(needs === undefined ? [] : [`needs ${visible(JSON.stringify(needs))}`]),
  ];
  const second = [
    `recorded ${clockTime(submittedAt.getTime(), now)}`,
    policyWords(answer),
    ...(deadline ? [`until ${clockTime(deadline.getTime(), now)}`] : []),
    ...(idempotent ? [] : ['not idempotent']),
    ...(suspect === undefined ? [] : [suspect]),
  ];
  return [first.join('   '), second.join('   ')];
}

/** What its retries used up, if it waited for any. */
function budget(task: Task, answer: Answered['answer'], history: readonly HistoryEntry[], now: number): string[] {
  const used = budgetOf(task, answer, history);
  if (!used || used.totalDelay === 0) return [];
  const { attempts, maxAttempts, failureKind, firstAttemptAt, totalDelay } = used;
  const of = `${attempts} of ${maxAttempts} attempts charged since ${clockTime(firstAttemptAt, now)}`;
  const waits = `waits of ${formatDuration(totalDelay)} in all`;
  return [`budget     ${[of, waits, ...(failureKind ? [`last failure ${failureKind}`] : [])].join(', ')}`];
}

// ── What happened ──

function whatHappened({ terminal }: Cli, task: Task, history: readonly HistoryEntry[], now: number): string[] {
  const numbers = numbered(history);
  const isWhole = terminal.verbose > 0;
  if (history.length === 0) {
    return task.executions === 0 || !task.endedAt ? [] : ['attempts', `  1  ${GLYPHS.succeeded} at the first attempt`];
  }
  const rows = history.map((entry) => rowOf(entry, numbers.get(entry), now));
  const lines = table(rows[0]?.map(() => '') ?? [], rows, terminal.out, Number.POSITIVE_INFINITY).slice(1);
  return [
    'attempts',
    ...history.flatMap((entry, i) => [`  ${lines[i]}`, ...saidBelow(entry, history[i - 1], isWhole)]),
  ];
}

/** The whole message is shown below the row, because it matters most, and where the error was thrown; with -v, its whole stack. */
function saidBelow(entry: HistoryEntry, before: HistoryEntry | undefined, isWhole: boolean): string[] {
  if (entry.kind === 'action') return entry.imported ? importedBelow(entry.imported) : [];
  const trace = (entry.failure ? traceLines(entry.failure, isWhole) : []).map((line) => `         ${line}`);
  if (entry.kind === 'stray') return entry.failure ? [`       ${visible(entry.failure.message)}`, ...trace] : [];
  const said = (one: HistoryEntry | undefined) => (one?.kind === 'execution' ? endOf(one).said : '');
  if (said(entry) === '') return [];
  if (said(entry) === said(before)) return ['       same as before'];
  return [`       ${said(entry)}`, ...trace];
}

/** What another queue had counted of it, and its last error there. */
function importedBelow(imported: Imported): string[] {
  const { reason, error } = imported;
  const counted = importedWords(imported);
  const last = [reason ?? '', error ?? ''].filter((part) => part !== '').join(': ');
  return [counted, last === '' ? '' : `last: ${visible(last)}`]
    .filter((line) => line !== '')
    .map((line) => `       ${line}`);
}

function rowOf(entry: HistoryEntry, attempt: number | undefined, now: number): Cell[] {
  switch (entry.kind) {
    case 'execution':
      return executionRow(entry, attempt, now);
    case 'action':
      return actionRow(entry, now);
    case 'stray':
      return strayRow(entry, now);
  }
}

function executionRow(entry: ExecutionEntry, attempt: number | undefined, now: number): Cell[] {
  const { how } = endOf(entry);
  const { text: glyph, style } = signOf(LIKE[entry.outcome] ?? 'dead');
  const reason = entry.failure?.reason ?? entry.outcome;
  return [
    attempt ?? '',
    clockTime(entry.startedAt, now),
    formatDuration(Math.max(0, entry.endedAt - entry.startedAt)),
    visible(entry.worker),
    { text: [glyph, visible(reason), how].filter((part) => part !== '').join('  '), style },
    `→ ${decisionOf(entry)}`,
  ];
}

/** The state whose glyph an outcome has; a failure has that of `dead`. */
const LIKE: Readonly<Record<string, ShownState>> = {
  success: 'succeeded',
  interruption: 'cancelled',
  loss: 'cancelled',
  deferral: 'retrying',
};

function strayRow(entry: StrayEntry, now: number): Cell[] {
  const { text: glyph, style } = signOf('dead');
  const text = `${glyph}  ${visible(entry.failure?.reason ?? 'unreadable')}  where nobody waited for it`;
  const changed = `→ changed nothing (execution ${entry.execution})`;
  return ['', clockTime(entry.at, now), '', visible(entry.worker), { text, style }, changed];
}

function actionRow(entry: ActionEntry, now: number): Cell[] {
  const note = entry.note === undefined ? '' : `: ${visible(entry.note)}`;
  const text = `${visible(entry.verb)} by ${visible(entry.actor)}${note}`;
  return ['', clockTime(entry.at, now), '', '', { text, style: 'strong' }, `→ ${entry.to}`];
}

// ── Why, and what next ──

function reasonWhy(history: readonly HistoryEntry[]): string[] {
  const retried = newRoundOf(history);
  const last = lastDecision(history);
  const text = retried ? `${retried.actor} ${beganRound(retried)}` : last?.because?.text;
  const refunded = !retried && last?.charge === 'refunded' ? ` ${REFUNDED}` : '';
  return text === undefined ? [] : [`why    ${visible(text)}${refunded}`];
}

/** The redrive in which it waits, or which skipped it. */
function inRedrive(task: Task, redrive: RedriveOfTask | undefined, now: number): string[] {
  const words = redriveWords({ task, now, ...(redrive && { redrive }) });
  return words === undefined ? [] : [`redrive ${visible(words)}`];
}

async function whatNext(
  cli: Cli,
  holdfast: Operations,
  task: Task,
  history: readonly HistoryEntry[],
): Promise<string[]> {
  if (task.state === 'dead') return [`next   retry it  ${cli.command(`retry ${task.id}`)}`];
  const steps = nextSteps(cli, task, history);
  if (steps.length > 0) return steps.map((line, i) => `${i === 0 ? 'next' : '    '}   ${line}`);
  switch (task.state) {
    case 'scheduled':
    case 'ready':
      return heldWords(task) === '' ? whoTakesIt(cli, holdfast, task) : whatHolds(holdfast, task);
    case 'running': {
      const lost = await nextOfLost(cli, holdfast, task);
      if (lost) return lost.map((line, i) => `${i === 0 ? 'next' : '    '}   ${line}`);
      return [`next   its worker says how it ended        stop it  ${cli.command(`cancel ${task.id}`)}`];
    }
    case 'cancelled':
      return [`next   nothing        retry it  ${cli.command(`retry ${task.id}`)}`];
    default:
      return [];
  }
}

/** What holds the task at its source, its queue or a limit, and when that ends. */
async function whatHolds(holdfast: Operations, { id }: Task): Promise<string[]> {
  const { checks, next } = await holdfast.explain(id);
  const held = checks.find(({ holder }) => holder !== undefined);
  return [...(held ? [`held   ${visible(held.text)}`] : []), `next   ${visible(next)}`];
}

async function whoTakesIt(cli: Cli, holdfast: Operations, task: Task): Promise<string[]> {
  const { id, type } = task;
  const { noneRuns, types, toStart } = await missingWorkers(holdfast, [task]);
  const here = isOwnType(type) ? `        here and now  ${cli.command(`resume ${id} --now`)}` : '';
  if (types.length === 0 && task.heldBy === 'no_worker') return whatHolds(holdfast, task);
  if (types.length === 0) return [`next   a worker takes it when it is due${here}`];
  if (!isOwnType(type)) {
    return [`next   no running worker takes the type ${visible(type)}: ${toStart(type)}`];
  }
  const what = noneRuns ? 'no worker is running to take it' : `no running worker takes the type ${type}`;
  return [`next   ${what}: ${cli.command('worker')}${here}`];
}

/** The command that shows its output, which may be long. */
function whatItPrinted(cli: Cli, { id, type, state, executions }: Task): string[] {
  if (type !== SHELL_COMMAND || executions === 0) return [];
  return [`output ${cli.command(state === 'running' ? `logs ${id} -f` : `logs ${id}`)}`];
}

/** How far its handler said that it is, and when it said so. */
function reported({ progress, progressAt }: Task, now: number): string[] {
  if (progress === undefined || progressAt === undefined) return [];
  return [`progress ${progressWords(progress)}, ${ago(progressAt.getTime(), now)}`];
}

/** Small values are on the line of their name. Texts of a result are below it. */
function content(name: string, value: Json): string[] {
  const label = name.padEnd(7);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return [`${label}${visible(JSON.stringify(value))}`];
  const lines = Object.entries(value).flatMap(([key, member]) =>
    typeof member === 'string' && member.includes('\n') ? [{ key, text: member }] : [],
  );
  const short = Object.fromEntries(Object.entries(value).filter(([key]) => !lines.some((line) => line.key === key)));
  return [
    `${label}${visible(JSON.stringify(short))}`,
    ...lines.flatMap(({ key, text }) => [`  ${visible(key)}`, ...visibleLines(text).map((line) => `    ${line}`)]),
  ];
}
