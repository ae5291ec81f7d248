import { type ExplainedPolicy, explainPolicy, presetLayer } from '../../failure/layers.ts';
import { PRESET_NAMES, presetNamed } from '../../failure/presets.ts';
import { visible } from '../../views/visible.ts';
import { Problem } from '../problem.ts';
import { nearest } from '../suggest.ts';
import type { PoliciesHere } from './policies-here.ts';

/** A policy that a person named. */
export interface NamedPolicy extends ExplainedPolicy {
  /** A policy of the configuration, the policy of a type, a preset, or what the configuration says of every other type. */
  readonly kind: 'policy' | 'type' | 'preset' | 'default';
  readonly name: string;
}

/** The name of the policy of types that have none. */
export const DEFAULT = 'default';

/**
 * The policy of the configuration with this name, else the policy of the type with this name that the configuration or a worker
 * knows, else the preset.
 * @throws Problem with the most similar name.
 */
export async function namedPolicy(here: PoliciesHere, name: string): Promise<NamedPolicy> {
  const { registry, holdfast } = here;
  const { config } = registry;
  const named = config?.policies.get(name);
  if (config && named) return { kind: 'policy', name, ...explainPolicy([...config.default, ...named]) };
  const published = name !== '' && (await holdfast?.administration.isPublished(name));
  if (config?.types.has(name) || published) {
    return { kind: 'type', name, ...(await here.policyFor({ type: name })) };
  }
  const preset = presetNamed(name.replaceAll('-', '_'));
  if (preset) {
    const layers = [...(config?.default ?? []), presetLayer(preset, 'type')];
    return { kind: 'preset', name: name.replaceAll('-', '_'), ...explainPolicy(layers) };
  }
  if (name === DEFAULT) return { kind: 'default', name, ...explainPolicy(config?.default ?? []) };
  throw unknownPolicy(name, [...(config?.policies.keys() ?? []), ...(config?.types.keys() ?? []), ...PRESET_NAMES]);
}

function unknownPolicy(name: string, known: readonly string[]): Problem {
  const like = nearest(name, known);
  return new Problem('not_found', `there is no policy, type or preset called ${visible(name)}`, {
    hints: [
      ...(like.length > 0 ? [`did you mean ${like.map(visible).join(', or ')}?`] : []),
      'all of them: holdfast policies',
      `a type without a policy uses the default: holdfast policies show --effective ${visible(name)}`,
    ],
  });
}
