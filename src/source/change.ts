import type { Milliseconds } from '../duration.ts';
import type { Pace } from '../pace.ts';

/** Why a source is restricted: it asked for a pause, it is down, or only a person can help. */
export type RestrictionCause = 'rate_limit' | 'breaker' | 'needs_person';

/** What the store enforces of one source when it claims. */
export interface Restriction {
  readonly cause: RestrictionCause;
  /** No start for so long, or until a person releases it. Absent: open now. */
  readonly shutFor?: Milliseconds | 'released';
  /** When it is open: one execution at a time, which is marked as the probe. */
  readonly probing?: true;
  /** Starts are spaced. */
  readonly pace?: Pace;
  /**
   * What becomes ready for its first execution from now on is new work, and the rest is backlog. While both wait, the backlog
   * gets every second start.
   */
  readonly ramping?: true;
}

/** An execution whose charge is taken back. */
export interface Refund {
  readonly task: number;
  readonly execution: number;
}

/** What changes of a source in its store. */
export interface Change {
  /** What is remembered of it from now on, as JSON. Absent: it is as good as new, so its state is removed. */
  readonly memory?: string;
  /** Absent: none. */
  readonly restriction?: Restriction;
  /** What is added to its budget, at most up to full. */
  readonly tokens: number;
  readonly refunds: readonly Refund[];
}
