import Database from 'better-sqlite3';
import pg from 'pg';
import type { Scene } from './scene.ts';

/** Keeps everybody from writing to the store, until the lock is released. */
export async function lock({ kind, where }: Scene): Promise<() => Promise<void>> {
  if (kind === 'sqlite') {
    const file = new Database(where);
    file.exec('BEGIN IMMEDIATE');
    return async () => void file.close();
  }
  const client = new pg.Client(where);
  await client.connect();
  await client.query('BEGIN; LOCK TABLE holdfast.live, holdfast.workers IN EXCLUSIVE MODE');
  return () => client.end();
}
