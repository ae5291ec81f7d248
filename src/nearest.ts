/** The nearest known words: at most two edits away (one for short words), or words that begin with this one. */
export function nearest(word: string, known: readonly string[]): string[] {
  const typed = word.toLowerCase();
  const limit = typed.length <= 3 ? 1 : 2;
  const near = known
    .map((each) => ({ each, edits: typed.length >= 3 && each.startsWith(typed) ? 1 : editsBetween(typed, each) }))
    .filter(({ edits }) => edits <= limit);
  const least = Math.min(...near.map(({ edits }) => edits));
  return near.filter(({ edits }) => edits === least).map(({ each }) => each);
}

/** Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other. */
export function editsBetween(a: string, b: string): number {
  let [beforeLast, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + same,
        swapped ? (beforeLast[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] as number;
}

/** The known name that was probably meant: `maxAttempts` for `max_attempts`, `timeout.read` for `timeout.reed`. */
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
