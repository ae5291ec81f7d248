import { connect } from 'node:net';
import type { Milliseconds } from '../../duration.ts';

/** How long a cancel may take. The server closes the connection of a cancel at once, unless it cannot be reached. */
const CANCELLED_WITHIN_MS: Milliseconds = 1_000;

/** The code with which a cancel request begins, instead of a protocol version. */
const CANCEL_CODE = 80_877_102;

/** What a cancel needs from a connection. These members are missing if the client is not of `pg`. */
export interface Cancellable {
  readonly host?: string;
  readonly port?: number;
  readonly processID?: number | null;
  readonly secretKey?: number | null;
}

/**
 * Asks the server to cancel the statement that runs on this connection. As in the protocol, this uses another connection without
 * TLS, and the request contains only the secret key of that connection. Resolves when the server has the request, or cannot be
 * reached.
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
    // Without a cancel, the server notices later that the connection is gone.
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    socket.resume();
  });
  clearTimeout(timer);
}
