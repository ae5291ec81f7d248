import { describe, expect, test, vi } from 'vitest';
import { classify, outcomeOf } from '../../src/failure/classify/classify.ts';
import { Failed, NeedsManual, PermanentFailure, RateLimited, RetryLater, SIGNAL } from '../../src/failure/signals.ts';

const context = { now: Date.UTC(2026, 0, 1) };

describe('a signal that a handler throws', () => {
  test('PermanentFailure is a permanent failure that no policy retries', () => {
    expect(
      classify(new PermanentFailure('The order is closed.', { reason: 'order.closed', code: 'E42' }), context),
    ).toEqual({
      kind: 'permanent',
      reason: 'order.closed',
      fault: 'task',
      ambiguous: false,
      code: 'E42',
      name: 'PermanentFailure',
      message: 'The order is closed.',
      evidence: { rule: 'signal', field: 'permanent' },
      fingerprint: expect.stringMatching(/^2:[0-9a-f]{13}$/),
      stack: expect.stringContaining('signals.test.ts'),
      word: 'permanent',
    });
  });

  test('NeedsManual asks for a person', () => {
    expect(classify(new NeedsManual(), context)).toMatchObject({
      word: 'needs_manual',
      reason: 'explicit.needs_manual',
      message: 'The handler asked for a person.',
    });
  });

  test('RetryLater is a deferral, not a failure', () => {
    expect(outcomeOf(new RetryLater('10m', 'The report is not ready.', { reason: 'report.pending' }), context)).toEqual(
      {
        kind: 'deferral',
        after: 600_000,
        reason: 'report.pending',
        message: 'The report is not ready.',
      },
    );
    expect(outcomeOf(new RetryLater(0), context)).toMatchObject({ kind: 'deferral', after: 0 });
    expect(outcomeOf(new RetryLater(), context)).toEqual({
      kind: 'deferral',
      reason: 'explicit.later',
      message: 'The handler asked to run later.',
    });
  });

  test('RateLimited is a rate limit of the source’s quota, with or without a wait', () => {
    expect(classify(new RateLimited('90s'), context)).toMatchObject({
      kind: 'rate_limited',
      reason: 'throttled',
      fault: 'quota',
      retryAfterMs: 90_000,
    });
    expect(classify(new RateLimited(), context)).not.toHaveProperty('retryAfterMs');
  });

  test('Failed is a charged failure with the application’s own reason, retryable by default', () => {
    expect(classify(new Failed('No stock.', { reason: 'stock.empty', code: 7 }), context)).toMatchObject({
      kind: 'transient',
      reason: 'stock.empty',
      code: '7',
      fault: 'task',
    });
    expect(classify(new Failed('x'), context)).toMatchObject({ kind: 'transient', reason: 'explicit.failed' });
    expect(classify(new Failed('x', { kind: 'permanent' }), context)).toMatchObject({ kind: 'permanent' });
    expect(classify(new Failed('x', { reason: 'quota.exhausted' }), context)).toMatchObject({ kind: 'permanent' });
    expect(classify(new Failed('x', { reason: 'http.429', kind: 'unknown' }), context)).toMatchObject({
      kind: 'unknown',
    });
    expect(classify(new Failed('x'), context)).not.toHaveProperty('word');
  });

  test.each([
    () => new RetryLater('1m', 'x', { resaon: 'order.open' } as never),
    () => new RetryLater(60 as never),
    () => new PermanentFailure('x', { reason: 'Not A Slug' }),
  ])('that is refused is a charged failure that the policy retries: %s', (make) => {
    expect(() => make()).toThrow();
    try {
      make();
    } catch (error) {
      expect(classify(error, context)).toMatchObject({ kind: 'unknown', fault: 'task', reason: 'explicit.failed' });
    }
  });

  test('is an Error with its own name and cause', () => {
    const cause = new Error('below');
    const error = new NeedsManual('x', { cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'NeedsManual', cause });
    expect(new NeedsManual('x')).not.toHaveProperty('cause');
  });

  test('is refused with an invalid reason, kind or delay', () => {
    expect(() => new Failed('x', { reason: 'Not A Slug' })).toThrow("got 'Not A Slug'");
    expect(() => new Failed('x', { reason: 'x'.repeat(65) })).toThrow('at most 64 characters');
    expect(() => new Failed('x', { reason: 5 as never })).toThrow('got 5.');
    expect(() => new Failed('x', { kind: 'often' as never })).toThrow('got "often"');
    expect(() => new RetryLater('soon')).toThrow(
      "after must be a duration such as '90s', '10m' or 'PT1H', got 'soon'.",
    );
    expect(() => new RateLimited(-1 as never)).toThrow('after must not be negative, got -1.');
  });
});

describe('a signal that was wrapped', () => {
  test('counts in the cause of a cause', () => {
    const error = new Error('sync failed', { cause: new Error('page 3', { cause: new PermanentFailure('gone') }) });
    expect(classify(error, context)).toMatchObject({ word: 'permanent', name: 'Error', message: 'sync failed' });
    expect(
      outcomeOf(new Error('x', { cause: new Error('y', { cause: new RetryLater('5s') }) }), context),
    ).toMatchObject({
      kind: 'deferral',
      after: 5_000,
      message: 'x',
    });
  });

  test('counts among the errors of an AggregateError', () => {
    expect(classify(new AggregateError([new Error('a'), new NeedsManual('b')]), context).word).toBe('needs_manual');
  });

  test('outranks the code of its wrapper and of its cause', () => {
    const wrapper = Object.assign(new Error('x', { cause: new Failed('y', { reason: 'mine' }) }), {
      code: 'ECONNRESET',
    });
    expect(classify(wrapper, context).reason).toBe('mine');
    expect(classify(new Failed('y', { reason: 'mine', cause: { status: 404 } }), context).reason).toBe('mine');
  });

  test('is outranked by a signal that wraps it', () => {
    expect(classify(new PermanentFailure('x', { cause: new NeedsManual('y') }), context).word).toBe('permanent');
  });
});

describe('a signal of another copy of the package', () => {
  test('is recognised, although it is not an instance of our classes', async () => {
    vi.resetModules();
    const copy = await import('../../src/failure/signals.ts');
    expect(copy.PermanentFailure).not.toBe(PermanentFailure);
    const error = new copy.PermanentFailure('gone', { reason: 'order.closed' });
    expect(error).not.toBeInstanceOf(PermanentFailure);
    expect(classify(error, context)).toMatchObject({ word: 'permanent', reason: 'order.closed' });
    expect(outcomeOf(new Error('x', { cause: new copy.RetryLater('5s') }), context)).toMatchObject({ after: 5_000 });
  });

  test.each<[string, unknown]>([
    ['no object', 'permanent'],
    ['nothing', null],
    ['empty', {}],
    ['of a newer kind', { signal: 'hedge', reason: 'x' }],
    ['without a reason', { signal: 'permanent' }],
    ['with a reason that is no slug', { signal: 'permanent', reason: 'No Slug\u0000' }],
    [
      'a Proxy that throws',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('no');
          },
        },
      ),
    ],
  ])('is passed over where it makes no sense: %s', (_, signal) => {
    expect(classify(Object.assign(new Error('x'), { [SIGNAL]: signal }), context)).toMatchObject({ reason: 'unknown' });
  });

  test.each<[string, object, object]>([
    ['a kind', { signal: 'failed', reason: 'x', kind: 'often' }, { kind: 'unknown', reason: 'x' }],
    ['a negative delay', { signal: 'rate_limited', reason: 'x', after: -1 }, { kind: 'rate_limited', reason: 'x' }],
    ['a delay of NaN', { signal: 'rate_limited', reason: 'x', after: Number.NaN }, { kind: 'rate_limited' }],
    ['a code', { signal: 'permanent', reason: 'x', code: { a: 1 } }, { word: 'permanent' }],
  ])('loses %s that makes no sense, and keeps the rest', (_, signal, expected) => {
    const failure = classify({ [SIGNAL]: signal }, context);
    expect(failure).toMatchObject(expected);
    expect(failure).not.toHaveProperty('retryAfterMs');
    expect(failure).not.toHaveProperty('code');
  });
});
