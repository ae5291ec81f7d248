import type { Milliseconds } from '../duration.ts';
import { REASONS, type ReasonInfo } from './classify/reasons.ts';
import { type Charge, type Decision, decide, type Facts } from './decide.ts';
import { type Failure, isKind, type Outcome } from './outcome.ts';
import { type Policy, policyOver, standard } from './policy.ts';
import type { ReadRule } from './policy-fields.ts';
import { UNTRIED } from './untried.ts';

/** What would be decided: the decision with the random number in the middle, and the delay without jitter. */
export interface Foreseen {
  readonly decision: Decision;
  /** The delay before jitter, and its bounds with jitter. Absent if the task ends. */
  readonly delay?: { readonly nominal: Milliseconds; readonly low: Milliseconds; readonly high: Milliseconds };
}

/** What `decide` would decide for an outcome. Pure; it calls the same code. */
export function foresee(facts: Facts, outcome: Outcome, policy: Policy): Foreseen {
  const plain = decide(facts, outcome, unjittered(policy), 0);
  if (plain.next !== 'scheduled')
    return { decision: { ...plain, because: { ...plain.because, policyVersion: policy.version } } };
  const { untilDeadlineMs: _, ...unbound } = facts;
  const drawn = decide(unbound, outcome, endless(policy), MIDDLE);
  const { low, high } = drawn.because.jitter ?? { low: plain.after, high: plain.after };
  const jitter = { low, high, roll: MIDDLE };
  const because = { ...plain.because, jitter, policyVersion: policy.version };
  return { decision: { ...plain, because }, delay: { nominal: plain.after, low, high } };
}

/** A failure of which only the reason, a kind, or a family such as `fs.*` is known. `said` replaces the usual values of the reason. */
export function failureOf(name: string, said: Partial<Failure> = {}): Failure {
  const reason = isKind(name) ? 'unknown' : name.replace(/\*$/, 'any');
  const known = Object.hasOwn(REASONS, reason) ? (REASONS as Readonly<Record<string, ReasonInfo>>)[reason] : undefined;
  return {
    kind: isKind(name) ? name : (known?.kind ?? 'unknown'),
    reason,
    fault: known?.fault ?? 'task',
    ambiguous: known?.ambiguous ?? false,
    name: 'Error',
    message: '',
    evidence: { rule: 'none' },
    ...said,
  };
}

/** One delay of a schedule. */
export interface ForeseenRetry {
  /** Counted from 1. */
  readonly retry: number;
  readonly nominal: Milliseconds;
  readonly low: Milliseconds;
  readonly high: Milliseconds;
  /** All delays up to this one, before jitter. */
  readonly cumulative: Milliseconds;
  readonly charge: Charge['to'];
}

/** No schedule is longer than the default of `maxExecutions`. */
const LONGEST_SCHEDULE = 1_000;

/**
 * Each delay of a task whose executions all have the same outcome and take no time, and the decision that ends it. There is no
 * end if the policy continues after 1,000 retries.
 */
export function scheduleOf(
  policy: Policy,
  outcome: Outcome,
): { readonly retries: readonly ForeseenRetry[]; readonly end?: Decision } {
  const retries: ForeseenRetry[] = [];
  let facts = UNTRIED;
  while (retries.length < LONGEST_SCHEDULE) {
    const { decision, delay } = foresee(facts, outcome, policy);
    if (decision.next !== 'scheduled' || !delay) return { retries, end: decision };
    const cumulative = facts.sinceFirstStartMs + delay.nominal;
    retries.push({ retry: retries.length + 1, ...delay, cumulative, charge: decision.charge.to });
    facts = later(facts, decision.charge, delay.nominal);
  }
  return { retries };
}

const MIDDLE = 0.5;

/** The facts at the next execution, a delay after this one. */
export function later(facts: Facts, charge: Charge, delay: Milliseconds): Facts {
  const deferred = charge.to === 'deferrals';
  return {
    ...facts,
    executions: facts.executions + 1,
    charged:
      charge.to === 'task'
        ? [...facts.charged, { reason: charge.reason, kind: charge.kind, count: 1, delayMs: delay }]
        : facts.charged,
    deferralsInARow: deferred ? facts.deferralsInARow + 1 : 0,
    deferredForMs: deferred ? facts.deferredForMs + delay : 0,
    sinceFirstStartMs: facts.sinceFirstStartMs + delay,
  };
}

const withoutJitter = new WeakMap<Policy, Policy>();

function unjittered(policy: Policy): Policy {
  let plain = withoutJitter.get(policy);
  if (!plain) {
    const none = { kind: 'none' } as const;
    const still = ([name, rule]: [string, ReadRule]) => [name, { ...rule, jitter: none }] as const;
    const rules = Object.fromEntries(Object.entries(policy.rules).map(still));
    plain = policyOver({ ...policy, jitter: none, rules }, standard);
    withoutJitter.set(policy, plain);
  }
  return plain;
}

/** Jitter must not end a task that would continue without it. */
function endless(policy: Policy): Policy {
  if (policy.giveUpAfter === 'none' && policy.maxTotalDelay === 'none') return policy;
  return policyOver({ ...policy, giveUpAfter: 'none', maxTotalDelay: 'none' }, standard);
}
