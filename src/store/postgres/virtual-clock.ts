import { StoreError } from '../../errors.ts';
import { isThere } from './catalog.ts';
import type { Database } from './database.ts';

/** Replaces the database's clock by one that stands where it was set. */
function virtualClock(schema: string): string {
  return `
CREATE TABLE ${schema}.testing_clock (id integer PRIMARY KEY CHECK (id = 1), now bigint NOT NULL);
INSERT INTO ${schema}.testing_clock VALUES (1, 0);
CREATE OR REPLACE FUNCTION ${schema}.now_ms() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT now FROM ${schema}.testing_clock);
END $$;
CREATE FUNCTION ${schema}.set_now(p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint;
BEGIN
  UPDATE ${schema}.testing_clock SET now = p_now WHERE now < p_now;
  SELECT now INTO now_ FROM ${schema}.testing_clock;
  RETURN now_;
END $$`;
}

/**
 * Gives a database the clock of the testing kit, unless it has it.
 * @throws StoreError where there are tasks: they would be left with a clock that stands still.
 */
export async function installVirtualClock(database: Database): Promise<void> {
  const { schema, where } = database;
  await database.session(async (query) => {
    if (await isThere(query, `${schema}.testing_clock`)) return;
    const tasks = await query(
      `SELECT 1 FROM ${schema}.live UNION ALL SELECT 1 FROM ${schema}.ended UNION ALL SELECT 1 FROM ${schema}.succeeded LIMIT 1`,
    );
    if (tasks.length > 0) {
      throw new StoreError(
        'store_unsupported',
        `${where} has tasks, and a test's clock would replace the database's for them. Give the test a schema of its own: postgres(url, { schema: 'holdfast_test' }).`,
      );
    }
    await query(virtualClock(schema));
  });
}
