/**
 * The store in a PostgreSQL database.
 * @module holdfast/postgres
 */

import { type DurationInput, duration, type Milliseconds } from '../../duration.ts';
import { InvalidInputError, StoreError } from '../../errors.ts';
import { oneOf, refuseUnknown } from '../../options.ts';
import { show } from '../../show.ts';
import { PendingLeaves } from '../pending-leaves.ts';
import type { News, Store, StoreOpener, World } from '../store.ts';
import { Chores } from './chores.ts';
import { Classes } from './classes.ts';
import { loadPg, type PgClient, type PgLibrary, type PgPool } from './client.ts';
import { timeFor } from './clock.ts';
import { Counting } from './counters.ts';
import { Database, type Way } from './database.ts';
import { PostgresFailures } from './failure-groups.ts';
import { functionsOver } from './functions.ts';
import { migrate, SCHEMA } from './migrate.ts';
import { PostgresRecords } from './records.ts';
import { LostLeases } from './recover.ts';
import { PostgresRedrives } from './redrives.ts';
import { PostgresSchedules } from './schedules.ts';
import { PostgresSources } from './sources.ts';
import { PostgresTasks } from './tasks.ts';
import { brokenInvariants } from './verify.ts';
import { installVirtualClock } from './virtual-clock.ts';
import { Wake } from './wake.ts';
import { Within } from './within.ts';
import { quoted } from './writer.ts';

export type { PgPool, PgPoolClient, PgQuery } from './client.ts';

export interface PostgresOptions {
  /** The schema of Holdfast's tables; made where it does not exist. Default: `holdfast`. */
  readonly schema?: string;
  /**
   * `auto` (default): migrates the tables when the store is opened. `never`: refuses to open if the tables are not up to date.
   * Then a role needs only the rights that docs/operations/postgres.md lists.
   */
  readonly migrate?: 'auto' | 'never';
  /**
   * Whether to use LISTEN, on a separate connection, to learn about work from other processes. Default: yes, if a test shows that
   * it works. It does not work behind a pooler that shares connections per transaction; then polling finds the work.
   */
  readonly listen?: boolean;
  /** The most connections of the store's own pool, without the one that listens. Default 10. */
  readonly connections?: number;
  /**
   * How long to wait for an answer of the database. After that, its connection is given up, and the call is repeated on another
   * one. Default 30 s.
   */
  readonly answerWithin?: DurationInput;
}

const OPTIONS = ['schema', 'migrate', 'listen', 'connections', 'answerWithin'];

const DEFAULT_ANSWER_WITHIN: DurationInput = '30s';

/** How long to wait for a connection, if `answerWithin` is not shorter. */
const CONNECTION_WITHIN_MS: Milliseconds = 10_000;

/** PostgreSQL cuts longer names, and two schemas would become one. */
const LONGEST_NAME = 63;

/**
 * A store in a PostgreSQL database, for any number of processes on any number of machines. It takes a connection string, or a
 * pool of `pg`, which the caller must end. It connects only when Holdfast opens it.
 * @throws InvalidInputError for an invalid connection or option.
 */
export function postgres(connection: string | PgPool, options: PostgresOptions = {}): StoreOpener {
  refuseUnknown(options, OPTIONS, 'postgres');
  const { schema = 'holdfast', migrate: mode = 'auto', listen = true, connections = 10 } = options;
  if (typeof connection === 'string') refuseNoUrl(connection);
  else if (typeof Object(connection).connect !== 'function') {
    throw new InvalidInputError(
      `postgres needs a connection string such as 'postgres://user@host/database', or a Pool of pg, got ${kindOf(connection)}.`,
    );
  }
  oneOf(mode, ['auto', 'never'], 'migrate');
  if (
    typeof schema !== 'string' ||
    schema === '' ||
    schema.includes('\0') ||
    Buffer.byteLength(schema) > LONGEST_NAME
  ) {
    throw new InvalidInputError(`schema must be a name of 1 to ${LONGEST_NAME} bytes, got ${show(schema)}.`);
  }
  if (typeof listen !== 'boolean') throw new InvalidInputError(`listen must be true or false, got ${show(listen)}.`);
  if (!(Number.isInteger(connections) && connections >= 1)) {
    throw new InvalidInputError(`connections must be a whole number of at least 1, got ${show(connections)}.`);
  }
  const answerWithin = duration(options.answerWithin ?? DEFAULT_ANSWER_WITHIN, 'answerWithin');
  if (answerWithin === 0) throw new InvalidInputError('answerWithin must be longer than 0.');
  return {
    kind: 'postgres',
    open: (world) => openPostgres(connection, { schema, mode, listen, connections, answerWithin }, world),
  };
}

/** Describes a value that is not a connection, without its content: an object of options may contain a password. */
function kindOf(connection: unknown): string {
  return typeof connection === 'object' && connection !== null ? 'another object' : show(connection);
}

/** The text is not shown: a text that is not a URL may contain a password anywhere. */
function refuseNoUrl(connection: string): void {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(connection) ?? [];
  if (/^postgres(?:ql)?$/.test(scheme ?? '') && URL.canParse(connection)) return;
  const got = scheme === undefined ? 'another text' : `one that begins with ${scheme}://`;
  throw new InvalidInputError(
    `postgres needs a connection string such as 'postgres://user@host/database', whose special characters are written as in a URL (%40 for @), got ${got}.`,
  );
}

interface Settings {
  readonly schema: string;
  readonly mode: 'auto' | 'never';
  readonly listen: boolean;
  readonly connections: number;
  readonly answerWithin: Milliseconds;
}

async function openPostgres(connection: string | PgPool, settings: Settings, world: World): Promise<Store> {
  const schema = quoted(settings.schema);
  const time = timeFor(world.clock, schema);
  // With the clock of the testing kit, calls are made in their order, so that tests are reproducible.
  const connections = time.set ? 1 : settings.connections;
  const { connect, ...way } = await wayTo(connection, { ...settings, connections });
  const database = new Database(way, schema, time);
  try {
    await database.refuseOtherEncodings();
    await migrate(database, settings.mode);
    if (time.set) await installVirtualClock(database);
    await database.begin();
  } catch (error) {
    await database.close();
    throw error;
  }
  return build(database, time, world, settings.listen ? connect : undefined);
}

/** Makes a connection outside of the pool. */
type Connect = () => PgClient;

async function wayTo(
  connection: string | PgPool,
  { connections, answerWithin }: Settings,
): Promise<Way & { readonly connect?: Connect }> {
  const connectionWithin = Math.min(CONNECTION_WITHIN_MS, answerWithin);
  if (typeof connection !== 'string') {
    const { Client, options } = connection as Partial<{ Client: PgLibrary['Client']; options: object }>;
    const way = { pool: connection, where: 'the database of the pool', answerWithin, connectionWithin };
    return Client && options ? { ...way, connect: () => new Client(options) } : way;
  }
  const { Pool, Client } = await loadPg();
  const config = {
    connectionString: connection,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    connectionTimeoutMillis: connectionWithin,
    application_name: 'holdfast',
    // An unused connection does not keep the process alive.
    allowExitOnIdle: true,
    max: connections,
  };
  const connect = () => new Client(config);
  refuseUnreadable(connect);
  const own = new Pool(config);
  return { pool: own, own, where: nameOf(connection), answerWithin, connectionWithin, connect };
}

/** The thrown error may contain the password, so it is not the `cause` of ours. */
function refuseUnreadable(connect: Connect): void {
  try {
    connect();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError(`The connection string cannot be read: ${said}.`);
  }
}

/** The name of a database for people: where it is, without the user. */
function nameOf(connection: string): string {
  const { host, pathname, searchParams } = new URL(connection);
  return `postgres://${searchParams.get('host') ?? host}${pathname}`;
}

function build(
  database: Database,
  time: ReturnType<typeof timeFor>,
  world: World,
  connect: Connect | undefined,
): Store {
  const wake = new Wake(database, connect, functionsOver(database.schema).channel, world.clock);
  const notify = (news: News, isUrgent?: boolean) => wake.notify(news, isUrgent);
  const classes = new Classes(database);
  const lostLeases = new LostLeases(database, world.clock);
  const pendingLeaves = new PendingLeaves(async (worker) => {
    await database.tryNow('note_stopping', worker);
    await database.tryNow('leave', worker);
    return true;
  });
  const counting = new Counting(database);
  const tasks = new PostgresTasks({
    database,
    classes,
    time,
    lostLeases,
    pendingLeaves,
    notify,
    notifyOwn: (news) => wake.notifyOwn(news),
    notifyOthers: (news) => wake.notifyOthers(news),
    counting,
    listening: wake,
  });
  const chores = new Chores(database, counting);
  const callersOwn = new Within(database);
  return {
    tasks,
    sources: new PostgresSources(database, notify),
    redrives: new PostgresRedrives(database, notify),
    schedules: new PostgresSchedules(database, notify),
    failures: new PostgresFailures(database, counting),
    records: new PostgresRecords(database, counting),
    within: (handle) => callersOwn.of(handle),
    upkeep: {
      describe: () => ({
        kind: 'postgres',
        where: database.where,
        schema: SCHEMA,
        durability: database.durability,
        driver: `pg, PostgreSQL ${database.version}`,
      }),
      now: () => time.now(),
      async clock() {
        const removesIn = time.removesIn();
        const now = time.now();
        return { now, wall: Math.floor(world.clock.now()), ...(removesIn !== undefined && { removesIn }) };
      },
      async resetClock() {
        const why =
          'The clock of this store is that of its PostgreSQL server, so there is nothing to reset. Set the server’s clock.';
        throw new StoreError('store_unsupported', why);
      },
      async space() {
        const [found] = await database.rows<{ bytes: number; dead: number }>(
          `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS bytes, coalesce(sum(s.n_dead_tup), 0) AS dead
           FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
           WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'`,
          [database.schema],
        );
        return { bytes: found?.bytes ?? 0, deadRows: found?.dead ?? 0 };
      },
      async backUp(file) {
        const why = `PostgreSQL has its own backups: pg_dump --format=custom --file=${file} --dbname=…`;
        throw new StoreError('store_unsupported', why);
      },
      async vacuum() {
        const why = 'PostgreSQL does this by itself (autovacuum). To do it now: psql --command "VACUUM (ANALYZE)".';
        throw new StoreError('store_unsupported', why);
      },
      endLeases: () => database.ask(`SELECT ${database.schema}.restored()::text AS answer`, []),
      isLocal: false,
      onNews: (listener) => wake.listen(listener),
      verify: () => brokenInvariants(database),
      prunable: (retention) => chores.prunable(retention),
      prune: async (retention, after) =>
        time.removesIn() === undefined ? chores.prune(retention, after) : { removed: [] },
      remove: (ids, states, after) => chores.remove(ids, states, after),
      tidy: () => chores.tidy(),
      gatherCounts: () => counting.gather(),
      takeTurn: (chore, every) => chores.takeTurn(chore, every),
      takeActions: (limit) => chores.takeActions(limit),
      giveUpAfter: (time) => database.giveUpAfter(time),
      async close() {
        wake.close();
        await database.close(tasks.drained(), () => pendingLeaves.close());
      },
    },
  };
}
