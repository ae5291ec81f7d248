import { lstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ConfigLocation } from './config-location.ts';
import type { ConfiguredStore } from './store-location.ts';

/**
 * The store that a configuration names, if it does. The parser is loaded only if the text may name one: commands that need no policies
 * stay quick. A file that cannot be read counts as naming none here; the command that needs it reports the error.
 * @throws InvalidConfigError if it names a store in a way that cannot be read.
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
