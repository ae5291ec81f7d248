import { InvalidInputError } from '../errors.ts';
import { parseFilter, type TaskFilter } from '../filter.ts';
import type { Operations } from '../queue/operations.ts';
import type { Move, Moved } from '../store/store.ts';
import { ACTIONS, TASK_STATES, type TaskState } from '../task.ts';
import { isAmbiguous } from '../views/task-text.ts';

export type Verb = 'retry' | 'cancel' | 'hold' | 'release' | 'resolve';

/** An action on all tasks that match a filter. */
export type BulkAction =
  | { readonly verb: Exclude<Verb, 'resolve'> }
  | { readonly verb: 'resolve'; readonly as: 'succeeded' | 'retry' | 'dead'; readonly result?: string };

/** What became of the selected tasks. */
export interface BulkCounts {
  done: number;
  /** Running tasks that were asked to stop. */
  requested: number;
  skipped: { -readonly [Why in keyof typeof SKIPPED]?: number };
}

export const SKIPPED = {
  changed: 'changed meanwhile',
  missing: 'were removed meanwhile',
  unique_key: 'would need a unique key that another task has',
  other_question: 'are no moves whose destination exists',
  failed: 'could not be done, as said above',
  may_have_happened: 'may have happened already: decide each with resolve, or add --accept-duplicate',
} as const;

/** How many of the selected tasks are shown. */
export const BULK_SAMPLE = 5;

/** The filter with the states that the action can change. A retry of what succeeded, or was cancelled, must be said. */
export function selection(
  text: string,
  verb: Verb,
  acceptDuplicate: boolean,
  now: Date,
): TaskFilter & { readonly states: readonly TaskState[] } {
  const filter = parseFilter(text, now);
  const can: readonly TaskState[] = verb === 'cancel' ? [...ACTIONS.cancel.from, 'running'] : ACTIONS[verb].from;
  const usual = can.filter((state) => verb !== 'retry' || (state !== 'succeeded' && state !== 'cancelled'));
  // A state that is only not excluded was not asked for.
  const states = /(^|\s)state:/.test(text) ? filter.states : filter.states?.filter((state) => usual.includes(state));
  const wrong = states?.find((state) => !can.includes(state));
  if (wrong !== undefined) {
    const possible = TASK_STATES.filter((state) => can.includes(state));
    throw new InvalidInputError(`${verb} cannot change what is ${wrong}. States: ${possible.join(', ')}.`);
  }
  if (states?.includes('succeeded') && !acceptDuplicate) {
    throw new InvalidInputError(
      'These tasks have succeeded, so a retry would do them a second time. If that is meant, accept it: --accept-duplicate, or accept_duplicate in the API.',
    );
  }
  return { ...filter, states: states ?? usual };
}

export function noCounts(): BulkCounts {
  return { done: 0, requested: 0, skipped: {} };
}

/**
 * Acts on tasks of a selection, in one transaction, and adds what became of them to `counts`. `asksEach`: leaves out tasks that may have
 * happened already.
 */
export async function moveBatch(
  holdfast: Operations,
  ids: readonly number[],
  move: Move,
  asksEach: boolean,
  counts: BulkCounts,
): Promise<void> {
  const open = asksEach ? await withoutAmbiguous(holdfast, ids) : ids;
  if (open.length < ids.length) skip(counts, 'may_have_happened', ids.length - open.length);
  for (const moved of await holdfast.administration.moveAll(open, move)) count(counts, moved);
}

async function withoutAmbiguous(holdfast: Operations, ids: readonly number[]): Promise<number[]> {
  const open: number[] = [];
  for (const id of ids) {
    const task = await holdfast.find(id);
    if (!task || !isAmbiguous(task, await holdfast.history(id))) open.push(id);
  }
  return open;
}

function count(counts: BulkCounts, moved: Moved): void {
  if (moved.moved) counts.done += 1;
  else if (moved.why === 'requested') counts.requested += 1;
  else if (moved.why === 'missing') skip(counts, 'missing', 1);
  else skip(counts, moved.occupiedBy === undefined ? 'changed' : 'unique_key', 1);
}

export function skip({ skipped }: BulkCounts, why: keyof typeof SKIPPED, by: number): void {
  skipped[why] = (skipped[why] ?? 0) + by;
}
