import { StoreError } from '../../errors.ts';
import { type Cancellable, cancel } from './cancel.ts';
import { isAnswer, isGivenUp, NoConnection } from './failures.ts';

/** A pool of `pg`, as far as it is used. Declared here, so that nobody needs its types. */
export interface PgPool {
  connect(): Promise<PgPoolClient>;
  on?(event: 'error', listener: () => void): unknown;
  on?(event: 'connect', listener: (client: PgPoolClient) => void): unknown;
  removeListener?(event: 'error' | 'connect', listener: (client: PgPoolClient) => void): unknown;
}

/** What a pool has besides, where it is one of `pg`. */
export interface OwnPool extends PgPool {
  end(): Promise<void>;
}

export interface PgPoolClient extends Cancellable {
  query(query: PgQuery): Promise<{ readonly rows: readonly unknown[] }>;
  on(event: 'error', listener: () => void): unknown;
  removeListener(event: 'error', listener: () => void): unknown;
  release(destroy?: boolean): void;
}

export interface PgQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** After which the answer is not waited for any more. A setting of `pg`. */
  readonly query_timeout?: number;
}

/** A connection of its own, for listening. */
export interface PgClient {
  connect(): Promise<void>;
  query(query: PgQuery): Promise<unknown>;
  on(event: 'notification', listener: (message: { readonly payload?: string }) => void): unknown;
  on(event: 'error' | 'end', listener: () => void): unknown;
  unref(): void;
  end(): Promise<void>;
}

/** What `pg` exports, as far as it is used. */
export interface PgLibrary {
  readonly Pool: new (config: object) => OwnPool;
  readonly Client: new (config: object) => PgClient;
}

/** @throws StoreError where the optional package is not installed. */
export async function loadPg(): Promise<PgLibrary> {
  try {
    const loaded = await import('pg');
    return loaded.default as unknown as PgLibrary;
  } catch (error) {
    throw new StoreError(
      'store_unsupported',
      'A store on PostgreSQL needs the package pg, which is not installed here. Run: npm install pg',
      { cause: error },
    );
  }
}

/** Listens to errors that are told otherwise: one that nobody listens to would end the process. */
export const unheard = (): void => {};

/** A connection may end in the very turn in which it was made, before whoever asked for it can listen: so long this does. */
export const hearOut = (client: PgPoolClient): void => {
  client.on('error', unheard);
  setImmediate(() => client.removeListener('error', unheard));
};

/**
 * Lends a connection of the pool. One on which something was left unanswered, or that broke, is never used again. A statement whose
 * answer is not waited for any more is cancelled, or the server would go on with it over and over.
 * @throws NoConnection where none is had in time; then nothing was asked.
 */
export async function borrow<T>(pool: PgPool, withinMs: number, use: (client: PgPoolClient) => Promise<T>): Promise<T> {
  const client = await connected(pool, withinMs);
  client.on('error', unheard);
  let sound = false;
  try {
    const answer = await use(client);
    sound = true;
    return answer;
  } catch (error) {
    // The server said no, and is ready for the next: anything else leaves the connection in doubt.
    sound = isAnswer(error);
    if (isGivenUp(error)) await cancel(client);
    throw error;
  } finally {
    client.release(!sound);
    client.removeListener('error', unheard);
  }
}

/** A pool may have no limit of its own, and its server accept and say nothing. */
async function connected(pool: PgPool, withinMs: number): Promise<PgPoolClient> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(Object.assign(new Error(`no connection was had within ${withinMs} ms`), { code: 'ETIMEDOUT' }));
    }, withinMs);
  });
  const connecting = pool.connect();
  try {
    return await Promise.race([connecting, late]);
  } catch (cause) {
    // Whoever comes too late goes back.
    connecting.then((client) => client.release(), unheard);
    throw new NoConnection(cause);
  } finally {
    clearTimeout(timer);
  }
}
