import { likeName } from '../nearest.ts';
import { oneLine } from './problems.ts';

/** A sentence that suggests a known name: the nearest one, or all names if there are few. */
export function meant(name: string, known: readonly string[], list = true): string | undefined {
  const like = likeName(name, known);
  if (like !== undefined) return `Did you mean '${like}'?`;
  return list && known.length > 0 && known.length <= 40 ? `There are: ${known.map(oneLine).join(', ')}.` : undefined;
}
