import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Store } from '../../src/store/store.ts';
import Database from '../database.ts';
import { openDatabases } from '../postgres/databases.ts';

/*
 * The sums of the hours of a day, beside a program of a version that knows only the counters of minutes, hours and longer periods.
 */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const KEY = '["mail","s","ok"]';
const world = { clock: systemClock, random: Math.random };
/** A day that is over. */
const day = Date.now() - (Date.now() % DAY) - 3 * DAY;

async function total(store: Store): Promise<readonly number[]> {
  const sums = await store.records.counters(0);
  const periods = await store.records.counterPeriods(0);
  return [sums, periods].map(({ counts }) => counts.reduce((sum, { count }) => sum + count, 0));
}

test('on SQLite hours count that another program adds, once, until it adds them to their day', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-counter-days-'));
  const path = join(folder, 'tasks.db');
  const store = await sqlite(path).open(world);
  const former = new Database(path);
  const add = (span: number, at: number, count: number) =>
    former
      .prepare(
        `INSERT INTO hf_counters (span, at, counted_as, count, first_at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (span, at, counted_as) DO UPDATE SET count = count + excluded.count, first_at = min(first_at, excluded.first_at)`,
      )
      .run(span, at, KEY, count, at);
  try {
    add(HOUR, day, 2);
    add(HOUR, day, 3);
    add(HOUR, day + HOUR, 4);
    expect(await total(store)).toEqual([9, 9]);
    former.exec('BEGIN');
    add(DAY, day, 9);
    former.prepare('DELETE FROM hf_counters WHERE span = ? AND at < ?').run(HOUR, day + DAY);
    former.exec('COMMIT');
    expect(await total(store)).toEqual([9, 9]);
  } finally {
    former.close();
    await store.upkeep.close();
    rmSync(folder, { recursive: true });
  }
});

test('on PostgreSQL an hour counts that another program adds while the tables are migrated', async () => {
  const databases = await openDatabases(async (url) => (await postgres(url).open(world)).upkeep.close());
  const database = await databases.take();
  const former = new pg.Client({ connectionString: database.directUrl });
  await former.connect();
  try {
    // What the steps after the 29th made.
    await former.query(`
      DROP TRIGGER remove_bodies ON holdfast.succeeded;
      DROP TRIGGER replace_body ON holdfast.bodies;
      DROP FUNCTION holdfast.remove_bodies, holdfast.replace_body;
      DROP TRIGGER counters_added ON holdfast.counters;
      DROP TRIGGER counters_changed ON holdfast.counters;
      DROP TRIGGER counters_removed ON holdfast.counters;
      DROP FUNCTION holdfast.counters_added, holdfast.counters_changed, holdfast.counters_removed;
      DROP TABLE holdfast.counter_days;
      UPDATE holdfast.meta SET version = 29`);
    await former.query('BEGIN');
    await former.query(
      'INSERT INTO holdfast.counters (span, at, counted_as, count, first_at) VALUES ($1, $2, $3, 5, $2)',
      [HOUR, day, KEY],
    );
    const opening = postgres(database.url).open(world);
    const waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'holdfast.counters'::regclass";
    while ((await former.query(waiting)).rowCount === 0) await delay(5);
    await former.query('COMMIT');
    const store = await opening;
    expect(await total(store)).toEqual([5, 5]);
    await store.upkeep.close();
  } finally {
    await former.end();
    database.drop();
    await databases.close();
  }
});
