import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';

/** Where the system finds a program that is started in `cwd`: a path as it is, a name on PATH. Undefined where it finds none. */
export function findProgram(name: string, cwd: string, path: string | undefined): string | undefined {
  const folders = name.includes('/') ? [''] : (path ?? '').split(delimiter);
  return folders.map((folder) => resolve(cwd, folder, name)).find(isProgram);
}

/** Whether it is a file that may be executed. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
