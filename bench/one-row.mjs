// The least that anything durable waits for: one row, in one commit of a bare table, on the same disk or server as a store.
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';
import { payload } from './payload.mjs';
import { isUrl } from './places.mjs';

const ROW = JSON.stringify(payload(0));

/** Calls `use` with a function that commits one row beside the store at an address. */
export function withOneRowCommit(address, use) {
  return isUrl(address) ? overConnection(address, use) : inFileBeside(address, use);
}

async function inFileBeside(path, use) {
  const database = new Database(join(dirname(path), 'rows.db'));
  try {
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    database.exec('CREATE TABLE tasks (id INTEGER PRIMARY KEY, payload TEXT NOT NULL)');
    const insert = database.prepare('INSERT INTO tasks (payload) VALUES (?)');
    return await use(async () => {
      insert.run(ROW);
    });
  } finally {
    database.close();
  }
}

/** Where a row takes a round trip to the server, and the statement is known there. */
async function overConnection(url, use) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      'CREATE TABLE rows (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL)',
    );
    return await use(() =>
      client.query({ name: 'row', text: 'INSERT INTO rows (payload) VALUES ($1)', values: [ROW] }),
    );
  } finally {
    await client.end();
  }
}
