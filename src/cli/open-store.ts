import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from '../log.ts';
import { type Holdfast, openHoldfast } from '../queue/holdfast.ts';
import { sqlite } from '../store/sqlite/index.ts';
import type { AnyTask } from '../worker/define-task.ts';
import type { Cli } from './cli.ts';
import { Problem } from './problem.ts';
import type { StoreLocation } from './store-location.ts';
import { visible } from './visible.ts';

export interface OpenOptions {
  /** For commands that record: the store and its folder are made where they are missing. Default: a missing store is a problem. */
  readonly create?: boolean;
  readonly tasks?: readonly AnyTask[];
  readonly log?: Logger;
}

/** Opens the store, hands it to `use`, and closes it however that ends. */
export async function withStore<T>(
  cli: Cli,
  options: OpenOptions,
  use: (holdfast: Holdfast, location: StoreLocation) => Promise<T>,
): Promise<T> {
  const location = cli.location();
  const { path } = location;
  if (cli.terminal.verbose > 0) cli.terminal.note(`store ${visible(path)} (${location.origin})`);
  if (options.create) makeRoom(path);
  else refuseMissing(location);
  const { create: _, ...rest } = options;
  const holdfast = await openHoldfast({ store: sqlite(path), ...rest });
  try {
    return await use(holdfast, location);
  } finally {
    await holdfast.close();
  }
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

/** Step by step: Node's own recursive `mkdir` never comes back from a place like /proc. */
function makeFolders(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) makeFolders(dirname(folder));
  try {
    // Payloads may hold secrets, so a folder of our making is its owner's alone.
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(folder).isDirectory()) throw error;
  }
}

function refuseMissing({ path, origin }: StoreLocation): void {
  try {
    if (statSync(path).isFile()) return;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ENOTDIR') {
      throw new Problem(
        code === 'EACCES' ? 'store_read_only' : 'store_unavailable',
        `the store ${visible(path)} cannot be looked at: ${visible(message)}`,
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
  '--store': 'That is what --store says.',
  HOLDFAST_STORE: 'That is what HOLDFAST_STORE says.',
  project: 'That is where the nearest .holdfast folder keeps it.',
  state: "There is no .holdfast folder here or above, so it is the user's own.",
};
