import { definePolicy, type Policy, type PolicyOptions } from '../failure/policy.ts';
import { presetFor } from '../failure/presets.ts';
import { decodeJson } from '../json.ts';
import type { Claimed, Recovered } from '../store/store.ts';
import type { AnyTask } from './define-task.ts';

/** The policy that answers a task's failures today: its own layer over its type's. */
export function policyFor(claimed: Claimed, definition: AnyTask | undefined, published?: string): Policy {
  const ofType =
    policyOf(definition, claimed.type) ?? read(published, presetFor(claimed.type)) ?? presetFor(claimed.type);
  return read(claimed.policy, ofType) ?? ofType;
}

/** A catch-all that was given no policy has the preset of the type that it runs. */
function policyOf(definition: AnyTask | undefined, type: string): Policy | undefined {
  return definition?.type === '*' && definition.policy === presetFor('*') ? presetFor(type) : definition?.policy;
}

/**
 * The policy of a task that this process need not have a definition of: one that is recovered, or claimed by hand. What its
 * own worker published of it goes before a catch-all of this process.
 */
export function policyForRecovered(
  taken: Pick<Recovered, 'published'> & Claimed,
  definitions: ReadonlyMap<string, AnyTask>,
): Policy {
  const { type, published } = taken;
  const catchAll = published === undefined ? definitions.get('*') : undefined;
  return policyFor(taken, definitions.get(type) ?? catchAll, published);
}

/** A claim as its definition sees it: where nobody said whether the task may run twice, the definition does. */
export function claimedUnder<Taken extends Claimed>(definition: AnyTask | undefined, claimed: Taken): Taken {
  if (!claimed.idempotenceUnsaid || !definition || mayRunTwice(definition, claimed.payload)) return claimed;
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

/** What recovery elsewhere must know of a type, as text for the store. */
export function publication(definition: AnyTask): string {
  return JSON.stringify(definition.policy);
}

/**
 * A policy that was stored as text, over another. Undefined where it cannot be read: a function in it does not survive, and
 * a newer version may have written options that this one does not know; a task must get its next moment all the same.
 */
function read(text: string | undefined, over: Policy): Policy | undefined {
  if (text === undefined) return undefined;
  try {
    return definePolicy(JSON.parse(text) as PolicyOptions, over);
  } catch {
    return undefined;
  }
}
