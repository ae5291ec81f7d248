import { InvalidInputError } from '../../errors.ts';
import { visible } from '../../views/visible.ts';
import { problemOf, usage } from '../problem.ts';

/** The names of an input's members on the command line. */
export interface FlagWords {
  /** By member: the flag, or words for an argument. */
  readonly words: Readonly<Record<string, string>>;
  /** By member: what to do if it is refused. */
  readonly hints?: Readonly<Record<string, string>>;
}

/**
 * Runs a check of a handler, and names the flag in its error instead of the member.
 * @throws Problem naming the flag, or `flag` if the whole value came from one.
 */
export function inFlagWords<T>(check: () => T, { words, hints = {} }: FlagWords, flag?: string): T {
  try {
    return check();
  } catch (error) {
    const { message } = problemOf(error);
    const member = error instanceof InvalidInputError ? (error.member ?? '') : '';
    const word = words[member];
    const spelled = word !== undefined && message.startsWith(member) ? word + message.slice(member.length) : message;
    const hint = hints[member];
    throw usage(visible(flag === undefined ? spelled : `${flag}: ${spelled}`), {
      ...(hint !== undefined && { hints: [hint] }),
      cause: error,
    });
  }
}
