import { existsSync } from 'node:fs';
import type { Registry } from '../../config/registry.ts';
import { outcomeOf } from '../../failure/classify/classify.ts';
import type { ExplainedPolicy } from '../../failure/layers.ts';
import { UNTRIED } from '../../failure/untried.ts';
import type { PolicyQuestion } from '../../queue/inspect.ts';
import type { Operations } from '../../queue/operations.ts';
import { type ExplainedFailure, explainFailure } from '../../views/explain-failure.ts';
import type { Cli } from '../cli.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import { NoStore } from '../opening/server-problem.ts';

/** The policies that apply here: of the configuration, and of what workers published in the store, if there is one. */
export interface PoliciesHere {
  readonly registry: Registry;
  readonly holdfast: Operations | undefined;
  policyFor(question: PolicyQuestion): Promise<ExplainedPolicy>;
  explainError(thrown: unknown, question: PolicyQuestion): Promise<ExplainedFailure>;
}

/** Calls `use` with the policies that apply here, even without a store. @throws InvalidConfigError for a refused configuration. */
export async function withPolicies<T>(cli: Cli, use: (here: PoliciesHere) => Promise<T>): Promise<T> {
  const registry = await registryHere(cli);
  const location = await cli.location();
  if (location.kind === 'postgres' || existsSync(location.path)) {
    try {
      return await withStore(cli, { purpose: 'explain' }, (holdfast) =>
        use({
          registry,
          holdfast,
          policyFor: (question) => holdfast.policyFor(question),
          explainError: (thrown, question) => holdfast.explainError(thrown, question),
        }),
      );
    } catch (error) {
      if (!(error instanceof NoStore)) throw error;
    }
  }
  const policyFor = async (question: PolicyQuestion) => registry.policyFor(question);
  return use({
    registry,
    holdfast: undefined,
    policyFor,
    async explainError(thrown, question) {
      const context = { now: Date.now(), type: question.type };
      const outcome = (registry.classifier?.outcomeOf ?? outcomeOf)(thrown, context);
      return explainFailure(UNTRIED, outcome, await policyFor(question));
    },
  });
}

/** The configuration that applies here, or an empty one. */
export async function registryHere(cli: Cli): Promise<Registry> {
  const found = await readConfig(cli);
  if (found?.refused) throw found.refused;
  if (found) return found.registry;
  const { Registry } = await import('../../config/registry.ts');
  return new Registry();
}
