import { type Logger, silent } from '../../log.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import { openHoldfast } from '../../queue/open.ts';
import type { Configuration } from '../../worker/configuration.ts';
import type { AnyTask } from '../../worker/define-task.ts';
import type { Cli } from '../cli.ts';
import { openedAt } from './open-store.ts';
import { ownTypes } from './own-types.ts';
import { configurationFor, type Purpose } from './read-config.ts';
import type { StoreLocation } from './store-location.ts';

interface HoldfastOptions {
  /** Creates the store and its folder if missing. Default: a missing store is a problem. */
  readonly create?: boolean;
  /** Default: our own types without their handlers. */
  readonly tasks?: readonly AnyTask[];
  readonly log?: Logger;
  /** For a command that reads it itself. Default: the one that applies here, without its settings of workers. */
  readonly config?: Configuration | undefined;
  /** What the configuration is for. Default: to work. */
  readonly purpose?: Purpose;
}

/** As `withStore`, for commands that enqueue or work tasks. */
export async function withHoldfast<T>(
  cli: Cli,
  { create = false, tasks = ownTypes(), log = silent, purpose = 'work', ...given }: HoldfastOptions,
  use: (holdfast: Holdfast, location: StoreLocation) => Promise<T>,
): Promise<T> {
  return openedAt(
    cli,
    create,
    async (store) => {
      const config = 'config' in given ? given.config : await configurationFor(cli, purpose);
      return openHoldfast({ store, log, tasks, ...(config && { config }) });
    },
    use,
  );
}
