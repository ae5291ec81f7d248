/**
 * The first and the last of ids that are all numbers between these two, in any order. Undefined if some are missing. No id may be in
 * the list twice.
 */
export function rangeOf(ids: readonly number[]): readonly [first: number, last: number] | undefined {
  let [first = 0] = ids;
  let last = first;
  for (const id of ids) {
    if (id < first) first = id;
    else if (id > last) last = id;
  }
  return ids.length > 0 && last - first + 1 === ids.length ? [first, last] : undefined;
}

/** What follows the name of a column in a condition, and its values. */
export interface Among {
  readonly sql: string;
  readonly values: readonly (number | string)[];
}

/**
 * The condition that a column has one of these ids. Tasks that were enqueued together mostly have ids without gaps. For those it is a
 * range, because SQLite makes a temporary table of a list.
 */
export function among(ids: readonly number[]): Among {
  const range = rangeOf(ids);
  if (range) return { sql: 'BETWEEN ? AND ?', values: range };
  return { sql: 'IN (SELECT value FROM json_each(?))', values: [JSON.stringify(ids)] };
}
