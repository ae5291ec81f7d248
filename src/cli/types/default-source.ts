import { realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { CommandInput } from '../../handlers/command.ts';
import type { MoveInput } from '../../handlers/move.ts';
import { visible } from '../../views/visible.ts';

/**
 * The name of the program without its folder, because what fails for one `rsync` often fails for the next. Only the command itself
 * knows which machine it talks to.
 */
export function sourceOfCommand({ argv, shell }: CommandInput): string {
  const program = shell ? 'sh' : basename(argv[0] as string);
  return `cmd:${visible(program).slice(0, 200)}`;
}

/**
 * The file system of the destination: a full disk or an unavailable share fails all moves to it. It is named by its mount point, as
 * far as device numbers show that.
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
