import { StoreError } from '../../errors.ts';
import { type Cancellable, cancel } from './cancel.ts';
import { isAnswer, isGivenUp, NoConnection } from './failures.ts';

/** The used part of a pool of `pg`. It is declared here so that users do not need the types of `pg`. */
export interface PgPool {
  connect(): Promise<PgPoolClient>;
  on?(event: 'error', listener: () => void): unknown;
  on?(event: 'connect', listener: (client: PgPoolClient) => void): unknown;
  removeListener?(event: 'error' | 'connect', listener: (client: PgPoolClient) => void): unknown;
}

/** Other members of a pool of `pg`. */
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
  /** After this time `pg` does not wait for the answer any more. */
  readonly query_timeout?: number;
}

/** A separate connection for listening. */
export interface PgClient {
  connect(): Promise<void>;
  query(query: PgQuery): Promise<unknown>;
  on(event: 'notification', listener: (message: { readonly payload?: string }) => void): unknown;
  on(event: 'error' | 'end', listener: () => void): unknown;
  unref(): void;
  end(): Promise<void>;
}

/** The used exports of `pg`. */
export interface PgLibrary {
  readonly Pool: new (config: object) => OwnPool;
  readonly Client: new (config: object) => PgClient;
}

/** @throws StoreError if the optional package is not installed. */
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

/** A listener for errors that are reported in another way. An error event without a listener would end the process. */
export const unheard = (): void => {};

/** A connection may end in the same turn in which it was made, before its user can listen. Until then, this listens. */
export const hearOut = (client: PgPoolClient): void => {
  client.on('error', unheard);
  setImmediate(() => client.removeListener('error', unheard));
};

/**
 * Lends a connection of the pool. A connection that broke, or on which a statement got no answer, is never used again. A
 * statement whose answer is no longer waited for is cancelled, because the server would continue it.
 * @throws NoConnection if there is none in time. Then no statement was sent.
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
    // If the server answered with an error, it is ready for the next statement. After anything else, the connection may be
    // broken.
    sound = isAnswer(error);
    if (isGivenUp(error)) await cancel(client);
    throw error;
  } finally {
    client.release(!sound);
    client.removeListener('error', unheard);
  }
}

/** A pool may have no time limit, and a server may accept connections and never answer. */
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
    // A connection that comes too late is given back.
    connecting.then((client) => client.release(), unheard);
    throw new NoConnection(cause);
  } finally {
    clearTimeout(timer);
  }
}
