import { connect } from 'node:net';
import type { Milliseconds } from '../../duration.ts';

/** The server closes the connection of a cancel at once; one that cannot be reached is not waited for longer. */
const CANCELLED_WITHIN_MS: Milliseconds = 1_000;

/** What a request for a cancel begins with, instead of a version of the protocol. */
const CANCEL_CODE = 80_877_102;

/** What a cancel needs to know of a connection: nothing of it is there where the client is none of `pg`. */
export interface Cancellable {
  readonly host?: string;
  readonly port?: number;
  readonly processID?: number | null;
  readonly secretKey?: number | null;
}

/**
 * Asks the server to cancel the statement that runs on this connection, over a connection of its own and without TLS, as the protocol
 * has it: the request holds nothing but the secret key of that connection. Resolves when the server has it, or cannot be reached.
 */
export async function cancel({ host, port, processID, secretKey }: Cancellable): Promise<void> {
  if (!host || !port || typeof processID !== 'number' || typeof secretKey !== 'number') return;
  const request = Buffer.alloc(16);
  request.writeInt32BE(request.length, 0);
  request.writeInt32BE(CANCEL_CODE, 4);
  request.writeInt32BE(processID, 8);
  request.writeInt32BE(secretKey, 12);
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
  socket.unref();
  const timer = setTimeout(() => socket.destroy(), CANCELLED_WITHIN_MS);
  await new Promise<void>((resolve) => {
    socket.on('connect', () => socket.end(request));
    // Without a cancel the server notices by itself that the connection is gone, later.
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.resume();
  });
  clearTimeout(timer);
}
