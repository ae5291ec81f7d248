// An empty store for each simulation: SQLite in memory, or a database of a PostgreSQL server that is started for it.
import { postgres } from '../../dist/store/postgres/index.js';
import { sqlite } from '../../dist/store/sqlite/index.js';

export async function openStores(kind) {
  if (kind === 'sqlite') return { next: async () => sqlite(':memory:'), close: async () => {} };
  if (kind !== 'postgres') throw new Error(`--store is sqlite or postgres, got ${kind}.`);

  const { default: pg } = await import('pg');
  const { startCluster } = await import('../../test/postgres/cluster.mjs');
  const cluster = await startCluster({ fsync: false });
  let opened = 0;
  return {
    async next() {
      opened += 1;
      const database = `outage_${opened}`;
      const admin = new pg.Client({ connectionString: cluster.url() });
      await admin.connect();
      await admin.query(`CREATE DATABASE ${database}`);
      await admin.end();
      return postgres(cluster.url(database), { listen: false });
    },
    close: () => cluster.stop(),
  };
}
