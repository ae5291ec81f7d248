// @ts-check
import { postgres } from 'holdfast/postgres';
import { sqlite } from 'holdfast/sqlite';

/**
 * The store that is called so, at a file or URL.
 * @param {string} kind `sqlite` or `postgres`
 * @param {string} [url]
 * @returns {import('holdfast').StoreOpener}
 */
export function storeCalled(kind, url) {
  switch (kind) {
    case 'sqlite':
      return sqlite(url ?? ':memory:');
    case 'postgres':
      if (url === undefined) throw new Error('--store postgres takes --url postgres://USER@HOST/DATABASE.');
      return postgres(url);
    default:
      throw new Error(`--store takes sqlite or postgres, got '${kind}'.`);
  }
}
