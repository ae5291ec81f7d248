import type { Query } from './database.ts';

/**
 * Whether there is a table of this name, which is quoted if necessary. This reads the catalog, because names are looked up in a
 * cache of the connection, which may not have what others committed while it waited for a lock.
 */
export async function isThere(query: Query, name: string): Promise<boolean> {
  return (await query('SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass($1)', [name])).length > 0;
}

export async function isSchema(query: Query, schema: string): Promise<boolean> {
  return (await query('SELECT 1 FROM pg_catalog.pg_namespace WHERE oid = to_regnamespace($1)', [schema])).length > 0;
}
