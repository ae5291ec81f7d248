import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Logger, silent } from '../../log.ts';
import type { Holdfast } from '../../queue/holdfast.ts';
import { openHoldfast } from '../../queue/open.ts';
import { sqlite } from '../../store/sqlite/index.ts';
import type { StoreOpener } from '../../store/store.ts';
import { OWN_TYPES } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import type { Configuration } from '../../worker/configuration.ts';
import { type AnyTask, defineTask } from '../../worker/define-task.ts';
import type { Cli } from '../cli.ts';
import { Problem } from '../problem.ts';
import { suspendBetweenCommits } from '../terminal/suspend.ts';
import { makeFolders } from './make-folders.ts';
import { partOf, readConfig } from './read-config.ts';
import { problemAt } from './server-problem.ts';
import type { FileStore, StoreLocation } from './store-location.ts';

export interface OpenOptions {
  /** For commands that record tasks: creates the store and its folder if missing. Default: a missing store is a problem. */
  readonly create?: boolean;
  readonly tasks?: readonly AnyTask[];
  readonly log?: Logger;
  /** For commands that read it themselves, or need none. Default: the one that applies here, without its settings of workers. */
  readonly config?: Configuration | undefined;
  /**
   * What the configuration is for. To look (default): an invalid configuration is reported and not used, so that the command still
   * works. To explain: an invalid configuration ends the command. To work: the same, and its settings of queues are applied.
   */
  readonly purpose?: 'look' | 'explain' | 'work';
}

/** Opens the store, calls `use` with it, and always closes it afterwards. */
export async function withStore<T>(
  cli: Cli,
  options: OpenOptions,
  use: (holdfast: Holdfast, location: StoreLocation) => Promise<T>,
): Promise<T> {
  const location = await cli.location();
  if (cli.terminal.verbose > 0) cli.terminal.note(`store ${visible(location.name)} (${location.origin})`);
  const { create = false, purpose = 'look', config: given, tasks = OWN_TYPES.map(known), ...rest } = options;
  const endSuspending = suspendBetweenCommits();
  const store = await storeAt(location, create);
  const config = 'config' in options ? given : await configurationFor(cli, purpose);
  // These warnings are for programmers, not for users of the command line.
  const opening = openHoldfast({ store, log: { ...silent }, ...rest, tasks, ...(config && { config }) });
  const holdfast = await opening.catch((error) => {
    throw location.kind === 'postgres' ? problemAt(location, cli, error) : error;
  });
  try {
    return await use(holdfast, location);
  } finally {
    await holdfast.close();
    endSuspending();
  }
}

/** The opener of the store. Only with `create` a missing file is created, or the tables of a database. */
async function storeAt(location: StoreLocation, create: boolean): Promise<StoreOpener> {
  if (location.kind === 'postgres') {
    const { postgres } = await import('../../store/postgres/index.ts');
    return postgres(location.url, { migrate: create ? 'auto' : 'never' });
  }
  if (create) makeRoom(location.path);
  else refuseMissing(location);
  return sqlite(location.path);
}

async function configurationFor(cli: Cli, purpose: OpenOptions['purpose']): Promise<Configuration | undefined> {
  const found = await readConfig(cli);
  if (!found) return undefined;
  if (!found.refused) return partOf(found.registry, purpose === 'work');
  if (purpose !== 'look') throw found.refused;
  cli.terminal.note(
    `${visible(found.refused.file)} has errors, so it is not used here: ${cli.command('policies validate')}`,
  );
  return undefined;
}

/** A definition of one of our own types without its handler: it has the preset of the type. */
function known(type: string): AnyTask {
  const run = () => {
    throw new Error('This command works no tasks.');
  };
  return defineTask(type, { run });
}

function makeRoom(path: string): void {
  try {
    makeFolders(dirname(path));
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const forbidden = ['EACCES', 'EPERM', 'EROFS'].includes(code);
    throw new Problem(
      forbidden ? 'store_read_only' : 'store_unavailable',
      `the folder ${visible(dirname(path))} cannot be made: ${visible(message)}`,
      { hints: ['another store: --store PATH'], cause: error },
    );
  }
}

function refuseMissing({ path, origin }: FileStore): void {
  try {
    if (statSync(path).isFile()) return;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ENOTDIR') {
      throw new Problem(
        code === 'EACCES' ? 'store_read_only' : 'store_unavailable',
        `the store ${visible(path)} cannot be read: ${visible(message)}`,
        { cause: error },
      );
    }
    throw new Problem('store_unavailable', `there is no store at ${visible(path)}`, {
      why: [WHENCE[origin]],
      hints: ['the first task makes it: holdfast run -- CMD…', 'another store: --store PATH, or HOLDFAST_STORE'],
    });
  }
  throw new Problem('store_unavailable', `${visible(path)} is not a file`, {
    hints: ['a store is one file, such as holdfast.db'],
  });
}

const WHENCE: Readonly<Record<StoreLocation['origin'], string>> = {
  '--store': 'It is named by --store.',
  HOLDFAST_STORE: 'It is named by HOLDFAST_STORE.',
  config: 'It is named by `store:` of the configuration.',
  project: 'It belongs to the nearest .holdfast folder.',
  state: "There is no .holdfast folder here or above, so the user's own store is used.",
};
