import type { Milliseconds } from '../duration.ts';
import type { Memory, WhyAPerson } from './memory.ts';

/**
 * The condition of a source. `watched`: it failed, and counts as down if another task fails too. `near_limit`: it said that
 * little of its limit is left. `asked_to_wait`: none of its tasks starts until a Retry-After is over.
 */
export const CONDITIONS = [
  'watched',
  'near_limit',
  'asked_to_wait',
  'down',
  'probing',
  'ramping',
  'needs_person',
] as const;
export type Condition = (typeof CONDITIONS)[number];

/** What people see of the memory of a source. */
export interface Trouble {
  readonly condition: Condition;
  /** How long it has not been in its normal state. */
  readonly sinceMs: Milliseconds;
  /** The reason and message of the failure that caused the hold, or of the last failure. */
  readonly reason?: string;
  readonly message?: string;
  /** Probes that failed since then. */
  readonly failedProbes?: number;
  /** Why a person is needed. */
  readonly why?: WhyAPerson;
}

/** What people see of a source; undefined if it is in its normal state. `memory` is aged to the present. */
export function troubleOf({ phase, evidence, permanent, quota }: Memory): Trouble | undefined {
  switch (phase.name) {
    case 'closed': {
      const watched = evidence ?? permanent;
      if (watched) return { condition: 'watched', sinceMs: watched.lastAgo, ...watched.last };
      return quota && { condition: 'near_limit', sinceMs: 0 };
    }
    case 'probing': {
      const condition = phase.shutFor > 0 ? 'down' : 'probing';
      return { condition, sinceMs: phase.sinceAgo, ...phase.last, failedProbes: phase.failedProbes };
    }
    case 'ramping': {
      const condition = phase.shutFor > 0 ? 'asked_to_wait' : 'ramping';
      return { condition, sinceMs: phase.sinceAgo, ...phase.last };
    }
    case 'needs_person':
      return { condition: 'needs_person', sinceMs: phase.sinceAgo, ...phase.last, why: phase.why };
  }
}
