import { formatDuration } from '../duration.ts';

/** `in 4m10s`, or `now` for what is past: a time that has come is never shown as a negative one. */
export function until(at: number, now: number): string {
  return at <= now ? 'now' : `in ${rounded(at - now)}`;
}

/** `4m ago`: one unit is enough for what is over. */
export function ago(at: number, now: number): string {
  const ms = Math.max(0, now - at);
  if (ms < 1_000) return 'just now';
  return `${formatDuration(largestUnit(ms))} ago`;
}

/** `4m`: how long something lasts that began then, in one unit. */
export function lasting(since: number, now: number): string {
  return formatDuration(largestUnit(Math.max(0, now - since)));
}

/** `14:28:39`, with the date unless it is today's, in local time. */
export function clockTime(at: number, now: number): string {
  const [moment, today] = [new Date(at), new Date(now)];
  const time = [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map(twoDigits).join(':');
  if (moment.toDateString() === today.toDateString()) return time;
  const date = [moment.getFullYear(), twoDigits(moment.getMonth() + 1), twoDigits(moment.getDate())].join('-');
  return `${date} ${time}`;
}

/** RFC 3339 in UTC with milliseconds, or null. */
export function rfc3339(at: number | Date | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString();
}

/** Seconds are enough for what is more than one away. */
function rounded(ms: number): string {
  return formatDuration(ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000);
}

function largestUnit(ms: number): number {
  const unit = [86_400_000, 3_600_000, 60_000].find((each) => ms >= each) ?? 1_000;
  return Math.floor(ms / unit) * unit;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
