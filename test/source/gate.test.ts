import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE, Told } from './given.ts';

describe('a Retry-After', () => {
  test('holds all tasks of its source until then, and after that they start slowly', () => {
    for (const kind of ['rate_limited', 'source_failure'] as const) {
      const source = new Told();
      const { change } = source.after(0, kind, { retryAfter: 10 * MINUTE });
      expect(change?.restriction).toEqual({
        cause: 'rate_limit',
        shutFor: 10 * MINUTE,
        ramping: true,
        pace: { perSecond: 1, burst: 1 },
      });
    }
  });

  test('is no evidence of an outage', () => {
    const source = new Told();
    for (let task = 1; task < 10; task++) source.after(HOUR, 'source_failure', { task, retryAfter: MINUTE });
    expect(source.phase).toBe('ramping');
  });

  test('of two holds the source for the longer one', () => {
    const source = new Told();
    source.after(0, 'rate_limited', { retryAfter: 10 * MINUTE });
    source.after(MINUTE, 'rate_limited', { task: 2, startedAgo: 2 * MINUTE, retryAfter: MINUTE });
    expect(source.ramping.shutFor).toBe(9 * MINUTE);
    source.after(MINUTE, 'rate_limited', { task: 3, startedAgo: 3 * MINUTE, retryAfter: HOUR });
    expect(source.ramping.shutFor).toBe(HOUR);
  });

  test('is not cut short by an execution that had started before and is answered now', () => {
    const source = new Told();
    source.after(0, 'rate_limited', { retryAfter: 10 * MINUTE });
    source.after(MINUTE, 'success', { task: 2, startedAgo: 2 * MINUTE, drained: true });
    expect(source.ramping.shutFor).toBe(9 * MINUTE);
  });

  test('that is over leaves nothing behind as soon as nothing waits', () => {
    const source = new Told();
    source.after(0, 'rate_limited', { retryAfter: MINUTE });
    source.after(MINUTE, 'success', { drained: true });
    expect(source.memory).toBeUndefined();
  });

  test('longer than maxRetryAfter needs a person for the source', () => {
    const source = new Told();
    const { source: facts } = source.after(0, 'rate_limited', { retryAfter: 2 * DAY });
    expect(facts.standing).toBe('needs_person');
    expect(source.memory?.phase).toMatchObject({ why: 'long_retry_after' });
  });

  test('of zero, or none, holds nothing', () => {
    const source = new Told();
    source.after(0, 'rate_limited', { retryAfter: 0 });
    source.after(0, 'rate_limited');
    expect(source.memory).toBeUndefined();
  });

  test('holds nothing where its tasks switched the gate off', () => {
    const source = new Told();
    const switches = { gate: false, breaker: true, budget: true };
    source.after(0, 'rate_limited', { retryAfter: HOUR, switches });
    expect(source.memory).toBeUndefined();
  });

  test('again and again without an answer between needs a person after seven days', () => {
    const source = new Told();
    for (let day = 0; day < 7; day++) source.after(DAY, 'rate_limited', { task: day, retryAfter: DAY });
    expect(source.phase).toBe('ramping');
    source.after(DAY, 'rate_limited', { task: 8, retryAfter: DAY });
    expect(source.memory?.phase).toMatchObject({ name: 'needs_person', why: 'held_too_long' });
  });

  test('after an answer counts anew', () => {
    const source = new Told();
    for (let day = 0; day < 30; day++) {
      source.after(DAY, 'rate_limited', { task: day, retryAfter: DAY });
      source.after(DAY, 'success', { task: day + 100 });
    }
    expect(source.phase).toBe('ramping');
    expect(source.ramping.ramp.rate).toBeGreaterThanOrEqual(1 / 60);
  });
});

describe('a limit that a source names in its answers', () => {
  const left = (remaining: number, resetsIn = 10 * MINUTE) => ({ rateLimit: { remaining, resetsIn } });

  test('holds nothing while much of it is left, and nothing is written', () => {
    const source = new Told();
    expect(source.after(0, 'success', left(21)).change).toBeUndefined();
    expect(source.after(0, 'success', left(5, 9_000)).change).toBeUndefined();
  });

  test('is spread over the time until it resets when little of it is left', () => {
    const source = new Told();
    const { change } = source.after(0, 'success', left(10));
    expect(change?.restriction).toEqual({ cause: 'rate_limit', pace: { perSecond: 0.015, burst: 1 } });
  });

  test('is forgotten when it resets', () => {
    const source = new Told();
    source.after(0, 'success', left(10));
    expect(source.after(10 * MINUTE, 'success').change).toEqual({ tokens: 0.1, refunds: [] });
    source.after(0, 'success', left(10));
    source.after(MINUTE, 'success', left(5_000));
    expect(source.memory).toBeUndefined();
  });

  test('that is used up holds the source until it resets, also after a success', () => {
    const source = new Told();
    const { change } = source.after(0, 'success', left(0));
    expect(change?.restriction).toMatchObject({ cause: 'rate_limit', shutFor: 10 * MINUTE, ramping: true });
  });

  test('is not looked at where the gate is off, or where it resets later than maxRetryAfter', () => {
    const source = new Told();
    const switches = { gate: false, breaker: true, budget: true };
    source.after(0, 'success', { ...left(0), switches });
    source.after(0, 'success', left(0, 30 * DAY));
    expect(source.memory).toBeUndefined();
  });

  test('does not open a source that is down', () => {
    const source = new Told();
    source.after(0, 'source_failure', { task: 1 });
    source.after(MINUTE, 'source_failure', { task: 2, ...left(0) });
    expect(source.phase).toBe('probing');
  });
});

test('a source that asks for short pauses again and again is not slowed down beyond those', () => {
  const source = new Told();
  for (let task = 1; task <= 20; task++) source.after(3_000, 'rate_limited', { task, retryAfter: 3_000 });
  expect(source.ramping).toMatchObject({ shutFor: 3_000, ramp: { rate: 1 } });
});
