// @ts-check
// Next: app/ops/holdfast/[[...path]]/route.js
import { dashboardOf } from './dashboard.js';

/** @param {import('holdfast').Holdfast} holdfast */
export function routeOf(holdfast) {
  const { fetch } = dashboardOf(holdfast);
  return { GET: fetch, POST: fetch, HEAD: fetch };
}
