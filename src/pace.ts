import { type DurationInput, duration, LONGEST } from './duration.ts';
import { InvalidInputError } from './errors.ts';
import { refuseUnknown, wholeNumber } from './options.ts';
import { show } from './show.ts';

/** How often executions may start: so many a second, and so many at once after a pause. */
export interface Pace {
  readonly perSecond: number;
  /** How many may start at once where none started for a while; at least 1. */
  readonly burst: number;
}

/** How often executions of a source or queue may start, and how many may run at the same time. Null: no such limit. */
export interface Limits {
  readonly pace?: Pace | null;
  readonly concurrency?: number | null;
}

/** A pace as people write it: `'10/s'`, `'5000/h'`, `'100/15m'`, or with its own burst: `{ rate: '10/s', burst: 5 }`. */
export type PaceInput = string | { readonly rate: string; readonly burst?: number };

/** The units of a rate, in seconds. */
const UNITS: readonly (readonly [unit: string, seconds: number])[] = [
  ['s', 1],
  ['m', 60],
  ['h', 3_600],
  ['d', 86_400],
];

const MOST_PER_SECOND = 1_000_000;
/** One start in ten years. */
const LEAST_PER_SECOND = 1_000 / LONGEST;
const MOST_AT_ONCE = 1_000_000;

/**
 * Reads a pace. Unless said otherwise its burst is what starts in a tenth of a second, at least 1.
 * @throws InvalidInputError naming `what` and the value.
 */
export function parsePace(input: unknown, what = 'pace'): Pace {
  if (typeof input === 'string') return paced(rateOf(input, what));
  if (typeof input !== 'object' || input === null) throw notAPace(input, what);
  refuseUnknown(input, ['rate', 'burst'], what);
  const { rate, burst } = input as { readonly rate?: unknown; readonly burst?: unknown };
  if (typeof rate !== 'string') throw notAPace(rate, `${what}.rate`);
  const perSecond = rateOf(rate, `${what}.rate`);
  return burst === undefined
    ? paced(perSecond)
    : { perSecond, burst: wholeNumber(burst, `${what}.burst`, 1, MOST_AT_ONCE) };
}

/** A pace at this rate with the burst that it has unless said otherwise, or a larger least one. */
export function paced(perSecond: number, leastBurst = 1): Pace {
  return { perSecond, burst: Math.max(leastBurst, Math.ceil(perSecond / 10)) };
}

/** Writes a rate the way `parsePace` reads it, in whole numbers where a unit allows it: `10/s`, `90/m`, `5000/h`, `1/7d`. */
export function formatRate(perSecond: number): string {
  const amounts = UNITS.map(([unit, seconds]) => ({ unit, amount: perSecond * seconds }));
  const whole = amounts.find(({ amount }) => amount > 0.5 && amount < 1e6 && isWhole(amount));
  if (whole) return `${Math.round(whole.amount)}/${whole.unit}`;
  const nearly = amounts.find(({ amount }) => amount >= 1);
  if (nearly)
    return `${nearly.amount < 10 ? Number(nearly.amount.toPrecision(2)) : Math.round(nearly.amount)}/${nearly.unit}`;
  return `1/${Math.max(1, Math.round(1 / (perSecond * 86_400)))}d`;
}

/** `10/s`, or with a burst of its own `10/s (5 at once)`. */
export function formatPace({ perSecond, burst }: Pace): string {
  return burst === paced(perSecond).burst ? formatRate(perSecond) : `${formatRate(perSecond)} (${burst} at once)`;
}

function rateOf(text: string, what: string): number {
  const perSecond = perSecondOf(text);
  if (perSecond === undefined) throw notAPace(text, what);
  return perSecond;
}

function perSecondOf(text: string): number | undefined {
  const [, amount, span = ''] = /^\s*(\d{1,9}(?:\.\d{1,9})?)\s*\/\s*([\w.]{1,32})\s*$/.exec(text) ?? [];
  const seconds = UNITS.find(([unit]) => unit === span)?.[1] ?? secondsOf(span);
  if (amount === undefined || seconds === undefined) return undefined;
  const perSecond = Number(amount) / seconds;
  return perSecond >= LEAST_PER_SECOND && perSecond <= MOST_PER_SECOND ? perSecond : undefined;
}

function secondsOf(span: DurationInput): number | undefined {
  try {
    const ms = duration(span);
    return ms > 0 ? ms / 1_000 : undefined;
  } catch (error) {
    if (error instanceof InvalidInputError) return undefined;
    throw error;
  }
}

function notAPace(value: unknown, what: string): InvalidInputError {
  return new InvalidInputError(
    `${what} must be a rate such as '10/s', '100/m', '5000/h' or '3/10s', from 1 in ten years to ${MOST_PER_SECOND} a second, got ${show(value)}.`,
  );
}

function isWhole(amount: number): boolean {
  return Math.abs(amount - Math.round(amount)) < amount * 1e-6;
}
