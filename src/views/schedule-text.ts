import type { Schedule } from '../queue/schedules.ts';
import { ago, clockTime, rfc3339, until } from './times.ts';
import { visible } from './visible.ts';

/** `in 2h`, `waits until #7 has ended`, `paused 3m ago by eva: holidays`, `never`. */
export function scheduleStateWords({ paused, waits, nextAt, lastTask }: Schedule, now: number): string {
  if (paused) {
    const { actor, at, note } = paused;
    return `paused ${ago(at.getTime(), now)} by ${visible(actor)}${note === undefined ? '' : `: ${visible(note)}`}`;
  }
  if (waits) return lastTask ? `waits until #${lastTask.id} has ended` : 'waits until its task before has ended';
  return nextAt ? until(nextAt.getTime(), now) : 'never';
}

export const MISSED = {
  latest: 'one task for the newest time that was missed',
  all: 'a task for each time that was missed',
  skip: 'times that were missed are passed over',
} as const;

export const OVERLAP = {
  skip: 'passed over while the task before runs; one that waits is replaced',
  queue: 'enqueued when the task before has ended',
  allow: 'enqueued whether the task before has ended or not',
} as const;

export const WAS = { enqueued: 'enqueued', skipped: 'passed over, its task ran', missed: 'missed' } as const;

/** Everything about one schedule, in lines. Safe to print. */
export function scheduleLines(schedule: Schedule, next: readonly Date[], now: number): string[] {
  const { cron, timeZone, missed, overlap, type, queue, source, input, origin, counts, last, lastTask } = schedule;
  const rows: readonly (readonly [label: string, words: string])[] = [
    ['next', scheduleStateWords(schedule, now)],
    ...next.map((time, i) => [i === 0 ? 'times' : '', clockTime(time.getTime(), now)] as const),
    ['cron', `${visible(cron)} in ${timeZone}`],
    ['task', `${visible(type)} in queue ${visible(queue)}, source ${visible(source)}`],
    ['input', visible(JSON.stringify(input))],
    ['missed', MISSED[missed]],
    ['overlap', OVERLAP[overlap]],
    ...(last ? [['last', `${clockTime(last.tick.getTime(), now)}: ${WAS[last.was]}`] as const] : []),
    ...(lastTask ? [['task', `#${lastTask.id} ${lastTask.state ?? 'was removed'}`] as const] : []),
    ['counts', `${counts.enqueued} enqueued, ${counts.skipped} skipped, ${counts.missed} missed`],
    ['set by', origin.by === 'code' ? 'a program' : visible(origin.file)],
  ];
  return rows.map(([label, words]) => `${label.padEnd(8)} ${words}`);
}

export function scheduleJson(schedule: Schedule): object {
  const { name, cron, timeZone, missed, overlap, counts, type, queue, source, priority, category, needs } = schedule;
  const { input, origin, createdAt, nextAt, waits, last, lastTask, paused } = schedule;
  return {
    name,
    cron,
    time_zone: timeZone,
    missed,
    overlap,
    type,
    queue,
    source,
    priority,
    category: category ?? null,
    needs: needs ?? null,
    input,
    origin: origin.by === 'code' ? { by: 'code' } : { by: 'file', file: origin.file },
    created_at: rfc3339(createdAt),
    next_at: rfc3339(nextAt),
    waits,
    last: last ? { tick: rfc3339(last.tick), at: rfc3339(last.at), was: last.was } : null,
    last_task: lastTask ? { id: lastTask.id, state: lastTask.state ?? null } : null,
    counts,
    paused: paused ? { actor: paused.actor, note: paused.note ?? null, at: rfc3339(paused.at) } : null,
  };
}
