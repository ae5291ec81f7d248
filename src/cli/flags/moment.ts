import { duration, type Milliseconds } from '../../duration.ts';
import { dateIn, PAST_FORMS, pastMoment, timeOfDay } from '../../past-moment.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';

const CLOCK = /^(?:(today|tomorrow)\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?$/;

const FORMS = '14:30 (its next time), tomorrow 9:00, +2h, or 2026-01-31T09:00:00Z';

/**
 * Reads a time that a person typed, in local time unless it names a zone.
 * @throws Problem for what is no time.
 */
export function parseMoment(text: string, now: Date, what: string): Date {
  const trimmed = text.trim();
  if (trimmed.startsWith('+')) return new Date(now.getTime() + span(trimmed.slice(1), what));
  const clock = CLOCK.exec(trimmed);
  return (clock ? onClock(clock, now) : dateIn(trimmed)) ?? refuse(text, what, FORMS);
}

/**
 * Reads a time in the past that a person typed, in local time unless it names a zone.
 * @throws Problem for what is no time.
 */
export function parsePastMoment(text: string, now: Date, what: string): Date {
  return pastMoment(text, now) ?? refuse(text, what, PAST_FORMS);
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

function refuse(text: string, what: string, forms: string): never {
  throw usage(`${what} is not a time: "${visible(text)}"`, { hints: [`times are written: ${forms}`] });
}
