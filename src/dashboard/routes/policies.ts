import { compareConfigs, comparisonJson } from '../../config/compare.ts';
import { Registry } from '../../config/registry.ts';
import { explainedErrorContent } from '../../documents/explain.ts';
import { delaysJson, delaysOf, policyJson, shownPolicyContent } from '../../documents/policies.ts';
import { InvalidInputError } from '../../errors.ts';
import { explainPolicy, presetLayer } from '../../failure/layers.ts';
import { isKind, isReason } from '../../failure/outcome.ts';
import { PRESET_NAMES, presetNamed } from '../../failure/presets.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import { ERROR } from '../common-fields.ts';
import { optional, textField } from '../fields.ts';
import { ApiProblem } from '../problems.ts';
import { type Route, route } from '../route.ts';

const TYPE = { type: textField('the type of a task', 1_000) };
const NAMES = {
  source: optional(textField('for tasks of this source', 1_000)),
  queue: optional(textField('for tasks of this queue', 1_000)),
};
const WEEK = 7 * 24 * 3_600_000;

export const POLICIES: readonly Route[] = [
  route({
    method: 'GET',
    path: 'policies',
    summary: 'the policy of each type that is in use, and the presets',
    needs: 'view',
    answer: 'policies',
    run: async ({ holdfast }) => {
      const types = await typesInUse(holdfast);
      const config = configOf(holdfast);
      const ofTypes = types.map(async (name) =>
        policyJson({ kind: 'type', name, ...(await holdfast.policyFor({ type: name })) }),
      );
      const ofPresets = PRESET_NAMES.flatMap((name) => {
        const preset = presetNamed(name);
        const layers = preset && [...(config?.default ?? []), presetLayer(preset, 'type')];
        return layers ? [policyJson({ kind: 'preset', name, ...explainPolicy(layers) })] : [];
      });
      return {
        config: config ? { file: config.file, version: config.version, warnings: config.warnings.length } : null,
        items: [...(await Promise.all(ofTypes)), ...ofPresets],
      };
    },
  }),
  route({
    method: 'GET',
    path: 'policies/{type}',
    summary: 'each value of the policy that holds for tasks of a type, and who said it',
    needs: 'view',
    params: TYPE,
    query: NAMES,
    answer: 'policies.show',
    run: async ({ holdfast, path: { type }, query }) =>
      shownPolicyContent({ kind: 'type', name: type, ...(await policyOf(holdfast, type, query)) }),
  }),
  route({
    method: 'GET',
    path: 'policies/{type}/explain-error',
    summary: 'what would be decided if a new task of a type failed with this error at its first attempt',
    needs: 'view',
    params: TYPE,
    query: { error: ERROR },
    answer: 'explain.error',
    run: async ({ holdfast, path: { type }, query: { error } }) =>
      explainedErrorContent(await holdfast.explainError(error, { type }), undefined),
  }),
  route({
    method: 'GET',
    path: 'policies/{type}/schedule',
    summary: 'every delay of the policy of a type, and when it gives up',
    needs: 'view',
    params: TYPE,
    query: {
      ...NAMES,
      reason: optional(textField('for failures of this reason, family such as `fs.*`, or kind', 200)),
    },
    answer: 'policies.schedule',
    run: async ({ holdfast, path: { type }, query: { reason, ...names } }) => {
      if (reason !== undefined && !isKind(reason) && !isReason(reason.replace(/\.\*$/, ''))) {
        throw new InvalidInputError('`reason` must be a reason such as fs.locked, a family such as fs.*, or a kind.');
      }
      const { policy } = await policyOf(holdfast, type, names);
      return {
        policy: type,
        kind: 'type',
        reason: reason ?? null,
        ...delaysJson(delaysOf(policy, reason)),
        readings: null,
      };
    },
  }),
  route({
    method: 'POST',
    path: 'policies/diff',
    summary: 'for which tasks another configuration would change something; it is only compared',
    needs: 'view',
    body: { yaml: textField('the other configuration, as in `holdfast.yaml`', 1_000_000) },
    answer: 'policies.diff',
    run: async ({ holdfast, body: { yaml } }) => {
      const { configuration } = holdfast;
      const present = configuration instanceof Registry ? configuration : new Registry();
      const other = new Registry({ backoffs: present.backoffs });
      const { file } = other.load(yaml, 'pasted.yaml');
      const items = compareConfigs(present, other).map(comparisonJson);
      return { from: present.config?.file ?? null, to: file, same: items.length === 0, items };
    },
  }),
];

function configOf({ configuration }: Holdfast) {
  return configuration instanceof Registry ? configuration.config : undefined;
}

async function policyOf(
  holdfast: Holdfast,
  type: string,
  { source, queue }: { readonly source?: string | undefined; readonly queue?: string | undefined },
) {
  if (type.trim() === '') throw new ApiProblem('not_found', 'A type has a name.');
  return holdfast.policyFor({ type, ...(source !== undefined && { source }), ...(queue !== undefined && { queue }) });
}

/** The types that the configuration names, that workers take, or of which something ran lately. */
async function typesInUse(holdfast: Holdfast): Promise<string[]> {
  const { types } = await holdfast.stats({ since: new Date(holdfast.now() - WEEK) });
  const taken = (await holdfast.workers()).flatMap(({ takes }) => takes.types ?? []);
  const named = holdfast.configuration.types ?? [];
  const all = [...types.map(({ type }) => type), ...taken, ...named];
  return [...new Set(all)].filter((type) => type !== '*').sort();
}
