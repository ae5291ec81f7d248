import { createHash } from 'node:crypto';
import { StoreError } from '../../errors.ts';
import { isSchema, isThere } from './catalog.ts';
import { type Database, LONG_ANSWER_WITHIN_MS, type Query } from './database.ts';
import { functionsOver, sqlFile, withSettings } from './functions.ts';
import { hasFunctions, installFunctions } from './install.ts';

interface Step {
  readonly sql: () => string;
  /** The oldest schema version whose programs may still write. */
  readonly leastWriter: number;
}

/**
 * Each step leads from the schema of its index to the next one. Later steps only add tables, indexes, and columns with defaults,
 * and remove nothing that the functions of the version before use. Functions are not part of the steps.
 */
const STEPS: readonly Step[] = [
  { sql: () => sqlFile('tables/001-tables'), leastWriter: 1 },
  { sql: () => sqlFile('tables/002-functions'), leastWriter: 1 },
  { sql: () => sqlFile('tables/003-worker-trouble'), leastWriter: 1 },
  { sql: () => sqlFile('tables/004-checkpoints'), leastWriter: 1 },
  { sql: () => sqlFile('tables/005-lost-leases'), leastWriter: 1 },
  { sql: () => sqlFile('tables/006-losses'), leastWriter: 1 },
  { sql: () => sqlFile('tables/007-turns'), leastWriter: 1 },
  { sql: () => sqlFile('tables/008-days'), leastWriter: 1 },
  { sql: () => sqlFile('tables/009-redrives'), leastWriter: 1 },
  { sql: () => sqlFile('tables/010-source-states'), leastWriter: 1 },
  { sql: () => sqlFile('tables/011-inactive-lanes'), leastWriter: 1 },
  { sql: () => sqlFile('tables/012-reordered-queues'), leastWriter: 1 },
  { sql: () => sqlFile('tables/013-worker-tokens'), leastWriter: 1 },
  { sql: () => sqlFile('tables/014-suspect-lanes'), leastWriter: 1 },
  { sql: () => sqlFile('tables/015-progress'), leastWriter: 1 },
  { sql: () => sqlFile('tables/016-schedules'), leastWriter: 1 },
  { sql: () => sqlFile('tables/017-worker-policies'), leastWriter: 1 },
  { sql: () => sqlFile('tables/018-unique-until'), leastWriter: 1 },
  { sql: () => sqlFile('tables/019-counters'), leastWriter: 1 },
  { sql: () => sqlFile('tables/020-low-keys'), leastWriter: 1 },
  { sql: () => sqlFile('tables/021-earlier-days'), leastWriter: 1 },
  { sql: () => sqlFile('tables/022-groups'), leastWriter: 1 },
  { sql: () => sqlFile('tables/023-long-spans'), leastWriter: 1 },
  { sql: () => sqlFile('tables/024-failed-tasks'), leastWriter: 1 },
  { sql: () => sqlFile('tables/025-key-from'), leastWriter: 1 },
  { sql: () => sqlFile('tables/026-failure-groups'), leastWriter: 1 },
  { sql: () => sqlFile('tables/027-last-takers'), leastWriter: 1 },
  { sql: () => sqlFile('tables/028-changes'), leastWriter: 1 },
  { sql: () => sqlFile('tables/029-events'), leastWriter: 1 },
  { sql: () => sqlFile('tables/030-counter-days'), leastWriter: 1 },
  { sql: () => sqlFile('tables/031-counter-days-again'), leastWriter: 1 },
  { sql: () => sqlFile('tables/032-bodies-stay'), leastWriter: 1 },
];

export const SCHEMA = STEPS.length;

/** Versions before this schema had their functions in the schema of the tables, where a new database has none. */
const FIRST_WITH_OWN_FUNCTIONS = 2;

interface Found {
  readonly version: number;
  readonly least_writer: number;
}

/**
 * Migrates the tables and makes the functions of this version. Several processes may do this at the same time. With `'never'` it
 * only checks whether they are there.
 * @throws StoreError if the tables are too new for this version, or too old and may not be changed.
 */
export async function migrate(database: Database, mode: 'auto' | 'never', steps = STEPS): Promise<void> {
  const { schema, where } = database;
  const functions = functionsOver(schema);
  const target = steps.length;
  const { found, isComplete } = await database.session(async (query) => ({
    found: await versionOf(query, schema),
    isComplete: await hasFunctions(query, functions),
  }));
  refuseTooNew(found, target, where);
  if (found.version >= target && isComplete) return;
  if (mode === 'never') {
    const lack =
      found.version >= target
        ? "lacks this version's functions"
        : `has schema ${found.version} of Holdfast's tables and this version needs ${target}`;
    throw new StoreError(
      'store_unsupported',
      `${where} ${lack}, but it was opened with migrate: 'never'. ` +
        'Open it once with a role that may change them, for instance: holdfast db migrate --store postgres://…',
      found.version >= target ? {} : { schema: found.version },
    );
  }
  await database.session(async (query) => {
    await query('BEGIN');
    try {
      await query("SET LOCAL lock_timeout = '60s'");
      await query('SELECT pg_advisory_xact_lock(hashtext($1))::text', [`holdfast migration ${schema}`]);
      // All others wait behind a table lock for which a migration waits.
      await query("SET LOCAL lock_timeout = '2s'");
      const now = await versionOf(query, schema);
      refuseTooNew(now, target, where);
      if (now.version < target) await migrateTables(query, schema, now.version, steps);
      await installFunctions(query, { schema, where, functions });
      await query('COMMIT');
    } catch (error) {
      // If the rollback fails, the connection is broken, and the server rolls back.
      await query('ROLLBACK').catch(() => {});
      throw error;
    }
  }, LONG_ANSWER_WITHIN_MS);
}

async function migrateTables(query: Query, schema: string, from: number, steps: readonly Step[]): Promise<void> {
  // `CREATE SCHEMA IF NOT EXISTS` needs a right that the owner of the schema may not have.
  if (!(await isSchema(query, schema))) await query(`CREATE SCHEMA ${schema}`);
  await query(`SET LOCAL search_path = ${schema}, pg_temp`);
  const before = await tablesOf(query, schema);
  if (from === 0) await query(lockFunction(schema));
  for (const { sql } of steps.slice(from)) await query(withSettings(sql(), schema));
  await query(metaOf(from, steps.length, steps.at(-1) as Step));
  if (from > 0) await grantAsBefore(query, schema, before);
}

function metaOf(before: number, version: number, { leastWriter }: Step): string {
  if (before > 0) return `UPDATE meta SET version = ${version}, least_writer = ${leastWriter}`;
  return `CREATE TABLE meta (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1), version integer NOT NULL, least_writer integer NOT NULL,
    epoch uuid NOT NULL DEFAULT gen_random_uuid()
  );
  INSERT INTO meta (version, least_writer) VALUES (${version}, ${Math.max(leastWriter, FIRST_WITH_OWN_FUNCTIONS)})`;
}

/** The number of the first advisory lock of this schema. */
function lockFunction(schema: string): string {
  const lock = createHash('sha256').update(schema).digest().readUInt32BE() >>> 2;
  return `CREATE FUNCTION lane_lock() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT ${lock} $$`;
}

async function tablesOf(query: Query, schema: string): Promise<readonly string[]> {
  const rows = await query(
    "SELECT relname AS name FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'p')",
    [schema],
  );
  return (rows as { name: string }[]).map(({ name }) => name);
}

/** Tables that a migration adds get the grants of `chores`. Every role that works has these, so it can continue to work. */
async function grantAsBefore(query: Query, schema: string, before: readonly string[]): Promise<void> {
  const rows = await query(
    `SELECT format('GRANT %s ON %I TO %s', a.privilege_type, n.relname,
        CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END) AS grant
      FROM pg_catalog.pg_class n, pg_catalog.pg_class c, aclexplode(c.relacl) a
      WHERE n.relnamespace = to_regnamespace($1) AND n.relkind IN ('r', 'p') AND n.relname <> ALL($2)
        AND c.relnamespace = n.relnamespace AND c.relname = 'chores' AND a.grantee <> c.relowner`,
    [schema, before],
  );
  for (const { grant } of rows as { grant: string }[]) await query(grant);
}

async function versionOf(query: Query, schema: string): Promise<Found> {
  if (!(await isThere(query, `${schema}.meta`))) return { version: 0, least_writer: 0 };
  const [row] = await query(
    `SELECT json_build_object('version', version, 'least_writer', least_writer)::text AS answer FROM ${schema}.meta`,
  );
  return JSON.parse((row as { answer: string }).answer) as Found;
}

function refuseTooNew({ version, least_writer }: Found, target: number, where: string): void {
  if (least_writer <= target) return;
  throw new StoreError(
    'store_too_new',
    `${where} was written by a newer Holdfast (schema ${version}); this one knows schema ${target}. Nothing was changed. Update holdfast, or open another store.`,
  );
}
