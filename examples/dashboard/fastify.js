// @ts-check
// Fastify
import Fastify from 'fastify';
import { toNodeHandler } from 'holdfast/dashboard';
import { BASE, dashboardOf } from './dashboard.js';

/** @param {import('holdfast').Holdfast} holdfast */
export async function serverOf(holdfast) {
  const dashboard = toNodeHandler(dashboardOf(holdfast));
  const app = Fastify();
  await app.register(async (ops) => {
    // The dashboard reads bodies itself.
    ops.removeAllContentTypeParsers();
    ops.addContentTypeParser('*', (_, __, done) => done(null));
    const answer = (/** @type {any} */ request, /** @type {any} */ reply) => {
      reply.hijack();
      void dashboard(request.raw, reply.raw);
    };
    ops.all(BASE, answer);
    ops.all(`${BASE}/*`, answer);
  });
  app.get('/', async () => 'the rest of the app');
  await app.ready();
  return app.server;
}
