import type { Registry } from '../../config/registry.ts';
import { InvalidConfigError } from '../../errors.ts';
import { visible } from '../../views/visible.ts';
import type { Configuration } from '../../worker/configuration.ts';
import type { Cli } from '../cli.ts';
import type { ConfigLocation } from './config-location.ts';

/** A configuration that was found, and read or refused. */
export type FoundConfig = ConfigLocation &
  (
    | { readonly registry: Registry; readonly refused?: undefined }
    | { readonly registry?: undefined; readonly refused: InvalidConfigError }
  );

/** The configuration that applies here. The code that reads it is loaded only if there is one. */
export async function readConfig(cli: Cli): Promise<FoundConfig | undefined> {
  const location = cli.config();
  if (!location) return undefined;
  if (cli.terminal.verbose > 0) cli.terminal.note(`config ${visible(location.path)} (${location.origin})`);
  const { loadConfig } = await import('../../config/load.ts');
  try {
    return { ...location, registry: await loadConfig(location.path) };
  } catch (error) {
    if (error instanceof InvalidConfigError) return { ...location, refused: error };
    throw error;
  }
}

/**
 * The parts of a configuration for a command that is not a worker. Settings of workers do not apply to it. Queues and limits are
 * included only on request, because applying them writes to the store.
 */
export function partOf(registry: Registry, withQueues: boolean): Configuration {
  return {
    said: (task) => registry.said(task),
    classifier: registry.classifier,
    queues: withQueues ? registry.queues : new Map(),
    limits: withQueues ? registry.limits : new Map(),
    schedules: undefined,
    worker: {},
    onChange: () => () => {},
  };
}
