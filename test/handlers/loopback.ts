import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A request as a server heard it. */
interface Heard {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface Loopback {
  readonly url: string;
  readonly port: number;
  readonly heard: readonly Heard[];
}

/** What a server does with a request that it has heard whole. `nth` counts its requests from 1. */
export type Answering = (heard: Heard, response: ServerResponse, nth: number) => void;

/** A server on a port of its own, until the test ends. */
export async function serve(answer: Answering): Promise<Loopback> {
  const heard: Heard[] = [];
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = request;
    const one = { method, path: url, headers, body: Buffer.concat(chunks).toString() };
    heard.push(one);
    answer(one, response, heard.length);
  };
  const port = await listen(createServer(listener));
  return { url: `http://127.0.0.1:${port}`, port, heard };
}

/** A server of anything but HTTP. */
export async function serveSocket(answer: (socket: Socket) => void): Promise<Pick<Loopback, 'url' | 'port'>> {
  const port = await listen(
    createSocketServer((socket) => {
      socket.on('error', () => {});
      answer(socket);
    }),
  );
  return { url: `http://127.0.0.1:${port}`, port };
}

async function listen(server: Server): Promise<number> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}
