import { parseConfig } from '../../config/config.ts';
import { InvalidConfigError } from '../../errors.ts';
import { policyFrom } from '../../failure/layers.ts';
import type { ReadOptions } from '../../failure/policy.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';

/** Policy options as they stand under `retry:` in a configuration, in YAML or JSON. @throws Problem naming the flag. */
export function optionsIn(text: string, flag: string): ReadOptions {
  // A line of several options is a map in YAML only with braces.
  const isBare = /^[^{\n]*:[^\n]*$/.test(text);
  const retry = (isBare ? `{ ${text} }` : text).replaceAll(/^/gm, '    ');
  try {
    const { default: layers } = parseConfig(`defaults:\n  retry:\n${retry}\n`, { file: flag });
    const [layer] = layers;
    // `extends` makes several layers.
    return layer && layers.length === 1 && !layer.bare ? layer.options : policyFrom(layers);
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    const problem = error.problems.find(({ severity }) => severity === 'error');
    throw usage(`${flag}: ${visible(problem?.message ?? '')}`, {
      hints: [problem?.suggestion ?? 'such as: --if "maxAttempts: 9, backoff: { fixed: 30s }"'].map(visible),
      cause: error,
    });
  }
}
