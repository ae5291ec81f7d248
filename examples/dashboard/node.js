// @ts-check
// node:http
import { createServer } from 'node:http';
import { toNodeHandler } from 'holdfast/dashboard';
import { BASE, dashboardOf } from './dashboard.js';

/** @param {import('holdfast').Holdfast} holdfast */
export function serverOf(holdfast) {
  const dashboard = toNodeHandler(dashboardOf(holdfast));
  return createServer((request, response) => {
    if (request.url?.startsWith(BASE)) void dashboard(request, response);
    else response.end('the rest of the app');
  });
}
