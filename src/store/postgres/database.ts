import { LONGEST_TIMER } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { ClosedError, StoreError } from '../../errors.ts';
import { borrow, hearOut, type OwnPool, type PgPool, unheard } from './client.ts';
import type { Time } from './clock.ts';
import {
  type Blocker,
  blockedError,
  GivenUp,
  isBlocked,
  isBusy,
  isLost,
  isReadOnly,
  isStarting,
  storeError,
} from './failures.ts';
import { type FunctionName, functionsOver } from './functions.ts';

/** How long to wait for long operations: migrations, a new order of a queue, checks. */
export const LONG_ANSWER_WITHIN_MS: Milliseconds = 600_000;

/** How long a failing call is repeated before its caller gets the error, and how long while the store is opened. */
const PATIENCE_MS = 30_000;
const OPENING_PATIENCE_MS = 3_000;

/** How long a statement may take whose result is not needed. */
const TRY_WITHIN_MS: Milliseconds = 2_000;

/** The first pause before a call is repeated. It doubles up to the longest, and each pause is a random part of that. */
const FIRST_PAUSE_MS = 20;
export const LONGEST_PAUSE_MS = 1_000;

export interface Call {
  /** Default: the store's `answerWithin`. */
  readonly within?: Milliseconds;
  /** The values with which the call is repeated if it is not known whether it had its effect. */
  readonly again?: readonly unknown[];
  /** Called before the call is repeated because it is not known whether it had its effect. */
  readonly onAgain?: () => void;
  /**
   * Whether a call that waits for a lock of another transaction fails at once instead of being repeated, unless an earlier attempt may
   * still take effect. `isBlocked` recognises this error.
   */
  readonly failsBlocked?: boolean;
}

/** How to connect to a database, and its name for people. */
export interface Way {
  readonly pool: PgPool;
  /** The pool, if the store must end it. */
  readonly own?: OwnPool;
  /** The name for people, without a password. */
  readonly where: string;
  /** After this time an answer is no longer waited for, and its connection counts as broken. */
  readonly answerWithin: Milliseconds;
  /** How long to wait for a connection. */
  readonly connectionWithin: Milliseconds;
}

/** The numbers of a pool of `pg`. */
interface PoolCounts {
  readonly idleCount: number;
  readonly totalCount: number;
  readonly options: { readonly max: number };
}

/**
 * The only way to the database. No statement depends on its session, so any pooler may be between. A connection on which a
 * statement got no answer is never used again.
 */
export class Database {
  /** The schema of the tables, quoted for statements. */
  readonly schema: string;
  /** The schema of this version's functions, quoted too. */
  readonly functions: string;
  readonly #way: Way;
  readonly #time: Time;
  /** The durability that the server's settings give. */
  version = 'unknown';
  durability = 'unknown';
  /** Identifies this store. It is another one after a backup was restored. */
  epoch = '';
  /** How often it could not be reached, gave no answer, or was read-only. */
  losses = 0;
  #patience = OPENING_PATIENCE_MS;
  /** Whether it accepted writes when it was opened. If it does not any more, another server is taking over. */
  #tookWrites = false;
  #closing: Promise<void> | undefined;
  #closed = false;
  #running = 0;
  #onIdle = () => {};
  #gaveUp = false;
  /** Functions that end the running calls. */
  readonly #giveUps = new Set<() => void>();

  constructor(way: Way, schema: string, time: Time) {
    this.#way = way;
    this.schema = schema;
    this.functions = functionsOver(schema).schema;
    this.#time = time;
    // A connection that breaks while it is not used is replaced at the next use.
    way.pool.on?.('error', unheard);
    way.pool.on?.('connect', hearOut);
  }

  get where(): string {
    return this.#way.where;
  }

  /** How long to wait for an answer. */
  get answerWithin(): Milliseconds {
    return this.#way.answerWithin;
  }

  /** Whether a free connection is available while the caller uses one of its own pool, as far as the pool's numbers show. */
  get canSpareConnection(): boolean {
    const { own, pool } = this.#way;
    if (own) return true;
    const { idleCount, totalCount, options } = pool as Partial<PoolCounts>;
    return Number(idleCount) > 0 || Number(totalCount) < Number(options?.max);
  }

  /** @throws ClosedError after it was closed. */
  refuseClosed(): void {
    if (this.#closing) throw new ClosedError('The store');
  }

  /**
   * Calls one of our functions and returns its result, parsed from JSON. The call is repeated while the database is away or busy:
   * every function may be called twice.
   */
  async call<Answer>(name: FunctionName, values: readonly unknown[], options: Call = {}): Promise<Answer> {
    const list = values.map((_, i) => `$${i + 1}`).join();
    return this.ask(`SELECT ${this.functions}.${name}(${list})::text AS answer`, values, options);
  }

  /** The rows of a query as objects. Numbers are numbers, whatever the type parsers of the pool do. */
  async rows<Row>(text: string, values: readonly unknown[] = [], options: Call = {}): Promise<readonly Row[]> {
    return this.ask(`SELECT coalesce(json_agg(x), '[]')::text AS answer FROM (${text}) x`, values, options);
  }

  /** A query whose only row has `answer`, a text made of JSON. */
  async ask<Answer>(text: string, values: readonly unknown[], options: Call = {}): Promise<Answer> {
    if (this.#closed) throw new ClosedError('The store');
    const { within = this.#way.answerWithin, again = values, onAgain, failsBlocked = false } = options;
    let these = values;
    return this.#patiently(
      async () => {
        const [row] = await this.#once(text, these, within);
        // A function that returns nothing has an empty text as its answer.
        return JSON.parse((row as { answer: string | null }).answer || 'null') as Answer;
      },
      {
        onAgain: () => {
          these = again;
          onAgain?.();
        },
        failsBlocked,
      },
    );
  }

  /** Makes the error of a blocked call, which names the transaction that holds the lock. */
  async explainBlocked(error: unknown): Promise<StoreError> {
    const rows = await this.#once(OLDEST_WRITER, [this.schema], this.#way.answerWithin).catch(() => []);
    const [row] = rows as readonly { answer: string }[];
    return blockedError(error, this.where, row && (JSON.parse(row.answer) as Blocker));
  }

  /** Calls one of our functions once, also after the database was closed with `until`. */
  async tryNow(name: FunctionName, value: number): Promise<void> {
    const { pool, connectionWithin, answerWithin } = this.#way;
    const text = `SELECT ${this.functions}.${name}($1)`;
    await borrow(pool, connectionWithin, (client) =>
      client.query({ text, values: [value], query_timeout: answerWithin }),
    );
  }

  /** Runs a statement whose result is not needed; false if it failed. */
  async tryQuery(text: string, values: readonly unknown[]): Promise<boolean> {
    if (this.#closed) return false;
    const { pool, connectionWithin } = this.#way;
    const within = Math.min(TRY_WITHIN_MS, connectionWithin);
    try {
      await this.#counted(() =>
        borrow(pool, within, (client) => client.query({ text, values, query_timeout: within })),
      );
      return true;
    } catch {
      return false;
    }
  }

  /** Makes statements that belong together, on one connection. All of them are repeated if the connection fails. */
  session<T>(work: (query: Query) => Promise<T>, within = this.#way.answerWithin): Promise<T> {
    return this.#patiently(() =>
      borrow(this.#way.pool, this.#way.connectionWithin, (client) =>
        work(async (text, values = []) => (await client.query({ text, values, query_timeout: within })).rows),
      ),
    );
  }

  /** @throws StoreError if the database cannot store every text. */
  async refuseOtherEncodings(): Promise<void> {
    const [row] = await this.session((query) => query("SELECT current_setting('server_encoding') AS encoding"));
    const { encoding } = row as { encoding: string };
    if (encoding === 'UTF8') return;
    throw new StoreError(
      'store_unsupported',
      `${this.where} has the encoding ${encoding}, and Holdfast needs UTF8. Create a database for it: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    );
  }

  /**
   * Reads the properties of the server, and its time.
   * @throws StoreError if its transactions would not see what others commit meanwhile, because all functions need that.
   */
  async begin(): Promise<void> {
    const { version, durability, isolation, now, epoch, takesWrites } = await this.ask<{
      version: string;
      durability: string;
      isolation: string;
      now: number;
      epoch: string;
      takesWrites: boolean;
    }>(
      `SELECT json_build_object('version', current_setting('server_version'), 'durability',
         CASE WHEN current_setting('fsync') = 'off' OR current_setting('synchronous_commit') = 'off' THEN 'process' ELSE 'full' END,
         'isolation', current_setting('transaction_isolation'), 'takesWrites', current_setting('transaction_read_only') = 'off',
         'now', ${this.schema}.now_ms(), 'epoch', (SELECT epoch FROM ${this.schema}.meta))::text AS answer`,
      [],
    );
    if (isolation !== 'read committed') {
      throw new StoreError(
        'store_unsupported',
        `Transactions of ${this.where} are '${isolation}' by default, and Holdfast's have to be 'read committed'. Set it for the role that connects: ALTER ROLE … SET default_transaction_isolation = 'read committed'.`,
      );
    }
    this.version = version;
    this.durability = durability;
    this.epoch = epoch;
    this.#tookWrites = takesWrites;
    this.#time.learn(now);
    this.#patience = PATIENCE_MS;
  }

  /** After this time, no answer is waited for and no call is repeated. */
  async giveUpAfter(time: Milliseconds): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Math.min(time, LONGEST_TIMER)).unref());
    this.#gaveUp = true;
    for (const giveUp of this.#giveUps) giveUp();
  }

  /**
   * Refuses new calls, waits for running calls, and closes the connections. If `until` returns a promise, the connections stay
   * open until then, without making the caller wait. May be called again.
   */
  close(asked: Promise<void> = Promise.resolve(), until = (): Promise<void> | undefined => undefined): Promise<void> {
    this.#closing ??= this.#close(asked, until);
    return this.#closing;
  }

  async #close(asked: Promise<void>, until: () => Promise<void> | undefined): Promise<void> {
    await asked;
    this.#closed = true;
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    const later = until();
    if (later) void later.then(() => this.#letGo()).catch(unheard);
    else await this.#letGo();
  }

  async #letGo(): Promise<void> {
    // A connection of the store's own pool may break even after that.
    const ended = this.#way.own?.end();
    // Only the pool waits for a connection that was given up while it was being made.
    if (ended) return this.#gaveUp ? void ended.catch(unheard) : ended;
    this.#way.pool.removeListener?.('error', unheard);
    this.#way.pool.removeListener?.('connect', hearOut);
  }

  #patiently<T>(work: () => Promise<T>, { onAgain, failsBlocked }: Omit<Call, 'within' | 'again'> = {}): Promise<T> {
    return this.#counted(async () => {
      let failing: Milliseconds | undefined;
      // Then the server may still carry it out: a caller who made it anew by another id would have it twice.
      let wasLost = false;
      for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
        try {
          return await work();
        } catch (error) {
          if (this.#gaveUp) throw storeError(error, this.where);
          if (failsBlocked && !wasLost && isBlocked(error)) throw storeError(error, this.where);
          const lost = isLost(error) && (this.#tookWrites || !isReadOnly(error));
          failing ??= performance.now();
          if (lost) this.losses += 1;
          const patience = isBlocked(error)
            ? this.#way.answerWithin
            : lost && !isStarting(error)
              ? this.#patience
              : PATIENCE_MS;
          if (!(lost || isBusy(error)) || performance.now() - failing > patience) {
            throw isBlocked(error) ? await this.explainBlocked(error) : storeError(error, this.where);
          }
          if (lost) {
            wasLost = true;
            onAgain?.();
          }
        }
        await new Promise((resolve) => setTimeout(resolve, Math.random() * pause));
      }
    });
  }

  /** The pool is ended only after this. */
  async #counted<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await this.#unlessGivenUp(work());
    } finally {
      this.#running -= 1;
      if (this.#running === 0) this.#onIdle();
    }
  }

  /** A shared promise would keep all its waiters alive. */
  async #unlessGivenUp<T>(work: Promise<T>): Promise<T> {
    let giveUp = () => {};
    const givenUp = new Promise<never>((_, reject) => {
      giveUp = () => reject(new GivenUp(this.where));
    });
    this.#giveUps.add(giveUp);
    if (this.#gaveUp) giveUp();
    try {
      return await Promise.race([work, givenUp]);
    } finally {
      this.#giveUps.delete(giveUp);
    }
  }

  #once(text: string, values: readonly unknown[], within: Milliseconds): Promise<readonly unknown[]> {
    return borrow(this.#way.pool, this.#way.connectionWithin, async (client) => {
      await this.#time.set?.(client, within);
      return (await this.#unlessGivenUp(client.query({ text, values, query_timeout: within }))).rows;
    });
  }
}

/** The oldest transaction of others that writes to the tables of a schema. */
const OLDEST_WRITER = `SELECT json_build_object('pid', a.pid, 'application', coalesce(a.application_name, ''),
    'openFor', extract(epoch FROM now() - a.xact_start) * 1000)::text AS answer
  FROM pg_catalog.pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.pid IN (
    SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
    WHERE l.locktype = 'relation' AND l.granted AND l.mode IN ('RowShareLock', 'RowExclusiveLock') AND c.relnamespace = to_regnamespace($1)
      AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))
  ORDER BY a.xact_start NULLS LAST LIMIT 1`;

/** Makes a statement on a connection that is held. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<readonly unknown[]>;
