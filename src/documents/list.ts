import { InvalidInputError } from '../errors.ts';
import type { Failure } from '../failure/outcome.ts';
import { parseFilter, type TaskFilter } from '../filter.ts';
import type { Operations } from '../queue/operations.ts';
import type { Task } from '../queue/task-view.ts';
import { taskJson } from '../views/json-shapes.ts';
import { heldWords } from '../views/task-text.ts';
import { shortened } from '../views/visible.ts';

/** The most tasks of one page. */
export const MOST_LISTED = 1_000;

/** How many tasks are compared with a filter for one page, unless all that match are wanted. */
export const MOST_SEARCHED = 100_000;

/** How many tasks are read for one page of held tasks: each must be read to know what holds it. */
const MOST_READ = 2_000;

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

/**
 * The tasks of one page, and the number with which the next page starts, if there may be more. A page ends early after many tasks that do
 * not match: then it has fewer than were asked for, perhaps none, and `next` is there.
 */
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
  const filter = {
    ...parseFilter(given, new Date(holdfast.now())),
    ...(held && { states: ['ready', 'held'] as const }),
  };
  const { limit, before } = question;
  const page = await holdfast.administration.search(filter, {
    limit,
    before,
    most: Number.isFinite(limit) ? (held ? MOST_READ : MOST_SEARCHED) : Number.POSITIVE_INFINITY,
    ...(held && { keep: isHeld }),
  });
  return { ...page, total: await totalOf(holdfast, parsed, page, question) };
}

/** The content of `holdfast list --json`. */
export async function listContent(holdfast: Operations, { tasks, next, total }: Page): Promise<object> {
  const failures = await holdfast.administration.lastExecutions(tasks.filter(isTroubled), 'failed');
  const items = tasks.map((task) => ({ ...taskJson(task), error: errorJson(failures.get(task.id)?.failure) }));
  return { items, next: next === null ? null : String(next), total };
}

/** Whether something holds it, or would if it were due. A missing worker does not count. */
function isHeld(task: Task): boolean {
  return task.state === 'held' || heldWords(task) !== '';
}

async function totalOf(
  holdfast: Operations,
  { states, ...narrower }: TaskFilter,
  page: Omit<Page, 'total'>,
  { before, held }: ListQuestion,
): Promise<Page['total']> {
  if (page.next === null && before === undefined) return { value: page.tasks.length, exact: true };
  if (held || Object.keys(narrower).length > 0) return { value: null, exact: false };
  const byState = await holdfast.administration.totals();
  const counted = states ? [...new Set(states)].map((state) => byState[state]) : Object.values(byState);
  return { value: counted.reduce((sum, count) => sum + count, 0), exact: true };
}

/** Whether it failed and has not succeeded since. */
export function isTroubled({ reason, state }: Task): boolean {
  return reason !== undefined && state !== 'succeeded';
}

/** The last failure of a task that has not succeeded; null if it has none. `show` has the whole message. */
function errorJson(failure: Failure | undefined): object | null {
  return failure ? { reason: failure.reason, message: shortened(failure.message) } : null;
}
