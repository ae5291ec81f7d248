import { LONGEST, type Milliseconds } from '../duration.ts';
import { show } from '../show.ts';
import { refusal, tagged } from './refusal.ts';

/** How delays are spread, so that tasks that failed together are not retried together. */
export type Jitter =
  | { readonly kind: 'none' }
  /** Uniform within ±factor of the delay, after the cap. */
  | { readonly kind: 'proportional'; readonly factor: number }
  /** Uniform between 0 and the delay. */
  | { readonly kind: 'full' }
  /** Half of the delay, plus uniform up to the other half. */
  | { readonly kind: 'equal' };

/** A jitter, or the short form of one, as in a file: `'full'`, `0.2` or `'20%'`. */
export type JitterInput = Jitter | 'none' | 'full' | 'equal' | number | `${number}%`;

/** A random number of at least 0 and below 1, drawn by the caller. */
export type Roll = number;

/** A delay with jitter, its bounds, and its density per millisecond (absent if nothing was drawn). */
export interface Drawn {
  readonly delay: Milliseconds;
  readonly low: Milliseconds;
  readonly high: Milliseconds;
  readonly density?: number;
}

/** Spreads a delay by ±`factor` of itself, 0 to 1. */
export function proportional(factor: number): Jitter {
  if (typeof factor !== 'number' || !(factor >= 0 && factor <= 1)) {
    throw refusal(`A proportional jitter must be a number between 0 and 1, got ${show(factor)}.`);
  }
  return { kind: 'proportional', factor };
}

const FIELDS = { none: [], proportional: ['factor'], full: [], equal: [] } as const satisfies Readonly<
  Record<Jitter['kind'], readonly string[]>
>;

/**
 * Reads a jitter that is plain data, or its short form.
 * @throws InvalidInputError for an unknown kind or field, and for a factor that `proportional` refuses.
 */
export function parseJitter(value: unknown): Jitter {
  if (typeof value === 'string' && JITTER_WORDS.includes(value as never)) return { kind: value as 'full' };
  const factor = typeof value === 'string' ? partOf(value) : value;
  if (typeof factor === 'number' && factor >= 0 && factor <= 1) return { kind: 'proportional', factor };
  if (typeof value !== 'object' || value === null || !('kind' in value)) {
    const percent = Number(value) > 1 && Number(value) <= 100 ? ` Write '${value}%'.` : '';
    throw refusal(`it must be none, full, equal, a part from 0 to 1 or a percentage, got ${show(value)}.${percent}`);
  }
  const given = tagged(value, FIELDS, 'a jitter');
  return given.kind === 'proportional' ? proportional(given.factor as number) : { kind: given.kind };
}

export const JITTER_WORDS = ['none', 'full', 'equal'] as const;

/** `20%` as 0.2. */
export function partOf(text: string): number | undefined {
  const percent = /^(\d{1,3}(?:\.\d+)?)%$/.exec(text)?.[1];
  return percent === undefined ? undefined : Number(percent) / 100;
}

/** Jitter adds at most this much to a delay that a server asked for. */
export const WIDEST_ABOVE_FLOOR: Milliseconds = 300_000;

/** Applies jitter to the policy's delay. The result is between `floor` and ten years, and never negative. */
export function jittered(delay: Milliseconds, jitter: Jitter, roll: Roll, floor: Milliseconds = 0): Drawn {
  switch (jitter.kind) {
    case 'none':
      return draw(Math.max(delay, floor), Math.max(delay, floor), roll);
    case 'proportional':
      return draw(Math.max(delay * (1 - jitter.factor), floor), delay * (1 + jitter.factor), roll);
    case 'full':
      return draw(floor, delay, roll);
    case 'equal':
      return draw(Math.max(delay / 2, floor), delay, roll);
  }
}

/** Applies jitter to a delay that the other side asked for. It only adds: as much as it would spread, at most 5 min. */
export function jitteredAbove(floor: Milliseconds, jitter: Jitter, roll: Roll): Drawn {
  return draw(floor, floor + Math.min(spread(floor, jitter), WIDEST_ABOVE_FLOOR), roll);
}

function spread(delay: Milliseconds, jitter: Jitter): Milliseconds {
  switch (jitter.kind) {
    case 'none':
      return 0;
    case 'proportional':
      return delay * jitter.factor;
    case 'full':
      return delay;
    case 'equal':
      return delay / 2;
  }
}

function draw(from: Milliseconds, to: Milliseconds, roll: Roll): Drawn {
  const low = Math.min(Math.round(from), LONGEST);
  const high = Math.min(Math.round(to), LONGEST);
  if (high <= low) return { delay: low, low, high: low };
  return { delay: Math.round(low + roll * (high - low)), low, high, density: 1 / (high - low) };
}
