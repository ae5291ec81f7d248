import type { Mistakes } from '../mistakes.ts';
import { editsBetween } from '../nearest.ts';
import type { Configuration } from '../worker/configuration.ts';

/** Shorter names differ by a letter on purpose. */
const SHORTEST = 6;

/** Warns of types that the configuration names almost as this program does: one of the two is probably misspelt. */
export function warnOfMisspeltTypes(
  { types = [] }: Configuration,
  defined: ReadonlyMap<string, unknown>,
  mistakes: Mistakes,
): void {
  for (const type of defined.keys()) {
    if (type.length < SHORTEST || types.includes(type)) continue;
    const like = types.find((each) => !defined.has(each) && !/\d/.test(each) && editsBetween(each, type) === 1);
    if (like === undefined) continue;
    const what = `The configuration has a policy for the type '${like}', and none for '${type}'. Did it mean '${type}'?`;
    mistakes.tell(`type ${type}`, what);
  }
}
