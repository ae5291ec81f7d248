import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Operations, openOperations } from '../../queue/operations.ts';
import { sqlite } from '../../store/sqlite/index.ts';
import type { StoreOpener } from '../../store/store.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { Problem } from '../problem.ts';
import { suspendBetweenCommits } from '../terminal/suspend.ts';
import { makeFolders } from './make-folders.ts';
import { configurationFor, type Purpose } from './read-config.ts';
import { problemAt } from './server-problem.ts';
import type { FileStore, StoreLocation } from './store-location.ts';

export interface StoreOptions {
  /** For commands that record tasks: creates the store and its folder if missing. Default: a missing store is a problem. */
  readonly create?: boolean;
  /** What the configuration is for, if a question about policies is asked. Default: to look. */
  readonly purpose?: Purpose;
}

/**
 * Opens the store, calls `use` with it, and always closes it afterwards. The code and the configuration that questions about policies
 * need are loaded at the first one. Commands that enqueue or work tasks use `withHoldfast`.
 */
export function withStore<T>(
  cli: Cli,
  { create = false, purpose = 'look' }: StoreOptions,
  use: (operations: Operations, location: StoreLocation) => Promise<T>,
): Promise<T> {
  const open = (store: StoreOpener) =>
    openOperations(store, async (opened) => {
      const [{ inspectorOf }, config] = await Promise.all([import('./own-types.ts'), configurationFor(cli, purpose)]);
      return inspectorOf(opened, config);
    });
  return openedAt(cli, create, open, use);
}

/** Finds the store, opens it with `open`, calls `use`, and always closes it afterwards. */
export async function openedAt<Opened extends { close(): Promise<unknown> }, T>(
  cli: Cli,
  create: boolean,
  open: (store: StoreOpener) => Promise<Opened>,
  use: (opened: Opened, location: StoreLocation) => Promise<T>,
): Promise<T> {
  const location = await cli.location();
  if (cli.terminal.verbose > 0) cli.terminal.note(`store ${visible(location.name)} (${location.origin})`);
  const endSuspending = suspendBetweenCommits();
  const opened = await open(await storeAt(location, create)).catch((error) => {
    throw location.kind === 'postgres' ? problemAt(location, cli, error) : error;
  });
  try {
    return await use(opened, location);
  } finally {
    await opened.close();
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
      hints: [
        'the first task or worker makes it: holdfast run -- CMD…, or holdfast worker',
        'another store: --store PATH, or HOLDFAST_STORE',
      ],
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
