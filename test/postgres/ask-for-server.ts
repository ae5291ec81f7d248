import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { inject } from 'vitest';
import type { Answer } from './global-setup.ts';
import type { ServerUrls } from './server.ts';

/** Where the PostgreSQL server of this run is found; it is started now, if nobody asked before. */
export async function askForServer(): Promise<ServerUrls> {
  const answer: Answer = JSON.parse(await text(connect(inject('postgresDoor'), '127.0.0.1')));
  if ('refusal' in answer) throw new Error(answer.refusal);
  return answer.urls;
}
