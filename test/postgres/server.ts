import { startCluster } from './cluster.mjs';
import { startPgBouncer } from './pgbouncer.mjs';

/** Where the server of a run is found. */
export interface ServerUrls {
  readonly direct: string;
  /** Through PgBouncer, if the run asks for that. */
  readonly pooled?: string;
}

export interface Server {
  readonly urls: ServerUrls;
  stop(): Promise<void>;
}

/** Starts what the tests of a run share: a server, and PgBouncer if `HOLDFAST_TEST_POSTGRES_VIA` is `pgbouncer`. */
export async function startServer(via = process.env.HOLDFAST_TEST_POSTGRES_VIA): Promise<Server> {
  if (via && via !== 'pgbouncer') {
    throw new Error(
      `HOLDFAST_TEST_POSTGRES_VIA is '${via}', through which no test can go. Set it to pgbouncer, or leave it out.`,
    );
  }
  // As where something replicates: what publications refuse is refused here too.
  const cluster = await startCluster({ fsync: false, settings: { wal_level: 'logical' } });
  if (!via) return { urls: { direct: cluster.url() }, stop: () => cluster.stop() };
  try {
    const pooler = await startPgBouncer(cluster);
    return {
      urls: { direct: cluster.url(), pooled: pooler.url() },
      async stop() {
        await pooler.stop();
        await cluster.stop();
      },
    };
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}
