import { createHash } from 'node:crypto';
import { dirname, join, parse, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { namesServer, objectionTo } from '../../config/store-name.ts';
import { Problem, usage } from '../problem.ts';

/** Where the store is, and why there. */
export type StoreLocation = FileStore | ServerStore;

interface Named {
  /** What people call it, without a password. */
  readonly name: string;
  readonly origin: '--store' | 'HOLDFAST_STORE' | 'config' | 'project' | 'state';
}

export interface FileStore extends Named {
  readonly kind: 'file';
  readonly path: string;
}

export interface ServerStore extends Named {
  readonly kind: 'postgres';
  /** May contain a password. */
  readonly url: string;
  /** The folder for the output of commands on this machine. A server has no folder for it. */
  readonly output: string;
}

/** The store in the configuration that applies here. */
export interface ConfiguredStore {
  readonly store: string;
  readonly file: string;
  readonly origin: '--config' | 'folder' | 'project' | 'user';
  /** Null if the system has no owners. */
  readonly owner: number | null;
}

/** The environment that decides where the store is. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** The owner of a folder, undefined if it does not exist, and null if the system has no owners. */
  readonly ownerOf: (path: string) => number | null | undefined;
  /** The current user. Null if the system has no owners. */
  readonly user: number | null;
}

/** A folder of this name above the current one holds the project's store. */
const PROJECT_FOLDER = '.holdfast';
const FILE = 'holdfast.db';

/**
 * The flag, else HOLDFAST_STORE, else `store:` of the configuration, else the nearest `.holdfast/` upwards, else the user's state
 * folder. A project wins over the user's own configuration. Nothing is created or opened here.
 * @throws Problem for what is not a store, and for a project's folder or a configuration that belongs to another user.
 */
export function locateStore(
  flag: string | undefined,
  around: Surroundings,
  configured?: ConfiguredStore,
): StoreLocation {
  if (flag !== undefined) return storeCalled(flag, around, around.cwd, '--store');
  const given = around.environment.HOLDFAST_STORE;
  if (given) return storeCalled(given, around, around.cwd, 'HOLDFAST_STORE');
  if (configured && configured.origin !== 'user') return storeOfConfig(configured, around);
  const project = projectFolder(around);
  if (project !== undefined) return fileStore(join(project, FILE), 'project');
  if (configured) return storeOfConfig(configured, around);
  return fileStore(join(stateFolder(around), FILE), 'state');
}

/** The folder in which the nearest `.holdfast/` stands, if that is where the store is looked for. */
export function projectOf(flag: string | undefined, around: Surroundings): string | undefined {
  if (flag !== undefined || around.environment.HOLDFAST_STORE) return undefined;
  const folder = projectFolder(around);
  return folder === undefined ? undefined : dirname(folder);
}

function fileStore(path: string, origin: Named['origin']): FileStore {
  return { kind: 'file', path, name: path, origin };
}

function storeCalled(text: string, around: Surroundings, from: string, origin: Named['origin']): StoreLocation {
  const objection = objectionTo(text);
  if (objection) throw usage(`${origin} ${objection.what}`, { hints: [objection.instead] });
  if (origin === '--store' && holdsPassword(text)) {
    throw usage('--store holds a password, and every user of this machine can read it in the list of processes', {
      hints: ['name the store in HOLDFAST_STORE, or leave the password out and set PGPASSWORD or ~/.pgpass'],
    });
  }
  if (!namesServer(text)) return fileStore(/^file:/i.test(text) ? fileOf(text, origin) : resolve(from, text), origin);
  const name = nameOf(text);
  return { kind: 'postgres', url: text, name, origin, output: join(stateFolder(around), 'output', folderNameOf(name)) };
}

/** A store contains commands to be run, so one of another user is used only if it is named. */
function storeOfConfig({ store, file, origin, owner }: ConfiguredStore, around: Surroundings): StoreLocation {
  if (origin !== '--config' && !isOurs(owner, around)) {
    throw new Problem('store_read_only', `${file} belongs to another user, and it names a store to run commands from`, {
      hints: [`if you trust it, name it: --config ${file}`],
    });
  }
  return storeCalled(store, around, dirname(file), 'config');
}

function isOurs(owner: number | null, { user }: Surroundings): boolean {
  return owner === null || user === null || owner === user || owner === 0;
}

/** The address of a database, without user and password. */
function nameOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url);
  return `postgres://${searchParams.get('host') ?? host}${pathname}`;
}

/** A name that people recognise, and that differs for each database. */
function folderNameOf(name: string): string {
  const words = name.replace(/^postgres:\/\//, '').replaceAll(/[^\w.-]+/g, '-');
  return `${words.slice(0, 60)}-${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

function holdsPassword(text: string): boolean {
  if (!namesServer(text)) return false;
  const { password, searchParams } = new URL(text);
  return password !== '' || [...searchParams.keys()].some((name) => /password/i.test(name));
}

/** The name of a store as it was typed, without its password, for a command to type next. */
export function withoutPassword(text: string): string {
  if (!namesServer(text) || !URL.canParse(text)) return text;
  const url = new URL(text);
  url.password = '';
  for (const name of [...url.searchParams.keys()]) if (/password/i.test(name)) url.searchParams.delete(name);
  return url.href;
}

function fileOf(text: string, name: string): string {
  try {
    return fileURLToPath(text);
  } catch (error) {
    throw usage(`${name} is not the URL of a file on this machine: ${text}`, {
      hints: ['file:///path/to/holdfast.db has three slashes'],
      cause: error,
    });
  }
}

/** The nearest one upwards. One of another user is used only if it is named. */
function projectFolder(around: Surroundings): string | undefined {
  for (let folder = resolve(around.cwd); ; folder = dirname(folder)) {
    const candidate = join(folder, PROJECT_FOLDER);
    const owner = around.ownerOf(candidate);
    if (owner !== undefined) {
      if (isOurs(owner, around)) return candidate;
      throw new Problem('store_read_only', `${candidate} belongs to another user, and a store holds commands to run`, {
        hints: [`if you trust it, name it: --store ${join(candidate, FILE)}`],
      });
    }
    if (folder === parse(folder).root) return undefined;
  }
}

function stateFolder({ environment, home, platform }: Surroundings): string {
  // A relative XDG path is invalid and ignored, says its specification.
  if (environment.XDG_STATE_HOME?.startsWith('/')) return join(environment.XDG_STATE_HOME, 'holdfast');
  if (platform === 'win32') return join(environment.LOCALAPPDATA ?? join(home, 'AppData', 'Local'), 'holdfast');
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'holdfast');
  return join(home, '.local', 'state', 'holdfast');
}
