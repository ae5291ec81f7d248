// The Redis server that BullMQ is measured on: a new one in a folder, with its log of changes flushed to the disk once a second.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '../test/postgres/unprivileged.mjs';
import { inFolder } from './files.mjs';

/** Calls `use` with the port of a new server that is stopped and removed afterwards. */
export function atNewRedis({ dir }, use) {
  return inFolder(dir, async (folder) => {
    const port = await freePort();
    const settings = { port, bind: '127.0.0.1', dir: folder, save: '', appendonly: 'yes', appendfsync: 'everysec' };
    const server = spawn(
      'redis-server',
      Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`]),
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const ended = once(server, 'exit');
    try {
      await untilItAccepts(server);
      return await use(port);
    } finally {
      server.kill();
      await ended;
    }
  });
}

function untilItAccepts(server) {
  return new Promise((resolve, reject) => {
    let log = '';
    server.stdout.on('data', (part) => {
      log += part;
      if (log.includes('Ready to accept connections')) resolve();
    });
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`redis-server did not start.\n${log}`)));
  });
}
