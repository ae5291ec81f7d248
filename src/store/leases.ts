import type { Milliseconds } from '../duration.ts';
import type { Liveness } from './liveness.ts';

/** A lease is renewed three times in its length, so a living worker is heard of within a third of it. */
export const RENEWALS_PER_LEASE = 3;

/** A lease that has run out, as it was first seen to have, by the monotonic clock of a timeline. */
export interface Watch {
  readonly leaseUntil: number;
  readonly since: Milliseconds;
}

/** What a worker's row says of how long its leases are to be respected. */
export interface Respected {
  readonly leaseFor: Milliseconds;
  /** How long its process may run a task after the lease has run out, if it is provably alive; null is without end. */
  readonly mayRunFor: Milliseconds | null;
}

/** Whether a process that is provably alive keeps its leases though it does not renew them, as while it blocks its event loop. */
export function isRespected({ mayRunFor }: Respected, liveness: Liveness): boolean {
  return liveness === 'alive' && mayRunFor !== 0;
}

/**
 * For how long a lease that has run out must be watched, unrenewed, before its tasks are taken over: neither a laptop's sleep
 * nor a jump of the wall clock robs the living. A process that is respected has as long as its handlers may run.
 */
export function watchFor(row: Respected, liveness: Liveness): Milliseconds {
  const interval = row.leaseFor / RENEWALS_PER_LEASE;
  if (!isRespected(row, liveness)) return interval;
  return interval + (row.mayRunFor ?? Number.POSITIVE_INFINITY);
}

/** Whether a watch that was begun is one over this lease. One that began later than now was of another clock. */
export function watches(watch: Watch | undefined, leaseUntil: number, monotonic: Milliseconds): watch is Watch {
  return watch !== undefined && watch.leaseUntil === leaseUntil && watch.since <= monotonic;
}
