import { chownSync } from 'node:fs';
import { createServer } from 'node:net';

/** `nobody`: a server refuses to run as root, and needs a user with an entry in the list of users. */
const NOBODY = 65_534;

/** As whom to spawn a server: as root, as somebody else. */
export const unprivileged = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

/** Gives a path to the one as whom servers are spawned. */
export function giveAway(path) {
  if (unprivileged.uid !== undefined) chownSync(path, unprivileged.uid, unprivileged.gid);
}

/**
 * A port of the loopback interface on which nobody listens. It lies below those from which the system serves outgoing
 * connections: one of them could take it while its server is down, and a client that asks for it could even meet itself.
 */
export async function freePort() {
  for (let tries = 0; tries < 50; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (await isFree(port)) return port;
  }
  throw new Error('No free port between 20000 and 32000 was found in 50 tries. Look with `ss -ltn` who has them.');
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
