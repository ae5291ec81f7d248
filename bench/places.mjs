// Where the stores that are measured stand: files of a folder for SQLite, databases of a server for PostgreSQL. An address is
// a path or a URL, and opens the store.
import { postgres } from '../dist/store/postgres/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';
import { atDatabase, atDatabaseLike } from './databases.mjs';
import { atFile, atFileLike } from './files.mjs';

/** Calls `use` with the address of a store that is still empty, which goes when it is done. */
export function atNewStore(options, use) {
  return options.url ? atDatabase(options, use) : atFile(options, use);
}

/**
 * The same with a copy of the store that the program `build NAME` fills. It is built once a run, in its own process, and each
 * copy is on the disk before anything is measured.
 */
export function atCopyOf(name, options, use) {
  return options.url ? atDatabaseLike(name, options, use) : atFileLike(name, options, use);
}

/** Set by drivers.mjs, which measures the SQLite libraries. Otherwise Holdfast chooses. */
const { HOLDFAST_BENCH_DRIVER: driver } = process.env;

/** The store at an address. Full durability, unless a file is to be filled fast; a database says for itself. */
export function storeAt(address, durability = 'full') {
  return isUrl(address) ? postgres(address) : sqlite(address, { durability, ...(driver && { driver }) });
}

export function isUrl(address) {
  return address.startsWith('postgres://');
}
