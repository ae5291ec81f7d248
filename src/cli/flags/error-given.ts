import { thrownFrom } from '../../documents/thrown.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';

/** The error that a person wrote: JSON if it begins with {, otherwise a message. @throws Problem for invalid JSON. */
export function errorGiven(text: string): unknown {
  return text.trimStart().startsWith('{') ? errorFromJson(text) : new Error(text);
}

/** The error that JSON describes. @throws Problem for invalid JSON. */
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
