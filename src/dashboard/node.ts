import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Dashboard } from './dashboard.ts';

/** The dashboard as a handler of Node's own server, of Express and of others that call handlers with Node's request and response. */
export function toNodeHandler(
  dashboard: Dashboard,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  // The globals of the program stay as they are.
  const listener = getRequestListener(dashboard.fetch, { overrideGlobalObjects: false });
  return async (request, response) => {
    const { body, rawBody } = request as { body?: unknown; rawBody?: unknown };
    // A parser before this one has read the stream, and left what it parsed.
    if (request.readableEnded && body !== undefined && rawBody === undefined) {
      Object.assign(request, { rawBody: Buffer.from(JSON.stringify(body)) });
    }
    await listener(request, response);
  };
}
