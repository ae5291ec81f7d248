import type { Milliseconds } from '../duration.ts';
import type { Pace } from '../pace.ts';

/** Why a source is restricted: it asked for a pause, it is down, or only a person can help. */
export type RestrictionCause = 'rate_limit' | 'breaker' | 'needs_person';

/** What the store enforces of one source when it claims. */
export interface Restriction {
  readonly cause: RestrictionCause;
  /** No task starts for this long, or until a person releases the source. Absent: tasks may start now. */
  readonly shutFor?: Milliseconds | 'released';
  /** When tasks may start: only one execution at a time, which is marked as the probe. */
  readonly probing?: true;
  /** The most starts per second. */
  readonly pace?: Pace;
  /**
   * Tasks that become ready for their first execution from now on are new work; all others are backlog. While both wait, the
   * backlog gets every second start.
   */
  readonly ramping?: true;
}

/** An execution whose charge is given back to its task. */
export interface Refund {
  readonly task: number;
  readonly execution: number;
}

/** The change of a source in its store. */
export interface Change {
  /** Its new memory, as JSON. Absent: the source is in its normal state, so its state is removed. */
  readonly memory?: string;
  /** Its new restriction. Absent: none. */
  readonly restriction?: Restriction;
  /** The tokens that are added to its budget, at most until it is full. */
  readonly tokens: number;
  readonly refunds: readonly Refund[];
  /** What the record of the source's changes says of it: `ChangeFacts` as JSON. Absent: it does not change its condition. */
  readonly facts?: string;
}
