import type { Facts } from './decide.ts';

/** A task at its first execution. */
export const UNTRIED: Facts = {
  executions: 1,
  charged: [],
  deferralsInARow: 0,
  deferredForMs: 0,
  recoveriesAgoMs: [],
  lostInARow: 0,
  idempotent: true,
  cancelRequested: false,
  sinceFirstStartMs: 0,
};
