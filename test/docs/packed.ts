import { execFile } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const run = promisify(execFile);
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Packs Holdfast, and installs it into a folder with what the `package.json` there asks for. */
export async function installPacked(folder: string): Promise<void> {
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', ['install', ...flags, `./${filename}`], { cwd: folder });
  // The compiled library is the one that this checkout built; compiling it again would take a minute.
  const build = 'node_modules/better-sqlite3/build';
  await cp(join(root, build), join(folder, build), { recursive: true });
}
