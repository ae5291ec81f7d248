import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type OutputPlace, outputFolder } from './output-folder.ts';

/** The files of `OutputLog`: one for each task, and the one before it. */
const FILE = /^(\d+)(?:\.old)?\.jsonl$/;

/** Removes the kept output of removed tasks. */
export function removeOutput(place: OutputPlace, tasks: readonly { readonly id: number }[]): void {
  const gone = new Set(tasks.map(({ id }) => id));
  const folder = outputFolder(place);
  for (const name of namesIn(folder)) {
    const id = FILE.exec(name)?.[1];
    if (id !== undefined && gone.has(Number(id))) rmSync(join(folder, name), { force: true });
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
