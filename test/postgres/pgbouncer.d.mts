/** A real PgBouncer in transaction mode, which ends with the process that started it, however that ends. */
export interface PgBouncer {
  readonly port: number;
  readonly pid: number | undefined;
  readonly folder: string;
  /** Where a database of the server behind it is found, by default `postgres`. Nobody needs a password. */
  url(database?: string): string;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/**
 * Starts one in front of the server on a port of the loopback interface; resolves when it takes connections. Throws
 * `PGBOUNCER_NOT_FOUND` when it is not installed.
 */
export function startPgBouncer(server: { readonly port: number }): Promise<PgBouncer>;
