import { likeName } from '../nearest.ts';
import { oneLine } from './problems.ts';

/** What a person may have meant by a name that nobody knows, as a sentence: the nearest one, or all that there are if they are few. */
export function meant(name: string, known: readonly string[], list = true): string | undefined {
  const like = likeName(name, known);
  if (like !== undefined) return `Did you mean '${like}'?`;
  return list && known.length > 0 && known.length <= 40 ? `There are: ${known.map(oneLine).join(', ')}.` : undefined;
}
