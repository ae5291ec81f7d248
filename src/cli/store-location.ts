import { dirname, join, parse, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Problem, usage } from './problem.ts';

/** Where the store is, and who said so. */
export interface StoreLocation {
  readonly path: string;
  readonly origin: '--store' | 'HOLDFAST_STORE' | 'project' | 'state';
}

/** The surroundings that decide where the store is. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Who owns a folder, or undefined where there is none. Null where the system knows no owners. */
  readonly ownerOf: (path: string) => number | null | undefined;
  /** Who we are; null where the system knows no owners. */
  readonly user: number | null;
}

/** A folder of this name above the current one holds the project's store. */
const PROJECT_FOLDER = '.holdfast';
const FILE = 'holdfast.db';

/**
 * The flag, else HOLDFAST_STORE, else the nearest `.holdfast/` upwards, else the user's state folder. Nothing is made or
 * opened here.
 * @throws Problem for what is no file, and for a project's folder that belongs to somebody else.
 */
export function locateStore(flag: string | undefined, around: Surroundings): StoreLocation {
  if (flag !== undefined) return { path: pathOf(flag, around.cwd, '--store'), origin: '--store' };
  const told = around.environment.HOLDFAST_STORE;
  if (told) return { path: pathOf(told, around.cwd, 'HOLDFAST_STORE'), origin: 'HOLDFAST_STORE' };
  const project = projectFolder(around);
  if (project !== undefined) return { path: join(project, FILE), origin: 'project' };
  return { path: join(stateFolder(around), FILE), origin: 'state' };
}

function pathOf(text: string, cwd: string, name: string): string {
  if (text === '')
    throw usage(`${name} is empty`, { hints: [`${name} takes the path of a file, such as ./holdfast.db`] });
  if (text === ':memory:') {
    throw usage(`${name} :memory: would be forgotten when this command ends`, { hints: ['name a file instead'] });
  }
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === 'file') return fileOf(text, name);
  if (scheme !== undefined && text.startsWith(`${scheme}://`)) {
    throw usage(`${name} cannot be ${text.slice(0, scheme.length)}://…: this version opens files only`, {
      hints: ['a path, or file:///path/to/holdfast.db'],
    });
  }
  return resolve(cwd, text);
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

/** A store is a list of commands to be run, so one that a stranger put in our way is not taken without being named. */
function projectFolder({ cwd, ownerOf, user }: Surroundings): string | undefined {
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const candidate = join(folder, PROJECT_FOLDER);
    const owner = ownerOf(candidate);
    if (owner !== undefined) {
      if (owner === null || user === null || owner === user || owner === 0) return candidate;
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
