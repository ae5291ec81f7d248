import { StoreError } from '../../errors.ts';
import { isSchema } from './catalog.ts';
import type { Query } from './database.ts';
import { codeOf } from './failures.ts';
import type { Functions } from './functions.ts';

/** The functions of a version are dropped by a newer one when no worker has used them for this long. */
const UNUSED_FOR_DAYS = 90;

interface Place {
  /** The schema of the tables. */
  readonly schema: string;
  readonly where: string;
  readonly functions: Functions;
}

export async function hasFunctions(query: Query, { schema }: Functions): Promise<boolean> {
  const sql = "SELECT 1 FROM pg_catalog.pg_proc WHERE pronamespace = to_regnamespace($1) AND proname = 'claim'";
  return (await query(sql, [schema])).length > 0;
}

/**
 * Makes the functions of this version if they are missing. The functions that people call are those of the newest version: a
 * version replaces them when it is installed for the first time, but an older version does not replace them later.
 * @throws StoreError if the role may not create their schema.
 */
export async function installFunctions(query: Query, { schema, where, functions }: Place): Promise<void> {
  if (await hasFunctions(query, functions)) return;
  if (!(await isSchema(query, functions.schema))) await createSchema(query, functions.schema, where);
  await query(`SET LOCAL search_path = ${functions.schema}, ${schema}, pg_temp`);
  await query(functions.own);
  // They run with the rights of their caller, so only the grants of the tables matter.
  await query(`GRANT USAGE ON SCHEMA ${functions.schema} TO PUBLIC`);
  await query(`GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${functions.schema} TO PUBLIC`);
  const [row] = await query(
    `INSERT INTO functions AS f (schema, used_at) VALUES (current_schema(), now_ms())
      ON CONFLICT (schema) DO UPDATE SET used_at = excluded.used_at
      RETURNING nth >= ALL (SELECT nth FROM functions) AS newest`,
  );
  await dropUnused(query);
  if (!(row as { newest: boolean }).newest) return;
  await query(`SET LOCAL search_path = ${schema}, pg_temp`);
  await query(functions.public);
}

async function createSchema(query: Query, name: string, where: string): Promise<void> {
  try {
    await query(`CREATE SCHEMA ${name}`);
  } catch (error) {
    if (codeOf(error) !== '42501') throw error;
    throw new StoreError(
      'store_unavailable',
      `The role that connects to ${where} may not create the schema of this version's functions. Grant it CREATE on the ` +
        `database, or have somebody who may create schemas run: CREATE SCHEMA ${name} AUTHORIZATION the_role`,
      { cause: error },
    );
  }
}

async function dropUnused(query: Query): Promise<void> {
  const unused = await query(
    `SELECT quote_ident(schema) AS name FROM functions
      WHERE used_at < now_ms() - $1::bigint AND nth < (SELECT max(nth) FROM functions)`,
    [UNUSED_FOR_DAYS * 86_400_000],
  );
  for (const { name } of unused as { name: string }[]) await query(`DROP SCHEMA IF EXISTS ${name} CASCADE`);
}
