import type { Milliseconds } from '../duration.ts';
import type { Refund } from './change.ts';

/*
 * What is remembered of a source that is not in its normal state. Plain data: it is stored as JSON. Durations count back from the
 * moment of writing, or say how much is left; `aged` moves them on.
 *
 *            ≥ 2 events of ≥ 2 tasks                  2 successful probes
 *   closed ─────────────────────────► probing ─────────────────────────► ramping ──(nothing waits any more)──► closed
 *     │  ▲                             ▲   │ ▲                             ▲   │
 *     │  │                  (released) │   │ └────(evidence again)─────────│───┤
 *     │  └─────────────────────────────┼───┼───────────────────────────────┘   │
 *     │                             needs_person ◄─────────────────────────────┘
 *     └──(Retry-After)──► ramping, shut until then
 */

/** Failures at the source's fault since it last answered. Failures whose executions overlapped are one event. */
export interface Evidence {
  readonly events: number;
  /** How long ago the first failure of the last event was seen. */
  readonly eventAgo: Milliseconds;
  /** How long ago the last failure was seen. */
  readonly lastAgo: Milliseconds;
  /** The failed executions, oldest first. They were charged to their tasks, and are refunded if the source turns out to be down. */
  readonly failed: readonly Refund[];
}

/** A 429 during the ramp: from its rate the growth begins anew. */
export interface Throttle {
  readonly ago: Milliseconds;
  /** The rate at which it came. */
  readonly ceiling: number;
  /** The rate right after it. */
  readonly floor: number;
  /** How often the source has answered since. */
  readonly answers: number;
}

/** How fast work is released. Rates are starts in a second. */
export interface Ramp {
  readonly rate: number;
  /** How many answers in a second came lately, and how long ago this was computed. */
  readonly measured: number;
  readonly measuredAgo: Milliseconds;
  /** How long ago the ramp began. */
  readonly begunAgo: Milliseconds;
  readonly throttle?: Throttle;
}

interface Shut {
  /** How long ago it left its normal state. */
  readonly sinceAgo: Milliseconds;
  /** How long it is still shut; 0 if it is open. */
  readonly shutFor: Milliseconds;
  /** For how long it was shut in sum since it last answered. */
  readonly heldFor: Milliseconds;
  /** The reason of the failure that shut it last. */
  readonly reason: string;
  /** Failed probes in this outage. */
  readonly failedProbes: number;
}

export const WHY_A_PERSON = ['permanent', 'long_retry_after', 'held_too_long'] as const;

export type Phase =
  | { readonly name: 'closed' }
  /** Its breaker is open: one execution at a time, as soon as it is not shut. */
  | ({ readonly name: 'probing'; readonly answeredProbes: number } & Shut)
  /** It is open or will be when it is not shut any more: work is released at a pace that grows. */
  | ({ readonly name: 'ramping'; readonly cause: 'breaker' | 'rate_limit'; readonly ramp: Ramp } & Shut)
  | {
      readonly name: 'needs_person';
      readonly why: (typeof WHY_A_PERSON)[number];
      readonly reason: string;
      readonly sinceAgo: Milliseconds;
    };

export interface Memory {
  readonly phase: Phase;
  /** Of an outage. */
  readonly evidence?: Evidence;
  /** Of what a retry cannot help, such as a revoked token. */
  readonly permanent?: Evidence;
}

/** What is remembered of a source that is in its normal state. */
export const NOTHING: Memory = { phase: { name: 'closed' } };
