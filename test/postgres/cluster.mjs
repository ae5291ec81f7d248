// A real PostgreSQL server that is thrown away: for tests, the bench and whoever wants to try. Plain JavaScript, because some
// who use it run without TypeScript.
import { execFile } from 'node:child_process';
import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBinaries, reachable } from './binaries.mjs';
import { guardServer } from './guard.mjs';
import { asServer, spawnServer } from './server-process.mjs';
import { freePort, giveAway } from './unprivileged.mjs';

/** Text is sorted as in most people's databases, by language and not by code point. */
const INIT = [
  '-U',
  'postgres',
  '-A',
  'trust',
  '-E',
  'UTF8',
  '--locale=C',
  '--locale-provider=icu',
  '--icu-locale=en-US',
];

/** What Linux keeps in memory, and how much of it must be free to put a server's data there. */
const MEMORY = { folder: '/dev/shm', bytes: 2 * 1024 ** 3 };

/** Creates a server with an empty database in a temporary folder, and starts it. See `cluster.d.mts`. */
export async function startCluster({ fsync = true, settings = {} } = {}) {
  const found = findBinaries();
  const folder = temporary(tmpdir());
  const data = temporary(fsync ? folder : memoryFolder(folder));
  const guard = guardServer(data, folder);
  try {
    const binaries = reachable(found, join(folder, 'native'));
    const fast = fsync ? {} : { fsync: 'off', full_page_writes: 'off' };
    const cluster = new Cluster({
      folder,
      data,
      binaries,
      guard,
      port: await freePort(),
      settings: { ...fast, ...settings },
    });
    await cluster.initialize();
    await cluster.start();
    return cluster;
  } catch (error) {
    await guard.release();
    throw error;
  }
}

function temporary(parent) {
  const folder = mkdtempSync(join(parent, 'holdfast-pg-'));
  giveAway(folder);
  return folder;
}

/* Without fsync a disk still writes, and slows down who writes too much: copying a database for each test took from 1 to 50 ms
   longer than in memory, where it never had to be waited for. */
function memoryFolder(otherwise) {
  try {
    const { bavail, bsize } = statfsSync(MEMORY.folder);
    return bavail * bsize >= MEMORY.bytes ? MEMORY.folder : otherwise;
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
    return otherwise;
  }
}

class Cluster {
  #data;
  #binaries;
  #guard;
  #settings;
  #server;

  constructor({ folder, data, binaries, guard, port, settings }) {
    this.folder = folder;
    this.port = port;
    this.kind = binaries.kind;
    this.#data = data;
    this.#binaries = binaries;
    this.#guard = guard;
    this.#settings = {
      listen_addresses: '127.0.0.1',
      unix_socket_directories: folder,
      port,
      max_connections: 200,
      // Files among the data, not segments of the system, which a killed server would leave behind.
      dynamic_shared_memory_type: 'mmap',
      ...settings,
    };
  }

  get pid() {
    return this.#server?.pid;
  }

  url(database = 'postgres') {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  socketUrl(database = 'postgres') {
    return `postgres://postgres@localhost:${this.port}/${database}?host=${encodeURIComponent(this.folder)}`;
  }

  async initialize() {
    const initdb = join(this.#binaries.root, 'bin/initdb');
    try {
      await promisify(execFile)(initdb, ['-D', this.#data, '--no-sync', ...INIT], asServer(this.folder));
    } catch (cause) {
      throw new Error(`The ${this.kind} PostgreSQL server could not be created: ${cause.message}`, { cause });
    }
  }

  async start() {
    if (this.#server) throw new Error('This PostgreSQL server was started already. Call `kill` before `start`.');
    const settings = Object.entries(this.#settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    this.#server = await spawnServer({
      name: `The ${this.kind} PostgreSQL server`,
      program: join(this.#binaries.root, 'bin/postgres'),
      args: ['-D', this.#data, ...settings],
      folder: this.folder,
      guard: this.#guard,
      url: this.url(),
    });
  }

  async kill() {
    await this.#server?.kill();
    this.#guard.unwatch();
    this.#server = undefined;
  }

  async stop() {
    await this.#guard.release();
    await this.#server?.ended;
    this.#server = undefined;
  }
}
