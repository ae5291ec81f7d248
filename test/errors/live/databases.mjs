// Databases: a throw-away PostgreSQL where its programs are there, mysql2's own server, SQLite, and peers that are made up.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import knexOf from 'knex';
import { Client as Ldap } from 'ldapts';
import mariadb from 'mariadb';
import { BSON, MongoClient } from 'mongodb';
import mongoose from 'mongoose';
import mysqljs from 'mysql';
import mysql2 from 'mysql2';
import mysql2promise from 'mysql2/promise';
import neo4j from 'neo4j-driver';
import pg from 'pg';
import postgres from 'postgres';
import { createClient as createRedis } from 'redis';
import { DataTypes, Sequelize } from 'sequelize';
import { each, failed, library } from './cases.mjs';
import { HOST } from './loopback.mjs';

const require = createRequire(import.meta.url);
const { deserialize, serialize } = BSON;

// ── PostgreSQL ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
const BIN = process.env.PG_BIN ?? '/usr/lib/postgresql/15/bin';
const hasPostgres = existsSync(path.join(BIN, 'initdb'));
export const skipped = hasPostgres
  ? []
  : [`what needs a PostgreSQL server: no ${BIN}/initdb (set PG_BIN to where its programs are)`];

let server;
/** The port of a PostgreSQL that is made for this run, with one table and a role that may do nothing. */
function postgresPort(on) {
  server ??= startPostgres(on);
  return server;
}

async function startPostgres(on) {
  const folder = on.runFolder();
  const asUser =
    process.getuid?.() === 0
      ? { uid: Number(execFileSync('id', ['-u', 'postgres'])), gid: Number(execFileSync('id', ['-g', 'postgres'])) }
      : {};
  if (asUser.uid !== undefined) execFileSync('chown', ['postgres', folder]);
  const data = path.join(folder, 'data');
  execFileSync(path.join(BIN, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync'], {
    stdio: 'ignore',
    ...asUser,
  });
  const port = await on.closedPort();
  const child = spawn(
    path.join(BIN, 'postgres'),
    [
      '-D',
      data,
      '-p',
      String(port),
      '-h',
      HOST,
      '-k',
      folder,
      '-c',
      'fsync=off',
      '-c',
      'max_connections=20',
      '-c',
      'password_encryption=scram-sha-256',
    ],
    { stdio: 'ignore', ...asUser },
  );
  on.endOfRun(() => new Promise((resolve) => child.once('exit', resolve) && child.kill('SIGINT')));
  for (let i = 0; i < 200; i++) {
    const client = new pg.Client({ host: HOST, port, user: 'postgres', database: 'postgres' });
    try {
      await client.connect();
      await client.query(`CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0), v text); CREATE TABLE u (id int PRIMARY KEY, t int REFERENCES t);
        INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'); CREATE ROLE weak LOGIN PASSWORD 'w'`);
      return port;
    } catch (error) {
      if (i === 199) throw error;
      await wait(50);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

const where = async (on, more) => ({
  host: HOST,
  port: await postgresPort(on),
  user: 'postgres',
  database: 'postgres',
  ...more,
});

async function pgClient(on, more) {
  const client = new pg.Client(await where(on, more));
  client.on('error', () => {});
  on.closing(() => client.end());
  await client.connect();
  return client;
}

/** What the server says; `run(sql)` sends the statements one by one over one connection. */
const SQL = {
  'a key that exists': ['permanent db.unique task ambiguous', "INSERT INTO t VALUES (1, 1, 'x')"],
  'a reference that leads nowhere': ['permanent db.constraint task', 'INSERT INTO u VALUES (1, 99)'],
  'a value that is missing': ['permanent db.constraint task', 'INSERT INTO t (id) VALUES (7)'],
  'a text where a number should be': ['permanent db.data task', "SELECT 'x'::int"],
  'a table that is not there': ['permanent db.schema task', 'SELECT * FROM nowhere'],
  'a syntax error': ['permanent db.schema task', 'SELEKT 1'],
  'a statement that takes too long': [
    'transient db.timeout source ambiguous',
    "SET statement_timeout = '30ms'",
    'SELECT pg_sleep(5)',
  ],
  'a transaction that was broken before': ['unknown db.transaction task', 'BEGIN', { fails: 'SELECT 1/0' }, 'SELECT 1'],
  'a transaction that may only read': ['transient db.unavailable source', 'BEGIN READ ONLY', 'DELETE FROM t'],
  'a right that is missing': ['permanent auth.forbidden task', 'SET ROLE weak', 'SELECT * FROM t'],
  'a connection that the server ends': [
    'transient db.connection source ambiguous',
    'SELECT pg_terminate_backend(pg_backend_pid())',
  ],
  'an error of the function': ['unknown db.data task', "DO $$ BEGIN RAISE EXCEPTION 'no'; END $$"],
};

function overSql(open) {
  return Object.entries(SQL).map(([what, [expected, ...statements]]) => [
    what,
    expected,
    async (on) => {
      const run = await open(on);
      for (const each of statements) {
        if (typeof each === 'string') await run(each);
        else await run(each.fails).catch(() => {});
      }
    },
  ]);
}

async function locked(on, run) {
  const other = await pgClient(on);
  await other.query('BEGIN; UPDATE t SET n = n WHERE id = 1');
  await run("SET lock_timeout = '30ms'");
  return run('UPDATE t SET n = n WHERE id = 1');
}

async function serialized(on, run) {
  const other = await pgClient(on);
  await run('BEGIN ISOLATION LEVEL SERIALIZABLE');
  await run('SELECT * FROM t WHERE id = 2');
  await other.query("UPDATE t SET v = 'c' WHERE id = 2");
  return run("UPDATE t SET v = 'd' WHERE id = 2");
}

const viaPg = async (on) => {
  const client = await pgClient(on);
  return (sql) => client.query(sql);
};
const viaPostgresJs = async (on) => {
  const sql = postgres({ ...(await where(on)), max: 1, onnotice: () => {} });
  on.closing(() => sql.end({ timeout: 0 }));
  // One transaction's statements over the only connection.
  return (text) => sql.unsafe(text);
};
const viaKnex = async (on) => {
  const knex = knexOf({ client: 'pg', connection: await where(on), pool: { min: 0, max: 1 } });
  on.closing(() => knex.destroy());
  const connection = await knex.client.acquireConnection();
  on.closing(() => knex.client.releaseConnection(connection));
  return (sql) => knex.raw(sql).connection(connection);
};
const viaSequelize = async (on) => {
  const { port } = await where(on);
  const sequelize = new Sequelize({
    dialect: 'postgres',
    host: HOST,
    port,
    username: 'postgres',
    database: 'postgres',
    logging: false,
    pool: { max: 1, min: 0 },
    retry: { max: 0 },
  });
  on.closing(() => sequelize.close());
  return (sql) => sequelize.query(sql);
};

const wirePg = (port, on, { soon = false } = {}) => {
  const client = new pg.Client({ host: HOST, port, user: 'x', connectionTimeoutMillis: soon ? 150 : 5_000 });
  client.on('error', () => {});
  on.closing(() => client.end());
  return client.connect();
};
const wirePostgresJs = (port, on, { soon = false } = {}) => {
  const sql = postgres({ host: HOST, port, user: 'x', max: 1, connect_timeout: soon ? 0.15 : 5, backoff: false });
  on.closing(() => sql.end({ timeout: 0 }));
  return sql`SELECT 1`;
};
const WAY = {
  'nobody listens': [
    'transient net.refused source | transient db.connection source',
    async (call, on) => call(await on.closedPort(), on),
  ],
  'the server says nothing': [
    'transient net.timeout source | transient db.connection source | transient db.connection source ambiguous',
    async (call, on) => call(await on.silent(), on, { soon: true }),
  ],
  'the server hangs up while we connect': [
    'transient net.reset source ambiguous | transient db.connection source ambiguous | transient db.connection source',
    async (call, on) => call(await on.resetting(), on),
  ],
};

/** A PostgreSQL that answers the greeting with an error. */
const refusing = (on, state, message) =>
  on.tcp((socket) =>
    socket.once('data', () => {
      const fields = Buffer.from(`SFATAL\0VFATAL\0C${state}\0M${message}\0\0`);
      const head = Buffer.alloc(5);
      head.write('E');
      head.writeInt32BE(fields.length + 4, 1);
      socket.end(Buffer.concat([head, fields]));
    }),
  );
const REFUSED = [
  ['a server that is starting', 'transient db.unavailable source', '57P03', 'the database system is starting up'],
  [
    'too many clients',
    'transient db.connection source | transient db.connection source ambiguous',
    '53300',
    'sorry, too many clients already',
  ],
  ['a wrong password', 'permanent auth.invalid source', '28P01', 'password authentication failed for user "x"'],
  ['a database that is not there', 'permanent db.schema task', '3D000', 'database "x" does not exist'],
];
const overWire = (call) =>
  REFUSED.map(([what, expected, state, message]) => [
    what,
    expected,
    async (on) => call(await refusing(on, state, message), on),
  ]);
const live = (cases) => (hasPostgres ? cases : []);

// ── MySQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
/** mysql2's server, which lets everybody in and answers each query with the same error. */
async function mysqlServer(on, { errno, sqlState, message, greet }) {
  const server = mysql2.createServer();
  server.on('connection', (connection) => {
    connection.on('error', () => {});
    connection.serverHandshake({
      protocolVersion: 10,
      serverVersion: '8.0.30',
      connectionId: 1,
      statusFlags: 2,
      characterSet: 33,
      capabilityFlags: 0xffffff & ~0x800,
      authCallback: greet && ((_params, done) => done(null, greet)),
    });
    connection.on('query', () => {
      if (errno === undefined) return connection.stream.resetAndDestroy();
      // Its server goes on counting where each command should begin anew.
      connection.sequenceId = 1;
      connection.writeError({ code: errno, message, sqlState });
    });
    connection.on('quit', () => connection.stream.end());
  });
  server.listen(0, HOST);
  await new Promise((resolve) => server._server.once('listening', resolve));
  on.closing(() => server.close());
  return server._server.address().port;
}
const callMysql2 = async (port, on, { soon = false } = {}) => {
  const connection = await mysql2promise.createConnection({
    host: HOST,
    port,
    user: 'u',
    password: '',
    connectTimeout: soon ? 150 : 5_000,
  });
  connection.on('error', () => {});
  on.closing(() => connection.destroy());
  return connection.query('SELECT 1');
};
const callMysql = (port, on, { soon = false } = {}) =>
  failed((done) => {
    const connection = mysqljs.createConnection({
      host: HOST,
      port,
      user: 'u',
      password: '',
      connectTimeout: soon ? 150 : 5_000,
    });
    on.closing(() => connection.destroy());
    connection.on('error', () => {});
    connection.query('SELECT 1', done);
  });
const callMariadb = async (port, on, { soon = false } = {}) => {
  const connection = await mariadb.createConnection({
    host: HOST,
    port,
    user: 'u',
    password: '',
    connectTimeout: soon ? 150 : 5_000,
  });
  connection.on('error', () => {});
  on.closing(() => connection.destroy());
  return connection.query('SELECT 1');
};
const asks = (errno, sqlState, message) => async (call, on) =>
  call(await mysqlServer(on, { errno, sqlState, message }), on);
const MYSQL = {
  ...WAY,
  // Here the server speaks first.
  'the server hangs up while we connect': [
    WAY['the server hangs up while we connect'][0],
    async (call, on) => call(await on.tcp((socket) => socket.end()), on),
  ],
  'a key that exists': [
    'permanent db.unique task ambiguous',
    asks(1062, '23000', "Duplicate entry '1' for key 'PRIMARY'"),
  ],
  'a deadlock': [
    'transient db.serialization task',
    asks(1213, '40001', 'Deadlock found when trying to get lock; try restarting transaction'),
  ],
  'a lock that was not given in time': [
    'transient db.locked task',
    asks(1205, 'HY000', 'Lock wait timeout exceeded; try restarting transaction'),
  ],
  'a table that is not there': ['permanent db.schema task', asks(1146, '42S02', "Table 'a.b' doesn't exist")],
  'a server that only reads': [
    'transient db.unavailable source',
    asks(1290, 'HY000', 'The MySQL server is running with the --read-only option so it cannot execute this statement'),
  ],
  'a reference that leads nowhere': [
    'permanent db.constraint task',
    asks(1452, '23000', 'Cannot add or update a child row'),
  ],
  'a full disk': [
    'transient fs.no_space worker | transient db.resources source',
    asks(1114, 'HY000', "The table 't' is full"),
  ],
  'a connection that is reset during the query': [
    'transient db.connection source ambiguous | transient net.reset source ambiguous',
    async (call, on) => call(await mysqlServer(on, {}), on),
  ],
  'a wrong password': [
    'permanent auth.invalid source',
    async (call, on) =>
      call(
        await mysqlServer(on, {
          greet: { code: 1045, message: "Access denied for user 'u'@'x' (using password: YES)" },
        }),
        on,
      ),
  ],
};

const GREETED = Object.fromEntries(
  Object.entries(MYSQL).filter(([what]) => what in WAY || what === 'a wrong password'),
);
const greets = (what, expected, code, message) => [
  what,
  expected,
  async (on) => callMariadb(await mysqlServer(on, { greet: { code, message } }), on),
];

// ── SQLite ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
function sqlite(on, options) {
  const file = path.join(on.folder(), 'a.db');
  const db = new Database(file, options);
  on.closing(() => db.close());
  db.exec(
    'CREATE TABLE t (id INTEGER PRIMARY KEY, n INT NOT NULL CHECK (n > 0), u TEXT UNIQUE); INSERT INTO t VALUES (1, 1, 1)',
  );
  return { db, file };
}

// ── MongoDB ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
const HELLO = {
  ok: 1,
  isWritablePrimary: true,
  helloOk: true,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  minWireVersion: 0,
  maxWireVersion: 21,
  readOnly: false,
};

/** A MongoDB that greets, and answers every other command with the same document; null resets the connection. */
function mongoServer(on, answer) {
  return on.tcp((socket) => {
    let rest = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 16 && rest.length >= rest.readInt32LE(0)) {
        const message = rest.subarray(0, rest.readInt32LE(0));
        rest = rest.subarray(message.length);
        const isQuery = message.readInt32LE(12) === 2_004;
        const command = isQuery ? { hello: 1 } : deserialize(message.subarray(21));
        const greets = 'hello' in command || 'ismaster' in command || 'isMaster' in command;
        if (!greets && answer === null) return socket.resetAndDestroy();
        const body = serialize(greets ? HELLO : 'endSessions' in command ? { ok: 1 } : answer);
        const head = Buffer.alloc(isQuery ? 36 : 21);
        head.writeInt32LE(head.length + body.length, 0);
        head.writeInt32LE(message.readInt32LE(4), 8);
        head.writeInt32LE(isQuery ? 1 : 2_013, 12);
        if (isQuery) head.writeInt32LE(1, 32);
        socket.write(Buffer.concat([head, body]));
      }
    });
  });
}
const mongoOptions = (soon) => ({
  serverSelectionTimeoutMS: soon ? 200 : 400,
  connectTimeoutMS: 2_000,
  retryWrites: false,
  retryReads: false,
  directConnection: true,
});
const callMongo = async (port, on, { soon = false } = {}) => {
  const client = new MongoClient(`mongodb://${HOST}:${port}/d`, mongoOptions(soon));
  on.closing(() => client.close(true));
  return client.db('d').collection('c').insertOne({ _id: 1 });
};
const callMongoose = async (port, on, { soon = false } = {}) => {
  const connection = mongoose.createConnection(`mongodb://${HOST}:${port}/d`, {
    ...mongoOptions(soon),
    autoIndex: false,
    autoCreate: false,
  });
  connection.on('error', () => {});
  on.closing(() => connection.destroy(true));
  await connection.asPromise();
  const Thing = connection.model('Thing', new mongoose.Schema({ n: { type: Number, required: true } }));
  return Thing.create({ n: 1 });
};
const says = (answer) => async (call, on) => call(await mongoServer(on, answer), on);
const MONGO = {
  'nobody listens': [
    'transient net.refused source | transient db.connection source ambiguous | transient db.connection source',
    async (call, on) => call(await on.closedPort(), on),
  ],
  'the connection is reset after the command was sent': [
    'transient db.connection source ambiguous | transient net.reset source ambiguous',
    says(null),
  ],
  'a key that exists': [
    'permanent db.unique task ambiguous',
    says({
      ok: 1,
      n: 0,
      writeErrors: [
        {
          index: 0,
          code: 11_000,
          errmsg: 'E11000 duplicate key error collection: d.c index: _id_ dup key: { _id: 1 }',
        },
      ],
    }),
  ],
  'a right that is missing': [
    'permanent auth.forbidden task',
    says({ ok: 0, code: 13, codeName: 'Unauthorized', errmsg: 'not authorized on d to execute command' }),
  ],
  'a write conflict': [
    'transient db.serialization task',
    says({
      ok: 0,
      code: 112,
      codeName: 'WriteConflict',
      errmsg: 'WriteConflict',
      errorLabels: ['TransientTransactionError'],
    }),
  ],
  'a server that is no longer primary': [
    'transient db.unavailable source',
    says({ ok: 0, code: 10_107, codeName: 'NotWritablePrimary', errmsg: 'not primary' }),
  ],
  'a time limit of the server': [
    'transient db.timeout source ambiguous',
    says({ ok: 0, code: 50, codeName: 'MaxTimeMSExpired', errmsg: 'operation exceeded time limit' }),
  ],
  'a document that breaks the rules': [
    'permanent validation task',
    says({ ok: 1, n: 0, writeErrors: [{ index: 0, code: 121, errmsg: 'Document failed validation' }] }),
  ],
};

// ── Redis ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
/** A Redis that answers the commands of clients' greetings well, and every other one with the same reply. */
function redisServer(on, reply) {
  return on.tcp((socket) => {
    socket.on('data', (chunk) => {
      const commands = chunk
        .toString('latin1')
        .split(/\*\d+\r\n/)
        .filter(Boolean);
      for (const command of commands) {
        const [, name = ''] = command.split('\r\n');
        const greets = /^(?:HELLO|CLIENT|INFO|SELECT)$/i.test(name);
        if (!greets && reply === null) return socket.resetAndDestroy();
        if (reply !== undefined || greets)
          socket.write(/^HELLO$/i.test(name) ? '-ERR unknown command\r\n' : greets ? '+OK\r\n' : `${reply}\r\n`);
      }
    });
  });
}
const callIoredis = async (port, on, { soon = false } = {}) => {
  const client = new Redis({
    host: HOST,
    port,
    lazyConnect: true,
    retryStrategy: null,
    protocol: 2,
    disableClientInfo: true,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    connectTimeout: soon ? 150 : 5_000,
    ...(soon && { commandTimeout: 150 }),
  });
  client.on('error', () => {});
  on.closing(() => client.disconnect());
  await client.connect();
  return client.set('a', '1');
};
const callRedis = async (port, on, { soon = false } = {}) => {
  const client = createRedis({
    RESP: 2,
    disableClientInfo: true,
    socket: { host: HOST, port, reconnectStrategy: false, connectTimeout: 5_000, ...(soon && { socketTimeout: 150 }) },
  });
  client.on('error', () => {});
  on.closing(() => client.destroy());
  await client.connect();
  return client.set('a', '1');
};
const replies = (reply) => async (call, on) => call(await redisServer(on, reply), on);
const REDIS = {
  'nobody listens': ['transient net.refused source', async (call, on) => call(await on.closedPort(), on)],
  'no reply in time': [
    'transient db.timeout source ambiguous | transient db.connection source ambiguous | transient timeout task ambiguous | transient net.timeout source ambiguous',
    async (call, on) => call(await redisServer(on, undefined), on, { soon: true }),
  ],
  'the connection is reset after the command was sent': [
    'transient db.connection source ambiguous | transient net.reset source ambiguous',
    replies(null),
  ],
  'a server that loads': [
    'transient db.unavailable source',
    replies('-LOADING Redis is loading the dataset in memory'),
  ],
  'a replica that only reads': [
    'transient db.unavailable source',
    replies("-READONLY You can't write against a read only replica."),
  ],
  'a server that is out of memory': [
    'transient db.resources source',
    replies("-OOM command not allowed when used memory > 'maxmemory'."),
  ],
  'a login that is missing': ['permanent auth.invalid source', replies('-NOAUTH Authentication required.')],
  'a right that is missing': [
    'permanent auth.forbidden task',
    replies("-NOPERM User default has no permissions to run the 'set' command"),
  ],
  'a value of another type': [
    'permanent db.data task',
    replies('-WRONGTYPE Operation against a key holding the wrong kind of value'),
  ],
  'a cluster that is down': ['transient db.unavailable source', replies('-CLUSTERDOWN The cluster is down')],
  'too many clients': [
    'transient db.connection source ambiguous | transient db.connection source',
    replies('-ERR max number of clients reached'),
  ],
};

// ── Others ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
const callNeo4j = async (port, on) => {
  const driver = neo4j.driver(`bolt://${HOST}:${port}`, neo4j.auth.basic('u', 'p'), {
    connectionTimeout: 300,
    maxTransactionRetryTime: 0,
    connectionAcquisitionTimeout: 2_000,
    encrypted: false,
  });
  on.closing(() => driver.close());
  return driver.executeQuery('RETURN 1');
};

/** An LDAP server that answers a bind with this result. */
const ldapServer = (on, result) =>
  on.tcp((socket) =>
    socket.once('data', (chunk) => {
      const id = chunk[4];
      socket.write(Buffer.from([0x30, 0x0c, 0x02, 0x01, id, 0x61, 0x07, 0x0a, 0x01, result, 0x04, 0x00, 0x04, 0x00]));
    }),
  );
const callLdap = async (port, on, { soon = false } = {}) => {
  const client = new Ldap({ url: `ldap://${HOST}:${port}`, timeout: soon ? 150 : 5_000, connectTimeout: 5_000 });
  on.closing(() => client.unbind());
  return client.bind('cn=x', 'p');
};

export default [
  each(
    'pg',
    wirePg,
    WAY,
  )(
    ...overWire(wirePg),
    ...live([
      ...overSql(viaPg),
      ['a lock that somebody holds', 'transient db.locked task', async (on) => locked(on, await viaPg(on))],
      ['a transaction that lost', 'transient db.serialization task', async (on) => serialized(on, await viaPg(on))],
      [
        'a pool without a free connection',
        'transient db.pool_timeout worker',
        async (on) => {
          const pool = new pg.Pool({ ...(await where(on)), max: 1, connectionTimeoutMillis: 100 });
          const taken = await pool.connect();
          on.closing(() => pool.end());
          on.closing(() => taken.release());
          return pool.connect();
        },
      ],
    ]),
  ),
  each(
    'postgres',
    wirePostgresJs,
    WAY,
  )(
    ...overWire(wirePostgresJs),
    ...live([
      ...overSql(viaPostgresJs).filter(([what]) => !/transaction/.test(what)),
      [
        'a client that was closed',
        'unknown net.closed_client task',
        async (on) => {
          const sql = postgres(await where(on));
          await sql.end();
          return sql`SELECT 1`;
        },
      ],
    ]),
  ),
  library(
    'knex',
    ...live([
      ...overSql(viaKnex),
      ['a lock that somebody holds', 'transient db.locked task', async (on) => locked(on, await viaKnex(on))],
      [
        'a pool without a free connection',
        'transient db.pool_timeout worker',
        async (on) => {
          const knex = knexOf({
            client: 'pg',
            connection: await where(on),
            pool: { min: 0, max: 1 },
            acquireConnectionTimeout: 100,
            log: { error() {} },
          });
          on.closing(() => knex.destroy());
          const taken = await knex.client.acquireConnection();
          on.closing(() => knex.client.releaseConnection(taken));
          return knex.raw('SELECT 1');
        },
      ],
    ]),
  ),
  library(
    'sequelize',
    [
      'a model that is not filled in',
      'permanent validation task',
      async () => {
        const sequelize = new Sequelize({ dialect: 'postgres', logging: false });
        return sequelize
          .define('T', { n: { type: DataTypes.INTEGER, allowNull: false } })
          .build({})
          .validate();
      },
    ],
    [
      'nobody listens',
      'transient net.refused source',
      async (on) => {
        const sequelize = new Sequelize({
          dialect: 'postgres',
          host: HOST,
          port: await on.closedPort(),
          logging: false,
        });
        return sequelize.query('SELECT 1');
      },
    ],
    ...live([
      ...overSql(viaSequelize),
      [
        'a transaction that lost',
        'transient db.serialization task',
        async (on) => serialized(on, await viaSequelize(on)),
      ],
    ]),
  ),
  each('mysql2', callMysql2, MYSQL)(),
  // Its time limit ends when the socket is connected.
  each('mysql', callMysql, MYSQL, { 'the server says nothing': null })(),
  // It asks for more than mysql2's server can tell before it sends a query, so all is said at the greeting.
  each('mariadb', callMariadb, GREETED)(
    greets('too many connections', 'transient db.connection source ambiguous', 1040, 'Too many connections'),
    greets('a database that is not there', 'permanent db.schema task', 1049, "Unknown database 'x'"),
    greets('a server that is shutting down', 'transient db.unavailable source', 1053, 'Server shutdown in progress'),
  ),
  library(
    'better-sqlite3',
    [
      'a database that somebody writes to',
      'transient db.locked task',
      (on) => {
        const { db, file } = sqlite(on);
        db.exec('BEGIN IMMEDIATE');
        const other = new Database(file, { timeout: 0 });
        on.closing(() => other.close());
        other.exec('DELETE FROM t');
      },
    ],
    [
      'a key that exists',
      'permanent db.unique task ambiguous',
      (on) => sqlite(on).db.exec('INSERT INTO t VALUES (1, 1, 2)'),
    ],
    [
      'a value that is missing',
      'permanent db.constraint task',
      (on) => sqlite(on).db.exec('INSERT INTO t (id) VALUES (2)'),
    ],
    ['a table that is not there', 'permanent db.schema task', (on) => sqlite(on).db.prepare('SELECT * FROM nowhere')],
    [
      'a database that may not be written',
      'permanent db.readonly worker',
      (on) => {
        const { file } = sqlite(on);
        const other = new Database(file, { readonly: true });
        on.closing(() => other.close());
        other.exec('DELETE FROM t');
      },
    ],
    [
      'a file that is no database',
      'permanent db.corrupt worker',
      () => new Database(require.resolve('mysql/lib/protocol/constants/errors.js')).exec('SELECT * FROM t'),
    ],
    [
      'a database that is full',
      'transient fs.no_space worker',
      (on) => {
        const { db } = sqlite(on);
        db.pragma('max_page_count = 4');
        db.exec(`INSERT INTO t VALUES (9, 1, zeroblob(100000))`);
      },
    ],
    [
      'a connection that was closed',
      'permanent code.bug task | unknown net.closed_client task',
      (on) => {
        const { db } = sqlite(on);
        db.close();
        db.prepare('SELECT 1');
      },
    ],
    ['too few values', 'permanent code.bug task', (on) => sqlite(on).db.prepare('SELECT ?').get()],
  ),
  each(
    'mongodb',
    callMongo,
    MONGO,
  )([
    'the server says nothing',
    'transient db.connection source | transient db.connection source ambiguous',
    async (on) => callMongo(await on.silent(), on, { soon: true }),
  ]),
  each(
    'mongoose',
    callMongoose,
    MONGO,
  )(
    [
      'a field that is missing',
      'permanent validation task',
      () => new (mongoose.model('A', new mongoose.Schema({ n: { type: Number, required: true } })))({}).validate(),
    ],
    ['a value that cannot be cast', 'permanent validation task', () => mongoose.model('A').findOne({ n: 'x' }).exec()],
  ),
  // Whoever waits for the connection is told that it is closed, and not why.
  each('ioredis', callIoredis, REDIS, { 'nobody listens': 'transient db.connection source ambiguous' })([
    'a connection that was closed',
    'transient db.connection source ambiguous | transient db.connection source | unknown net.closed_client task',
    async (on) => {
      const client = new Redis({
        host: HOST,
        port: await redisServer(on, '+OK'),
        lazyConnect: true,
        retryStrategy: null,
        protocol: 2,
      });
      on.closing(() => client.disconnect());
      client.on('error', () => {});
      await client.connect();
      client.disconnect();
      return client.get('a');
    },
  ]),
  each(
    'redis',
    callRedis,
    REDIS,
  )([
    'a client that was closed',
    'unknown net.closed_client task',
    async (on) => {
      const client = createRedis({
        RESP: 2,
        disableClientInfo: true,
        socket: { host: HOST, port: await redisServer(on, '+OK') },
      });
      client.on('error', () => {});
      await client.connect();
      client.destroy();
      return client.get('a');
    },
  ]),
  library(
    'neo4j-driver',
    [
      'nobody listens',
      'transient db.unavailable source | transient net.refused source | transient db.connection source ambiguous | transient db.connection source',
      async (on) => callNeo4j(await on.closedPort(), on),
    ],
    ['the server says nothing', 'transient db.connection source', async (on) => callNeo4j(await on.silent(), on)],
    [
      'the peer speaks HTTP',
      'unknown net.protocol source',
      async (on) => callNeo4j(await on.babbling('HTTP/1.1 400 Bad Request\r\n\r\n'), on),
    ],
  ),
  library(
    'ldapts',
    ['nobody listens', 'transient net.refused source', async (on) => callLdap(await on.closedPort(), on)],
    [
      'no answer comes in time',
      'transient net.timeout source ambiguous | transient timeout task ambiguous',
      async (on) => callLdap(await on.silent(), on, { soon: true }),
    ],
    ['a wrong password', 'permanent auth.invalid source', async (on) => callLdap(await ldapServer(on, 49), on)],
    [
      'a directory that is busy',
      'transient api.unavailable source | transient db.unavailable source',
      async (on) => callLdap(await ldapServer(on, 51), on),
    ],
    [
      'a directory that is not available',
      'transient api.unavailable source | transient db.unavailable source',
      async (on) => callLdap(await ldapServer(on, 52), on),
    ],
    ['an entry that is not there', 'permanent not_found task', async (on) => callLdap(await ldapServer(on, 32), on)],
    ['a right that is missing', 'permanent auth.forbidden task', async (on) => callLdap(await ldapServer(on, 50), on)],
    [
      'the connection is reset',
      'transient net.reset source ambiguous',
      async (on) => callLdap(await on.resetting(), on),
    ],
  ),
];
