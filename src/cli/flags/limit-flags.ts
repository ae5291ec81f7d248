import { InvalidInputError } from '../../errors.ts';
import { type Limits, parsePace } from '../../pace.ts';
import { usage } from '../problem.ts';
import { wholeNumberFlag } from './policy-flags.ts';

export interface LimitFlags {
  readonly pace?: string;
  readonly concurrency?: string;
  readonly none?: boolean;
}

/** The limits that a person typed. What is left out stays as it is. @throws Problem. */
export function limitsFrom({ pace, concurrency, none }: LimitFlags, command: string): Limits {
  if (none && (pace !== undefined || concurrency !== undefined)) {
    throw usage('--none removes both limits: it takes no --pace and no --concurrency');
  }
  if (none) return { pace: null, concurrency: null };
  if (pace === undefined && concurrency === undefined) {
    throw usage('there is no limit to set', {
      hints: [`set one: ${command} NAME --pace 10/s`, `remove both: ${command} NAME --none`],
    });
  }
  return {
    ...(pace !== undefined && { pace: pace === 'none' ? null : paceFrom(pace) }),
    ...(concurrency !== undefined && {
      concurrency: concurrency === 'none' ? null : wholeNumberFlag(concurrency, '--concurrency', 1, 100_000),
    }),
  };
}

function paceFrom(text: string) {
  try {
    return parsePace(text, '--pace');
  } catch (error) {
    if (error instanceof InvalidInputError) throw usage(error.message, { cause: error });
    throw error;
  }
}
