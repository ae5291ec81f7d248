import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';

export interface MetricsSource {
  readonly metrics: () => Promise<string>;
  /** Asks the store for anything. */
  readonly ask: () => Promise<unknown>;
  /** Whether the worker takes tasks. */
  readonly isReady: () => boolean;
}

const LOOPBACK = '127.0.0.1';

/** So that clients cannot use up the files that the worker may open. */
const MOST_CONNECTIONS = 100;

/** How long an answer of the store may take. */
const ANSWER_WITHIN_MS = 5_000;

/** Reads `9464` or `0.0.0.0:9464`. @throws Problem for anything else. */
export function addressOf(text: string): { readonly host: string; readonly port: number } {
  const [, host = LOOPBACK, digits] = /^(?:\[?([^\]]+)\]?:)?(\d{1,5})$/.exec(text.trim()) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) {
    throw usage(`--metrics takes a port, such as 9464, or an address with a port, got "${visible(text)}"`);
  }
  return { host, port };
}

/** Answers `/metrics` (Prometheus), `/healthz` and `/readyz` until it is closed. */
export async function serveMetrics(text: string, source: MetricsSource): Promise<{ url: string; close(): void }> {
  const read = { ...source, metrics: shared(source.metrics), ask: shared(source.ask) };
  const server = createServer((request, response) => {
    void answerTo(request.method === 'GET' ? request.url : undefined, read).then(({ status, body }) => {
      response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(body);
    });
  });
  server.maxConnections = MOST_CONNECTIONS;
  const { host, port } = addressOf(text);
  server.listen(port, host);
  await once(server, 'listening').catch((cause: unknown) => {
    throw usage(`--metrics cannot listen on ${host}:${port}: ${(cause as Error).message}`, { cause });
  });
  // It keeps no process alive.
  server.unref();
  const { address, port: bound, family } = server.address() as AddressInfo;
  const url = `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`;
  return {
    url,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answerTo(url: string | undefined, { metrics, ask, isReady }: MetricsSource) {
  const path = url?.split('?')[0];
  if (path === '/healthz') return { status: 200, body: 'ok\n' };
  if (path !== '/metrics' && path !== '/readyz')
    return { status: 404, body: 'There are /metrics, /healthz and /readyz.\n' };
  try {
    if (path === '/metrics') return { status: 200, body: await metrics() };
    await ask();
    return isReady() ? { status: 200, body: 'ok\n' } : { status: 503, body: 'The worker is stopping.\n' };
  } catch (error) {
    return { status: 503, body: `The store does not answer: ${(error as Error).message}\n` };
  }
}

/** Requests that come while the store is asked get the same answer, so that many of them do not keep the worker from its tasks. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  return () => {
    underWay ??= Promise.race([read(), noAnswer()]).finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}

function noAnswer(): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${ANSWER_WITHIN_MS / 1_000} s`)), ANSWER_WITHIN_MS).unref();
  });
}
