import { InvalidInputError } from './errors.ts';
import { refuseUnknown, wholeNumber } from './options.ts';
import { OTHERWISE_CALLED } from './otherwise-called.ts';
import { type Limits, type PaceInput, parsePace } from './pace.ts';

/**
 * How fast the tasks of a source or queue may run, over all workers. A limit that is left out stays as it is; null removes it.
 */
export interface LimitOptions {
  /** How often executions may start: `'10/s'`, `'5000/h'`, `'100/15m'`, or with a burst `{ rate: '10/s', burst: 5 }`. */
  readonly pace?: PaceInput | null;
  /** How many may run at the same time. */
  readonly concurrency?: number | null;
}

type GivenLimits = { readonly [Name in keyof LimitOptions]?: LimitOptions[Name] | undefined };

/** The names of the options, for functions that have other options too. */
export const LIMIT_OPTIONS = ['pace', 'concurrency'] as const;

const MOST_AT_ONCE = 100_000;

/** @throws InvalidInputError if `pace` or `concurrency` is invalid. */
export function parseLimits({ pace, concurrency }: GivenLimits, what: string): Limits {
  const most = (value: number) => wholeNumber(value, `${what}: concurrency`, 1, MOST_AT_ONCE);
  return {
    ...(pace !== undefined && { pace: pace === null ? null : parsePace(pace, `${what}: pace`) }),
    ...(concurrency !== undefined && { concurrency: concurrency === null ? null : most(concurrency) }),
  };
}

/** The limits of one source or queue. @throws InvalidInputError, also if there is none. */
export function limitsGiven(options: LimitOptions, what: string): Limits {
  refuseUnknown(options, LIMIT_OPTIONS, what, OTHERWISE_CALLED.limits);
  const limits = parseLimits(options, what);
  if (Object.keys(limits).length > 0) return limits;
  throw new InvalidInputError(`${what} has no limits. Set \`pace\` or \`concurrency\`.`);
}
