import { decodeJson } from '../json.ts';
import type { Claimed } from '../store/store.ts';
import type { Asking } from './asking.ts';
import type { AnyTask } from './define-task.ts';

/** A claim with `idempotent` of the definition, if the enqueue did not say whether the task may run twice. */
export function claimedUnder<Taken extends Claimed>(definition: AnyTask | undefined, claimed: Taken): Taken {
  if (!claimed.idempotenceUnsaid || !definition || mayRunTwice(definition, claimed.payload)) return claimed;
  return withoutSecondRun(claimed);
}

/** The same for a task whose definition this process may not have. Then the published policy of its type says it. */
export function claimedAsPublished<Taken extends Claimed>(
  definition: AnyTask | undefined,
  published: string | undefined,
  claimed: Taken,
): Taken {
  if (definition || published === undefined) return claimedUnder(definition, claimed);
  return claimed.idempotenceUnsaid && isPublishedAsNotIdempotent(published) ? withoutSecondRun(claimed) : claimed;
}

/**
 * Stores, before the handlers begin, which tasks must not run twice by their definitions. A process that recovers them may not
 * have these definitions.
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
    // The function failed, so it cannot read the input. The handler will report that; it has not run yet.
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
