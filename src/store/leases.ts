import type { Milliseconds } from '../duration.ts';
import type { Liveness } from './liveness.ts';

/** A lease is renewed three times in its length, so a working worker renews within a third of it. */
export const RENEWALS_PER_LEASE = 3;

/** A lease that has run out, and when this was first seen, on the monotonic clock of a timeline. */
export interface Watch {
  readonly leaseUntil: number;
  readonly since: Milliseconds;
}

/** The columns of a worker's row that say how long others leave its tasks alone. */
export interface Respected {
  readonly leaseFor: Milliseconds;
  /** How long its process may run a task after the lease has run out, if it is provably alive; null means without end. */
  readonly mayRunFor: Milliseconds | null;
}

/**
 * Whether a process that is provably alive keeps its leases although it does not renew them, for example because it blocks its
 * event loop.
 */
export function isRespected({ mayRunFor }: Respected, liveness: Liveness): boolean {
  return liveness === 'alive' && mayRunFor !== 0;
}

/**
 * How long a lease that has run out must be watched without a renewal before its tasks are taken over. So a worker that is alive
 * keeps its tasks after the sleep of a laptop or a jump of the wall clock. A provably living process keeps them for as long as
 * its handlers may run.
 */
export function watchFor(row: Respected, liveness: Liveness): Milliseconds {
  const interval = row.leaseFor / RENEWALS_PER_LEASE;
  if (!isRespected(row, liveness)) return interval;
  return interval + (row.mayRunFor ?? Number.POSITIVE_INFINITY);
}

/** Whether a stored watch is of this lease. A watch that began in the future is from another clock. */
export function watches(watch: Watch | undefined, leaseUntil: number, monotonic: Milliseconds): watch is Watch {
  return watch !== undefined && watch.leaseUntil === leaseUntil && watch.since <= monotonic;
}
