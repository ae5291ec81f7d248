import { lstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ConfigLocation } from './config-location.ts';
import type { ConfiguredStore } from './store-location.ts';

/**
 * What a configuration says of the store, if it does. What reads it is loaded only where it may: commands that need no policies
 * are quick. A file that cannot be read says nothing here; whoever needs it is told.
 * @throws InvalidConfigError where it names a store, and nobody can tell which.
 */
export async function configuredStore({ path, origin }: ConfigLocation): Promise<ConfiguredStore | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  if (!text.includes('store')) return undefined;
  const [{ storeNamedIn }, { nameOfFile }] = await Promise.all([
    import('../../config/store.ts'),
    import('../../config/load.ts'),
  ]);
  const store = storeNamedIn(text, nameOfFile(path));
  return store === undefined ? undefined : { store, file: path, origin, owner: ownerOf(path) };
}

function ownerOf(path: string): number | null {
  return process.getuid ? lstatSync(path).uid : null;
}
