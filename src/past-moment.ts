import { spanOf } from './duration.ts';

const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/i;
const CLOCK = /^(?:(today|yesterday)(?:\s+|$))?(?:(\d{1,2}):(\d{2})(?::(\d{2}))?)?$/;

export const PAST_FORMS = '14:30 (its last time), yesterday 9:00, 2h (so long ago), or 2026-01-31T09:00:00Z';

/** Reads a time in the past that a person typed, in local time unless it names a zone. Undefined for what is no time. */
export function pastMoment(text: string, now: Date): Date | undefined {
  const trimmed = text.trim();
  const clock = trimmed === '' ? null : CLOCK.exec(trimmed);
  if (clock) return onPastClock(clock, now);
  const ago = spanOf(trimmed.replace(/\s+ago$/, ''));
  return ago === undefined ? dateIn(trimmed) : new Date(now.getTime() - ago);
}

/** Reads a time that a program wrote: a date, a time and its zone. Undefined for anything else. */
export function parseInstant(value: unknown): Date | undefined {
  const [date, , , , time, zone] = (typeof value === 'string' && DATE.exec(value.trim())) || [];
  return date !== undefined && time !== undefined && zone !== undefined ? dateIn(date) : undefined;
}

/** A date, with or without a time and a zone. Undefined if it is not a valid one. */
export function dateIn(text: string): Date | undefined {
  const [, year, month, day, time, zone] = DATE.exec(text) ?? [];
  if (year === undefined) return undefined;
  // JavaScript reads the 30th of February as a day in March.
  const calendar = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  if (calendar.getUTCMonth() !== Number(month) - 1 || calendar.getUTCDate() !== Number(day)) return undefined;
  const at = new Date(`${year}-${month}-${day}T${time ?? '00:00'}${zone?.toUpperCase() ?? ''}`);
  return Number.isNaN(at.getTime()) ? undefined : at;
}

function onPastClock([, day, hours, minutes, seconds]: RegExpExecArray, now: Date): Date | undefined {
  const at = timeOfDay(hours ?? '0', minutes ?? '0', seconds, now);
  if (at && (day === 'yesterday' || (day === undefined && at > now))) at.setDate(at.getDate() - 1);
  return at;
}

/** This time on the day of `now`. Undefined if it is not a valid time. */
export function timeOfDay(
  hours: string | undefined,
  minutes: string | undefined,
  seconds: string | undefined,
  now: Date,
): Date | undefined {
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds ?? 0)];
  if (h > 23 || m > 59 || s > 59) return undefined;
  const at = new Date(now);
  at.setHours(h, m, s, 0);
  return at;
}
