import type { FailureGroupView } from '../queue/failures.ts';
import { plural } from './plural.ts';
import { clockTime, rfc3339 } from './times.ts';
import { visible } from './visible.ts';

/** A group of failures as JSON. */
export function failureGroupJson(group: FailureGroupView): object {
  const { retries, retryHelps, needsManual, policyVersions, hours, actions, frame, firstAt, lastAt, ...same } = group;
  return {
    ...same,
    frame: frame ?? null,
    first_at: rfc3339(firstAt),
    last_at: rfc3339(lastAt),
    needs_manual: needsManual,
    retries,
    retry_helps: retryHelps,
    policy_versions: policyVersions,
    hours: Object.entries(hours).map(([at, count]) => ({ at: rfc3339(Number(at)), count })),
    actions: actions.map(({ at, note, until, ...action }) => ({
      at: rfc3339(at),
      ...action,
      note: note ?? null,
      until: until === undefined ? null : rfc3339(until),
    })),
  };
}

/** `retry helps 94 % (88 to 97 %)`: how many of the retries succeeded, and between which shares it truly lies. */
export function retryHelpsWords({ retryHelps }: FailureGroupView): string {
  if (!retryHelps) return 'nothing was retried yet';
  const percent = (share: number) => Math.round(share * 100);
  const { share, low, high } = retryHelps;
  return `retry helps ${percent(share)} % (${percent(low)} to ${percent(high)} %)`;
}

const BARS = '▁▂▃▄▅▆▇█';
const HOURS_SHOWN = 24;
const HOUR = 3_600_000;

/** The failures of each of the last 24 hours as bars. */
export function trendOf({ hours }: FailureGroupView, now: number): string {
  const last = now - (now % HOUR);
  const counts = Array.from({ length: HOURS_SHOWN }, (_, i) => hours[String(last - (HOURS_SHOWN - 1 - i) * HOUR)] ?? 0);
  const most = Math.max(...counts);
  return counts.map((count) => (count === 0 ? '·' : BARS[Math.ceil((count / most) * BARS.length) - 1])).join('');
}

/** Everything about a group, in lines that are safe to print. */
export function failureGroupLines(group: FailureGroupView, now: number): readonly string[] {
  const { type, reason, kind, message, frame, count, dead, needsManual, firstAt, lastAt, task, actions } = group;
  return [
    `${visible(group.name)}: ${visible(message)}`,
    ...(frame === undefined ? [] : [`at ${visible(frame)}`]),
    `type ${visible(type)}   reason ${visible(reason)} (${kind})   fingerprint ${visible(group.fingerprint)}`,
    `${plural(count, 'failure', 'failures')} from ${clockTime(firstAt, now)} to ${clockTime(lastAt, now)}   ${trendOf(group, now)}`,
    `${dead} dead   ${needsManual} need a person   ${retryHelpsWords(group)}`,
    `sources  ${countsWords(group.sources)}`,
    `policies ${countsWords(group.policyVersions)}`,
    `sample   #${task}`,
    ...actions.map(({ at, verb, actor, note, until }) => {
      const why = note === undefined ? '' : `: ${visible(note)}`;
      const end = until === undefined ? '' : ` until ${clockTime(until, now)}`;
      return `${clockTime(at, now)}  ${verb}${end} by ${visible(actor)}${why}`;
    }),
  ];
}

function countsWords(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${visible(name)} ${count}`)
    .join(', ');
}
