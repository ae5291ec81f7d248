import { type ChargedCount, type Decision, decide, type Facts } from '../../src/failure/decide.ts';
import type { Failure, FailureKind, Loss, Outcome } from '../../src/failure/outcome.ts';
import type { Policy } from '../../src/failure/policy.ts';

/*
 * The facts from which tests of decisions start: a task at its first execution, and a failure that is the task's fault.
 */

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export function facts(known: Partial<Facts> = {}): Facts {
  return {
    executions: 1,
    charged: [],
    deferralsInARow: 0,
    deferredForMs: 0,
    recoveriesAgoMs: [],
    lostInARow: 0,
    idempotent: true,
    cancelRequested: false,
    sinceFirstStartMs: 0,
    ...known,
  };
}

function failure(known: Partial<Failure> = {}): Failure {
  return {
    kind: 'transient',
    reason: 'app.broke',
    fault: 'task',
    ambiguous: false,
    name: 'Error',
    message: 'It broke.',
    evidence: { rule: 'test' },
    ...known,
  };
}

export function failed(known: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(known) };
}

export function later(after?: number, reason = 'explicit.later'): Outcome {
  return { kind: 'deferral', reason, message: 'Not now.', ...(after !== undefined && { after }) };
}

export const lost: Outcome = lostWhile('alone');
export function lostWhile(how: Loss): Outcome {
  return { kind: 'loss', worker: 'w1', how };
}

export const expired: Outcome = { kind: 'expiry' };

export function interrupted(started = true): Outcome {
  return { kind: 'interruption', started, message: 'The worker shut down.' };
}

export function charged(count: number, reason = 'app.broke', kind: FailureKind = 'transient'): ChargedCount {
  return { reason, kind, count };
}

/** What happens to a task that always fails in the same way: every delay, with the same random number, and the end. */
export function fateOf(policy: Policy, given: Partial<Failure>, roll: number) {
  const delays: number[] = [];
  for (let count = 0; ; count++) {
    const before = count === 0 ? [] : [charged(count, given.reason, given.kind)];
    const decision = decided(failed(given), policy, { executions: count + 1, charged: before }, roll);
    if (decision.next !== 'scheduled') return { delays, end: decision.next };
    delays.push(decision.after as number);
  }
}

/** A decision with every field that any decision has, `undefined` if this one has none. */
export interface Seen {
  readonly next: Decision['next'];
  readonly step: Decision['because']['step'];
  readonly after: number | undefined;
  readonly charge: string | undefined;
  readonly reason: string | undefined;
  readonly lostInARow: number | undefined;
  readonly because: Decision['because'];
}

/** Decides with a random number of 0.5 by default. */
export function decided(outcome: Outcome, policy: Policy, known: Partial<Facts> = {}, roll = 0.5): Seen {
  const decision = decide(facts(known), outcome, policy, roll);
  return {
    next: decision.next,
    step: decision.because.step,
    after: 'after' in decision ? decision.after : undefined,
    charge: 'charge' in decision ? decision.charge.to : undefined,
    reason: 'reason' in decision ? decision.reason : undefined,
    lostInARow: 'lostInARow' in decision ? decision.lostInARow : undefined,
    because: decision.because,
  };
}
