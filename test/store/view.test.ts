import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineTask, immediate, openHoldfast, type StoreOpener } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import Database from '../database.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-view-'));
let databases: TestDatabases;
beforeAll(async () => {
  databases = await openDatabases(async () => {});
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await databases.close();
});

interface Place {
  readonly store: StoreOpener;
  /** The first row of a query. */
  readonly first: (sql: string) => Promise<unknown>;
}

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async sqlite() {
    const path = join(folder, 'tasks.db');
    const first = async (sql: string) => {
      const file = new Database(path, { readonly: true });
      const row = file.prepare(sql).get();
      file.close();
      return row;
    };
    return { store: sqlite(path), first };
  },
  async postgres() {
    const { url } = await databases.take();
    const first = async (sql: string) => (await ask(url, sql.replace('holdfast_tasks', 'holdfast.holdfast_tasks')))[0];
    return { store: postgres(url), first };
  },
};

test.each(Object.keys(PLACES))(
  'the view of %s shows why a dead task died after how many attempts, and until when a lease lasts',
  async (kind) => {
    const { store, first } = await (PLACES[kind] as () => Promise<Place>)();
    let running: unknown;
    const mail = defineTask('mail', {
      retry: { maxAttempts: 3, backoff: immediate },
      run() {
        throw new Error('The server said no.');
      },
    });
    const look = defineTask('look', {
      async run() {
        running = await first(`SELECT attempts, max_attempts, error, lease_until - running_since AS lease
          FROM holdfast_tasks WHERE type = 'look'`);
      },
    });
    const holdfast = await openHoldfast({ store, tasks: [mail, look] });
    try {
      await holdfast.enqueue(mail, null);
      await holdfast.enqueue(look, null);
      await holdfast.work().drain();
      expect(
        await first(`SELECT type, reason, attempts, max_attempts, error, lease_until
        FROM holdfast_tasks WHERE state = 'dead'`),
      ).toEqual({
        type: 'mail',
        reason: 'unknown',
        attempts: 3,
        max_attempts: 3,
        error: 'The server said no.',
        lease_until: null,
      });
      expect(running).toMatchObject({ attempts: 0, max_attempts: null, error: null });
      expect(Number((running as { lease: unknown }).lease)).toBeGreaterThan(20_000);
    } finally {
      await holdfast.close();
    }
  },
);
