import { InvalidInputError, UniqueConflictError } from '../errors.ts';
import { decodeJson } from '../json.ts';
import { refuseUnknown } from '../options.ts';
import { show } from '../show.ts';
import type { NewTask, Receipt, Store } from '../store/store.ts';
import { occupies } from '../task.ts';
import { inputVersionOf } from '../worker/own-options.ts';
import type { EnqueueOptions, Merging, TaskMaker } from './enqueue.ts';

/** How often an input is merged again because the waiting task was changed meanwhile. */
const MOST_TRIES = 100;

type Merge = Merging<unknown>['merge'];

/** The function of `onConflict: { merge }`, and the options without it; undefined if they have none. */
export function mergingOf(
  options: EnqueueOptions,
): { readonly merge: Merge; readonly options: EnqueueOptions } | undefined {
  const onConflict = Object(Object(options).unique).onConflict as unknown;
  if (typeof onConflict !== 'object' || onConflict === null) return undefined;
  refuseUnknown(onConflict, ['merge'], 'unique.onConflict');
  const { merge } = onConflict as { readonly merge?: unknown };
  if (typeof merge !== 'function') {
    throw new InvalidInputError(
      `unique.onConflict.merge must be a function (waiting, added) => input, got ${show(merge)}.`,
    );
  }
  const unique = { ...options.unique, onConflict: 'ignore' } as NonNullable<EnqueueOptions['unique']>;
  return { merge: merge as Merge, options: { ...options, unique } };
}

/**
 * Records a task, or merges its input into that of the waiting task that has its unique key: written only if that task and its
 * input are unchanged since they were read.
 * @throws UniqueConflictError if the other task does not wait, or has an input of another version.
 */
export async function enqueueMerging(store: Store, added: NewTask, merge: Merge, make: TaskMaker): Promise<Receipt> {
  const { type, key, unique, policy } = added;
  let other = 0;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const [receipt] = (await store.tasks.enqueue([added])) as [Receipt];
    if (receipt.created) return receipt;
    other = receipt.id;
    const found = await store.records.find(other);
    // It was removed meanwhile.
    if (!found || receipt.state === undefined) continue;
    if (key !== undefined && found.key === key) return receipt;
    if (!occupies('waiting', receipt.state) || inputVersionOf(found.policy) !== inputVersionOf(policy)) {
      throw new UniqueConflictError(other, type, unique?.key as string, receipt.state);
    }
    const merged = await make(await merge(decodeJson(found.payload), decodeJson(added.payload)));
    if (await store.tasks.amend(other, found.payload, merged.payload)) return { ...receipt, merged: true };
  }
  throw new UniqueConflictError(other, type, unique?.key as string, 'changed by others all the time');
}
