import { realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { CommandInput } from '../../handlers/command.ts';
import type { MoveInput } from '../../handlers/move.ts';
import { visible } from '../../views/visible.ts';

/**
 * The program by its last name: what fails for one `rsync` often fails for the next. Which machine a command talks to,
 * only the command knows.
 */
export function sourceOfCommand({ argv, shell }: CommandInput): string {
  const program = shell ? 'sh' : basename(argv[0] as string);
  return `cmd:${visible(program).slice(0, 200)}`;
}

/**
 * The failure domain is the file system that it goes to: a disk that is full, or a share that is away, fails them all. Named
 * by the folder that it is mounted on, as far as device numbers tell.
 */
export function sourceOfMove({ to }: MoveInput): string {
  let folder = nearestFolder(dirname(to));
  const device = statSync(folder).dev;
  while (dirname(folder) !== folder && statSync(dirname(folder)).dev === device) folder = dirname(folder);
  return `fs:${visible(folder)}`.slice(0, 255);
}

function nearestFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path ? path : nearestFolder(dirname(path));
  }
}
