import { type Policy, type PolicyOptions, policyOver, type ReadOptions, type RuleOptions, standard } from './policy.ts';
import { parseOptions } from './policy-options.ts';
import { namedBy, nameOf, presetFor } from './presets.ts';

/** The levels at which a policy can be set, from the least specific to the most specific. The more specific one wins. */
export const LEVELS = ['default', 'queue', 'type', 'source', 'task'] as const;
export type Level = (typeof LEVELS)[number];

/** Where a value comes from. */
export interface Origin {
  readonly level: Level;
  /** `set`: by the running program. `published`: by a worker of the type in another process. `assumed`: by `explainIf`. */
  readonly by: 'standard' | 'preset' | 'code' | 'published' | 'file' | 'set' | 'task' | 'assumed';
  /** Of the preset. */
  readonly name?: string;
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
}

/** A place in a file, counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** The part of a policy that comes from one origin. */
export interface Layer {
  readonly options: ReadOptions;
  /** Whether it uses only its own rules and none of less specific levels, like presets and whole policies. */
  readonly bare: boolean;
  readonly origin: Origin;
  /** The place of each value in its file, by `placeKey`. */
  readonly places?: ReadonlyMap<string, Place>;
}

/** The layers of a task's policy without the code of its type and the task itself. In each list, the last one wins. */
export interface Said {
  readonly default: readonly Layer[];
  readonly queue: readonly Layer[];
  readonly type: readonly Layer[];
  readonly source: readonly Layer[];
}

export const UNSAID: Said = { default: [], queue: [], type: [], source: [] };

/** The policy in the code of a type: a whole policy, or options. */
export type Code = Policy | ReadOptions;

/** All layers of a task's policy except its own, least specific first. Without code, the preset of its type is used. */
export function layersOf(type: string, said: Said, code?: Code, by: 'code' | 'published' = 'code'): readonly Layer[] {
  const ofType = code === undefined ? presetLayers(type) : [codeLayer(code, by)];
  return [...said.default, ...said.queue, ...ofType, ...said.type, ...said.source];
}

function presetLayers(type: string): readonly Layer[] {
  const preset = presetFor(type);
  // A type without a preset of its name uses `standard`, which is already the lowest layer.
  return preset === standard && type !== 'standard' ? [] : [presetLayer(preset, 'type')];
}

/** A preset as a layer: only the values that it sets. */
export function presetLayer(preset: Policy, level: Level, at?: Omit<Origin, 'level' | 'by' | 'name'>): Layer {
  const name = nameOf(preset);
  const origin: Origin = { level, by: 'preset', ...(name !== undefined && { name }), ...at };
  return { options: namedBy(preset) ?? optionsOf(preset), bare: true, origin };
}

function codeLayer(code: Code, by: 'code' | 'published'): Layer {
  const origin: Origin = { level: 'type', by };
  if (!('version' in code)) return { options: code, bare: false, origin };
  return namedBy(code as Policy) ? presetLayer(code as Policy, 'type') : wholeLayer(code as Policy, origin);
}

/** The options of a task as a layer, or those that somebody assumes for it. */
export function ownLayer(retry: PolicyOptions | ReadOptions, by: 'task' | 'assumed' = 'task'): Layer {
  return { options: parseOptions(retry), bare: 'version' in retry, origin: { level: 'task', by } };
}

/** A whole policy as a layer. No value of a less specific layer applies. */
function wholeLayer(policy: Policy, origin: Origin): Layer {
  return { options: optionsOf(policy), bare: true, origin };
}

function optionsOf({ version: _, ...options }: Policy): ReadOptions {
  return options;
}

/** The policy that results from the layers. The first is applied over `standard`. @throws InvalidInputError for a refused value. */
export function policyFrom(layers: readonly Layer[]): Policy {
  let policy = standard;
  for (const { options, bare } of layers) {
    policy = policyOver(options, bare ? { ...policy, rules: {} } : policy);
  }
  return policy;
}

/** One value of a policy, and where it comes from. */
export interface PolicyValue {
  /** Such as `['maxAttempts']`, or `['rules', 'fs.locked', 'backoff']`. */
  readonly path: readonly string[];
  readonly value: unknown;
  readonly from: Origin;
}

/** A policy, and where each of its values came from. */
export interface ExplainedPolicy {
  readonly policy: Policy;
  readonly values: readonly PolicyValue[];
}

/** As `policyFrom`, with the origin of each value. */
export function explainPolicy(layers: readonly Layer[]): ExplainedPolicy {
  const policy = policyFrom(layers);
  const said = new Origins();
  said.add({ options: optionsOf(standard), bare: true, origin: { level: 'default', by: 'standard' } });
  for (const layer of layers) said.add(layer);
  return { policy, values: said.values(policy) };
}

/** What a worker published, if it is as in the preset `standard`. */
const AS_DEFAULT: Origin = { level: 'type', by: 'published', name: 'standard' };

/** The origin of each value. */
class Origins {
  readonly #of = new Map<string, Origin>();
  readonly #rules = new Map<string, Map<keyof RuleOptions | '', Origin>>();

  add(layer: Layer): void {
    const { options, bare } = layer;
    if (bare) this.#rules.clear();
    // A worker publishes the whole policy of a type. What is as in `standard` was probably not set there.
    const isDefault = (name: string) =>
      layer.origin.by === 'published' &&
      this.#of.get(name)?.by === 'standard' &&
      JSON.stringify(options[name as never]) === JSON.stringify(standard[name as never]);
    for (const name of Object.keys(options).filter((key) => key !== 'rules' && options[key as never] !== undefined)) {
      this.#of.set(name, isDefault(name) ? AS_DEFAULT : originAt(layer, [name]));
    }
    if (options.backoff?.kind === 'schedule' && options.maxAttempts === undefined) {
      this.#of.set('maxAttempts', originAt(layer, ['backoff']));
    }
    for (const [name, rule] of Object.entries(options.rules ?? {})) {
      if (rule === undefined) continue;
      const asDefault =
        layer.origin.by === 'published' && JSON.stringify(rule) === JSON.stringify(standard.rules[name as never]);
      const origin = (path: readonly string[]) => (asDefault ? AS_DEFAULT : originAt(layer, path));
      const members = new Map<keyof RuleOptions | '', Origin>([['', origin(['rules', name])]]);
      for (const member of Object.keys(rule)) {
        members.set(member as keyof RuleOptions, origin(['rules', name, member]));
      }
      this.#rules.set(name, members);
    }
  }

  values(policy: Policy): readonly PolicyValue[] {
    const { rules, version: _, ...plain } = policy;
    const values: PolicyValue[] = Object.entries(plain).map(([name, value]) => ({
      path: [name],
      value,
      from: this.#of.get(name) as Origin,
    }));
    for (const [name, rule] of Object.entries(rules)) {
      const origins = this.#rules.get(name) as Map<string, Origin>;
      const members = Object.entries(rule).filter(([, value]) => value !== undefined);
      if (members.length === 0) values.push({ path: ['rules', name], value: {}, from: origins.get('') as Origin });
      for (const [member, value] of members) {
        values.push({ path: ['rules', name, member], value, from: origins.get(member) as Origin });
      }
    }
    return values;
  }
}

/** The key of a value in `Layer.places`. */
export function placeKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

function originAt({ origin, places }: Layer, path: readonly string[]): Origin {
  for (let length = path.length; length > 0; length--) {
    const place = places?.get(placeKey(path.slice(0, length)));
    if (place) return { ...origin, ...place };
  }
  return origin;
}

/** An origin as text: `holdfast.yaml:12`, `preset imap_mailbox`, `code`. */
export function describeOrigin({ by, name, file, line }: Origin): string {
  const at = file === undefined ? '' : line === undefined ? file : `${file}:${line}`;
  switch (by) {
    case 'standard':
      return 'default';
    case 'preset':
      return at === '' ? `preset ${name ?? 'standard'}` : `preset ${name ?? 'standard'}, by ${at}`;
    case 'code':
      return 'code';
    case 'published':
      return name === 'standard' ? 'default' : 'its worker';
    case 'file':
      return at;
    case 'set':
      return 'set at run time';
    case 'task':
      return 'the task itself';
    case 'assumed':
      return 'assumed';
  }
}
