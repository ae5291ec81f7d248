import type { Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { describe } from '../failure/classify/describe.ts';
import {
  type Code,
  type ExplainedPolicy,
  explainPolicy,
  layersOf,
  ownLayer,
  policyFrom,
  type Said,
} from '../failure/layers.ts';
import { type Policy, type PolicyOptions, policyOver, type ReadOptions } from '../failure/policy.ts';
import { parseOptions } from '../failure/policy-options.ts';
import { presetFor } from '../failure/presets.ts';
import type { Claimed, Recovered } from '../store/store.ts';
import { type Configuration, type TaskNames, UNCONFIGURED } from './configuration.ts';
import type { AnyTask } from './define-task.ts';
import { readOwn } from './own-options.ts';

/** The policy that decides a task's failures now. Its layers, the most specific first: task, source, type, queue, default. */
export function policyFor(
  claimed: Claimed,
  definition: AnyTask | undefined,
  configuration: Configuration = UNCONFIGURED,
  published?: string,
): Policy {
  // A definition for all types (`'*'`) without a policy uses the preset of the task's type.
  const code = definition ? definition.retry : read(published, presetFor(claimed.type));
  const ofType = policyUnder(configuration.said(claimed), claimed.type, code);
  return read(claimed.policy, ofType) ?? ofType;
}

/** Like `policyFor`, for a task that need not exist, and with the origin of each value. `assumed` wins over all layers. */
export function explainedPolicyFor(
  task: TaskNames & { readonly retry?: ReadOptions | PolicyOptions },
  definition: AnyTask | undefined,
  configuration: Configuration = UNCONFIGURED,
  published?: string,
  assumed?: ReadOptions | PolicyOptions,
): ExplainedPolicy {
  const code = definition ? definition.retry : read(published, presetFor(task.type));
  const layers = layersOf(task.type, configuration.said(task), code, definition ? 'code' : 'published');
  const own = task.retry === undefined ? [] : [ownLayer(task.retry)];
  return explainPolicy([...layers, ...own, ...(assumed === undefined ? [] : [ownLayer(assumed, 'assumed')])]);
}

/**
 * A cache of policies by their layers, valid while these are the same objects. The key is the definition's options, or the type
 * if it has none.
 */
const known = new WeakMap<Said, { readonly byCode: WeakMap<object, Policy>; readonly byType: Map<string, Policy> }>();
const MOST_TYPES_KNOWN = 1_000;

function policyUnder(said: Said, type: string, code: Code | undefined): Policy {
  let policies = known.get(said);
  if (!policies || policies.byType.size > MOST_TYPES_KNOWN) {
    policies = { byCode: new WeakMap(), byType: new Map() };
    known.set(said, policies);
  }
  const found = code ? policies.byCode.get(code) : policies.byType.get(type);
  if (found) return found;
  const policy = policyFrom(layersOf(type, said, code));
  if (code) policies.byCode.set(code, policy);
  else policies.byType.set(type, policy);
  return policy;
}

/**
 * The policy of a task that is recovered or claimed by hand. This process may have no definition of its type. Then what a worker
 * published wins over a definition for all types here.
 */
export function policyForRecovered(
  taken: Pick<Recovered, 'published'> & Claimed,
  definitions: ReadonlyMap<string, AnyTask>,
  configuration?: Configuration,
): Policy {
  return policyFor(taken, definitionForRecovered(taken, definitions), configuration, taken.published);
}

/** The definition of this process that runs such a task, if it has one. */
export function definitionForRecovered(
  { type, published }: { readonly type: string; readonly published?: string | undefined },
  definitions: ReadonlyMap<string, AnyTask>,
): AnyTask | undefined {
  return definitions.get(type) ?? (published === undefined ? definitions.get('*') : undefined);
}

/**
 * What other processes need to recover tasks of each type, as text for the store: its policy with the present configuration, and
 * whether its tasks must not run twice.
 */
export function publications(
  definitions: Iterable<AnyTask>,
  configuration: Configuration = UNCONFIGURED,
): Readonly<Record<string, string>> {
  const types = [...definitions];
  const policies = policiesOf(types, configuration);
  const published = types.map(({ type, idempotent }, i) => {
    const policy = policies[i] as Policy;
    return [type, JSON.stringify(idempotent === false ? { ...policy, idempotent } : policy)] as const;
  });
  return Object.fromEntries(published);
}

/** The policy of each type, whatever the source of a task. */
function policiesOf(definitions: Iterable<AnyTask>, configuration: Configuration): readonly Policy[] {
  return [...definitions].map(({ type, queue, retry }) => {
    const said = configuration.said({ type, queue, source: type });
    return policyUnder({ ...said, source: [] }, type, retry);
  });
}

/** The longest that an execution of these types may take without a heartbeat, with the present configuration. */
export function longestTimeout(
  definitions: Iterable<AnyTask>,
  configuration: Configuration = UNCONFIGURED,
): Milliseconds | 'none' {
  let longest: Milliseconds = 0;
  for (const { timeout } of policiesOf(definitions, configuration)) {
    if (timeout === 'none') return 'none';
    longest = Math.max(longest, timeout);
  }
  return longest;
}

/** Why a task's own policy cannot be read; undefined if it can, or there is none. */
export function objectionToPolicy(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    parseOptions(readOwn(JSON.parse(text)).retry ?? {});
    return undefined;
  } catch (error) {
    // A damaged row is reported as such before its handler is called.
    return error instanceof InvalidInputError ? describe(error).message : undefined;
  }
}

/**
 * A policy that was stored as text, over another one. Undefined if it cannot be read: functions are not stored, and a newer
 * version may have written unknown options. Its task must be decided all the same.
 */
function read(text: string | undefined, over: Policy): Policy | undefined {
  if (text === undefined) return undefined;
  try {
    const { idempotent: _, ...own } = JSON.parse(text) as object & { readonly idempotent?: unknown };
    const { retry } = readOwn(own);
    return retry ? policyOver(retry, over) : over;
  } catch {
    return undefined;
  }
}
