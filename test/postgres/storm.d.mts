import type { Store } from '../../src/index.ts';

export interface Storm {
  /** One actor each: at least 8 on the same database, for all kinds of them to be there. */
  readonly stores: readonly Store[];
  /** Of each actor. */
  readonly rounds: number;
  readonly random: () => number;
  /**
   * Whether a queue gets other orders meanwhile. A claim may come to a deadlock with a new order, for passing over locked rows
   * waits where one of them was rewritten twice; the server ends one of the two, which is made again.
   */
  readonly reorders: boolean;
}

export interface Aftermath {
  /** What went wrong, as sentences; nothing, if the store is right. */
  readonly wrong: readonly string[];
  readonly enqueued: number;
  readonly claimed: number;
}

/** Everything that a store can do, at once and at random; then all that waits is worked off, and the invariants are checked. */
export function storm(storm: Storm): Promise<Aftermath>;
