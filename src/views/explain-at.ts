import { formatDuration } from '../duration.ts';
import type { Because } from '../failure/decide.ts';
import type { Task } from '../queue/task-view.ts';
import type { ActionEntry, ExecutionEntry, HistoryEntry } from '../store/store.ts';
import { isOver, isWaiting, type TaskState } from '../task.ts';
import { clockTime } from './times.ts';

/**
 * The state of a task at a time. `waiting`: scheduled or ready, and the history does not say which. `unfinished`: it succeeded at its
 * first execution, and such a task keeps no history, so it may have waited or run.
 */
export type PastState = TaskState | 'not_recorded' | 'waiting' | 'unfinished';

/** What a task did at a time in the past, and what it waited for. */
export interface PastExplanation {
  readonly task: Task;
  readonly at: Date;
  readonly state: PastState;
  readonly headline: string;
  /** What had changed its state last, and what changed it first afterwards. */
  readonly before?: HistoryEntry;
  readonly after?: HistoryEntry;
  readonly because?: Because;
  /** Lines with labels, as in `Explanation`. */
  readonly text: string;
}

/** An entry of the history that changed the state of the task. */
type Change = ExecutionEntry | ActionEntry;

/** What is known of a task now. */
interface Known {
  readonly now: number;
  readonly task: Task;
  readonly history: readonly HistoryEntry[];
}

/** Says from the history what a task did at a time. Pure. */
export function explainAt(known: Known, at: number): PastExplanation {
  const { now, task, history } = known;
  const changes = history.filter((entry) => entry.kind === 'action' || (entry.kind === 'execution' && !entry.late));
  const recorded = at >= task.createdAt.getTime();
  const before = recorded ? (changes as Change[]).findLast((change) => timeOf(change) <= at) : undefined;
  const after = (changes as Change[]).find((change) => timeOf(change) > at);
  const because = before?.kind === 'execution' ? before.because : undefined;
  const { state, words } = recorded
    ? stateAt(known, at, before, after)
    : { state: 'not_recorded' as const, words: `was not recorded yet: ${timed('recorded', task.createdAt, at, now)}` };
  const headline = `#${task.id} ${task.type} at ${clockTime(at, now)}: it ${words}.`;
  const rows = [
    ...(before ? [['why', changeWords(before, now)]] : []),
    ...(state === 'ready' ? [['held', 'whether its source, its queue or a limit held it is not kept']] : []),
    ['then', after ? changeWords(after, now) : thenWords(task, state, now)],
  ];
  const text = [headline, ...rows.map(([label = '', said]) => `  ${label.padEnd(7)} ${said}`)].join('\n');
  return {
    task,
    at: new Date(at),
    state,
    headline,
    ...(before && { before }),
    ...(after && { after }),
    ...(because && { because }),
    text,
  };
}

function timeOf(change: Change): number {
  return change.kind === 'action' ? change.at : change.endedAt;
}

interface Then {
  readonly state: PastState;
  readonly words: string;
}

function stateAt(known: Known, at: number, before: Change | undefined, after: Change | undefined): Then {
  const { now, task, history } = known;
  const ran = history.find(
    (entry): entry is ExecutionEntry =>
      entry.kind === 'execution' && !entry.late && entry.startedAt <= at && entry.endedAt > at,
  );
  const running = ran ? { worker: ran.worker, since: new Date(ran.startedAt) } : task.running;
  if (running && running.since.getTime() <= at) {
    const since = running.since.getTime();
    return { state: 'running', words: `was running on ${running.worker}, ${sinceWords(since, at, now)}` };
  }
  if (task.endedAt && task.endedAt.getTime() <= at) return settled(task.state, task.endedAt.getTime(), at, now);
  if (before?.kind === 'action' && !isWaiting(before.to)) return settled(before.to, before.at, at, now);
  if (before?.kind === 'execution' && before.next !== 'ready') {
    if (before.next !== 'scheduled') return settled(before.next as TaskState, before.endedAt, at, now);
    return dueAt(before.endedAt + (before.after ?? 0), at, now);
  }
  // Only the present due time is kept.
  if (after === undefined && isWaiting(task.state)) return dueAt(task.dueAt?.getTime() ?? at, at, now);
  if (after === undefined && isOver(task.state))
    return {
      state: 'unfinished',
      words: 'waited or ran: a task that succeeds at its first execution keeps no history',
    };
  if (before) return settled(before.kind === 'action' ? before.to : 'ready', timeOf(before), at, now);
  return { state: 'waiting', words: `had not started yet: ${timed('recorded', task.createdAt, at, now)}` };
}

function settled(state: TaskState, since: number, at: number, now: number): Then {
  const words = isOver(state) ? `had ended as ${state}` : state === 'needs_manual' ? 'needed a person' : `was ${state}`;
  return { state, words: `${words}, ${sinceWords(since, at, now)}` };
}

function dueAt(due: number, at: number, now: number): Then {
  return due > at
    ? { state: 'scheduled', words: `was scheduled: due at ${clockTime(due, now)}, ${formatDuration(due - at)} later` }
    : { state: 'ready', words: `was ready and waited for its turn, ${sinceWords(due, at, now)}` };
}

/** `since 13:58:00, for 2m`. */
function sinceWords(since: number, at: number, now: number): string {
  return `since ${clockTime(since, now)}, for ${formatDuration(at - since)}`;
}

function timed(what: string, moment: Date, at: number, now: number): string {
  const apart = moment.getTime() - at;
  const words = apart > 0 ? `${formatDuration(apart)} later` : `${formatDuration(-apart)} before`;
  return `${what} at ${clockTime(moment.getTime(), now)}, ${words}`;
}

/** One change in a sentence, with its time. */
function changeWords(change: Change, now: number): string {
  if (change.kind === 'action') {
    const note = change.note === undefined ? '' : `: ${change.note}`;
    return `${change.verb} by ${change.actor} at ${clockTime(change.at, now)}${note}`;
  }
  const { worker, startedAt, endedAt, next, because } = change;
  const times = `on ${worker} from ${clockTime(startedAt, now)} to ${clockTime(endedAt, now)}`;
  return `${next}: ${because?.text ?? change.failure?.message ?? change.outcome} (execution ${change.execution} ${times})`;
}

function thenWords({ endedAt, state }: Task, was: PastState, now: number): string {
  if (endedAt && state !== was) return `it ended as ${state} at ${clockTime(endedAt.getTime(), now)}`;
  return state === was ? 'nothing has changed since' : `it is ${state} now`;
}
