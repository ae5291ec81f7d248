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
 * What a configuration is for. To look: an invalid configuration is reported and not used, so that the command still works. To explain:
 * an invalid configuration ends the command. To work: the same, and its settings of queues are applied.
 */
export type Purpose = 'look' | 'explain' | 'work';

/** The configuration that applies here, if there is one, for a command that is not `worker`. @throws InvalidConfigError. */
export async function configurationFor(cli: Cli, purpose: Purpose): Promise<Configuration | undefined> {
  const found = await readConfig(cli);
  if (!found) return undefined;
  if (!found.refused) return partOf(found.registry, purpose === 'work');
  if (purpose !== 'look') throw found.refused;
  cli.terminal.note(
    `${visible(found.refused.file)} has errors, so it is not used here: ${cli.command('policies validate')}`,
  );
  return undefined;
}

/**
 * The parts of a configuration for a command that is not a worker. Settings of workers do not apply to it. Queues and limits are
 * included only on request, because applying them writes to the store.
 */
function partOf(registry: Registry, withQueues: boolean): Configuration {
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
