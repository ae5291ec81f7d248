import { LONGEST, type Milliseconds } from '../../duration.ts';

/** A wait in whole milliseconds, from 0 to ten years. A longer one becomes ten years, which needs a person. */
export function bounded(ms: number): Milliseconds | undefined {
  // Not a negative zero, because JSON does not keep it.
  return Number.isFinite(ms) && ms >= 0 ? Math.min(Math.ceil(ms), LONGEST) || 0 : undefined;
}

/** As `bounded`, for a number whose unit is a guess. More than ten years means that the guess is wrong. */
export function plausible(ms: number): Milliseconds | undefined {
  return ms <= LONGEST ? bounded(ms) : undefined;
}

/** Reads `120` or `1.5`, but not `1e3`, `+5` or `120junk`. */
export function plainNumber(text: string): number | undefined {
  return /^\d{1,64}(?:\.\d{1,20})?$/.test(text) ? Number(text) : undefined;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

const DAY = '(0[1-9]|[12]\\d|3[01])';
const CLOCK = '([01]\\d|2[0-3]):([0-5]\\d):([0-5]\\d|60)';
/** The preferred form, `Thu, 01 Jan 2026 00:02:00 GMT`, also with an offset as in mail. */
const PREFERRED = new RegExp(
  `^[A-Z][a-z]{2}, ${DAY} ([A-Z][a-z]{2}) (\\d{4}) ${CLOCK} (?:GMT|UTC|([+-])(\\d\\d)(\\d\\d))$`,
);
/** `Thursday, 01-Jan-26 00:02:00 GMT`, read as the nearest such year. */
const RFC_850 = new RegExp(`^[A-Z][a-z]{5,8}, ${DAY}-([A-Z][a-z]{2})-(\\d\\d) ${CLOCK} GMT$`);
/** `Thu Jan  1 00:02:00 2026`, which is GMT; `Date.parse` reads it as local time. */
const ASCTIME = new RegExp(`^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ( [1-9]|0[1-9]|[12]\\d|3[01]) ${CLOCK} (\\d{4})$`);

/** The time of an HTTP-date in any of its three forms (RFC 9110 §5.6.7), in milliseconds of the epoch. */
export function httpDate(text: string, now: number): number | undefined {
  const modern = PREFERRED.exec(text);
  if (modern) {
    const [, day, month, year, h, m, s, sign, hours, minutes] = modern;
    const offset = sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? 1 : -1);
    const at = utc(Number(year), month, day, h, m, s);
    return at === undefined ? undefined : at + offset;
  }
  const old = RFC_850.exec(text);
  if (old) {
    const [, day, month, year, h, m, s] = old;
    const here = 1970 + Math.floor(now / 31_556_952_000);
    const century = Math.floor(here / 100) * 100 + Number(year);
    return utc(century > here + 50 ? century - 100 : century, month, day, h, m, s);
  }
  const c = ASCTIME.exec(text);
  if (!c) return undefined;
  const [, month, day, h, m, s, year] = c;
  return utc(Number(year), month, day, h, m, s);
}

function utc(year: number, month = '', day = '', h = '', m = '', s = ''): number | undefined {
  const index = MONTHS.indexOf(month);
  return index < 0 ? undefined : Date.UTC(year, index, Number(day), Number(h), Number(m), Number(s));
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)$/;

/** The time of an ISO 8601 text with a zone. */
export function isoTime(text: string): number | undefined {
  const at = ISO.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `6m0s`, `20ms`, `1h2m3s`, `7.66s`, in milliseconds. */
export function spokenSpan(text: string): number | undefined {
  if (!/^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[smhd])){1,5}$/.test(text)) return undefined;
  let sum = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g))
    sum += Number(number) * (UNITS[unit as string] as number);
  return sum;
}

/** The wait in a "reset" header. Some services give a time and others a span; the size of the number tells which. */
export function resetIn(text: string, now: number): number | undefined {
  const number = plainNumber(text);
  if (number !== undefined) {
    if (number >= 1e12) return Math.max(0, number - now);
    return number >= 1e9 ? Math.max(0, number * 1_000 - now) : number * 1_000;
  }
  const at = isoTime(text) ?? httpDate(text, now);
  return at === undefined ? spokenSpan(text) : Math.max(0, at - now);
}
