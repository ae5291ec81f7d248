// @ts-check
// Hono
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { BASE, dashboardOf } from './dashboard.js';

/** @param {import('holdfast').Holdfast} holdfast */
export function serverOf(holdfast) {
  const app = new Hono();
  app.mount(BASE, dashboardOf(holdfast).fetch);
  app.get('/', (context) => context.text('the rest of the app'));
  return createAdaptorServer({ fetch: app.fetch });
}
