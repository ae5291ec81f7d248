import { describe, expect, test } from 'vitest';
import { exponential, fixed, immediate, linear, none } from '../../src/failure/backoff.ts';
import { classify } from '../../src/failure/classify/classify.ts';
import { scheduleOf } from '../../src/failure/foresee.ts';
import { proportional } from '../../src/failure/jitter.ts';
import { definePolicy } from '../../src/failure/policy.ts';
import {
  charged,
  DAY,
  decided,
  expired,
  failed,
  HOUR,
  interrupted,
  later,
  lost,
  lostWhile,
  MINUTE,
  SECOND,
} from './given.ts';

/** 3 attempts, 1 s doubling, no jitter, and rate limits as the standard policy has them. */
const plain = definePolicy({ maxAttempts: 3, backoff: exponential({ base: '1s' }), jitter: { kind: 'none' } });
const throttled = { kind: 'rate_limited', reason: 'http.429', fault: 'quota' } as const;

describe('a success', () => {
  test('succeeds, whatever the counters say and even if a cancel was requested', () => {
    const worn = {
      executions: 9_999,
      charged: [charged(99)],
      cancelRequested: true,
      untilDeadlineMs: -1,
      idempotent: false,
    };
    expect(decided({ kind: 'success' }, plain, worn)).toMatchObject({
      next: 'succeeded',
      step: 'success',
      charge: undefined,
    });
  });
});

describe('a requested cancel', () => {
  test.each([
    ['failure', failed()],
    ['permanent word', failed({ word: 'permanent', kind: 'permanent' })],
    ['call for a person', failed({ word: 'needs_manual' })],
    ['deferral', later()],
    ['interruption', interrupted()],
    ['lost lease', lost],
    ['passed deadline', expired],
  ])('turns a %s into cancelled', (_, outcome) => {
    const known = { cancelRequested: true, idempotent: false };
    expect(decided(outcome, plain, known)).toMatchObject({ next: 'cancelled', step: 'cancelled', reason: 'cancelled' });
  });
});

describe('a failure', () => {
  test('is charged under its reason and retried after the backoff’s next delay', () => {
    expect(decided(failed(), plain)).toMatchObject({
      next: 'scheduled',
      step: 'retry',
      after: SECOND,
      charge: 'task',
      reason: 'app.broke',
      lostInARow: 0,
    });
    expect(decided(failed(), plain, { charged: [charged(1)] }).after).toBe(2 * SECOND);
  });

  test.each(['task', 'source', 'quota'] as const)('without a hint is charged at fault %s', (fault) => {
    expect(decided(failed({ fault }), definePolicy({ rules: {} }, { ...plain, rules: {} })).charge).toBe('task');
  });

  describe('at the fault of the worker', () => {
    const full = { kind: 'transient', reason: 'fs.no_space', fault: 'worker' } as const;

    test('is a deferral by the policy’s backoff, however often the task has failed by itself', () => {
      const known = { charged: [charged(2)], deferralsInARow: 2 };
      expect(decided(failed(full), plain, known)).toMatchObject({
        next: 'scheduled',
        step: 'deferral',
        after: 4 * SECOND,
        charge: 'deferrals',
        reason: 'fs.no_space',
      });
      expect(decided(failed(full), plain).because.text).toMatch(
        /^fs\.no_space is the fault of the worker\. Deferred for/,
      );
      expect(decided(failed({ ...full, retryAfterMs: HOUR }), plain).after).toBe(HOUR);
    });

    test('needs a person when the limits of deferrals are reached, and is charged to nobody', () => {
      expect(decided(failed(full), plain, { deferralsInARow: 100 })).toMatchObject({
        next: 'needs_manual',
        step: 'max_deferrals',
        charge: 'nobody',
        reason: 'fs.no_space',
      });
    });

    test('that is permanent needs a person, whatever onExhausted says; with permanent: retry it is a deferral', () => {
      const lacking = { kind: 'permanent', reason: 'process.not_found', fault: 'worker' } as const;
      expect(decided(failed(lacking), plain)).toMatchObject({
        next: 'needs_manual',
        step: 'permanent',
        charge: 'nobody',
      });
      const retrying = definePolicy({ permanent: 'retry' }, plain);
      expect(decided(failed(lacking), retrying)).toMatchObject({ next: 'scheduled', charge: 'deferrals' });
    });

    test('that is ambiguous needs a person if the task must not run twice, and charges nobody', () => {
      const broken = failed({ ...full, reason: 'fs.io', ambiguous: true });
      const end = decided(broken, plain, { idempotent: false });
      expect(end).toMatchObject({ next: 'needs_manual', step: 'ambiguous', charge: 'nobody' });
    });

    test('is charged if a rule names this reason, unless the rule has charge: false', () => {
      const own = definePolicy({ rules: { 'fs.no_space': { maxAttempts: 2 } } }, plain);
      expect(decided(failed(full), own)).toMatchObject({ charge: 'task', step: 'retry' });
      const free = definePolicy({ rules: { 'fs.no_space': { charge: false } } }, plain);
      expect(decided(failed(full), free)).toMatchObject({ charge: 'deferrals' });
      const family = definePolicy({ rules: { 'fs.*': { maxAttempts: 2 } } }, plain);
      expect(decided(failed(full), family)).toMatchObject({ charge: 'deferrals' });
    });
  });

  test('of unknown kind is charged and retried like any other', () => {
    expect(decided(failed({ kind: 'unknown', reason: 'unknown' }), plain)).toMatchObject({
      next: 'scheduled',
      charge: 'task',
    });
  });

  test('that brings the count to maxAttempts ends the task: executions are counted, the first included', () => {
    expect(decided(failed(), plain, { charged: [charged(1)] }).next).toBe('scheduled');
    const end = decided(failed(), plain, { charged: [charged(2)] });
    expect(end).toMatchObject({ next: 'dead', step: 'max_attempts', charge: 'task', reason: 'app.broke' });
    expect(end.because).toMatchObject({ count: 3, limit: 3 });
  });

  test('with maxAttempts 1 runs once', () => {
    expect(decided(failed(), definePolicy({ maxAttempts: 1 })).next).toBe('dead');
  });

  test('ends in the state of onExhausted', () => {
    const manual = definePolicy({ onExhausted: 'needs_manual' }, plain);
    expect(decided(failed(), manual, { charged: [charged(2)] }).next).toBe('needs_manual');
  });

  test('ends the task if the limit was lowered below its count while it waited', () => {
    expect(decided(failed(), plain, { charged: [charged(50)] }).next).toBe('dead');
  });

  test('is explained by rule, count, limit, formula, draw, density and the version of the policy', () => {
    const spread = definePolicy({ jitter: proportional(0.1) }, plain);
    const { after, because } = decided(failed(), spread, { charged: [charged(1)] }, 0.25);
    expect(after).toBe(1_900);
    expect(because).toEqual({
      step: 'retry',
      rule: 'policy',
      count: 2,
      limit: 3,
      formula: 'exponential 1s ×2 ≤ 1h, retry 2',
      jitter: { low: 1_800, high: 2_200, roll: 0.25, density: 1 / 400 },
      policyVersion: spread.version,
      text: 'app.broke: attempt 2 of 3 failed; next attempt in 1.9s (exponential 1s ×2 ≤ 1h, retry 2).',
    });
  });
});

describe('counts by reason', () => {
  const byReason = definePolicy({
    maxAttempts: 5,
    backoff: fixed('1m'),
    jitter: { kind: 'none' },
    rules: {
      timeout: { maxAttempts: 3, backoff: exponential({ base: '10s' }) },
      'fs.*': { maxAttempts: 2 },
      'fs.io': { backoff: fixed('9m') },
      'net.reset': { backoff: linear({ step: '1s' }) },
    },
  });

  test('of a rule with its own maxAttempts are separate', () => {
    const known = { charged: [charged(4, 'app.broke'), charged(1, 'timeout')] };
    expect(decided(failed({ reason: 'timeout' }), byReason, known)).toMatchObject({
      next: 'scheduled',
      after: 20 * SECOND,
    });
    expect(decided(failed({ reason: 'timeout' }), byReason, { charged: [charged(2, 'timeout')] }).next).toBe('dead');
  });

  test('do not use up the policy’s own limit where a rule has one', () => {
    const known = { charged: [charged(2, 'timeout'), charged(1, 'fs.locked'), charged(3, 'app.broke')] };
    const next = decided(failed(), byReason, known);
    expect(next).toMatchObject({ next: 'scheduled', because: { count: 4, limit: 5 } });
    expect(decided(failed(), byReason, { charged: [charged(4, 'app.broke'), ...known.charged.slice(0, 2)] }).next).toBe(
      'dead',
    );
  });

  test('of a family’s rule are shared by its reasons', () => {
    expect(decided(failed({ reason: 'fs.locked' }), byReason, { charged: [charged(1, 'fs.no_space')] }).next).toBe(
      'dead',
    );
  });

  test('of a rule without maxAttempts are those of the next less specific one that has it, and k is the same count', () => {
    const io = decided(failed({ reason: 'fs.io' }), byReason, { charged: [charged(1, 'fs.locked')] });
    expect(io).toMatchObject({ next: 'dead', because: { rule: 'fs.io', count: 2, limit: 2 } });
    const reset = decided(failed({ reason: 'net.reset' }), byReason, { charged: [charged(2, 'app.broke')] });
    expect(reset).toMatchObject({ after: 3 * SECOND, because: { rule: 'net.reset', count: 3, limit: 5 } });
  });

  test('follow today’s policy: charges that an old rule counted separately are counted together by a new policy', () => {
    const known = { charged: [charged(2, 'timeout'), charged(2, 'app.broke')] };
    expect(decided(failed(), byReason, known).because).toMatchObject({ count: 3, limit: 5 });
    const today = definePolicy({ maxAttempts: 5 });
    expect(decided(failed(), today, known)).toMatchObject({ next: 'dead', because: { count: 5, limit: 5 } });
  });

  test('of a rule for a kind are those of this kind at the time of the charge', () => {
    const kinds = definePolicy({ maxAttempts: 2, rules: { transient: { maxAttempts: 4 } } });
    const known = { charged: [charged(2, 'a', 'transient'), charged(1, 'b', 'transient'), charged(1, 'c', 'unknown')] };
    expect(decided(failed({ reason: 'd' }), kinds, known)).toMatchObject({
      next: 'dead',
      because: { count: 4, limit: 4 },
    });
    expect(decided(failed({ reason: 'd', kind: 'unknown' }), kinds, known).because).toMatchObject({
      count: 2,
      limit: 2,
    });
  });

  test('follow pains R1: timeouts, rate limits and validation, each with its own answer', () => {
    const policy = definePolicy({
      rules: { timeout: { maxAttempts: 5 }, validation: { maxAttempts: 1 }, rate_limited: { charge: false } },
    });
    const steps = [
      decided(failed({ reason: 'timeout' }), policy),
      decided(failed({ ...throttled, retryAfterMs: 1_000 }), policy, { charged: [charged(1, 'timeout')] }),
      decided(failed(throttled), policy, { charged: [charged(1, 'timeout')], deferralsInARow: 1 }),
      decided(failed({ reason: 'timeout' }), policy, { charged: [charged(1, 'timeout')] }),
      decided(failed({ reason: 'validation', kind: 'permanent' }), policy, { charged: [charged(2, 'timeout')] }),
    ];
    expect(steps.map(({ next, charge }) => `${next} ${charge}`)).toEqual([
      'scheduled task',
      'scheduled deferrals',
      'scheduled deferrals',
      'scheduled task',
      'dead task',
    ]);
    expect(steps[3]?.because).toMatchObject({ count: 2, limit: 5 });
    expect(steps[4]).toMatchObject({ reason: 'validation' });
  });
});

describe('a permanent failure', () => {
  const permanent = failed({ kind: 'permanent', reason: 'http.404' });

  test('ends the task at once, charged, where onExhausted says', () => {
    expect(decided(permanent, plain)).toMatchObject({
      next: 'dead',
      step: 'permanent',
      charge: 'task',
      reason: 'http.404',
    });
    expect(decided(permanent, definePolicy({ onExhausted: 'needs_manual' })).next).toBe('needs_manual');
  });

  test('is retried like any other under permanent: retry', () => {
    expect(decided(permanent, definePolicy({ permanent: 'retry' }, plain))).toMatchObject({
      step: 'retry',
      after: SECOND,
    });
  });

  test('is retried if a rule names this reason', () => {
    const named = definePolicy({ rules: { 'http.404': {} } }, plain);
    expect(decided(permanent, named)).toMatchObject({ step: 'retry', because: { rule: 'http.404' } });
  });

  test('is not retried for a rule about its family or its kind, which only gives the state in which it ends', () => {
    for (const rules of [
      { 'http.*': { onExhausted: 'needs_manual' } },
      { permanent: { onExhausted: 'needs_manual' } },
    ] as const) {
      expect(decided(permanent, definePolicy({ rules }, plain))).toMatchObject({
        next: 'needs_manual',
        step: 'permanent',
      });
    }
  });
});

describe('a signal of the handler', () => {
  const never = failed({ word: 'permanent', kind: 'permanent', reason: 'order.closed' });

  test('PermanentFailure ends the task at once', () => {
    expect(decided(never, plain)).toMatchObject({
      next: 'dead',
      step: 'explicit',
      charge: 'task',
      reason: 'order.closed',
    });
  });

  test('PermanentFailure ends it under permanent: retry too, and under a rule that names its reason', () => {
    expect(decided(never, definePolicy({ permanent: 'retry' })).step).toBe('explicit');
    const named = definePolicy({ rules: { 'order.closed': { maxAttempts: 9, onExhausted: 'needs_manual' } } });
    expect(decided(never, named)).toMatchObject({ next: 'needs_manual', step: 'explicit' });
  });

  test('NeedsManual asks for a person, uncharged, whatever the policy', () => {
    const manual = failed({ word: 'needs_manual', kind: 'unknown', reason: 'explicit.needs_manual' });
    expect(decided(manual, plain)).toMatchObject({ next: 'needs_manual', step: 'explicit', charge: 'nobody' });
  });

  test('Failed with a permanent kind ends it like a permanent failure, and a rule that names it retries it', () => {
    const said = failed({ kind: 'permanent', reason: 'order.unpaid' });
    expect(decided(said, plain).step).toBe('permanent');
    expect(decided(said, definePolicy({ rules: { 'order.unpaid': {} } }, plain)).step).toBe('retry');
  });
});

describe('an ambiguous failure', () => {
  const timeout = failed({ reason: 'timeout', ambiguous: true });

  test('is retried if the task may run twice', () => {
    expect(decided(timeout, plain)).toMatchObject({ next: 'scheduled', step: 'retry' });
  });

  test('needs a person if the task must not run twice, and is charged', () => {
    expect(decided(timeout, plain, { idempotent: false })).toMatchObject({
      next: 'needs_manual',
      step: 'ambiguous',
      charge: 'task',
      reason: 'timeout',
    });
  });

  test('is retried in any case with retryAmbiguous', () => {
    const waived = definePolicy({ retryAmbiguous: true }, plain);
    for (const outcome of [timeout, lost, interrupted()]) {
      expect(decided(outcome, waived, { idempotent: false }).next).toBe('scheduled');
    }
  });

  test('that is not ambiguous is retried even if the task may not run twice: nothing has happened', () => {
    expect(decided(failed(), plain, { idempotent: false }).next).toBe('scheduled');
  });
});

describe('a rate limit', () => {
  test('with a wait is an uncharged deferral of at least that, and jitter only adds', () => {
    const hinted = failed({ ...throttled, retryAfterMs: 90 * SECOND });
    expect(decided(hinted, plain)).toMatchObject({
      next: 'scheduled',
      step: 'deferral',
      after: 90 * SECOND,
      charge: 'deferrals',
    });
    const spread = definePolicy({ jitter: proportional(0.2) }, plain);
    expect(decided(hinted, spread, {}, 0).after).toBe(90 * SECOND);
    expect(decided(hinted, spread, {}, 0.999_999).after).toBe(108 * SECOND);
  });

  test('with a wait is a deferral even if rate limits are charged, and at the last attempt', () => {
    const charging = definePolicy({ maxAttempts: 1, rules: { rate_limited: { charge: true } } });
    expect(decided(failed({ ...throttled, retryAfterMs: 5 * SECOND }), charging).charge).toBe('deferrals');
  });

  test('with a wait is a deferral whoever is at fault', () => {
    const said = failed({ kind: 'rate_limited', reason: 'app.slow_down', fault: 'task', retryAfterMs: 7 * SECOND });
    expect(decided(said, plain)).toMatchObject({ step: 'deferral', after: 7 * SECOND });
  });

  test('with a wait of 0 is a deferral of one second', () => {
    expect(decided(failed({ ...throttled, retryAfterMs: 0 }), plain)).toMatchObject({
      step: 'deferral',
      after: SECOND,
    });
  });

  test('with a wait beyond maxRetryAfter needs a person', () => {
    const ask = (retryAfterMs: number) => decided(failed({ ...throttled, retryAfterMs }), plain);
    expect(ask(DAY)).toMatchObject({ next: 'scheduled', after: DAY });
    expect(ask(DAY + 1)).toMatchObject({
      next: 'needs_manual',
      step: 'max_retry_after',
      charge: 'nobody',
      reason: 'http.429',
    });
    const forEver = classify(
      { status: 429, response: { status: 429, headers: { 'retry-after': '99999999999' } } },
      { now: 0 },
    );
    expect(decided({ kind: 'failure', failure: forEver }, plain)).toMatchObject({
      next: 'needs_manual',
      step: 'max_retry_after',
    });
  });

  test('without a wait is charged, with the rule’s own base and backoff', () => {
    const charging = definePolicy({ rules: { rate_limited: { backoff: exponential({ base: '10m' }) } } }, plain);
    const first = decided(failed(throttled), charging);
    expect(first).toMatchObject({ step: 'retry', after: 10 * MINUTE, charge: 'task' });
    expect(decided(failed(throttled), charging, { charged: [charged(1)] }).after).toBe(20 * MINUTE);
  });

  test('without a wait and with charge: false is a deferral by the count of deferrals in a row', () => {
    const known = { charged: [charged(2)], deferralsInARow: 2 };
    expect(decided(failed(throttled), plain, known)).toMatchObject({
      step: 'deferral',
      after: 4 * SECOND,
      charge: 'deferrals',
    });
  });

  test('leaves the attempts as they were: the next failure uses the backoff’s first delay', () => {
    expect(decided(failed(), plain, { deferralsInARow: 0 }).after).toBe(SECOND);
  });

  test('is also a used-up quota, whatever its kind', () => {
    const quota = { kind: 'transient', reason: 'quota.exhausted', fault: 'quota' } as const;
    expect(decided(failed({ ...quota, retryAfterMs: HOUR }), plain)).toMatchObject({ step: 'deferral', after: HOUR });
    const uncharged = definePolicy({ rules: { 'quota.*': { charge: false } } }, plain);
    expect(decided(failed(quota), uncharged).charge).toBe('deferrals');
    expect(decided(failed(quota), plain).charge).toBe('task');
  });

  test('is the only failure to which charge: false applies', () => {
    const odd = definePolicy({ rules: { 'app.broke': { charge: false } } }, plain);
    expect(decided(failed(), odd).charge).toBe('task');
  });
});

describe('a requested wait without a rate limit', () => {
  test('is a deferral if the source is at fault', () => {
    const busy = failed({ reason: 'http.5xx', fault: 'source', retryAfterMs: 30 * SECOND });
    expect(decided(busy, plain)).toMatchObject({ step: 'deferral', after: 30 * SECOND, charge: 'deferrals' });
  });

  test('is the shortest delay of the retry if the task is at fault, and the task is charged', () => {
    const locked = (retryAfterMs: number) => failed({ reason: 'http.423', retryAfterMs });
    expect(decided(locked(30 * SECOND), plain)).toMatchObject({ step: 'retry', after: 30 * SECOND, charge: 'task' });
    expect(decided(locked(0), plain)).toMatchObject({ step: 'retry', after: SECOND });
    expect(decided(locked(SECOND), plain).because.formula).toBe('exponential 1s ×2 ≤ 1h, retry 1');
    expect(decided(locked(SECOND + 1), plain).because.formula).toBe('asked for 1s');
    const full = definePolicy({ jitter: { kind: 'full' } }, plain);
    const { after, because } = decided(locked(600), full, {}, 0);
    expect(after).toBe(600);
    expect(because.jitter).toEqual({ low: 600, high: 1_000, roll: 0, density: 1 / 400 });
    expect(decided(locked(5_000), full, {}, 0).after).toBe(5_000);
  });

  test('beyond maxRetryAfter needs a person, and the failure is charged', () => {
    expect(decided(failed({ reason: 'http.423', retryAfterMs: DAY + 1 }), plain)).toMatchObject({
      next: 'needs_manual',
      step: 'max_retry_after',
      charge: 'task',
    });
  });
});

describe('RetryLater', () => {
  test('with a delay is a deferral of exactly that, without jitter', () => {
    const spread = definePolicy({ jitter: { kind: 'full' } }, plain);
    expect(decided(later(10 * MINUTE), spread, {}, 0.9)).toMatchObject({
      next: 'scheduled',
      step: 'deferral',
      after: 10 * MINUTE,
      charge: 'deferrals',
      reason: 'explicit.later',
    });
  });

  test('with 0 is a deferral of one second', () => {
    expect(decided(later(0), plain)).toMatchObject({ step: 'deferral', after: SECOND });
  });

  test('without a delay waits by the policy’s backoff and the count of deferrals in a row', () => {
    const known = { charged: [charged(2)], deferralsInARow: 3 };
    expect(decided(later(), plain, known)).toMatchObject({ step: 'deferral', after: 8 * SECOND });
  });

  test('without a delay waits at least a second, even if the backoff is immediate', () => {
    const eager = definePolicy({ backoff: immediate, jitter: { kind: 'full' } });
    expect(decided(later(), eager, {}, 0).after).toBe(SECOND);
    const spread = definePolicy({ jitter: proportional(0.1) }, plain);
    const { after, because } = decided(later(), spread, {}, 0);
    expect(after).toBe(SECOND);
    expect(because.jitter).toEqual({ low: 1_000, high: 1_100, roll: 0, density: 1 / 100 });
  });

  test('follows a rule for its reason, but no rule for a kind of failure', () => {
    const rules = { transient: { backoff: fixed('1h') }, 'order.pending': { backoff: fixed('5m') } };
    const policy = definePolicy({ rules }, plain);
    expect(decided(later(), policy).after).toBe(SECOND);
    expect(decided(later(undefined, 'order.pending'), policy).after).toBe(5 * MINUTE);
  });

  test('never uses up the attempts of a task', () => {
    expect(decided(later(5_000), plain, { charged: [charged(2)] }).next).toBe('scheduled');
  });
});

describe('deferrals in a row', () => {
  test('are granted maxDeferrals times; the next one needs a person', () => {
    const three = definePolicy({ maxDeferrals: 3 }, plain);
    expect(decided(later(5_000), three, { deferralsInARow: 2 }).next).toBe('scheduled');
    const end = decided(failed({ ...throttled, retryAfterMs: 5_000 }), three, { deferralsInARow: 3 });
    expect(end).toMatchObject({ next: 'needs_manual', step: 'max_deferrals', charge: 'nobody', reason: 'http.429' });
    expect(end.because).toMatchObject({ count: 4, limit: 3 });
  });

  test.each([
    ['1 s doubling up to 5 min', exponential({ base: '1s', cap: '5m' }), 60],
    ['10 s', fixed('10s'), 80],
  ])(
    'by a rate limit without a hint become longer, so that a day of them is over long before 100 executions: %s',
    (_, backoff, most) => {
      const policy = definePolicy({ backoff, jitter: 'none', rules: { rate_limited: { charge: false } } });
      const { retries, end } = scheduleOf(policy, failed(throttled));
      expect(end).toMatchObject({ next: 'needs_manual', because: { step: 'max_deferred_for' } });
      expect(retries.length).toBeLessThan(most);
      expect(retries[0]?.nominal).toBe(backoff.kind === 'fixed' ? 10_000 : 1_000);
      expect(Math.max(...retries.map(({ nominal }) => nominal))).toBe(HOUR);
    },
  );

  test('are granted 100 times by default', () => {
    expect(decided(later(1_000), definePolicy(), { deferralsInARow: 99 }).next).toBe('scheduled');
    expect(decided(later(1_000), definePolicy(), { deferralsInARow: 100 }).step).toBe('max_deferrals');
  });

  test('with maxDeferrals 0 need a person at once', () => {
    expect(decided(later(5_000), definePolicy({ maxDeferrals: 0 })).step).toBe('max_deferrals');
  });

  test('delay a task by maxDeferredFor at most, counted from the first of the row', () => {
    const hour = definePolicy({ maxDeferredFor: '1h' }, plain);
    expect(decided(later(10 * MINUTE), hour, { deferralsInARow: 1, deferredForMs: 50 * MINUTE }).next).toBe(
      'scheduled',
    );
    expect(decided(later(10 * MINUTE), hour, { deferralsInARow: 1, deferredForMs: 50 * MINUTE + 1 })).toMatchObject({
      next: 'needs_manual',
      step: 'max_deferred_for',
      charge: 'nobody',
    });
  });

  test('are compared with maxDeferredFor without jitter, so that chance does not decide whether a person is asked', () => {
    const spread = definePolicy({ jitter: proportional(0.5) }, plain);
    const day = failed({ ...throttled, retryAfterMs: DAY });
    for (const roll of [0, 0.9]) expect(decided(day, spread, {}, roll).next).toBe('scheduled');
    const known = { deferralsInARow: 1, deferredForMs: 24 * HOUR - SECOND };
    for (const roll of [0, 0.9]) expect(decided(later(), spread, known, roll).step).toBe('max_deferred_for');
  });
});

describe('backoff none', () => {
  const once = definePolicy({ backoff: none });

  test.each([
    ['a failure ends by the policy', failed(), 'dead', 'task'],
    ['a rate limit with a hint', failed({ ...throttled, retryAfterMs: 5_000 }), 'needs_manual', 'nobody'],
    ['a rate limit without a hint', failed(throttled), 'needs_manual', 'nobody'],
    ['RetryLater', later(5_000), 'needs_manual', 'nobody'],
    ['RetryLater without a delay', later(), 'needs_manual', 'nobody'],
    ['a lost lease', lost, 'needs_manual', 'nobody'],
    ['an interruption of its handler', interrupted(true), 'needs_manual', 'nobody'],
  ])('allows no second execution: %s', (_, outcome, next, charge) => {
    expect(decided(outcome, once)).toMatchObject({ next, step: 'no_retry', charge });
  });

  test('allows a first execution after a hand-back before the handler began', () => {
    expect(decided(interrupted(false), once)).toMatchObject({ next: 'scheduled', after: 0 });
  });

  test('of a rule applies to the failures that the rule governs', () => {
    const some = definePolicy({ rules: { 'app.broke': { backoff: none }, 'worker.lost': { backoff: none } } });
    expect(decided(failed(), some).step).toBe('no_retry');
    expect(decided(failed({ reason: 'app.other' }), some).step).toBe('retry');
    expect(decided(lost, some)).toMatchObject({ next: 'needs_manual', step: 'no_retry' });
  });
});

describe('a lease that ended without an outcome', () => {
  test.each(['alone', 'beside_others'] as const)(
    'is not charged the first time, and makes the task a suspect: %s',
    (how) => {
      expect(decided(lostWhile(how), plain)).toMatchObject({
        next: 'scheduled',
        step: 'recovery',
        after: 0,
        charge: 'nobody',
        lostInARow: 1,
        reason: 'worker.lost',
      });
    },
  );

  test('is charged as a recovery if a suspect ran alone, and never as an attempt', () => {
    const last = { lostInARow: 1, charged: [charged(2)] };
    expect(decided(lost, plain, last)).toMatchObject({
      next: 'scheduled',
      after: 0,
      charge: 'recoveries',
      lostInARow: 2,
      because: { text: expect.stringContaining('while it ran alone: recovery 1,') },
    });
  });

  test('charges nobody if others ran beside a suspect, however often that happens', () => {
    const often = { lostInARow: 7, recoveriesAgoMs: [HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR] };
    expect(decided(lostWhile('beside_others'), plain, often)).toMatchObject({
      next: 'scheduled',
      after: 0,
      charge: 'nobody',
      lostInARow: 8,
      because: { text: expect.stringContaining('it was lost 8 times in a row, so it runs alone next.') },
    });
  });

  test.each([0, 3])(
    'charges nobody and suspects nobody where its worker was told to stop, after %i losses',
    (before) => {
      const known = { lostInARow: before, recoveriesAgoMs: [HOUR, 2 * HOUR, 3 * HOUR] };
      expect(decided(lostWhile('while_stopping'), plain, known)).toMatchObject({
        next: 'scheduled',
        after: 0,
        charge: 'nobody',
        lostInARow: before,
        because: { text: expect.stringContaining('was told to stop') },
      });
    },
  );

  test('needs a person the fourth time within 72 h', () => {
    const known = (recoveriesAgoMs: number[]) => ({ lostInARow: 1, recoveriesAgoMs });
    expect(decided(lost, plain, known([HOUR, 2 * HOUR])).next).toBe('scheduled');
    expect(decided(lost, plain, known([HOUR, 2 * HOUR, 71 * HOUR]))).toMatchObject({
      next: 'needs_manual',
      step: 'crash_loop',
      charge: 'recoveries',
      reason: 'worker.crash_loop',
      because: {
        count: 4,
        limit: 4,
        text: 'It was lost with its worker 4 times within 72 h while it ran alone.',
      },
    });
  });

  test('forgets recoveries of more than 72 h ago', () => {
    const known = { lostInARow: 1, recoveriesAgoMs: [HOUR, 2 * HOUR, 72 * HOUR, 100 * HOUR, 200 * HOUR] };
    expect(decided(lost, plain, known)).toMatchObject({ next: 'scheduled', because: { count: 3 } });
  });

  test.each(['alone', 'beside_others', 'while_stopping'] as const)(
    'is ambiguous at once where the task may not run twice: %s',
    (how) => {
      expect(decided(lostWhile(how), plain, { idempotent: false })).toMatchObject({
        next: 'needs_manual',
        step: 'ambiguous',
        charge: 'nobody',
      });
    },
  );

  test('is charged also where it is ambiguous', () => {
    expect(decided(lost, plain, { idempotent: false, lostInARow: 1 }).charge).toBe('recoveries');
  });

  test.each([
    ['a failure', failed()],
    ['a deferral', later(5_000)],
    ['an interruption of its handler', interrupted(true)],
  ])('is forgiven by whatever an execution reports: %s', (_, outcome) => {
    expect(decided(outcome, plain, { lostInARow: 3 }).lostInARow).toBe(0);
  });

  test('still counts after a hand-back before the handler began', () => {
    expect(decided(interrupted(false), plain, { lostInARow: 3 }).lostInARow).toBe(3);
    expect(decided(interrupted(false), plain, { lostInARow: 0 }).lostInARow).toBe(0);
  });
});

describe('an interruption', () => {
  test('charges nobody, and the task is ready at once, even at its last attempt', () => {
    expect(decided(interrupted(), plain, { charged: [charged(2)], deferralsInARow: 100 })).toMatchObject({
      next: 'scheduled',
      step: 'interrupted',
      after: 0,
      charge: 'nobody',
      reason: 'worker.interrupted',
    });
  });

  test('of a handler that had begun needs a person if the task must not run twice', () => {
    expect(decided(interrupted(true), plain, { idempotent: false })).toMatchObject({
      next: 'needs_manual',
      step: 'ambiguous',
      charge: 'nobody',
    });
    expect(decided(interrupted(false), plain, { idempotent: false }).next).toBe('scheduled');
  });
});

describe('time', () => {
  test('giveUpAfter ends a task that would start later than that after its first start', () => {
    const hour = definePolicy({ giveUpAfter: '1h', maxAttempts: 99 }, plain);
    expect(decided(failed(), hour, { sinceFirstStartMs: HOUR - SECOND }).next).toBe('scheduled');
    const late = { sinceFirstStartMs: HOUR - SECOND + 1 };
    expect(decided(failed(), hour, late)).toMatchObject({ next: 'dead', step: 'give_up_after', charge: 'task' });
    const failedBefore = { ...late, charged: [charged(1)] };
    expect(decided(later(SECOND), hour, failedBefore)).toMatchObject({ step: 'give_up_after', charge: 'nobody' });
    expect(decided(lost, hour, { ...failedBefore, sinceFirstStartMs: HOUR + 1 }).step).toBe('give_up_after');
    expect(decided(interrupted(), hour, { ...failedBefore, sinceFirstStartMs: HOUR + 1 }).step).toBe('give_up_after');
  });

  test.each([
    ['an interruption', interrupted()],
    ['a lost lease', lost],
    ['a lost lease beside others', lostWhile('beside_others')],
    ['a deferral', later(SECOND)],
  ])('giveUpAfter ends nothing that was never charged: %s', (_, outcome) => {
    const hour = definePolicy({ giveUpAfter: '1h' }, plain);
    expect(decided(outcome, hour, { sinceFirstStartMs: 3 * HOUR }).next).toBe('scheduled');
  });

  test('maxTotalDelay ends a task whose next wait would make the sum of its waits longer than that', () => {
    const most = definePolicy({ maxTotalDelay: '10s', backoff: fixed('4s'), maxAttempts: 99 }, plain);
    const waited = (...delays: number[]) => ({
      charged: delays.map((delayMs, i) => ({ ...charged(1, `app.r${i}`), delayMs })),
    });
    expect(decided(failed(), most, waited(2_000, 4_000))).toMatchObject({ next: 'scheduled', after: 4_000 });
    expect(decided(failed(), most, waited(3_000, 4_000))).toMatchObject({
      ...{ next: 'dead', step: 'max_total_delay', charge: 'task' },
      because: { text: 'Its next wait (4s) would make 11s in all, more than maxTotalDelay (10s).' },
    });
    const manual = definePolicy({ onExhausted: 'needs_manual' }, most);
    expect(decided(failed(), manual, waited(9_000)).next).toBe('needs_manual');
  });

  test('maxTotalDelay counts no wait that nobody is charged for', () => {
    const most = definePolicy({ maxTotalDelay: '10s', backoff: fixed('4s') }, plain);
    const waited = { charged: [{ ...charged(1), delayMs: 9_000 }] };
    expect(decided(later(MINUTE), most, waited).next).toBe('scheduled');
    expect(decided(lost, most, waited).next).toBe('scheduled');
    const down = { ...waited, source: { standing: 'down', shutFor: MINUTE } } as const;
    expect(decided(failed({ fault: 'source' }), most, down)).toMatchObject({ next: 'scheduled', charge: 'source' });
    const open = { ...waited, source: { standing: 'open', shutFor: 0 } } as const;
    expect(decided(failed({ fault: 'source' }), most, open)).toMatchObject({ step: 'awaits_verdict' });
  });

  test('giveUpAfter is no limit by default', () => {
    expect(decided(failed(), plain, { sinceFirstStartMs: 3_650 * DAY }).next).toBe('scheduled');
  });

  test('a deadline ends a task that would start at it or after it, with jitter', () => {
    expect(decided(failed(), plain, { untilDeadlineMs: SECOND + 1 }).next).toBe('scheduled');
    expect(decided(failed(), plain, { untilDeadlineMs: SECOND })).toMatchObject({
      next: 'dead',
      step: 'deadline',
      charge: 'task',
    });
    const spread = definePolicy({ jitter: proportional(0.5) }, plain);
    expect(decided(failed(), spread, { untilDeadlineMs: SECOND }, 0.1).next).toBe('scheduled');
    expect(decided(failed(), spread, { untilDeadlineMs: SECOND }, 0.9).step).toBe('deadline');
  });

  test('an end by a time limit keeps the random draw of the delay', () => {
    const spread = definePolicy({ jitter: proportional(0.5) }, plain);
    const { because } = decided(failed(), spread, { untilDeadlineMs: SECOND }, 0.75);
    expect(because).toMatchObject({
      step: 'deadline',
      count: 1,
      formula: 'exponential 1s ×2 ≤ 1h, retry 1',
      jitter: { low: 500, high: 1_500, roll: 0.75, density: 1 / 1_000 },
    });
  });

  test('a deadline counts for deferrals, losses and interruptions too', () => {
    expect(decided(later(MINUTE), plain, { untilDeadlineMs: MINUTE })).toMatchObject({
      step: 'deadline',
      charge: 'nobody',
    });
    expect(decided(lost, plain, { untilDeadlineMs: 0 }).step).toBe('deadline');
    expect(decided(interrupted(), plain, { untilDeadlineMs: -5 }).step).toBe('deadline');
    expect(decided(interrupted(), plain, { untilDeadlineMs: 1 }).next).toBe('scheduled');
  });

  test('a task whose deadline passed while it waited ends in the state of onExhausted, uncharged', () => {
    expect(decided(expired, plain)).toMatchObject({
      next: 'dead',
      step: 'deadline',
      charge: 'nobody',
      reason: 'deadline.passed',
    });
    const manual = definePolicy({ rules: { 'deadline.passed': { onExhausted: 'needs_manual' } } });
    expect(decided(expired, manual).next).toBe('needs_manual');
  });
});

describe('maxExecutions', () => {
  const ten = definePolicy({ maxExecutions: 10, maxAttempts: 99 }, plain);

  test.each([
    ['a failure', failed(), 'task'],
    ['a deferral', later(5_000), 'nobody'],
    ['an interruption', interrupted(), 'nobody'],
    ['a lost lease', lost, 'nobody'],
  ])('is the last bound on %s', (_, outcome, charge) => {
    expect(decided(outcome, ten, { executions: 9 }).next).toBe('scheduled');
    expect(decided(outcome, ten, { executions: 10 })).toMatchObject({
      next: 'needs_manual',
      step: 'max_executions',
      charge,
      because: { count: 10, limit: 10 },
    });
  });

  test('is 1,000 by default', () => {
    expect(decided(interrupted(), definePolicy(), { executions: 999 }).next).toBe('scheduled');
    expect(decided(interrupted(), definePolicy(), { executions: 1_000 }).step).toBe('max_executions');
  });
});
