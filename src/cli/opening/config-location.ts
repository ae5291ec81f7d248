import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usage } from '../problem.ts';

/** A configuration file, and why this one. */
export interface ConfigLocation {
  readonly path: string;
  readonly origin: '--config' | 'folder' | 'project' | 'user';
}

/** Where a configuration is looked for. */
export interface ConfigSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  /** The folder in which `.holdfast/` stands, where that is the store's. */
  readonly project: string | undefined;
  readonly isFile: (path: string) => boolean;
}

const NAMES = ['holdfast.yaml', 'holdfast.yml', 'holdfast.json'] as const;

/** All places, in order. Only the first file that exists is used. */
function places({ environment, cwd, home, project }: ConfigSurroundings): readonly ConfigLocation[] {
  const config = environment.XDG_CONFIG_HOME;
  // A relative path must be ignored: https://specifications.freedesktop.org/basedir-spec
  const user = config?.startsWith('/') ? config : join(home, '.config');
  return [
    ...NAMES.map((name) => ({ path: join(cwd, name), origin: 'folder' as const })),
    ...(project === undefined || project === cwd
      ? []
      : NAMES.map((name) => ({ path: join(project, name), origin: 'project' as const }))),
    { path: join(user, 'holdfast', 'config.yaml'), origin: 'user' },
  ];
}

/**
 * The flag; else `holdfast.yaml`, `.yml` or `.json` here, or beside the `.holdfast/` folder of the project; else the user's
 * own. Undefined if there is none. Whether the file of a flag exists is only checked when it is read.
 * @throws Problem for an empty flag.
 */
export function locateConfig(flag: string | undefined, around: ConfigSurroundings): ConfigLocation | undefined {
  if (flag === '')
    throw usage('--config is empty', { hints: ['--config takes the path of a file, such as holdfast.yaml'] });
  if (flag !== undefined) return { path: resolve(around.cwd, flag), origin: '--config' };
  return places(around).find(({ path }) => around.isFile(path));
}

/** Where `locateConfig` looks without a flag, in words. */
export const CONFIG_PLACES = [
  'holdfast.yaml, holdfast.yml or holdfast.json here, or beside the .holdfast folder',
  'config.yaml in ~/.config/holdfast (XDG_CONFIG_HOME)',
] as const;

/**
 * Whether the file exists. A file in an unreadable folder, such as another user's home, does not count. A file that itself is
 * unreadable counts, so that the error is reported.
 */
export function mayBeConfig(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
