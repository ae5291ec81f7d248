import { describe, expect, test } from 'vitest';
import { fixed, none } from '../../src/failure/backoff.ts';
import { decide, type Facts, type SourceFacts } from '../../src/failure/decide.ts';
import type { Failure } from '../../src/failure/outcome.ts';
import { definePolicy, type PolicyOptions } from '../../src/failure/policy.ts';
import { presets } from '../../src/failure/presets.ts';
import { charged, DAY, facts, failed, HOUR, MINUTE, SECOND } from './given.ts';

const OPEN: SourceFacts = { standing: 'open', shutFor: 0 };
const DOWN: SourceFacts = { standing: 'down', shutFor: 40 * SECOND };
const NEEDS_PERSON: SourceFacts = { standing: 'needs_person', shutFor: 0 };

function fate(
  source: SourceFacts,
  failure: Partial<Failure> = {},
  known: Partial<Facts> = {},
  options: PolicyOptions = {},
) {
  const policy = definePolicy({ maxAttempts: 3, backoff: fixed('9s'), jitter: { kind: 'none' }, ...options });
  return decide(facts({ source, ...known }), failed({ fault: 'source', ...failure }), policy, 0.5);
}

describe('a failure at the source’s fault', () => {
  test('is charged while the source is not known to be down, and its retry takes a token', () => {
    expect(fate(OPEN)).toMatchObject({ next: 'scheduled', after: 9_000, charge: { to: 'task' }, needsToken: true });
  });

  test('takes no token if the budget is off', () => {
    expect(fate(OPEN, {}, {}, { source: { budget: false } })).not.toHaveProperty('needsToken');
  });

  test('is charged to the source alone while that is down', () => {
    const decision = fate(DOWN, {}, { charged: [charged(2)] });
    expect(decision).toMatchObject({ next: 'scheduled', charge: { to: 'source' }, because: { step: 'source_down' } });
    expect(decision).not.toHaveProperty('needsToken');
    expect(decision.because.text).toBe(
      'app.broke: its source is down, which holds it until a probe succeeds. Nothing is charged.',
    );
  });

  test('is also a probe without a response in time, although a task that takes too long is otherwise charged', () => {
    for (const reason of ['timeout', 'abort']) {
      expect(fate(OPEN, { reason, fault: 'task' })).toMatchObject({ charge: { to: 'task', reason } });
      expect(fate(DOWN, { reason, fault: 'task' })).toMatchObject({ charge: { to: 'source' } });
    }
    expect(fate(DOWN, { reason: 'http.4xx', fault: 'task' })).toMatchObject({ charge: { to: 'task' } });
  });

  test('makes the task wait until after the next probe, so that another task is probed next', () => {
    expect(fate(DOWN)).toMatchObject({ after: 80 * SECOND });
    expect(fate({ ...DOWN, shutFor: 0 })).toMatchObject({ after: 9 * SECOND });
    expect(fate({ ...DOWN, shutFor: 0 }, {}, {}, { backoff: fixed(0) })).toMatchObject({ after: SECOND });
  });

  test('makes the task wait as long as the source asked for', () => {
    expect(fate(DOWN, { retryAfterMs: HOUR })).toMatchObject({ after: HOUR, charge: { to: 'source' } });
  });

  test('is charged as usual if nothing is known about the source', () => {
    const policy = definePolicy({ maxAttempts: 3 });
    const last = facts({ charged: [charged(2)] });
    expect(decide(last, failed({ fault: 'source' }), policy, 0.5)).toMatchObject({ next: 'dead' });
  });

  test('is charged to the source even if its own policy has no breaker and another type found that the source is down', () => {
    const [last, off] = [{ charged: [charged(2)] }, { source: { breaker: false } }];
    expect(fate(OPEN, {}, last, off)).toMatchObject({ next: 'dead', charge: { to: 'task' } });
    for (const source of [DOWN, NEEDS_PERSON]) {
      expect(fate(source, {}, last, off)).toMatchObject({ next: 'scheduled', charge: { to: 'source' } });
    }
  });

  test('does not end a task before its deadline, because those that its source holds live until theirs', () => {
    expect(fate(DOWN, {}, { untilDeadlineMs: 2 * MINUTE })).toMatchObject({ after: 80 * SECOND });
    const soon = fate(DOWN, {}, { untilDeadlineMs: MINUTE });
    expect(soon).toMatchObject({ next: 'scheduled', after: SECOND, because: { step: 'source_down' } });
    expect(soon.because).not.toHaveProperty('jitter');
  });

  test('that is ambiguous needs a person if the task must not run twice, and uses no attempt while the source is down', () => {
    expect(fate(DOWN, { ambiguous: true }, { idempotent: false })).toMatchObject({
      next: 'needs_manual',
      charge: { to: 'source' },
    });
  });

  test('ends no task by giveUpAfter while the source is down', () => {
    const late = { sinceFirstStartMs: DAY, charged: [charged(1)] };
    expect(fate(DOWN, {}, late, { giveUpAfter: '1h' })).toMatchObject({ next: 'scheduled' });
  });

  test('still obeys a deadline, maxExecutions and a policy without retries', () => {
    expect(fate(DOWN, {}, { untilDeadlineMs: SECOND })).toMatchObject({ because: { step: 'deadline' } });
    expect(fate(DOWN, {}, { executions: 1_000 })).toMatchObject({ because: { step: 'max_executions' } });
    expect(fate(DOWN, {}, {}, { backoff: none })).toMatchObject({
      next: 'needs_manual',
      because: { step: 'no_retry' },
    });
  });
});

describe('the last attempt', () => {
  const last = { charged: [charged(2)] };

  test('waits a minute to see whether the source is down, and then ends without another start', () => {
    const waiting = fate(OPEN, {}, last);
    expect(waiting).toMatchObject({
      next: 'scheduled',
      after: MINUTE,
      charge: { to: 'task', reason: 'app.broke' },
      verdict: 'app.broke',
      because: { step: 'awaits_verdict', count: 3, limit: 3 },
    });
    expect(waiting).not.toHaveProperty('needsToken');
    const outcome = { kind: 'verdict', reason: 'app.broke' } as const;
    const ended = decide(facts({ charged: [charged(3)], verdict: 'app.broke' }), outcome, presets.standard, 0.5);
    expect(ended).toMatchObject({
      next: 'dead',
      reason: 'app.broke',
      charge: { to: 'nobody' },
      because: { step: 'verdict' },
    });
  });

  test('does not wait if somebody waits for the task and no other task is expected to show whether the source is down', () => {
    const alone = { ...OPEN, alone: true } as const;
    expect(fate(alone, {}, last)).toMatchObject({ next: 'dead', because: { step: 'max_attempts' } });
    expect(fate(alone, { kind: 'permanent' })).toMatchObject({ next: 'dead', because: { step: 'permanent' } });
    expect(fate({ ...DOWN, alone: true }, {}, last)).toMatchObject({ next: 'scheduled', charge: { to: 'source' } });
  });

  test('goes on at once if its charge was refunded meanwhile, whatever else limits it', () => {
    const outcome = { kind: 'verdict', reason: 'app.broke' } as const;
    const known = facts({ executions: 1_000, charged: [charged(2)] });
    expect(decide(known, outcome, presets.standard, 0.5)).toMatchObject({
      next: 'scheduled',
      after: 0,
      charge: { to: 'nobody' },
    });
  });

  test('is cancelled if that was requested', () => {
    const outcome = { kind: 'verdict', reason: 'app.broke' } as const;
    const known = facts({ verdict: 'app.broke', cancelRequested: true });
    expect(decide(known, outcome, presets.standard, 0.5).next).toBe('cancelled');
  });

  test('ends in the state of onExhausted', () => {
    const outcome = { kind: 'verdict', reason: 'app.broke' } as const;
    const waited = facts({ verdict: 'app.broke', charged: [charged(3)] });
    const asks = { onExhausted: 'needs_manual' } as const;
    expect(decide(waited, outcome, definePolicy(asks), 0.5).next).toBe('needs_manual');
    expect(decide(waited, outcome, definePolicy({ rules: { transient: asks } }), 0.5).next).toBe('needs_manual');
  });

  test('also waits if giveUpAfter would end it', () => {
    const late = { sinceFirstStartMs: HOUR };
    expect(fate(OPEN, {}, late, { giveUpAfter: '1h' })).toMatchObject({ verdict: 'app.broke' });
  });

  test('does not wait past its deadline', () => {
    expect(fate(OPEN, {}, { ...last, untilDeadlineMs: MINUTE })).toMatchObject({ next: 'dead' });
  });

  test('at the fault of the task does not wait', () => {
    expect(fate(OPEN, { fault: 'task' }, last)).toMatchObject({ next: 'dead' });
  });
});

describe('a permanent failure at the source’s fault', () => {
  const revoked = { kind: 'permanent', reason: 'auth.invalid' } as const;

  test('waits a minute to see whether another task fails the same way', () => {
    expect(fate(OPEN, revoked)).toMatchObject({ after: MINUTE, charge: { to: 'task' }, verdict: 'auth.invalid' });
  });

  test('is charged to nobody if the source needs a person, who releases its tasks with the source', () => {
    const decision = fate(NEEDS_PERSON, revoked);
    expect(decision).toMatchObject({ next: 'scheduled', after: 9_000, charge: { to: 'source' } });
    expect(decision.because.text).toBe(
      'auth.invalid: its source needs a person, and holds it until it is released. Nothing is charged.',
    );
  });

  test('is retried like any other if the policy says so', () => {
    expect(fate(OPEN, revoked, {}, { permanent: 'retry' })).toMatchObject({ after: 9_000, needsToken: true });
    expect(fate(OPEN, revoked, {}, { rules: { 'auth.invalid': { maxAttempts: 2 } } })).toMatchObject({ after: 9_000 });
  });
});

describe('a Retry-After', () => {
  const tooLong = { kind: 'rate_limited', fault: 'quota', retryAfterMs: 2 * DAY } as const;

  test('longer than maxRetryAfter does not end the task: only its source needs a person', () => {
    const decision = fate(NEEDS_PERSON, tooLong);
    expect(decision).toMatchObject({ next: 'scheduled', after: 9_000, charge: { to: 'source' } });
    expect(fate(NEEDS_PERSON, tooLong, {}, { source: { gate: false } })).toMatchObject({ next: 'needs_manual' });
    expect(fate(OPEN, tooLong)).toMatchObject({ next: 'needs_manual' });
  });

  test('is a deferral of its task, as usual', () => {
    expect(fate(OPEN, { retryAfterMs: HOUR })).toMatchObject({ after: HOUR, charge: { to: 'deferrals' } });
  });
});

test('a check of the source’s health that fails ends no task, however often it fails', () => {
  const outcome = { kind: 'interruption', started: false, message: 'The health check of x failed.' } as const;
  const known = { executions: 5_000, lostInARow: 1 };
  expect(decide(facts({ ...known, source: DOWN }), outcome, presets.standard, 0.5)).toMatchObject({
    next: 'scheduled',
    after: 0,
    charge: { to: 'nobody' },
    lostInARow: 1,
  });
  expect(decide(facts(known), outcome, presets.standard, 0.5)).toMatchObject({ because: { step: 'max_executions' } });
});

test('the memory of sources changes tasks of standard and http_delivery only', () => {
  const on = Object.entries(presets).filter(([, { source }]) => source.gate || source.breaker || source.budget);
  expect(on.map(([name]) => name)).toEqual(['standard', 'httpDelivery']);
  expect(definePolicy({ source: { budget: false } }).source).toEqual({ gate: true, breaker: true, budget: false });
});
