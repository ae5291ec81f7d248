import type { Milliseconds } from '../duration.ts';
import type { Refund } from './change.ts';

/*
 * The memory of a source that is not in its normal state. It is plain data, stored as JSON. A duration is the time that is left,
 * or, if its name ends in `Ago`, the time since a moment; both count from when the memory was written. `aged` moves them on.
 *
 *            2 events of 2 tasks              2 probes are answered
 *   closed ──────────────────────► probing ─────────────────────────► ramping ──(nothing waits any more)──► closed
 *      │                            ▲ ▲ │                               ▲ │ │
 *      │                            │ │ │     2 events of 2 tasks       │ │ │
 *      │                            │ └─┼───────────────────────────────┼─┘ │
 *      │                  (release) │   ▼                               │   │
 *      │                           needs_person ◄───────────────────────┼───┘
 *      └──(Retry-After)─────────────────────────────────────────────────┘ held until then
 */

/** Failures at the source's fault since it last answered. Failures whose executions overlapped are one event. */
export interface Evidence {
  readonly events: number;
  /** How long ago the first failure of the last event was seen. */
  readonly eventAgo: Milliseconds;
  /** How long ago the first failure of the first event was seen; former versions did not keep it. */
  readonly firstAgo?: Milliseconds;
  /** How long ago the last failure was seen. */
  readonly lastAgo: Milliseconds;
  /** The failed executions, oldest first. They were charged to their tasks, and are refunded if the source turns out to be down. */
  readonly failed: readonly Refund[];
  readonly last: Cause;
}

/** The reason and message of a failure, for people. */
export interface Cause {
  readonly reason: string;
  readonly message: string;
}

/** The last time that the source refused work because it was too much. */
interface Throttle {
  readonly ago: Milliseconds;
  /** The rate at that time, and the rate right after it. */
  readonly ceiling: number;
  readonly floor: number;
  /** How often the source has answered since. */
  readonly answers: number;
}

/** How fast work is released. Rates are per second. */
export interface Ramp {
  readonly rate: number;
  /** The recent answers per second, and how long ago this was computed. */
  readonly measured: number;
  readonly measuredAgo: Milliseconds;
  readonly begunAgo: Milliseconds;
  /** The rate has not limited anything for a while, so it is no longer enforced. */
  readonly free: boolean;
  readonly throttle?: Throttle;
}

interface Shut {
  /** How long ago it left its normal state. */
  readonly sinceAgo: Milliseconds;
  /** How long no task of it starts from now; 0 if tasks may start. */
  readonly shutFor: Milliseconds;
  /** The sum of its holds since it last answered. */
  readonly heldFor: Milliseconds;
  /** Failed probes since it left its normal state. */
  readonly failedProbes: number;
  /** The failure that caused the last hold. */
  readonly last: Cause;
}

export const WHY_A_PERSON = ['permanent', 'long_retry_after', 'held_too_long'] as const;
export type WhyAPerson = (typeof WHY_A_PERSON)[number];

/** The source is down: when `shutFor` is over, one execution at a time starts. */
export interface Probing extends Shut {
  readonly name: 'probing';
  readonly answeredProbes: number;
  /** `failedProbes` when this outage began; former versions did not keep it. */
  readonly failedBefore?: number;
}

/** When `shutFor` is over, work is released at a growing rate. */
export interface Ramping extends Shut {
  readonly name: 'ramping';
  readonly cause: 'breaker' | 'rate_limit';
  readonly ramp: Ramp;
}

/** Nothing starts until a person releases it. */
interface NeedsPerson {
  readonly name: 'needs_person';
  readonly why: WhyAPerson;
  readonly sinceAgo: Milliseconds;
  readonly last: Cause;
}

export type Phase = { readonly name: 'closed' } | Probing | Ramping | NeedsPerson;

export interface Memory {
  readonly phase: Phase;
  /** The evidence that it may be down. */
  readonly evidence?: Evidence;
  /** The evidence that retries cannot help, for example because a token was revoked. */
  readonly permanent?: Evidence;
  /** The rate until its limit resets, because an answer said that little of it is left. */
  readonly quota?: Quota;
  /** How often it was taken to be down lately, and then its first probe was answered. */
  readonly falseAlarms?: FalseAlarms;
}

/** A source that fails for a part of its calls has many of them. */
export interface FalseAlarms {
  readonly count: number;
  /** How long ago the last one ended. */
  readonly ago: Milliseconds;
}

interface Quota {
  readonly perSecond: number;
  readonly resetsIn: Milliseconds;
}

/** The memory of a source in its normal state. */
export const NORMAL: Memory = { phase: { name: 'closed' } };

/** Whether a source is in its normal state, so that there is nothing to store. */
export function isNormal({ phase, evidence, permanent, quota, falseAlarms }: Memory): boolean {
  return phase.name === 'closed' && !evidence && !permanent && !quota && !falseAlarms;
}

/** How long after its last failure evidence is forgotten. */
const EVIDENCE_LASTS: Milliseconds = 3_600_000;

/** False alarms are forgotten so long after the last one. */
const FALSE_ALARMS_LAST: Milliseconds = 600_000;

/** The same memory, `elapsed` later. */
export function aged(memory: Memory, elapsed: Milliseconds): Memory {
  const evidence = olderEvidence(memory.evidence, elapsed);
  const permanent = olderEvidence(memory.permanent, elapsed);
  const { falseAlarms } = memory;
  const falseAlarmsAgo = (falseAlarms?.ago ?? FALSE_ALARMS_LAST) + elapsed;
  return {
    phase: olderPhase(memory.phase, elapsed),
    ...(evidence && { evidence }),
    ...(permanent && { permanent }),
    ...(memory.quota && memory.quota.resetsIn > elapsed && { quota: olderQuota(memory.quota, elapsed) }),
    ...(falseAlarms && falseAlarmsAgo < FALSE_ALARMS_LAST && { falseAlarms: { ...falseAlarms, ago: falseAlarmsAgo } }),
  };
}

function olderQuota(quota: Quota, elapsed: Milliseconds): Quota {
  return { ...quota, resetsIn: quota.resetsIn - elapsed };
}

function olderEvidence(evidence: Evidence | undefined, elapsed: Milliseconds): Evidence | undefined {
  if (evidence === undefined || evidence.lastAgo + elapsed > EVIDENCE_LASTS) return undefined;
  const { eventAgo, lastAgo, firstAgo = eventAgo } = evidence;
  return { ...evidence, eventAgo: eventAgo + elapsed, firstAgo: firstAgo + elapsed, lastAgo: lastAgo + elapsed };
}

function olderPhase(phase: Phase, elapsed: Milliseconds): Phase {
  switch (phase.name) {
    case 'closed':
      return phase;
    case 'needs_person':
      return { ...phase, sinceAgo: phase.sinceAgo + elapsed };
    case 'probing':
      return { ...phase, ...olderShut(phase, elapsed) };
    case 'ramping':
      return { ...phase, ...olderShut(phase, elapsed), ramp: olderRamp(phase.ramp, elapsed) };
  }
}

function olderShut({ sinceAgo, shutFor }: Shut, elapsed: Milliseconds): Pick<Shut, 'sinceAgo' | 'shutFor'> {
  return { sinceAgo: sinceAgo + elapsed, shutFor: Math.max(0, shutFor - elapsed) };
}

function olderRamp(ramp: Ramp, elapsed: Milliseconds): Ramp {
  const { measuredAgo, begunAgo, throttle } = ramp;
  return {
    ...ramp,
    measuredAgo: measuredAgo + elapsed,
    begunAgo: begunAgo + elapsed,
    ...(throttle && { throttle: { ...throttle, ago: throttle.ago + elapsed } }),
  };
}
