import { formatDuration } from '../duration.ts';
import { printFilter } from '../filter.ts';
import { formatRate } from '../pace.ts';
import type { RedrivePlan } from '../queue/redrives.ts';
import { REDRIVE_SKIPS, type RedriveSkip, type RedriveState, redriveTime } from '../redrive.ts';
import type { RedriveFilter, RedriveOfTask, RedriveRecord } from '../store/redrives.ts';
import type { Style } from './glyphs.ts';
import { SKIPPED } from './redrive-of-task.ts';
import { ago, clockTime, rfc3339 } from './times.ts';
import { visible } from './visible.ts';

/** How many tasks of each reason why were skipped. */
export type RedriveSkips = Readonly<Partial<Record<RedriveSkip, number>>>;

/** Selected tasks that were neither put back nor skipped. */
export function leftOf({ selected, putBack, skipped }: RedriveRecord): number {
  return selected - putBack - skipped;
}

/** Tasks that were put back and whose first outcome is not known yet. */
function undecidedOf({ putBack, succeeded, failedAgain, endedOtherwise }: RedriveRecord): number {
  return putBack - succeeded - failedAgain - endedOtherwise;
}

const STYLES: Readonly<Record<RedriveState, Style>> = {
  running: 'active',
  paused: 'waiting',
  stopped: 'dead',
  done: 'ok',
  cancelled: 'idle',
};

export function redriveStyle({ state }: RedriveRecord): Style {
  return STYLES[state];
}

/** `running for 4m, ends in about 37s`, `paused 3m ago by eva: lunch`. */
export function redriveStateWords(redrive: RedriveRecord, now: number): string {
  const { state, since, by, startedAt, selecting, perSecond } = redrive;
  if (state === 'running') {
    const going = `running for ${formatDuration(wholeSeconds(now - startedAt))}`;
    if (selecting) return `${going}, selecting tasks`;
    const left = leftOf(redrive);
    if (left === 0) return `${going}, waits until it is known how the last tasks went`;
    return `${going}, puts the last task back in ${formatDuration(wholeSeconds(redriveTime(left, perSecond)))} at least`;
  }
  const who = by ? ` by ${visible(by.actor)}${by.note === undefined ? '' : `: ${visible(by.note)}`}` : '';
  return `${state} ${ago(since, now)}${who}`;
}

function wholeSeconds(ms: number): number {
  return Math.max(0, Math.round(ms / 1_000) * 1_000);
}

/** Everything about one redrive, in lines. Safe to print. */
export function redriveLines(redrive: RedriveRecord, skips: RedriveSkips, filter: string, now: number): string[] {
  const { actor, note, startedAt, perSecond, because, selected, putBack, succeeded, failedAgain, endedOtherwise } =
    redrive;
  const undecided = undecidedOf(redrive);
  const skipped = REDRIVE_SKIPS.filter((why) => skips[why] !== undefined);
  const rows: readonly (readonly [label: string, words: string])[] = [
    ['state', redriveStateWords(redrive, now)],
    ...(because === undefined ? [] : [['because', because] as const]),
    ['note', visible(note)],
    ['by', `${visible(actor)}, ${clockTime(startedAt, now)}`],
    ['filter', visible(filter)],
    ['rate', formatRate(perSecond)],
    ['tasks', `${putBack} of ${selected} put back, ${leftOf(redrive)} left`],
    [
      'went',
      [
        `${succeeded} succeeded`,
        `${failedAgain} failed again as before`,
        `${endedOtherwise} had another outcome`,
        ...(undecided > 0 ? [`${undecided} without an outcome yet`] : []),
      ].join(', '),
    ],
    ...skipped.map((why, i) => [i === 0 ? 'skipped' : '', `${skips[why]}: ${SKIPPED[why]}`] as const),
  ];
  return rows.map(([label, words]) => `${label.padEnd(8)} ${words}`);
}

export function redriveJson(redrive: RedriveRecord): object {
  return {
    id: redrive.id,
    state: redrive.state,
    since: rfc3339(redrive.since),
    by: redrive.by ? { actor: redrive.by.actor, note: redrive.by.note ?? null } : null,
    because: redrive.because ?? null,
    actor: redrive.actor,
    note: redrive.note,
    started_at: rfc3339(redrive.startedAt),
    filter: filterJson(redrive.filter),
    per_second: redrive.perSecond,
    accept_duplicate: redrive.acceptDuplicate,
    selecting: redrive.selecting,
    selected: redrive.selected,
    put_back: redrive.putBack,
    skipped: redrive.skipped,
    left: leftOf(redrive),
    succeeded: redrive.succeeded,
    failed_again: redrive.failedAgain,
    ended_otherwise: redrive.endedOtherwise,
    undecided: undecidedOf(redrive),
    takes_at_least_ms: redriveTime(leftOf(redrive), redrive.perSecond),
  };
}

/** What a redrive would do, for JSON. */
export function planJson({ matches, mayRunTwice, mustNotRunTwice, takesAtLeast }: RedrivePlan): object {
  return {
    matches,
    may_run_twice: mayRunTwice,
    must_not_run_twice: mustNotRunTwice,
    takes_at_least_ms: takesAtLeast,
  };
}

/** `text`: the whole filter, also what the other members do not say. */
function filterJson(filter: RedriveFilter): object {
  const { states, types, queues, sources, fingerprints, reasons, families, endedFrom, endedBefore } = filter;
  const all = [...(reasons ?? []), ...(families ?? []).map((family) => `${family}.*`)];
  return {
    text: printFilter(filter),
    states,
    ...(types && { types }),
    ...(queues && { queues }),
    ...(sources && { sources }),
    ...(fingerprints && { fingerprints }),
    ...((reasons ?? families) && { reasons: all }),
    ...(endedFrom !== undefined && { ended_from: rfc3339(endedFrom) }),
    ...(endedBefore !== undefined && { ended_before: rfc3339(endedBefore) }),
  };
}

/** The newest redrive that has a task, for JSON; null where there is none. */
export function redriveOfTaskJson(found: RedriveOfTask | undefined): object | null {
  if (!found) return null;
  const { redrive, is, why, at } = found;
  return { id: redrive.id, state: redrive.state, is, why: why ?? null, at: rfc3339(at) };
}
