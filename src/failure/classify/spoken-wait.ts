import type { Milliseconds } from '../../duration.ts';
import { plausible } from './times.ts';

/** How many characters of a text are searched for a wait. */
const LONGEST = 2_048;
const MOST_LEADS = 16;

/** Words before a wait or a time: "try again in", "retry-after:", "banned until", "resets at". */
const LEADS =
  /(?:\b(?:again|wait|available|allowed|access|back[- ]?off(?:ms|milliseconds)?|back|banned|blocked|cool-? ?down|locked|throttled|limited|refills?|renews?|resumes?|lifted|reset(?:s|ting|after|at|in)?)\b|(?<!\w)retry(?!ing)(?:[-_ ]?(?:after|delay))?(?:[-_ ]?ms\b)?|FLOOD_WAIT_)/gi;
/** A text about a limit may name its wait without those words: "in 10 s", "for 5 minutes". */
const PREPOSITIONS = /\b(?:in|after|for|every|within)\b/gi;
/** What may stand between these words and the wait. */
const FILLERS =
  /(?:[\s:="'(_>~-]|(?<![a-z])(?:in|after|for|until|till|at|on|by|of|about|around|approx\.?|approximately|least|another|up|to|is|will|be|time|the|this|next)(?![a-z])){0,12}/iy;

/**
 * The wait that a text asks for, from the first phrase that can be read: "try again in 7m12s", "wait 1 minute, 30 seconds", "until
 * 2026-12-01 at 00:00 UTC". A time is compared with `now`, and is UTC unless it has a zone.
 */
export function askedInWords(text: string, now: number): Milliseconds | undefined {
  return firstAfter(LEADS, text, now);
}

/** As `askedInWords`, for a text that is known to be about a limit. Such a text may name a wait in fewer words. */
export function saidInWords(text: string, now: number): Milliseconds | undefined {
  return firstAfter(LEADS, text, now) ?? firstAfter(PREPOSITIONS, text, now);
}

function firstAfter(leads: RegExp, whole: string, now: number): Milliseconds | undefined {
  const text = whole.length > LONGEST ? whole.slice(0, LONGEST) : whole;
  let left = MOST_LEADS;
  for (const { 0: lead, index } of text.matchAll(leads)) {
    if (left-- === 0) break;
    const from = index + lead.length;
    FILLERS.lastIndex = from;
    const between = FILLERS.exec(text)?.[0] ?? '';
    const at = from + between.length;
    const wait = momentAt(text, at, now) ?? spanAt(text, at) ?? bareNumber(lead, between, text.slice(at, at + 24));
    if (wait !== undefined) return plausible(wait);
  }
  return undefined;
}

/**
 * A number without a unit means milliseconds after "retryAfterMs", seconds after "retry after" and in FLOOD_WAIT_42, unless another word
 * follows the number.
 */
function bareNumber(lead: string, between: string, rest: string): number | undefined {
  const number = /^(\d{1,9}(?:\.\d{1,6})?)(?![\d.]*[ \t]*[\w%:/-])/.exec(rest)?.[1];
  if (number === undefined) return undefined;
  if (/m(?:s|illiseconds)$/i.test(lead)) return Number(number);
  const counts = lead === 'FLOOD_WAIT_' || /after$/i.test(lead) || /^[-_ ]?after\b/i.test(between);
  return counts ? Number(number) * 1_000 : undefined;
}

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^m(?:s|illi)/i, 1],
  [/^s/i, 1_000],
  [/^m/i, 60_000],
  [/^h/i, 3_600_000],
  [/^d/i, 86_400_000],
  [/^w/i, 604_800_000],
];

const PART =
  /(\d{1,3}(?:,\d{3}){1,3}|\d{1,10}(?:\.\d{1,9})?|an?|one)(?: more)?\s{0,3}(ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])/iy;
const SEPARATOR = /(?:,|\s|\band\b){0,6}/iy;
const CLOCK_SPAN = /(\d{1,3}):(\d\d):(\d\d)(?![:\d])/y;
const ISO_SPAN = /P(?:(\d{1,4})D)?T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?/y;

/** `7m12s`, `1 minute, 30 seconds`, `00:01:30`, `PT1M30S`: parts from the largest unit to the smallest. */
function spanAt(text: string, at: number): number | undefined {
  const clock = found(CLOCK_SPAN, text, at);
  if (clock) return sum(0, clock[1], clock[2], clock[3]);
  const iso = found(ISO_SPAN, text, at);
  if (iso) return sum(Number(iso[1] ?? 0), iso[2], iso[3], iso[4]);
  let [total, smallest, next] = [0, Number.POSITIVE_INFINITY, at];
  for (;;) {
    const part = found(PART, text, next);
    if (!part) break;
    const [whole, number, name] = part as unknown as [string, string, string];
    const unit = UNITS.find(([form]) => form.test(name))?.[1] as number;
    if (unit >= smallest) break;
    total += (/^[ao]/i.test(number) ? 1 : Number(number.replaceAll(',', ''))) * unit;
    smallest = unit;
    next += whole.length;
    next += found(SEPARATOR, text, next)?.[0].length ?? 0;
  }
  return smallest === Number.POSITIVE_INFINITY ? undefined : total;
}

function sum(days: number, hours = '0', minutes = '0', seconds = '0'): number {
  return ((days * 24 + Number(hours)) * 60 + Number(minutes)) * 60_000 + Number(seconds) * 1_000;
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DATE =
  /(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},? )?(?:(\d{4})[-/](\d\d)[-/](\d\d)|([a-z]{3})[a-z]{0,6}\.? (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?|(\d{1,2})(?:st|nd|rd|th)?[ -]([a-z]{3})[a-z]{0,6}[ -](\d{4}))(?!\d)/iy;
const TIME =
  /(?:T|,? (?:at )?)?(\d{1,2})(?::(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:\s?([ap])\.?m\b\.?)?|\s?([ap])\.?m\b\.?)/iy;
const ZONE = /\s?\(?(?:(Z|UTC|GMT)(?![+\-\w/])|([ECMP])([SD])T\b|(?:UTC|GMT)?([+-])(\d\d):?(\d\d)\b)/y;
/** An abbreviation or name of a zone that is not known. */
const OTHER_ZONE = /\s?\(?(?:[A-Z]{2,5}\b|[A-Z][a-z]+\/[A-Z])/y;
const EPOCH = /(\d{10}|\d{13})(?![\d.]\d|\d)/y;

/** Hours behind UTC in winter, of the zones that RFC 822 names. */
const BEHIND: Readonly<Record<string, number>> = { E: 5, C: 6, M: 7, P: 8 };
const DAY = 86_400_000;

/** How long until a date, a time of the day with a zone, or seconds or milliseconds of the epoch; 0 if it is past. */
function momentAt(text: string, at: number, now: number): number | undefined {
  const epoch = found(EPOCH, text, at)?.[1];
  if (epoch !== undefined) return Math.max(0, Number(epoch) * (epoch.length === 10 ? 1_000 : 1) - now);
  const today = Math.floor(now / DAY) * DAY;
  if (/^midnight \(?(?:UTC|GMT)\b/i.test(text.slice(at, at + 16))) return today + DAY - now;
  const date = found(DATE, text, at);
  const day = date && dayOf(date, now);
  const time = found(TIME, text, at + (date?.[0].length ?? 0));
  const after = at + (date?.[0].length ?? 0) + (time?.[0].length ?? 0);
  const zone = found(ZONE, text, after);
  const clock = time ? timeOf(time) : 0;
  if (clock === undefined || (!zone && found(OTHER_ZONE, text, after))) return undefined;
  if (day !== undefined) return Math.max(0, day + clock - offsetOf(zone) - now);
  if (date || !time || !zone) return undefined;
  const next = today + clock - offsetOf(zone);
  return (((next - now) % DAY) + DAY) % DAY;
}

/** The start of the day that a date names. Without a year it is the next such day. */
function dayOf(date: RegExpExecArray, now: number): number | undefined {
  const [said, day] = [date[1] ?? date[6] ?? date[9], Number(date[3] ?? date[5] ?? date[7])];
  const named = (date[4] ?? date[8])?.toLowerCase();
  const month = named === undefined ? Number(date[2]) - 1 : MONTHS.indexOf(named);
  if (month < 0 || month > 11 || day < 1 || day > 31) return undefined;
  if (said !== undefined) return Date.UTC(Number(said), month, day);
  const about = 1970 + Math.floor(now / 31_556_952_000);
  return [about - 1, about, about + 1].map((year) => Date.UTC(year, month, day)).find((start) => start > now - DAY);
}

function timeOf([, hours, minutes = '0', seconds = '0', fraction = '0', ...halves]: RegExpExecArray):
  | number
  | undefined {
  const half = halves[0] ?? halves[1];
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (/p/i.test(half) ? 12 : 0);
  if (hour > 24 || Number(minutes) > 59 || Number(seconds) > 60) return undefined;
  return sum(0, String(hour), minutes, `${seconds}.${fraction}`);
}

function offsetOf(zone: RegExpExecArray | undefined): number {
  if (zone?.[2] !== undefined) return sum(0, String((zone[3] === 'D' ? 1 : 0) - (BEHIND[zone[2]] as number)));
  return zone?.[4] === undefined ? 0 : (zone[4] === '-' ? -1 : 1) * sum(0, zone[5], zone[6]);
}

/** The match of a sticky expression at this place. */
function found(expression: RegExp, text: string, at: number): RegExpExecArray | undefined {
  expression.lastIndex = at;
  return expression.exec(text) ?? undefined;
}
