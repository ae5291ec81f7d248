// PostgreSQL stores, as databases of one server.
import pg from 'pg';
import { runHoldfast } from './child.mjs';

let taken = 0;

export function atDatabase({ url }, use) {
  return whileItStands(url, '', use);
}

/** The files of the other are copied, between two checkpoints. */
export async function atDatabaseLike(name, { url, size }, use) {
  return whileItStands(url, `TEMPLATE ${await built(name, { url, size })} STRATEGY FILE_COPY`, use);
}

async function whileItStands(url, how, use) {
  const name = `bench_${process.pid}_${++taken}`;
  await ask(url, `CREATE DATABASE ${name} ${how}`);
  try {
    return await use(urlOf(url, name));
  } finally {
    await ask(url, `DROP DATABASE ${name} WITH (FORCE)`);
  }
}

async function built(name, { url, size }) {
  const database = `built_${name}`;
  const { rows } = await ask(url, `SELECT FROM pg_database WHERE datname = '${database}'`);
  if (rows.length > 0) return database;
  const unfinished = `${database}_new`;
  await ask(url, `CREATE DATABASE ${unfinished}`);
  // Filling it need not wait for the disk.
  await ask(url, `ALTER DATABASE ${unfinished} SET synchronous_commit = off`);
  await runHoldfast(`build ${name}`, { address: urlOf(url, unfinished), size });
  await ask(url, `ALTER DATABASE ${unfinished} RESET synchronous_commit`);
  // As autovacuum would leave it, given the time.
  await ask(urlOf(url, unfinished), 'VACUUM ANALYZE');
  await ask(url, `ALTER DATABASE ${unfinished} RENAME TO ${database}`);
  return database;
}

/** Asks the server that stands at a URL. */
export async function ask(url, text) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

function urlOf(url, database) {
  return Object.assign(new URL(url), { pathname: database }).href;
}
