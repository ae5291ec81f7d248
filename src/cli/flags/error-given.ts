import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';
import { thrownFrom } from './thrown.ts';

/** The error that a person wrote: what begins with { is JSON, everything else a message. @throws Problem for broken JSON. */
export function errorGiven(text: string): unknown {
  return text.trimStart().startsWith('{') ? errorFromJson(text) : new Error(text);
}

/** The error that JSON tells of. @throws Problem for what is no JSON. */
export function errorFromJson(text: string): unknown {
  try {
    return thrownFrom(JSON.parse(text));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw usage(`what was given is no JSON: ${visible(error.message)}`, {
      hints: ["a message alone is an argument: holdfast classify 'connect ECONNREFUSED'"],
      cause: error,
    });
  }
}
