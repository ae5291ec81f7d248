import { createHash } from 'node:crypto';
import { StoreError } from '../../errors.ts';
import { type Database, LONG_ANSWER_WITHIN_MS, type Query } from './database.ts';
import { CHORES } from './sql/chores.ts';
import { CLAIM } from './sql/claim.ts';
import { DAYS } from './sql/days.ts';
import { ENQUEUE } from './sql/enqueue.ts';
import { LANES, SETTINGS } from './sql/lanes.ts';
import { MOVE } from './sql/move.ts';
import { RECOVER } from './sql/recover.ts';
import { SETTLE } from './sql/settle.ts';
import { SOURCES } from './sql/sources.ts';
import { STORAGE, TABLES } from './sql/tables.ts';
import { VIEWS } from './sql/views.ts';

interface Step {
  readonly sql: string;
  /** The oldest schema whose versions may go on writing. */
  readonly leastWriter: number;
}

/**
 * Each step leads from the schema of its index to the next. A step that comes later adds, and takes nothing away that the
 * version before it uses: a function whose arguments change gets a new name, and the old one goes with the step that raises
 * the least writer.
 */
const STEPS: readonly Step[] = [
  {
    sql: [TABLES, STORAGE, VIEWS, LANES, DAYS, ENQUEUE, CLAIM, SETTLE, RECOVER, MOVE, SOURCES, CHORES].join('\n'),
    leastWriter: 1,
  },
];

export const SCHEMA = STEPS.length;

interface Found {
  readonly version: number;
  readonly least_writer: number;
}

/**
 * Brings the tables up to date, however many processes try at once, or with `'never'` only looks whether they are.
 * @throws StoreError if they are too new for this version, or too old and may not be changed.
 */
export async function migrate(database: Database, mode: 'auto' | 'never', steps = STEPS): Promise<void> {
  const { schema, where } = database;
  const target = steps.length;
  const found = await database.session(async (query) => versionOf(query, schema));
  refuseTooNew(found, target, where);
  if (found.version >= target) return;
  if (mode === 'never') {
    throw new StoreError(
      'store_unsupported',
      `${where} has schema ${found.version} of Holdfast's tables and this version needs ${target}, but it was opened with migrate: 'never'. ` +
        'Open it once with a role that may change them, for instance: holdfast db migrate --store postgres://…',
    );
  }
  await database.session(async (query) => {
    await query('BEGIN');
    try {
      await query("SET LOCAL lock_timeout = '60s'");
      await query('SELECT pg_advisory_xact_lock(hashtext($1))::text', [`holdfast migration ${schema}`]);
      // Behind a table's lock that a migration waits for, everybody waits.
      await query("SET LOCAL lock_timeout = '2s'");
      const now = await versionOf(query, schema);
      refuseTooNew(now, target, where);
      if (now.version < target) {
        // Also where it exists, making it takes a right that a schema's owner may lack.
        if (!(await isSchema(query, schema))) await query(`CREATE SCHEMA ${schema}`);
        await query(`SET LOCAL search_path = ${schema}, pg_temp`);
        for (const { sql } of steps.slice(now.version)) await query(withSettings(sql, schema));
        await query(metaOf(now.version, target, steps.at(-1) as Step));
      }
      await query('COMMIT');
    } catch (error) {
      // Where it cannot be undone any more, its connection is gone, and with it what was done.
      await query('ROLLBACK').catch(() => {});
      throw error;
    }
  }, LONG_ANSWER_WITHIN_MS);
}

function metaOf(before: number, version: number, { leastWriter }: Step): string {
  if (before > 0) return `UPDATE meta SET version = ${version}, least_writer = ${leastWriter}`;
  return `CREATE TABLE meta (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1), version integer NOT NULL, least_writer integer NOT NULL,
    epoch uuid NOT NULL DEFAULT gen_random_uuid()
  );
  INSERT INTO meta (version, least_writer) VALUES (${version}, ${leastWriter})`;
}

/** Every function finds its tables whatever the caller's search path, and its rows by index. */
function withSettings(step: string, schema: string): string {
  const lock = `CREATE OR REPLACE FUNCTION lane_lock() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT ${lockOf(schema)} $$;\n`;
  const settings = `SET search_path = ${schema}, pg_temp ${SETTINGS}`;
  return lock + step.replaceAll(/LANGUAGE plpgsql( SECURITY DEFINER)?/g, (found) => `${found} ${settings}`);
}

/** The first of this schema's advisory locks. */
function lockOf(schema: string): number {
  return createHash('sha256').update(schema).digest().readUInt32BE() >>> 2;
}

async function versionOf(query: Query, schema: string): Promise<Found> {
  if (!(await isThere(query, `${schema}.meta`))) return { version: 0, least_writer: 0 };
  const [row] = await query(
    `SELECT json_build_object('version', version, 'least_writer', least_writer)::text AS answer FROM ${schema}.meta`,
  );
  return JSON.parse((row as { answer: string }).answer) as Found;
}

/**
 * Whether there is a table of this name, quoted where it has to be. The catalog is read for it: names alone are looked up in
 * what a connection remembers, where what others committed while it waited for a lock may be missing.
 */
export async function isThere(query: Query, name: string): Promise<boolean> {
  return (await query('SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass($1)', [name])).length > 0;
}

async function isSchema(query: Query, schema: string): Promise<boolean> {
  return (await query('SELECT 1 FROM pg_catalog.pg_namespace WHERE oid = to_regnamespace($1)', [schema])).length > 0;
}

function refuseTooNew({ version, least_writer }: Found, target: number, where: string): void {
  if (least_writer <= target) return;
  throw new StoreError(
    'store_too_new',
    `${where} was written by a newer Holdfast (schema ${version}); this one knows schema ${target}. Nothing was changed. Update holdfast, or open another store.`,
  );
}
