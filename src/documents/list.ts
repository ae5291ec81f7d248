import { InvalidInputError } from '../errors.ts';
import { parseFilter, type TaskFilter } from '../filter.ts';
import type { Operations } from '../queue/operations.ts';
import type { Task } from '../queue/task-view.ts';
import { taskJson } from '../views/json-shapes.ts';
import { lastFailureIn } from '../views/last-decision.ts';
import { heldWords } from '../views/task-text.ts';
import { shortened } from '../views/visible.ts';

/** The most tasks of one page. */
export const MOST_LISTED = 1_000;

/** Which tasks are listed, the newest first. */
export interface ListQuestion {
  readonly filter: string;
  /** How many. May be infinite. */
  readonly limit: number;
  /** Only tasks with a smaller number. */
  readonly before?: number | undefined;
  /** Only those that are held: ready tasks that something keeps from starting, and tasks put aside. */
  readonly held?: boolean;
}

/** The tasks of one page, and the number with which the next page starts, if there are more. */
export interface Page {
  readonly tasks: readonly Task[];
  readonly next: number | null;
  /** How many match in all, if that is known without reading each. */
  readonly total: { readonly value: number | null; readonly exact: boolean };
}

/** @throws InvalidFilterError; InvalidInputError if held tasks are asked for by state. */
export async function pageOf(holdfast: Operations, question: ListQuestion): Promise<Page> {
  const { filter: given, held = false } = question;
  // The names of its members do not depend on the time.
  const parsed = parseFilter(given, new Date(0));
  if (held && parsed.states) {
    throw new InvalidInputError('held and state: contradict each other: held is of ready and held tasks.');
  }
  const page = await tasksOf(holdfast, held ? `${given} state:ready,held` : given, question);
  return { ...page, total: await totalOf(holdfast, parsed, page, question) };
}

/** The content of `holdfast list --json`. */
export async function listContent(holdfast: Operations, { tasks, next, total }: Page): Promise<object> {
  const items: object[] = [];
  for (const task of tasks) items.push({ ...taskJson(task), error: await errorJson(holdfast, task) });
  return { items, next: next === null ? null : String(next), total };
}

/** Whether something holds it, or would if it were due. A missing worker does not count. */
function isHeld(task: Task): boolean {
  return task.state === 'held' || heldWords(task) !== '';
}

async function tasksOf(
  holdfast: Operations,
  filter: string,
  { limit, before, held }: ListQuestion,
): Promise<Omit<Page, 'total'>> {
  const tasks: Task[] = [];
  for (let from = before; ; ) {
    // One more than is shown, to know whether there are more.
    const size = held ? MOST_LISTED : Math.min(MOST_LISTED, limit + 1 - tasks.length);
    const some = await holdfast.list({ filter, limit: size, ...(from !== undefined && { before: from }) });
    tasks.push(...(held ? some.filter(isHeld) : some));
    if (some.length < size) return { tasks, next: null };
    if (tasks.length > limit) break;
    from = some.at(-1)?.id;
  }
  const shown = tasks.slice(0, limit);
  return { tasks: shown, next: shown.at(-1)?.id ?? null };
}

async function totalOf(
  holdfast: Operations,
  { states, ...narrower }: TaskFilter,
  page: Omit<Page, 'total'>,
  { before, held }: ListQuestion,
): Promise<Page['total']> {
  if (page.next === null && before === undefined) return { value: page.tasks.length, exact: true };
  if (held || Object.keys(narrower).length > 0) return { value: null, exact: false };
  const { byState } = await holdfast.counts();
  const counted = states ? [...new Set(states)].map((state) => byState[state]) : Object.values(byState);
  return { value: counted.reduce((sum, count) => sum + count, 0), exact: true };
}

/** Whether it failed and has not succeeded since. */
export function isTroubled({ reason, state }: Task): boolean {
  return reason !== undefined && state !== 'succeeded';
}

/** The last failure of a task that has not succeeded; null if it has none. `show` has the whole message. */
async function errorJson(holdfast: Operations, task: Task): Promise<object | null> {
  const last = isTroubled(task) ? lastFailureIn(await holdfast.history(task.id)) : undefined;
  return last ? { reason: last.failure.reason, message: shortened(last.failure.message) } : null;
}
