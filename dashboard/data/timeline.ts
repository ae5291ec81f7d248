import type { ExecutionJson, HistoryJson, ShowDocument } from './documents.ts';

/** What is drawn of an execution: when it ran, how it ended, and in which range its wait was drawn. */
export interface Run {
  readonly execution: number;
  /** The number that people count, or undefined if nothing was charged. */
  readonly attempt: number | undefined;
  readonly from: number;
  readonly to: number;
  readonly entry: ExecutionJson | undefined;
  /** When the next one might have begun, by the jitter. */
  readonly jitter: { readonly from: number; readonly to: number } | undefined;
}

export interface Timeline {
  readonly runs: readonly Run[];
  /** The next execution, where it has a time. */
  readonly planned: number | undefined;
  readonly begin: number;
  readonly end: number;
  /** What people did. */
  readonly actions: readonly { readonly at: number; readonly words: string }[];
  /** How many older executions are left out. */
  readonly older: number;
}

/** The executions of a task in the order in which they ran, at most `most` of them, and what comes next. */
export function timelineOf({ task, history }: ShowDocument, now: number, most: number): Timeline {
  const ended = history.filter(isExecution).map(runOf(attemptsIn(history)));
  const { running } = task;
  const present: readonly Run[] = running
    ? [
        {
          execution: task.executions,
          attempt: undefined,
          from: Date.parse(running.since),
          to: now,
          entry: undefined,
          jitter: undefined,
        },
      ]
    : [];
  const all = [...ended, ...present].toSorted((a, b) => a.from - b.from);
  const runs = all.slice(-most);
  const planned =
    task.due_at !== null && task.state === 'scheduled' ? Math.max(now, Date.parse(task.due_at)) : undefined;
  const begin = all.length > most ? (runs[0] as Run).from : Date.parse(task.submitted_at);
  const last = runs.at(-1);
  const jitterEnd = planned === undefined ? undefined : last?.jitter?.to;
  const end = Math.max(begin + 1, last?.to ?? begin, planned ?? 0, jitterEnd ?? 0);
  const actions = history
    .filter((entry) => entry.kind === 'action')
    .map(({ at, verb, actor, note }) => ({
      at: Date.parse(at),
      words: `${verb} by ${actor}${note === null ? '' : `: ${note}`}`,
    }))
    .filter(({ at }) => at >= begin && at <= end);
  return {
    runs,
    planned,
    begin: Math.min(begin, runs[0]?.from ?? begin),
    end,
    actions,
    older: all.length - runs.length,
  };
}

function isExecution(entry: HistoryJson): entry is ExecutionJson {
  return entry.kind === 'execution';
}

/** The numbers of the executions that were charged, from 1 in each round. */
export function attemptsIn(history: readonly HistoryJson[]): ReadonlyMap<HistoryJson, number> {
  const numbers = new Map<HistoryJson, number>();
  let attempt = 0;
  for (const entry of history) {
    if (entry.kind === 'action' && ['retry', 'redrive', 'resolve'].includes(entry.verb) && entry.from !== 'scheduled')
      attempt = 0;
    if (entry.kind !== 'execution' || entry.late) continue;
    if (entry.charge === 'task' || entry.outcome === 'success') {
      attempt += 1;
      numbers.set(entry, attempt);
    }
  }
  return numbers;
}

function runOf(numbers: ReadonlyMap<HistoryJson, number>): (entry: ExecutionJson) => Run {
  return (entry) => {
    const [from, to] = [Date.parse(entry.started_at), Date.parse(entry.ended_at)];
    const jitter = entry.next === 'scheduled' ? entry.because?.jitter : null;
    return {
      execution: entry.execution,
      attempt: numbers.get(entry),
      from,
      to,
      entry,
      jitter: jitter ? { from: to + jitter.low_ms, to: to + jitter.high_ms } : undefined,
    };
  };
}

/** A place between 0 and 1 for each time from `begin` to `end`. */
export type Scale = (at: number) => number;

/**
 * Times on a line. With `folded`, each wait and each run has a length that grows with the logarithm of its time: ten runs of a second
 * with waits of hours between them can still be seen.
 */
export function scaleOf({ runs, planned, begin, end }: Timeline, folded: boolean): Scale {
  if (!folded) return (at) => clamped((at - begin) / (end - begin));
  const cuts = [begin, ...runs.flatMap(({ from, to }) => [from, to]), ...(planned === undefined ? [] : [planned]), end];
  const times = [...new Set(cuts)].sort((a, b) => a - b);
  const lengths = times.slice(1).map((at, i) => 1 + Math.log10(1 + (at - (times[i] as number)) / 1_000));
  const whole = lengths.reduce((sum, length) => sum + length, 0) || 1;
  return (at) => {
    let passed = 0;
    for (const [i, length] of lengths.entries()) {
      const [from, to] = [times[i] as number, times[i + 1] as number];
      if (at < to) return clamped((passed + length * ((at - from) / (to - from))) / whole);
      passed += length;
    }
    return 1;
  };
}

function clamped(share: number): number {
  return Math.min(1, Math.max(0, share));
}

/** Whether a line of true times would hide what matters: the longest wait is many times the median run. */
export function isBestFolded({ runs, begin, end }: Timeline): boolean {
  const lengths = runs.map(({ from, to }) => to - from).sort((a, b) => a - b);
  const median = lengths[Math.floor(lengths.length / 2)] ?? 0;
  return end - begin > 40 * Math.max(1, median);
}
