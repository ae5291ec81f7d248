import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { TestProject } from 'vitest/node';
import type { Server, ServerUrls } from './server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the processes of a run ask for its PostgreSQL server. */
    postgresDoor: number;
  }
}

/** What is answered at the door. */
export type Answer = { readonly urls: ServerUrls } | { readonly refusal: string };

/**
 * One PostgreSQL server for all tests of a run, started when the first of them asks for it at a port of this process: a run
 * that needs none does not wait for one. When it cannot be started, all who ask fail with the reason.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  let starting: Promise<Server> | undefined;
  const door = createServer((socket) => {
    socket.on('error', () => {});
    starting ??= start();
    starting.then(
      ({ urls }) => socket.end(JSON.stringify({ urls } satisfies Answer)),
      (error) => socket.end(JSON.stringify({ refusal: String(error.message) } satisfies Answer)),
    );
  }).listen(0, '127.0.0.1');
  await once(door, 'listening');
  project.provide('postgresDoor', (door.address() as AddressInfo).port);

  return async () => {
    door.close();
    const server = await starting?.catch(() => undefined);
    await server?.stop();
  };
}

async function start(): Promise<Server> {
  const { startServer } = await import('./server.ts');
  return startServer();
}
