// @ts-check
import { sqlite } from 'holdfast/sqlite';

/** Loaded when it is asked for: it needs the package `pg`. */
const POSTGRES = 'holdfast/postgres';

/**
 * The store that is called so, at a file or URL.
 * @param {string} kind `sqlite` or `postgres`
 * @param {string} [url]
 * @returns {Promise<import('holdfast').StoreOpener>}
 */
export async function storeCalled(kind, url) {
  switch (kind) {
    case 'sqlite':
      return sqlite(url ?? ':memory:');
    case 'postgres': {
      if (url === undefined) throw new Error('--store postgres takes --url postgres://USER@HOST/DATABASE.');
      const { postgres } = await import(POSTGRES).catch((cause) => {
        throw new Error('This Holdfast has no PostgreSQL store, or it lacks the package `pg`: npm install pg.', {
          cause,
        });
      });
      return postgres(url);
    }
    default:
      throw new Error(`--store takes sqlite or postgres, got '${kind}'.`);
  }
}
