import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { isProvablyDead, type ProcessIdentity } from '../liveness.ts';
import type { Database } from './database.ts';

interface Other extends ProcessIdentity {
  readonly id: number;
  readonly gone: boolean;
  readonly leaseFor: Milliseconds;
  readonly leaseUntil: number;
  readonly isOver: boolean;
}

/** A worker whose leases end, whether it is known to be dead, and the end of its lease as it was seen. */
export type Gone = readonly [worker: number, isDead: boolean, leaseUntil: number];

/** A lease is renewed three times in its length, so a living worker is heard of within a third of it. */
const RENEWALS_PER_LEASE = 3;

/**
 * Finds the workers whose leases ended without a word. One that left, or whose process on this host is provably dead, loses
 * them at once; any other only after this process has itself watched its lease expired and unrenewed for one interval of its
 * own monotonic clock, so that a database that was away, or a clock that jumped, robs nobody.
 */
export class Reaper {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #watched = new Map<number, { leaseUntil: number; since: Milliseconds }>();

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Undefined where the one that asks is not known itself. */
  async goneFor(worker: number): Promise<readonly Gone[] | undefined> {
    const { known, workers } = await this.#database.call<{ known: boolean; workers: readonly Other[] | null }>(
      'others',
      [worker],
    );
    if (!known) return undefined;
    const gone: Gone[] = [];
    for (const other of workers ?? []) {
      const isDead = isProvablyDead(other);
      if (other.gone || isDead || this.#hasRunOut(other)) gone.push([other.id, isDead, other.leaseUntil]);
    }
    return gone;
  }

  #hasRunOut({ id, isOver, leaseUntil, leaseFor }: Other): boolean {
    if (!isOver) {
      this.#watched.delete(id);
      return false;
    }
    const watched = this.#watched.get(id);
    if (watched?.leaseUntil !== leaseUntil) {
      this.#watched.set(id, { leaseUntil, since: this.#clock.monotonic() });
      return false;
    }
    return this.#clock.monotonic() - watched.since >= leaseFor / RENEWALS_PER_LEASE;
  }
}
