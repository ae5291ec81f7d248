import type { Times } from './cron.ts';

/**
 * What happens with times at which no worker was there to enqueue. `latest`: one task for the newest of them. `all`: a task for
 * each, at most the newest 1,000. `skip`: none that is more than a minute old.
 */
export const MISSED = ['latest', 'all', 'skip'] as const;
export type Missed = (typeof MISSED)[number];

/**
 * What happens at a time at which the schedule's task before has not ended. `skip`: nothing, except that a task which waits,
 * also for a retry, is replaced by the new one. `queue`: the new task is enqueued when the one before has ended. `allow`: it is
 * enqueued at once.
 */
export const OVERLAPS = ['skip', 'queue', 'allow'] as const;
export type Overlap = (typeof OVERLAPS)[number];

/** How far a schedule is. Counts are since it was made. */
export interface Progress {
  /** The next time for which no task was enqueued or passed over. Absent: the cron expression has no other time. */
  readonly nextAt?: number;
  /** The newest time that was dealt with, when, and how. */
  readonly last?: { readonly tick: number; readonly at: number; readonly was: 'enqueued' | 'skipped' | 'missed' };
  /** Times for which a task was enqueued. */
  readonly enqueued: number;
  /** Times that were passed over because the task before had not ended. */
  readonly skipped: number;
  /** Times that were passed over because no worker was there. Beyond 100 in a row this is the least number. */
  readonly missed: number;
  /** It waits for its task before to end (`queue`). */
  readonly waits?: true;
}

/** What to do with a schedule now. */
export interface Turn {
  /** The times to enqueue a task for, oldest first. */
  readonly ticks: readonly number[];
  /** The progress if a task was recorded for each of them. */
  readonly progress: Progress;
  /** When to look again; undefined: never. */
  readonly lookAt: number | undefined;
  /** The same if the task before has not ended, so that none was recorded. Absent if that cannot happen. */
  readonly otherwise?: { readonly progress: Progress; readonly lookAt: number | undefined };
}

export interface Answers {
  readonly missed: Missed;
  readonly overlap: Overlap;
}

/** A time that is dealt with this late was not missed. */
const LATE_MS = 60_000;

/** How many missed times are counted one by one. */
const MOST_COUNTED = 100;

/** How many missed times `all` makes up for. */
const MOST_MADE_UP = 1_000;

/** How many tasks one turn enqueues. */
const MOST_AT_ONCE = 100;

/** How often is looked whether the task before has ended. */
const WAIT_MS = 5_000;

export const NEW_PROGRESS: Progress = { enqueued: 0, skipped: 0, missed: 0 };

/** The next step of a schedule. The first unhandled time is never lowered, so a clock that is set back repeats nothing. */
export function nextTurn(times: Times, { missed, overlap }: Answers, progress: Progress, now: number): Turn {
  const { nextAt, waits, ...counts } = progress;
  if (nextAt === undefined) return { ticks: [], progress: counts, lookAt: undefined };
  const due = dueTimes(times, nextAt, now, missed === 'all' ? MOST_MADE_UP : MOST_COUNTED);
  const newest = due.at(-1);
  if (newest === undefined) return { ticks: [], progress, lookAt: nextAt };
  const wanted = missed === 'all' ? due : missed === 'skip' && !waits && now - newest > LATE_MS ? [] : [newest];
  const ticks = wanted.slice(0, overlap === 'queue' ? 1 : MOST_AT_ONCE);
  const dropped = due.length - wanted.length;
  const reached = wanted.length > ticks.length ? (ticks.at(-1) as number) : newest;
  const after = times.after(reached);
  const done: Progress = {
    ...(after !== undefined && { nextAt: after }),
    last: { tick: reached, at: now, was: ticks.length > 0 ? 'enqueued' : 'missed' },
    enqueued: counts.enqueued + ticks.length,
    skipped: counts.skipped + (waits ? dropped : 0),
    missed: counts.missed + (waits ? 0 : dropped),
  };
  const turn = { ticks, progress: done, lookAt: after };
  if (overlap === 'allow' || ticks.length === 0) return turn;
  if (overlap === 'queue')
    return { ...turn, otherwise: { progress: { ...progress, waits: true }, lookAt: now + WAIT_MS } };
  const skipped: Progress = {
    ...done,
    last: { tick: reached, at: now, was: 'skipped' },
    enqueued: counts.enqueued,
    skipped: done.skipped + 1,
  };
  return { ...turn, otherwise: { progress: skipped, lookAt: after } };
}

/** The times from the first one up to now; of more than so many the newest. */
function dueTimes(times: Times, first: number, now: number, most: number): readonly number[] {
  const due: number[] = [];
  let time: number | undefined = first;
  for (; time !== undefined && time <= now; time = times.after(time)) {
    if (due.length === most) return times.upTo(now, most).filter((one) => one >= first);
    due.push(time);
  }
  return due;
}
