import { InvalidInputError } from './errors.ts';
import { show } from './show.ts';

/** Milliseconds. Inside Holdfast every span of time is a number of milliseconds. */
export type Milliseconds = number;

/**
 * A duration with its unit: `'90s'`, `'10m'`, `'1h30m'`, `'2d'`, `'250ms'`, or ISO 8601 such as `'PT15M'`. A bare number could mean
 * seconds or milliseconds, so only 0 needs no unit.
 */
export type DurationInput = string | 0;

const UNITS: Readonly<Record<string, Milliseconds>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** The longest duration: ten years. A longer one is refused in options and cut in calculations. */
export const LONGEST: Milliseconds = 10 * 365 * 86_400_000;

type Code = 'invalid_input' | 'invalid_policy';

/**
 * Reads a duration. Zero is allowed; ten years is the longest.
 * @throws InvalidInputError naming `what` and the value, for anything that is not a finite, non-negative duration with its unit.
 */
export function duration(input: DurationInput, what = 'duration', code: Code = 'invalid_input'): Milliseconds {
  needUnit(input, what, code);
  return span(input, what, code);
}

/** @throws InvalidInputError for a bare number above 0. */
export function needUnit(input: unknown, what: string, code: Code): void {
  const isNumber = typeof input === 'number' || (typeof input === 'string' && /^\d{1,15}(\.\d+)?$/.test(input));
  if (!isNumber || !(Number(input) > 0 && Number(input) <= LONGEST)) return;
  throw new InvalidInputError(
    `${what} needs a unit, got ${show(input)}. Write '${input}s' for seconds or '${input}ms' for milliseconds.`,
    code,
  );
}

/** As `duration`; a number is milliseconds. For what Holdfast computed or stored itself. */
export function span(input: DurationInput | Milliseconds, what: string, code: Code = 'invalid_input'): Milliseconds {
  if (typeof input === 'string') needUnit(input, what, code);
  const ms = typeof input === 'number' ? input : parse(input);
  const objection = objectionTo(ms);
  if (objection === undefined) return Math.round(ms as Milliseconds);
  const written = typeof input === 'string' ? respelt(input) : undefined;
  const isMoment = (input as unknown) instanceof Date;
  const next = isMoment ? 'It is how long to wait from now, not a moment.' : written && `Write '${written}'.`;
  throw new InvalidInputError(
    `${what} must ${objection}, got ${isMoment ? 'a Date' : show(input)}.${next === undefined ? '' : ` ${next}`}`,
    code,
  );
}

/** The milliseconds of a duration; undefined for anything else. */
export function spanOf(input: unknown): Milliseconds | undefined {
  const ms = parse(input);
  return objectionTo(ms) === undefined ? ms : undefined;
}

/** Writes a span the way `duration` reads it, in the two largest units: `1h30m`, `2d`, `450ms`. */
export function formatDuration(ms: Milliseconds): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 9_950) return `${Math.round(ms / 100) / 10}s`;
  const whole = Math.round(ms / 1_000);
  const parts = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor((whole % 86_400) / 3_600), 'h'],
    [Math.floor((whole % 3_600) / 60), 'm'],
    [whole % 60, 's'],
  ] as const;
  const first = parts.findIndex(([n]) => n > 0);
  return parts
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, unit]) => `${n}${unit}`)
    .join('');
}

function objectionTo(ms: Milliseconds | undefined): string | undefined {
  if (ms === undefined || Number.isNaN(ms)) return "be a duration such as '90s', '10m' or 'PT1H'";
  if (ms < 0) return 'not be negative';
  return ms > LONGEST ? 'be at most ten years' : undefined;
}

function parse(input: unknown): Milliseconds | undefined {
  if (typeof input !== 'string' || input.length > 64) return undefined;
  const text = input.trim();
  return text.startsWith('P') ? parseIso(text) : parseUnits(text);
}

function parseUnits(text: string): Milliseconds | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g)) {
    total += Number(amount) * (UNITS[unit as string] as number);
  }
  return total;
}

function parseIso(text: string): Milliseconds | undefined {
  const amount = String.raw`(\d+(?:\.\d+)?)`;
  const form = new RegExp(`^P(?:${amount}W)?(?:${amount}D)?(?:T(?:${amount}H)?(?:${amount}M)?(?:${amount}S)?)?$`);
  const match = form.exec(text);
  if (!match || match.slice(1).every((part) => part === undefined) || text.endsWith('T')) return undefined;
  const [w, d, h, m, s] = match.slice(1).map((part) => Number(part ?? 0)) as [number, number, number, number, number];
  return w * 604_800_000 + d * 86_400_000 + h * 3_600_000 + m * 60_000 + s * 1_000;
}

const SPELLINGS: readonly (readonly [spelling: RegExp, unit: string])[] = [
  [/^(ms|msecs?|millis(econds)?)$/, 'ms'],
  [/^(s|secs?|seconds?)$/, 's'],
  [/^(m|mins?|minutes?)$/, 'm'],
  [/^(h|hrs?|hours?)$/, 'h'],
  [/^(d|days?)$/, 'd'],
  [/^(w|wks?|weeks?)$/, 'w'],
];

const SMALLER: Readonly<Record<string, string>> = { w: 'd', d: 'h', h: 'm', m: 's', s: 'ms' };

/** The valid spelling of `5 minutes`, `1 H`, `2mins` and `1h30`; undefined for what is valid, or cannot be told. */
export function respelt(text: string): string | undefined {
  const parts = [
    ...text
      .slice(0, 64)
      .toLowerCase()
      .matchAll(/(\d+(?:\.\d+)?)\s*([a-z]*)/g),
  ];
  let last: string | undefined;
  const units = parts.map(([, amount, unit]) => {
    // The number that `1h30` ends with is of the next smaller unit.
    const next = unit === '' ? SMALLER[last ?? ''] : SPELLINGS.find(([spelling]) => spelling.test(unit as string))?.[1];
    last = next;
    return next && `${amount}${next}`;
  });
  if (units.length === 0 || units.includes(undefined)) return undefined;
  const written = units.join('');
  return written !== text && objectionTo(parseUnits(written)) === undefined ? written : undefined;
}
