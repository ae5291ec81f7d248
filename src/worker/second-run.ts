import { decodeJson } from '../json.ts';
import type { Claimed } from '../store/store.ts';
import type { Asking } from './asking.ts';
import type { AnyTask } from './define-task.ts';

/** A claim as its definition sees it: where nobody said whether the task may run twice, the definition does. */
export function claimedUnder<Taken extends Claimed>(definition: AnyTask | undefined, claimed: Taken): Taken {
  if (!claimed.idempotenceUnsaid || !definition || mayRunTwice(definition, claimed.payload)) return claimed;
  return withoutSecondRun(claimed);
}

/** The same of a task whose definition this process need not have: then what was published of its type says it. */
export function claimedAsPublished<Taken extends Claimed>(
  definition: AnyTask | undefined,
  published: string | undefined,
  claimed: Taken,
): Taken {
  if (definition || published === undefined) return claimedUnder(definition, claimed);
  return claimed.idempotenceUnsaid && isPublishedAsNotIdempotent(published) ? withoutSecondRun(claimed) : claimed;
}

/**
 * Stores of tasks that must not run twice by their definitions that it is so, before their handlers begin: whoever recovers them
 * may lack those definitions.
 */
export async function storeIdempotence(asking: Asking, seen: readonly Claimed[]): Promise<void> {
  const leases = seen
    .filter(({ idempotenceUnsaid, facts }) => idempotenceUnsaid && !facts.idempotent)
    .map(({ lease }) => lease);
  if (leases.length > 0) await asking.ask((tasks) => tasks.forbidSecondRun(leases));
}

function withoutSecondRun<Taken extends Claimed>(claimed: Taken): Taken {
  return { ...claimed, facts: { ...claimed.facts, idempotent: false } };
}

function mayRunTwice({ idempotent = true }: AnyTask, payload: string): boolean {
  if (typeof idempotent === 'boolean') return idempotent;
  try {
    return idempotent(decodeJson(payload)) !== false;
  } catch {
    // An input that the function cannot read: the handler will say so, and it has not run yet.
    return true;
  }
}

function isPublishedAsNotIdempotent(published: string): boolean {
  try {
    return (JSON.parse(published) as { idempotent?: unknown }).idempotent === false;
  } catch {
    return false;
  }
}
