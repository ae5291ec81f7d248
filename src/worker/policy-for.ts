import { definePolicy, type Policy, type PolicyOptions } from '../failure/policy.ts';
import { presetFor } from '../failure/presets.ts';
import type { Claimed, Recovered } from '../store/store.ts';
import type { AnyTask } from './define-task.ts';

/** The policy that answers a task's failures today: its own layer over its type's. */
export function policyFor(claimed: Claimed, definition: AnyTask | undefined, published?: string): Policy {
  const ofType = definition?.policy ?? read(published, presetFor(claimed.type)) ?? presetFor(claimed.type);
  return read(claimed.policy, ofType) ?? ofType;
}

/** The policy of a task that is recovered: what its own worker published of it goes before a catch-all of this process. */
export function policyForRecovered(recovered: Recovered, definitions: ReadonlyMap<string, AnyTask>): Policy {
  const { type, published } = recovered;
  const catchAll = published === undefined ? definitions.get('*') : undefined;
  return policyFor(recovered, definitions.get(type) ?? catchAll, published);
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
