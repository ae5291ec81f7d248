import { mkdirSync, realpathSync, statSync } from 'node:fs';
import { makeFolders } from '../opening/make-folders.ts';
import type { FileStore, ServerStore } from '../opening/store-location.ts';

/** What decides where the output of a store's commands is kept. */
export type OutputPlace = Pick<FileStore, 'kind' | 'path'> | Pick<ServerStore, 'kind' | 'output'>;

/** A folder that exists. */
export interface OutputFolder {
  readonly folder: string;
  /** Of the files in it. */
  readonly mode: number;
}

/** For a file: beside it, and the same whichever link leads to it. For a server: in the state folder of this user. */
export function outputFolder(place: OutputPlace): string {
  return place.kind === 'file' ? `${realpathSync(place.path)}.logs` : place.output;
}

/** Creates it if it does not exist. Only users who may read the store may read the output of its commands. */
export function makeOutputFolder(place: OutputPlace): OutputFolder {
  const folder = outputFolder(place);
  if (place.kind === 'postgres') {
    makeFolders(folder);
    return { folder, mode: 0o600 };
  }
  const mode = statSync(place.path).mode & 0o666;
  mkdirSync(folder, { recursive: true, mode: mode | 0o100 | ((mode & 0o444) >> 2) });
  return { folder, mode };
}
