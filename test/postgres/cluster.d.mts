/** A real PostgreSQL server in a temporary folder, which ends with the process that started it, however that ends. */
export interface Cluster {
  readonly kind: 'debian' | 'embedded';
  /** Its data, log and socket. */
  readonly folder: string;
  readonly port: number;
  /** Of the server while it runs. */
  readonly pid: number | undefined;
  /** Where a database of it is found, by default `postgres`. Its superuser `postgres` needs no password. */
  url(database?: string): string;
  /** The same through the socket in its folder. */
  socketUrl(database?: string): string;
  /** Starts it again after `kill`, on the same data and port. Resolves when it takes connections. */
  start(): Promise<void>;
  /** Kills the server and all its backends with SIGKILL, as a lost machine would. Resolves when none runs any more. */
  kill(): Promise<void>;
  /** Ends it and removes its folder, whether it runs or not. */
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** Whether commits wait for the disk; default true. Without, they survive a killed server, but not a lost machine. */
  readonly fsync?: boolean;
  /** More of what `postgresql.conf` may say. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

/**
 * Creates a server and starts it; resolves when it takes connections. `HOLDFAST_TEST_POSTGRES` (`debian` or `embedded`) says
 * which; without, Debian's if it is installed. Throws `POSTGRES_NOT_FOUND` when there is none.
 */
export function startCluster(options?: ClusterOptions): Promise<Cluster>;
