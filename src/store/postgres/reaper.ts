import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { isProvablyDead, type ProcessIdentity } from '../liveness.ts';
import { type Database, LONGEST_PAUSE_MS } from './database.ts';

interface Other extends ProcessIdentity {
  readonly id: number;
  readonly gone: boolean;
  readonly leaseFor: Milliseconds;
  readonly leaseUntil: number;
  readonly isOver: boolean;
}

/** A worker whose leases end, whether it is known to be dead, and the end of its lease as it was seen. */
export type Gone = readonly [worker: number, isDead: boolean, leaseUntil: number];

/** A lease that has run out, and until when it must stay so to be taken for lost. */
interface Watched {
  readonly leaseUntil: number;
  readonly until: Milliseconds;
}

/** A lease is renewed three times in its length, so a living worker is heard of within a third of it. */
const RENEWALS_PER_LEASE = 3;

/** For so many leases after the database was away, one that has run out may have done so because of that. */
const LEASES_AFTER_LOSS = 2;

/**
 * Finds the workers whose leases ended without a word. One that left, or whose process on this host is provably dead, loses
 * them at once; any other only after this process has itself watched its lease expired and unrenewed for one interval of its
 * own monotonic clock, so that a clock that jumped robs nobody. Where the database was away a living worker renews within that
 * interval as well, or, if it was about to, after the pause between two repeats, which is then waited for besides.
 */
export class Reaper {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #watched = new Map<number, Watched>();
  #losses = 0;
  /** When it was last seen that the database had been away. */
  #awayAt: Milliseconds = Number.NEGATIVE_INFINITY;

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
    this.#noteLosses();
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
    const now = this.#clock.monotonic();
    const watched = this.#watched.get(id);
    if (watched?.leaseUntil === leaseUntil) return now >= watched.until;
    const wasAway = now - this.#awayAt < LEASES_AFTER_LOSS * leaseFor;
    const watchFor = leaseFor / RENEWALS_PER_LEASE + (wasAway ? LONGEST_PAUSE_MS : 0);
    this.#watched.set(id, { leaseUntil, until: now + watchFor });
    return false;
  }

  #noteLosses(): void {
    const { losses } = this.#database;
    if (losses === this.#losses) return;
    this.#losses = losses;
    this.#awayAt = this.#clock.monotonic();
    // While it was away nobody could renew what was watched.
    this.#watched.clear();
  }
}
