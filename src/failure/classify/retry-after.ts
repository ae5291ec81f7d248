import { LONGEST, type Milliseconds } from '../../duration.ts';
import { read } from './inspect.ts';

/**
 * How long the `Retry-After` header asks to wait (RFC 9110 §10.2.3: seconds or an HTTP-date), or undefined where there is
 * none or it is garbage: negative, trailing text, or beyond ten years. Fractions of a second are accepted, 0 is a hint, and
 * a date in the past is 0. Where the response has a `Date`, the wait is measured from that, so a skewed clock does not matter.
 */
export function retryAfter(headers: unknown, now: number): Milliseconds | undefined {
  const value = header(headers, 'retry-after');
  if (value === undefined) return undefined;
  if (/^\d{1,12}(?:\.\d{1,20})?$/.test(value)) return bounded(Number(value) * 1_000);
  const at = httpDate(value);
  if (at === undefined) return undefined;
  const sent = header(headers, 'date');
  const serverNow = sent === undefined ? undefined : httpDate(sent);
  return bounded(Math.max(0, at - (serverNow ?? now)));
}

function bounded(ms: number): Milliseconds | undefined {
  return ms <= LONGEST ? Math.ceil(ms) : undefined;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The preferred form of an HTTP-date, `Thu, 01 Jan 2026 00:02:00 GMT`. `Date.parse` would also take `-3` for a year. */
const HTTP_DATE =
  /^[A-Z][a-z]{2}, (0[1-9]|[12]\d|3[01]) ([A-Z][a-z]{2}) (\d{4}) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60) GMT$/;

function httpDate(text: string): number | undefined {
  const match = HTTP_DATE.exec(text);
  if (!match) return undefined;
  const [, day, month, year, h, m, s] = match;
  const index = MONTHS.indexOf(month as string);
  return index < 0 ? undefined : Date.UTC(Number(year), index, Number(day), Number(h), Number(m), Number(s));
}

/** How many names are looked at: more than any server sends. */
const MOST_HEADERS = 1_000;

/** A header of a `Headers`, a Map or a plain object, in any letter case; the first of several values. */
export function header(headers: unknown, name: string): string | undefined {
  try {
    const key = namesIn(headers).find((candidate) => candidate.toLowerCase() === name);
    if (key !== undefined) return text(headers instanceof Map ? headers.get(key) : read(headers, key));
    const get = read(headers, 'get');
    return typeof get === 'function' ? text(get.call(headers, name)) : undefined;
  } catch {
    // Somebody else's object refused to be read, and what cannot be read asks for nothing.
    return undefined;
  }
}

function namesIn(headers: unknown): readonly string[] {
  if (typeof headers !== 'object' || headers === null) return [];
  const names = headers instanceof Map ? [...headers.keys()] : Object.keys(headers);
  return names.slice(0, MOST_HEADERS).filter((name) => typeof name === 'string');
}

function text(value: unknown): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return typeof first === 'string' || typeof first === 'number' ? String(first).trim() : undefined;
}
