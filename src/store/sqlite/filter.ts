import type { TaskFilter } from '../../filter.ts';
import { conditionsOf, type FilterColumn } from '../filter.ts';

/** The conditions of a filter besides its states, in SQL, and their values. `columns`: the expression of each column that is compared. */
export function filterSql(
  filter: TaskFilter,
  columns: Readonly<Partial<Record<FilterColumn | 'since', string>>>,
): { readonly conditions: readonly string[]; readonly values: Readonly<Record<string, string | number>> } {
  const values: Record<string, string | number> = {};
  const given = (value: string | number): string => {
    const name = `filter${Object.keys(values).length}`;
    values[name] = value;
    return `:${name}`;
  };
  const listed = (list: readonly string[]) => `SELECT value FROM json_each(${given(JSON.stringify(list))})`;
  const conditions = conditionsOf(filter).flatMap(({ column, exactly, like, contains, ranges, not }) => {
    if (columns[column] === undefined) return [];
    const value = not ? `coalesce(${columns[column]}, '')` : columns[column];
    const any = [
      ...(exactly.length > 0 ? [`${value} IN (${listed(exactly)})`] : []),
      ...(like.length > 0 ? [`EXISTS (${listed(like.map(globOf))} WHERE ${value} GLOB value)`] : []),
      ...(contains.length > 0 ? [`EXISTS (${listed(contains)} WHERE instr(lower(${value}), lower(value)) > 0)`] : []),
      ...ranges.map(
        ({ from = 0, to = Number.MAX_SAFE_INTEGER }) => `${columns[column]} BETWEEN ${given(from)} AND ${given(to)}`,
      ),
    ].join(' OR ');
    return any === '' ? String(not) : `${not ? 'NOT ' : ''}(${any})`;
  });
  if (columns.since === undefined) return { conditions, values };
  const { endedFrom, endedBefore } = filter;
  if (endedFrom !== undefined) conditions.push(`${columns.since} >= ${given(endedFrom)}`);
  if (endedBefore !== undefined) conditions.push(`${columns.since} < ${given(endedBefore)}`);
  return { conditions, values };
}

/** Only `*` has a meaning of its own. */
function globOf(pattern: string): string {
  return pattern.replaceAll(/[?[]/g, '[$&]');
}
