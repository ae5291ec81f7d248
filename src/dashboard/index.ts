/**
 * The dashboard and its API, as one fetch handler.
 * @module holdfast/dashboard
 */

export {
  type Authorize,
  createDashboard,
  type Dashboard,
  type DashboardOptions,
  type DashboardUser,
} from './dashboard.ts';
export { toNodeHandler } from './node.ts';
export type { Permission } from './permissions.ts';
