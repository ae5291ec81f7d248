/**
 * Policies as data: reads, checks and watches `holdfast.yaml`.
 * @module holdfast/config
 */

export { type ConfigProblem, InvalidConfigError } from '../errors.ts';
export {
  describeOrigin,
  type ExplainedPolicy,
  type Layer,
  LEVELS,
  type Level,
  type Origin,
  type PolicyValue,
} from '../failure/layers.ts';
export { type Config, type ParseOptions, parseConfig, problemsOf } from './config.ts';
export type { WorkerSection } from './format.ts';
export { loadConfig } from './load.ts';
export { policyData, printPolicy } from './print.ts';
export { type Asked, Registry, type RegistryOptions, type Target } from './registry.ts';
export type { Backoffs } from './retry.ts';
export { jsonSchema } from './schema.ts';
export type { JsonSchema } from './shapes.ts';
export { type ConfigWatch, type WatchOptions, watchConfig } from './watch.ts';
