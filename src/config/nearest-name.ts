import { nearest } from '../nearest.ts';
import { oneLine } from './problems.ts';

/** What a person may have meant by a name that nobody knows, as a sentence: the nearest one, or all that there are if they are few. */
export function meant(name: string, known: readonly string[], list = true): string | undefined {
  const like = likeName(name, known);
  if (like !== undefined) return `Did you mean '${like}'?`;
  return list && known.length > 0 && known.length <= 40 ? `There are: ${known.map(oneLine).join(', ')}.` : undefined;
}

/** The name that is meant but for its spelling: `max_attempts` for `maxAttempts`, `timeout.reed` for `timeout.read`. */
export function likeName(name: string, known: readonly string[]): string | undefined {
  if (name.length > 80) return undefined;
  const plain = bare(name);
  return (
    known.find((each) => bare(each) === plain) ??
    nearest(name, known)[0] ??
    known.find((each) => bare(each).startsWith(plain) && plain.length > 3)
  );
}

function bare(name: string): string {
  return name.toLowerCase().replaceAll(/[_\- ]/g, '');
}
