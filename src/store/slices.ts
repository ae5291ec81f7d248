import type { TaskFilter } from '../filter.ts';
import type { ListFilter, Selected, Slice, TaskRecord } from './store.ts';

/** How many tasks one call compares with a filter. */
export const COMPARED_AT_ONCE = 10_000;

/** Where the next slice begins. `lowest`: the last task that was compared, if there may be more below it. */
export function sliceOf(ids: readonly number[], size: number, lowest: number | undefined): Selected {
  const next = ids.length === size ? ids.at(-1) : lowest;
  return { ids, ...(next !== undefined && { next }) };
}

/** A page of tasks that match, from as many slices as it takes. */
export async function listInSlices(
  { limit, before, ...filter }: ListFilter,
  {
    select,
    records,
  }: {
    readonly select: (filter: TaskFilter, slice: Slice) => Promise<Selected>;
    readonly records: (ids: readonly number[]) => Promise<readonly TaskRecord[]>;
  },
): Promise<readonly TaskRecord[]> {
  const found: TaskRecord[] = [];
  for (let start = before; found.length < limit; ) {
    const slice = { size: limit - found.length, ...(start !== undefined && { before: start }) };
    const { ids, next } = await select(filter, slice);
    if (ids.length > 0) found.push(...(await records(ids)));
    if (next === undefined) break;
    start = next;
  }
  return found;
}
