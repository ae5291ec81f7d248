import { PER_SUCCESS } from '../budget.ts';
import type { Milliseconds } from '../duration.ts';
import type { SourceFacts } from '../failure/decide.ts';
import type { Roll } from '../failure/jitter.ts';
import { provesNeedOfPerson, provesOutage, untilProbe, withFailure } from './breaker.ts';
import type { Change, Refund } from './change.ts';
import { type Cause, isNormal, type Memory, NORMAL, type Probing, type Ramping, type WhyAPerson } from './memory.ts';
import type { Observation } from './observation.ts';
import { afterAnswer, afterPause, afterThrottle, firstRamp } from './ramp.ts';
import { changeTo } from './restriction.ts';

/** The result of one observation. */
export interface Observing {
  readonly memory: Memory;
  /** Absent: nothing changes. */
  readonly change?: Change;
  /** The condition of the source now, for `decide`. */
  readonly source: SourceFacts;
}

/**
 * The memory of a source after one more execution. `memory` is aged to the present; undefined if the store has no state of the
 * source. Pure.
 */
export function observe(memory: Memory | undefined, seen: Observation, roll: Roll): Observing {
  const before = memory ?? NORMAL;
  const { memory: reacted, refunds } = react(before, seen, roll);
  const after = withQuota(reacted, seen);
  const source = factsOf(after);
  // A normal state is not stored: the old one is removed.
  const changes = isNormal(after) ? memory !== undefined : after !== before;
  if (!changes) return { memory: after, source };
  return { memory: after, change: changeTo(after, seen.kind === 'success' ? PER_SUCCESS : 0, refunds), source };
}

/** The condition of a source, with which a failure is decided. */
function factsOf({ phase }: Memory): SourceFacts {
  switch (phase.name) {
    case 'closed':
      return { standing: 'open', shutFor: 0 };
    case 'ramping':
      return { standing: 'open', shutFor: phase.shutFor };
    case 'probing':
      return { standing: 'down', shutFor: phase.shutFor };
    case 'needs_person':
      return { standing: 'needs_person', shutFor: 0 };
  }
}

/** The memory after an observation; the same object if it does not change. */
interface Reaction {
  readonly memory: Memory;
  readonly refunds: readonly Refund[];
}

/** The longest sum of holds without an answer. After that, a person is needed. */
const LONGEST_HELD: Milliseconds = 7 * 24 * 3_600_000;

function react(before: Memory, seen: Observation, roll: Roll): Reaction {
  if (before.phase.name === 'needs_person') return quietly(before);
  switch (seen.kind) {
    case 'success':
      return quietly(answered(acquitted(before, 'all'), seen));
    case 'task_failure':
      return quietly(answered(acquitted(before, 'evidence'), seen));
    case 'rate_limited':
      return quietly(throttled(acquitted(before, 'evidence'), seen));
    case 'source_failure':
      return failed(before, seen, roll);
    case 'permanent_source_failure':
      return failedForGood(before, seen, roll);
    case 'no_answer':
    case 'inconclusive':
      return quietly(isProbe(before, seen) ? nextProbe(before, before.phase, seen, 0, roll) : before);
  }
}

function quietly(memory: Memory): Reaction {
  return { memory, refunds: [] };
}

/**
 * The source answered, so the evidence against it is forgotten. The evidence of permanent failures is forgotten only after a
 * success.
 */
function acquitted(memory: Memory, of: 'evidence' | 'all'): Memory {
  const { evidence, permanent, ...rest } = memory;
  if (evidence === undefined && (of === 'evidence' || permanent === undefined)) return memory;
  return of === 'all' || permanent === undefined ? rest : { ...rest, permanent };
}

/** Limits that reset sooner are not followed, because that would cost a change for each call. A 429 shows them. */
const SHORTEST_LIMIT: Milliseconds = 10_000;
/** While more calls than this are left, a limit has no effect. */
const LITTLE_LEFT = 20;
/** The part of the limit that is used, because others may use the same limit. */
const CAUTION = 0.9;

/** The reason if a successful call used up the limit of the source. */
const USED_UP = 'source.limit_used_up';

/** If a source says that little of its limit is left, the rest is spread over the time until it resets. */
function withQuota(memory: Memory, seen: Observation): Memory {
  const { kind, rateLimit, switches, maxRetryAfter } = seen;
  const isAnswer = kind === 'success' || kind === 'task_failure' || kind === 'rate_limited';
  if (!rateLimit || !isAnswer || !switches.gate || memory.phase.name === 'needs_person') return memory;
  const { remaining, resetsIn } = rateLimit;
  if (resetsIn < SHORTEST_LIMIT || resetsIn > maxRetryAfter) return memory;
  const { quota: _, ...rest } = memory;
  if (remaining > LITTLE_LEFT) return memory.quota ? rest : memory;
  if (remaining < 1) return gate(rest, { ...seen, reason: seen.reason || USED_UP }, resetsIn);
  return { ...memory, quota: { perSecond: (CAUTION * remaining * 1_000) / resetsIn, resetsIn } };
}

const PROBES_TO_PASS = 2;

function answered(before: Memory, seen: Observation): Memory {
  const { phase } = before;
  switch (phase.name) {
    case 'closed':
    case 'needs_person':
      return before;
    case 'probing': {
      // It answered a task that started before the hold, so it may answer the next one too.
      if (!seen.probe) return phase.shutFor > 0 ? { ...before, phase: { ...phase, shutFor: 0, heldFor: 0 } } : before;
      const answeredProbes = phase.answeredProbes + 1;
      // It works at times, so that the next probes come sooner where it fails again.
      const failedProbes = Math.floor(phase.failedProbes / 2);
      const probed = { ...phase, answeredProbes, failedProbes, failedBefore: failedProbes, shutFor: 0, heldFor: 0 };
      const after = phase.answeredProbes > 0 ? before : withAlarm(before, phase);
      if (answeredProbes < PROBES_TO_PASS) return { ...after, phase: probed };
      return { ...after, phase: seen.drained ? NORMAL.phase : rampFrom(probed, 'breaker') };
    }
    case 'ramping': {
      if (phase.shutFor > 0) return phase.heldFor > 0 ? { ...before, phase: { ...phase, heldFor: 0 } } : before;
      const isOver = (seen.drained && isCalm(phase)) || (phase.ramp.free && phase.ramp.begunAgo >= LONGEST_FREE);
      if (isOver) return { ...before, phase: NORMAL.phase };
      const ramp = afterAnswer(phase.ramp, seen.startedAgo);
      return ramp === phase.ramp ? before : { ...before, phase: { ...phase, heldFor: 0, ramp } };
    }
  }
}

/** Where its first probe was answered, it may not have been down: it fails now and then. After several failed probes it was. */
function withAlarm(before: Memory, { failedProbes, failedBefore = 0, heldFor }: Probing): Memory {
  const { falseAlarms, ...rest } = before;
  const failed = failedProbes - failedBefore;
  if (failed > 1) return rest;
  return failed > 0 || heldFor === 0
    ? before
    : { ...rest, falseAlarms: { count: (falseAlarms?.count ?? 0) + 1, ago: 0 } };
}

/** Tasks that the source refused a moment ago come again soon. Until then, an empty queue does not mean that the ramp is over. */
const CALM_AFTER: Milliseconds = 60_000;

/** If new work comes all the time, the queue is never empty. After this time, a ramp that limits nothing ends anyway. */
const LONGEST_FREE: Milliseconds = 6 * 3_600_000;

function isCalm({ ramp }: Ramping): boolean {
  return ramp.throttle === undefined || ramp.throttle.ago >= CALM_AFTER;
}

function rampFrom({ sinceAgo, failedProbes, last }: Probing, cause: Ramping['cause']): Ramping {
  return { name: 'ramping', cause, ramp: firstRamp(), sinceAgo, shutFor: 0, heldFor: 0, failedProbes, last };
}

/** The source refused work because it is too much. That is not an outage. */
function throttled(before: Memory, seen: Observation): Memory {
  const { phase } = before;
  const asked = askedOf(seen);
  switch (phase.name) {
    case 'closed':
      return asked > 0 ? gate(before, seen, asked) : before;
    case 'probing':
      if (asked > 0) return gate(before, seen, asked);
      return seen.probe ? { ...before, phase: rampFrom(phase, 'rate_limit') } : before;
    case 'ramping': {
      if (asked > 0) return gate(before, seen, asked);
      const ramp = afterThrottle(phase.ramp, seen.startedAgo);
      return ramp === phase.ramp ? before : { ...before, phase: { ...phase, ramp } };
    }
    case 'needs_person':
      return before;
  }
}

function askedOf({ retryAfter = 0, switches }: Observation): Milliseconds {
  return switches.gate ? retryAfter : 0;
}

/** The source asked for a pause: none of its tasks starts until then, and after that its work is released slowly. */
function gate(before: Memory, seen: Observation, asked: Milliseconds): Memory {
  const { phase } = before;
  const last: Cause = { reason: seen.reason, message: seen.message };
  if (asked > seen.maxRetryAfter) return needsPerson(before, 'long_retry_after', last);
  const was: Omit<Ramping, 'last'> =
    phase.name === 'ramping'
      ? { ...phase, ramp: afterPause(phase.ramp, seen.startedAgo) }
      : phase.name === 'probing'
        ? rampFrom(phase, 'rate_limit')
        : {
            name: 'ramping',
            cause: 'rate_limit',
            ramp: firstRamp(),
            sinceAgo: 0,
            shutFor: 0,
            heldFor: 0,
            failedProbes: 0,
          };
  const more = Math.max(0, asked - was.shutFor);
  const heldFor = was.heldFor + more;
  if (heldFor > LONGEST_HELD) return needsPerson(before, 'held_too_long', last);
  return { ...before, phase: { ...was, shutFor: was.shutFor + more, heldFor, last } };
}

function needsPerson({ phase }: Memory, why: WhyAPerson, last: Cause): Memory {
  return { phase: { name: 'needs_person', why, sinceAgo: 'sinceAgo' in phase ? phase.sinceAgo : 0, last } };
}

function failed(before: Memory, seen: Observation, roll: Roll): Reaction {
  const { phase } = before;
  const asked = askedOf(seen);
  if (phase.name === 'probing') {
    return quietly(isProbe(before, seen) ? nextProbe(before, before.phase, seen, asked, roll) : before);
  }
  if (asked > 0) return quietly(gate(before, seen, asked));
  if (!seen.switches.breaker) return quietly(before);
  const evidence = withFailure(before.evidence, seen);
  if (!provesOutage(evidence, before.falseAlarms)) return quietly({ ...before, evidence });
  const { evidence: _, ...rest } = before;
  return { memory: { ...rest, phase: opened(before, evidence.last, roll) }, refunds: before.evidence?.failed ?? [] };
}

/** The source is down from now on. In an outage during a ramp, the probes continue with the spacing of the outage before. */
function opened({ phase }: Memory, last: Cause, roll: Roll): Probing {
  const { sinceAgo, failedProbes } = phase.name === 'ramping' ? phase : { sinceAgo: 0, failedProbes: 0 };
  const shutFor = untilProbe(failedProbes, roll);
  const held = { sinceAgo, shutFor, heldFor: shutFor, failedProbes, failedBefore: failedProbes };
  return { name: 'probing', answeredProbes: 0, ...held, last };
}

function isProbe(memory: Memory, seen: Observation): memory is Memory & { phase: Probing } {
  return memory.phase.name === 'probing' && seen.probe;
}

/** The memory after a probe that got no answer of the source. */
function nextProbe(before: Memory, phase: Probing, seen: Observation, asked: Milliseconds, roll: Roll): Memory {
  const isFailed = seen.kind !== 'inconclusive';
  const last: Cause = isFailed ? { reason: seen.reason, message: seen.message } : phase.last;
  if (asked > seen.maxRetryAfter) return needsPerson(before, 'long_retry_after', last);
  const failedProbes = phase.failedProbes + (isFailed ? 1 : 0);
  const shutFor = Math.max(untilProbe(failedProbes, roll), asked);
  const heldFor = phase.heldFor + seen.startedAgo + shutFor;
  if (heldFor > LONGEST_HELD) return needsPerson(before, 'held_too_long', last);
  const answeredProbes = isFailed ? 0 : phase.answeredProbes;
  return { ...before, phase: { ...phase, answeredProbes, failedProbes, shutFor, heldFor, last } };
}

function failedForGood(before: Memory, seen: Observation, roll: Roll): Reaction {
  const probed = isProbe(before, seen) ? nextProbe(before, before.phase, seen, 0, roll) : before;
  if (!seen.switches.breaker) return quietly(probed);
  const permanent = withFailure(before.permanent, seen);
  if (!provesNeedOfPerson(permanent)) return quietly({ ...probed, permanent });
  return { memory: needsPerson(before, 'permanent', permanent.last), refunds: before.permanent?.failed ?? [] };
}
