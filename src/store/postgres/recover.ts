import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { isRespected, type Respected, type Watch, watches, watchFor } from '../leases.ts';
import { identityOf, type Liveness, livenessOf, type ProcessIdentity } from '../liveness.ts';
import { timelineOf } from '../timeline.ts';
import { type Database, LONGEST_PAUSE_MS } from './database.ts';

interface Other extends ProcessIdentity, Respected {
  readonly id: number;
  readonly gone: boolean;
  readonly leaseUntil: number;
  readonly isOver: boolean;
  readonly holds: boolean;
  /** The stored watch, if it is of this timeline. */
  readonly watch: Watch | null;
}

/** A worker whose leases end, whether it is known to be dead, and the end of its lease as it was seen. */
type Gone = readonly [worker: number, isDead: boolean, leaseUntil: number];

/** A watch that begins now. */
interface NewWatch extends Watch {
  readonly worker: number;
  readonly timeline: string;
}

export interface Look {
  readonly gone: readonly Gone[];
  readonly watches: readonly NewWatch[];
  /** When the next lease that has run out may be taken over. */
  readonly nextIn?: Milliseconds;
  readonly neighbours: readonly ProcessIdentity[];
}

/** For this many lease lengths after the database was away, leases may have run out because of that. */
const LEASES_AFTER_LOSS = 2;

/**
 * Finds the workers whose leases ended without an outcome. A worker that left, or whose process on this host is provably dead,
 * loses its leases at once. Any other worker loses them only after its expired lease was watched for a while without a renewal.
 * The watch is stored in the database, for each timeline of monotonic clocks, so that short-lived processes can continue it. If
 * the database was away, a living worker renews within the same time, or after the pause before its next repeat; this pause is
 * then added to the watch.
 */
export class LostLeases {
  readonly #database: Database;
  readonly #clock: Clock;
  #losses = 0;
  /** When this process last saw that the database had been away. Older watches do not count. */
  #awayAt: Milliseconds = Number.NEGATIVE_INFINITY;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Undefined if the worker that asks is not known. */
  async lookFor(worker: number): Promise<Look | undefined> {
    const timeline = timelineOf(this.#clock);
    const { known, workers } = await this.#database.call<{ known: boolean; workers: readonly Other[] | null }>(
      'others',
      [worker, timeline],
    );
    if (!known) return undefined;
    this.#noteLosses();
    const gone: Gone[] = [];
    const begun: NewWatch[] = [];
    const neighbours: ProcessIdentity[] = [];
    let nextIn = Number.POSITIVE_INFINITY;
    for (const other of workers ?? []) {
      const { id, leaseUntil } = other;
      const liveness = livenessOf(other);
      const isDead = liveness === 'dead';
      if (liveness === 'alive' && other.pid !== process.pid) neighbours.push(identityOf(other));
      if (other.gone || isDead) {
        gone.push([id, isDead, leaseUntil]);
      } else if (other.isOver) {
        const since = this.#watchedSince(other);
        const now = this.#clock.monotonic();
        if (since === undefined) begun.push({ worker: id, timeline, leaseUntil, since: now });
        // A worker without leases may be removed.
        const proven = other.holds ? liveness : 'unknown';
        const left = this.#watchFor(other, proven, since ?? now) - (now - (since ?? now));
        if (left <= 0) gone.push([id, isDead, leaseUntil]);
        // A living process continues by itself, so its lease needs no watch.
        else if (other.holds && !isRespected(other, proven)) nextIn = Math.min(nextIn, left);
      }
    }
    return { gone, watches: begun, neighbours, ...(Number.isFinite(nextIn) && { nextIn }) };
  }

  #watchedSince({ watch, leaseUntil }: Other): Milliseconds | undefined {
    const known = watch ?? undefined;
    if (!watches(known, leaseUntil, this.#clock.monotonic())) return undefined;
    // While the database was away, no worker could renew.
    return known.since >= this.#awayAt ? known.since : undefined;
  }

  #watchFor(other: Other, liveness: Liveness, since: Milliseconds): Milliseconds {
    const wasAway = since - this.#awayAt < LEASES_AFTER_LOSS * other.leaseFor;
    return watchFor(other, liveness) + (wasAway ? LONGEST_PAUSE_MS : 0);
  }

  #noteLosses(): void {
    const { losses } = this.#database;
    if (losses === this.#losses) return;
    this.#losses = losses;
    this.#awayAt = this.#clock.monotonic();
  }
}
