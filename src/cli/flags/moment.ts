import { duration, type Milliseconds } from '../../duration.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';

const CLOCK = /^(?:(today|tomorrow)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?$/;
const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/i;

const FORMS = '14:30 (its next time), tomorrow 9:00, +2h, or 2026-01-31T09:00:00Z';

/**
 * Reads a time that a person typed, in local time unless it names a zone.
 * @throws Problem for what is no time.
 */
export function parseMoment(text: string, now: Date, what: string): Date {
  const trimmed = text.trim();
  if (trimmed.startsWith('+')) return new Date(now.getTime() + span(trimmed.slice(1), what));
  const clock = CLOCK.exec(trimmed);
  if (clock) return onClock(clock, now) ?? refuse(text, what);
  const date = DATE.exec(trimmed);
  return (date && onDate(date)) || refuse(text, what);
}

const PAST_CLOCK = /^(?:(today|yesterday)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?$/;
const PAST_FORMS = '14:30 (its last time), yesterday 9:00, 2h (so long ago), or 2026-01-31T09:00:00Z';

/**
 * Reads a time in the past that a person typed, in local time unless it names a zone.
 * @throws Problem for what is no time.
 */
export function parsePastMoment(text: string, now: Date, what: string): Date {
  const trimmed = text.trim();
  const clock = PAST_CLOCK.exec(trimmed);
  const date = DATE.exec(trimmed);
  const at = clock ? onPastClock(clock, now) : date ? onDate(date) : undefined;
  if (at) return at;
  if (!clock && !date && /^\d/.test(trimmed))
    return new Date(now.getTime() - span(trimmed.replace(/\s+ago$/, ''), what));
  throw usage(`${what} is not a time: "${visible(text)}"`, { hints: [`times are written: ${PAST_FORMS}`] });
}

/** Reads a time that a program wrote: a date, a time and its zone. Undefined for anything else. */
export function parseInstant(value: unknown): Date | undefined {
  const [date, , , , time, zone] = (typeof value === 'string' && DATE.exec(value.trim())) || [];
  return date !== undefined && time !== undefined && zone !== undefined
    ? onDate(DATE.exec(date) as RegExpExecArray)
    : undefined;
}

/** A span of time that a person typed. @throws Problem naming the flag. */
export function span(text: string, what: string): Milliseconds {
  try {
    return duration(text, what);
  } catch (error) {
    throw usage(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function onClock([, day, hours, minutes, seconds]: RegExpExecArray, now: Date): Date | undefined {
  const at = timeOfDay(hours, minutes, seconds, now);
  if (!at) return undefined;
  if (day === 'tomorrow' || (day === undefined && at <= now)) at.setDate(at.getDate() + 1);
  return at;
}

function onPastClock([, day, hours, minutes, seconds]: RegExpExecArray, now: Date): Date | undefined {
  const at = timeOfDay(hours, minutes, seconds, now);
  if (at && (day === 'yesterday' || (day === undefined && at > now))) at.setDate(at.getDate() - 1);
  return at;
}

/** This time on the day of `now`. Undefined if it is not a valid time. */
function timeOfDay(
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

function onDate([, year, month, day, time, zone]: RegExpExecArray): Date | undefined {
  // JavaScript reads the 30th of February as a day in March.
  const calendar = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  if (calendar.getUTCMonth() !== Number(month) - 1 || calendar.getUTCDate() !== Number(day)) return undefined;
  const at = new Date(`${year}-${month}-${day}T${time ?? '00:00'}${zone?.toUpperCase() ?? ''}`);
  return Number.isNaN(at.getTime()) ? undefined : at;
}

function refuse(text: string, what: string): never {
  throw usage(`${what} is not a time: "${visible(text)}"`, { hints: [`times are written: ${FORMS}`] });
}
