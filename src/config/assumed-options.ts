import { InvalidConfigError, InvalidInputError } from '../errors.ts';
import { policyFrom } from '../failure/layers.ts';
import type { ReadOptions } from '../failure/policy.ts';
import { parseConfig } from './config.ts';

/**
 * Policy options as they stand under `retry:` in a configuration, in YAML or JSON.
 * @throws InvalidInputError that names `what` they are.
 */
export function optionsIn(text: string, what: string): ReadOptions {
  // A line of several options is a map in YAML only with braces.
  const isBare = /^[^{\n]*:[^\n]*$/.test(text);
  const retry = (isBare ? `{ ${text} }` : text).replaceAll(/^/gm, '    ');
  try {
    const { default: layers } = parseConfig(`defaults:\n  retry:\n${retry}\n`, { file: what });
    const [layer] = layers;
    // `extends` makes several layers.
    return layer && layers.length === 1 && !layer.bare ? layer.options : policyFrom(layers);
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    const problem = error.problems.find(({ severity }) => severity === 'error');
    const next = problem?.suggestion ?? 'Write options such as "maxAttempts: 9, backoff: { fixed: 30s }".';
    throw new InvalidInputError(`${what}: ${problem?.message ?? ''} ${next}`, 'invalid_policy', { cause: error });
  }
}
