import type { Command } from 'commander';
import { InvalidInputError } from '../../errors.ts';
import { parsePace } from '../../pace.ts';
import { usage } from '../problem.ts';
import { wholeNumberFlag } from './policy-flags.ts';

export interface LimitFlags {
  readonly pace?: string;
  readonly concurrency?: string;
  readonly none?: boolean;
}

/** As in code. */
interface LimitsTyped {
  readonly pace?: string | null;
  readonly concurrency?: number | null;
}

/** Gives a command a name and the flags of its limits. */
export function declareLimits(command: Command): Command {
  return command
    .argument('<name>')
    .option('--pace <rate>', 'how often: 10/s, 100/m, 5000/h, 3/10s; none removes this limit')
    .option('--concurrency <number>', 'how many at the same time; none removes this limit')
    .option('--none', 'remove both limits');
}

/** The limits that a person typed, checked. What is left out stays as it is. @throws Problem. */
export function limitsFrom({ pace, concurrency, none }: LimitFlags, command: string): LimitsTyped {
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

function paceFrom(text: string): string {
  try {
    parsePace(text, '--pace');
    return text;
  } catch (error) {
    if (error instanceof InvalidInputError) throw usage(error.message, { cause: error });
    throw error;
  }
}
