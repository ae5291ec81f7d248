import { describe, expect, test } from 'vitest';
import { fixed, none } from '../../src/failure/backoff.ts';
import { decide, type Facts, STEPS, type Step } from '../../src/failure/decide.ts';
import type { Outcome } from '../../src/failure/outcome.ts';
import { definePolicy, type PolicyOptions } from '../../src/failure/policy.ts';
import { charged, expired, facts, failed, HOUR, interrupted, later, lost } from './given.ts';

/** A reason for a step to decide, if no earlier step does. */
interface Reason {
  readonly step: Step;
  readonly known?: Partial<Facts>;
  readonly policy?: PolicyOptions;
}

const cancelled: Reason = { step: 'cancelled', known: { cancelRequested: true } };
const ambiguous: Reason = { step: 'ambiguous', known: { idempotent: false } };
const noRetry: Reason = { step: 'no_retry', policy: { backoff: none } };
const maxExecutions: Reason = { step: 'max_executions', known: { executions: 7 }, policy: { maxExecutions: 7 } };
const giveUpAfter: Reason = {
  step: 'give_up_after',
  known: { sinceFirstStartMs: HOUR + 1, charged: [charged(1)] },
  policy: { giveUpAfter: '1h' },
};
const maxTotalDelay: Reason = {
  step: 'max_total_delay',
  known: { charged: [{ ...charged(1), delayMs: HOUR }] },
  policy: { maxTotalDelay: '1h' },
};
const deadline: Reason = { step: 'deadline', known: { untilDeadlineMs: 0 } };
const crashLoop: Reason = { step: 'crash_loop', known: { lostInARow: 1, recoveriesAgoMs: [1, 2, 3] } };
const maxAttempts: Reason = { step: 'max_attempts', known: { charged: [charged(9)] } };
const maxRetryAfter: Reason = { step: 'max_retry_after', policy: { maxRetryAfter: '1ms' } };
const maxDeferrals: Reason = { step: 'max_deferrals', known: { deferralsInARow: 5 }, policy: { maxDeferrals: 5 } };
const maxDeferredFor: Reason = {
  step: 'max_deferred_for',
  known: { deferredForMs: HOUR },
  policy: { maxDeferredFor: '1h' },
};

/** For each kind of outcome: every step that can decide it, and the step that decides if no other does. */
interface Judged {
  readonly name: string;
  readonly outcome: Outcome;
  readonly known?: Partial<Facts>;
  readonly reasons: readonly Reason[];
  readonly otherwise: Step;
}

const OUTCOMES: readonly Judged[] = [
  {
    name: 'a success',
    outcome: { kind: 'success' },
    reasons: [cancelled, ambiguous, noRetry, maxExecutions, giveUpAfter, deadline, maxAttempts].map((reason) => ({
      ...reason,
      step: 'success',
    })),
    otherwise: 'success',
  },
  {
    name: 'PermanentFailure',
    outcome: failed({ word: 'permanent', kind: 'permanent', ambiguous: true, retryAfterMs: 60_000, fault: 'source' }),
    reasons: [
      cancelled,
      ...[ambiguous, noRetry, maxExecutions, giveUpAfter, deadline, maxAttempts].map((reason) => ({
        ...reason,
        step: 'explicit' as const,
      })),
      { step: 'explicit', policy: { permanent: 'retry' } },
      { step: 'explicit', policy: { rules: { 'app.broke': { maxAttempts: 50 } } } },
    ],
    otherwise: 'explicit',
  },
  {
    name: 'an ambiguous permanent failure',
    outcome: failed({ kind: 'permanent', ambiguous: true, retryAfterMs: 60_000, fault: 'source' }),
    reasons: [
      cancelled,
      ambiguous,
      ...[noRetry, maxExecutions, giveUpAfter, deadline, maxAttempts, maxRetryAfter, maxDeferrals].map((reason) => ({
        ...reason,
        step: 'permanent' as const,
      })),
    ],
    otherwise: 'permanent',
  },
  {
    name: 'a rate limit with a hint',
    outcome: failed({ kind: 'rate_limited', fault: 'quota', ambiguous: true, retryAfterMs: 60_000 }),
    reasons: [
      cancelled,
      ambiguous,
      noRetry,
      maxRetryAfter,
      maxDeferrals,
      maxDeferredFor,
      maxExecutions,
      giveUpAfter,
      deadline,
    ],
    otherwise: 'deferral',
  },
  {
    name: 'a source at fault with a hint',
    outcome: failed({ fault: 'source', ambiguous: true, retryAfterMs: 60_000 }),
    reasons: [
      cancelled,
      ambiguous,
      noRetry,
      maxRetryAfter,
      maxDeferrals,
      maxDeferredFor,
      maxExecutions,
      giveUpAfter,
      deadline,
    ],
    otherwise: 'deferral',
  },
  {
    name: 'RetryLater',
    outcome: later(60_000),
    reasons: [cancelled, noRetry, maxRetryAfter, maxDeferrals, maxDeferredFor, maxExecutions, giveUpAfter, deadline],
    otherwise: 'deferral',
  },
  {
    name: 'a failure of the task',
    outcome: failed({ ambiguous: true, retryAfterMs: 60_000 }),
    reasons: [
      cancelled,
      ambiguous,
      maxAttempts,
      noRetry,
      maxRetryAfter,
      maxExecutions,
      giveUpAfter,
      maxTotalDelay,
      deadline,
    ],
    otherwise: 'retry',
  },
  {
    name: 'a failure of the source',
    outcome: failed({ fault: 'source', ambiguous: true }),
    reasons: [cancelled, ambiguous, maxAttempts, noRetry, maxExecutions, giveUpAfter, maxTotalDelay, deadline],
    otherwise: 'retry',
  },
  {
    name: 'a lost lease',
    outcome: lost,
    reasons: [cancelled, ambiguous, crashLoop, noRetry, maxExecutions, giveUpAfter, deadline],
    otherwise: 'recovery',
  },
  {
    name: 'an interruption',
    outcome: interrupted(true),
    reasons: [cancelled, ambiguous, noRetry, maxExecutions, giveUpAfter, deadline],
    otherwise: 'interrupted',
  },
  { name: 'a passed deadline', outcome: expired, reasons: [cancelled], otherwise: 'deadline' },
  {
    name: 'a failure of a source that is down',
    outcome: failed({ fault: 'source', ambiguous: true, retryAfterMs: 60_000 }),
    known: { source: { standing: 'down', shutFor: 5_000 } },
    reasons: [cancelled, ambiguous, noRetry, maxExecutions, deadline],
    otherwise: 'source_down',
  },
  {
    name: 'a last attempt while nobody knows whether the source is down',
    outcome: failed({ fault: 'source', ambiguous: true }),
    known: { source: { standing: 'open', shutFor: 0 }, charged: [charged(4)] },
    reasons: [cancelled, ambiguous, maxExecutions, deadline].map((reason) =>
      reason === maxExecutions || reason === deadline ? { ...reason, step: 'max_attempts' as const } : reason,
    ),
    otherwise: 'awaits_verdict',
  },
  {
    name: 'a last attempt whose source did not turn out to be down',
    outcome: { kind: 'verdict', reason: 'app.broke' },
    known: { verdict: 'app.broke' },
    reasons: [cancelled],
    otherwise: 'verdict',
  },
];

const base: PolicyOptions = { maxAttempts: 5, backoff: fixed('1s'), jitter: { kind: 'none' }, giveUpAfter: 'none' };

function stepFor({ outcome, known: always }: Pick<Judged, 'outcome' | 'known'>, reasons: readonly Reason[]): Step {
  const all = [{ known: always }, ...reasons].flatMap((reason) => reason.known?.charged ?? []);
  const known = Object.assign({}, always, ...reasons.map((reason) => reason.known), { charged: all });
  const policy = definePolicy(Object.assign({}, base, ...reasons.map((reason) => reason.policy)));
  return decide(facts(known), outcome, policy, 0.5).because.step;
}

describe.each(OUTCOMES)('the order of judgement of $name', (judged) => {
  const { reasons, otherwise } = judged;

  test('is decided by the last step if no other applies', () => {
    expect(stepFor(judged, [])).toBe(otherwise);
  });

  test('gives each condition its own step', () => {
    expect(reasons.map((reason) => stepFor(judged, [reason]))).toEqual(reasons.map(({ step }) => step));
  });

  test('lets the earlier of any two steps decide', () => {
    for (const [i, earlier] of reasons.entries()) {
      for (const second of reasons.slice(i + 1)) {
        expect(STEPS.indexOf(earlier.step), `${earlier.step} before ${second.step}`).toBeLessThanOrEqual(
          STEPS.indexOf(second.step),
        );
        expect.soft(stepFor(judged, [earlier, second]), `${earlier.step} and ${second.step}`).toBe(earlier.step);
      }
    }
  });

  test('lets the first step decide if all apply', () => {
    expect(stepFor(judged, reasons)).toBe(reasons[0]?.step);
  });
});

test('every step of the judgement is reached by some outcome', () => {
  const reached = new Set(
    OUTCOMES.flatMap((judged) => [judged.otherwise, ...judged.reasons.map((reason) => stepFor(judged, [reason]))]),
  );
  expect([...STEPS].filter((step) => !reached.has(step))).toEqual([]);
});

test('a rule for a reason wins over one for its family, one for its kind, and the policy', () => {
  const rules = {
    'app.broke': { backoff: fixed('1001ms') },
    'app.*': { backoff: fixed('1002ms') },
    transient: { backoff: fixed('1003ms') },
  };
  const names = Object.keys(rules) as (keyof typeof rules)[];
  const delays = names.map((_, i) => {
    const left = Object.fromEntries(names.slice(i).map((name) => [name, rules[name]]));
    const decision = decide(facts(), failed(), definePolicy({ ...base, rules: left }), 0.5);
    return 'after' in decision && decision.after;
  });
  expect(delays).toEqual([1_001, 1_002, 1_003]);
});
