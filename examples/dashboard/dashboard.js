// @ts-check
import { createDashboard } from 'holdfast/dashboard';

export const BASE = '/ops/holdfast';

/**
 * The dashboard under a path of a server. The header stands for your own login: look up the session of the request here.
 * @param {import('holdfast').Holdfast} holdfast
 */
export function dashboardOf(holdfast) {
  return createDashboard(holdfast, {
    basePath: BASE,
    authorize(request) {
      const user = request.headers.get('x-user');
      if (user === null) return undefined;
      return user === 'admin' ? user : { name: user, can: ['view', 'inputs', 'retry'] };
    },
  });
}
