import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardServer } from './guard.mjs';
import { spawnServer } from './server-process.mjs';
import { freePort, giveAway } from './unprivileged.mjs';

/** Starts PgBouncer in front of a server. See `pgbouncer.d.mts`. */
export async function startPgBouncer({ port: serverPort }) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pgbouncer-'));
  giveAway(folder);
  const guard = guardServer(folder);
  try {
    const port = await freePort();
    const url = (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`;
    const file = join(folder, 'pgbouncer.ini');
    writeFileSync(file, configuration(port, serverPort));
    const server = await spawnServer({
      name: 'PgBouncer',
      program: 'pgbouncer',
      args: [file],
      folder,
      guard,
      url: url(),
    });
    const stop = async () => {
      await guard.release();
      await server.ended;
    };
    return { port, pid: server.pid, folder, url, stop };
  } catch (error) {
    await guard.release();
    if (error.code !== 'ENOENT') throw error;
    const message = 'There is no PgBouncer: the program pgbouncer was not found. Install the Debian package pgbouncer.';
    throw Object.assign(new Error(message, { cause: error }), { code: 'PGBOUNCER_NOT_FOUND' });
  }
}

function configuration(port, serverPort) {
  return `[databases]
* = host=127.0.0.1 port=${serverPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 20
`;
}
