import { parseFilter } from '../../filter.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { isOver, TASK_STATES } from '../../task.ts';

/** The states in which something still happens by itself. */
const UNFINISHED = TASK_STATES.filter((state) => !isOver(state) && state !== 'held');

const PAGE = 1_000;

/**
 * All tasks that wait or run and fit a filter, the oldest first. Held tasks are not among them, unless the filter names states.
 */
export async function unfinished(
  holdfast: Operations,
  { filter = '', types }: { readonly filter?: string; readonly types?: readonly string[] } = {},
): Promise<readonly Task[]> {
  // The names of its members do not depend on the time.
  const { states } = parseFilter(filter, new Date(0));
  const found: Task[] = [];
  for (let before: number | undefined; ; ) {
    const page = await holdfast.list({
      filter,
      ...(!states && { states: UNFINISHED }),
      limit: PAGE,
      ...(types && { types }),
      ...(before !== undefined && { before }),
    });
    found.push(...page);
    before = page.at(-1)?.id;
    if (page.length < PAGE) return found.reverse();
  }
}
