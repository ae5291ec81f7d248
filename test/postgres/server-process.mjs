import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { killTree } from './processes.mjs';
import { unprivileged } from './unprivileged.mjs';

const READY_WITHIN_MS = 30_000;

/** Server error `cannot_connect_now`: it answers, but is not ready for everybody. */
const STARTING = '57P03';

/** How programs of a server are spawned. */
export function asServer(folder) {
  return { ...unprivileged, cwd: folder, env: { PATH: `${process.env.PATH}:/usr/sbin`, LC_ALL: 'C', TZ: 'UTC' } };
}

/**
 * Spawns a server as our own child, writing to `log` in its folder, and resolves when it takes connections at `url`. One that
 * ends before, or does not within half a minute, is told with the end of its log.
 */
export async function spawnServer({ name, program, args, folder, guard, url }) {
  const log = join(folder, 'log');
  const output = openSync(log, 'a');
  const child = spawn(program, args, { ...asServer(folder), detached: true, stdio: ['ignore', output, output] });
  closeSync(output);
  if (child.pid !== undefined) guard.watch(child.pid);
  const server = new ServerProcess(child);
  try {
    if (await ready(server, url)) return server;
  } catch (error) {
    await server.kill();
    throw error;
  }
  const { failure, hasEnded } = server;
  await server.kill();
  if (failure?.code === 'ENOENT') throw failure;
  const what = hasEnded ? 'ended at once' : `did not take connections within ${READY_WITHIN_MS} ms`;
  const said = readFileSync(log, 'utf8').trim().split('\n').slice(-10).join('\n');
  throw new Error(`${name} ${what}. Its log ends with:\n${said || failure?.message}`, { cause: failure });
}

class ServerProcess {
  #child;
  hasEnded = false;
  /** Why it could not even be spawned. */
  failure;

  constructor(child) {
    this.#child = child;
    this.ended = new Promise((resolve) => {
      const end = (failure) => {
        this.hasEnded = true;
        if (failure instanceof Error) this.failure = failure;
        resolve();
      };
      child.once('exit', end).once('error', end);
    });
  }

  get pid() {
    return this.#child.pid;
  }

  async kill() {
    // One that was waited for has no process any more, and its number may be another's.
    if (this.pid !== undefined && !this.hasEnded) await killTree(this.pid);
    await this.ended;
  }
}

async function ready(server, url) {
  const until = performance.now() + READY_WITHIN_MS;
  while (!server.hasEnded && performance.now() < until) {
    if (await answers(url)) return true;
    await delay(10);
  }
  return false;
}

async function answers(url) {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    if (['ECONNREFUSED', 'ECONNRESET', STARTING].includes(error.code)) return false;
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}
