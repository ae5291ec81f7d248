// The PostgreSQL server that is measured on: a new one, with its disk waited for and its settings as they come.
import { startCluster } from '../test/postgres/cluster.mjs';

/** What speed depends on most. */
const TOLD = ['fsync', 'synchronous_commit', 'wal_sync_method', 'full_page_writes', 'shared_buffers', 'max_wal_size'];

/** Starts one in a folder and throws it away when `use`, which is given its URL and its description in words, is done. */
export async function withServer(dir, use) {
  // A server is created where temporary files are.
  process.env.TMPDIR = dir;
  const cluster = await startCluster({ fsync: true });
  try {
    const url = cluster.url();
    return await use({ url, words: await wordsOf(cluster, url) });
  } finally {
    await cluster.stop();
  }
}

/** Asked of the server itself. The driver is a package that may have been installed only just now. */
async function wordsOf({ kind }, url) {
  const { ask } = await import('./databases.mjs');
  const { rows } = await ask(
    url,
    `SELECT name, current_setting(name) AS value FROM unnest('{server_version,${TOLD}}'::text[]) AS name`,
  );
  const value = Object.fromEntries(rows.map((row) => [row.name, row.value]));
  const settings = TOLD.map((name) => `${name} ${value[name]}`).join(', ');
  return `PostgreSQL ${value.server_version} (${kind}) on this machine, through TCP, with default settings: ${settings}.`;
}
