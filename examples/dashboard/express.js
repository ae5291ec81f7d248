// @ts-check
// Express
import { createServer } from 'node:http';
import express from 'express';
import { toNodeHandler } from 'holdfast/dashboard';
import { BASE, dashboardOf } from './dashboard.js';

/** @param {import('holdfast').Holdfast} holdfast */
export function serverOf(holdfast) {
  const app = express();
  app.use(express.json());
  app.use(BASE, toNodeHandler(dashboardOf(holdfast)));
  app.get('/', (_, response) => void response.send('the rest of the app'));
  return createServer(app);
}
