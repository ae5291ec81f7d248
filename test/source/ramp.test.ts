import { describe, expect, test } from 'vitest';
import { presets } from '../../src/failure/presets.ts';
import { observe } from '../../src/source/observe.ts';
import { HOUR, MINUTE, ramping, SECOND, seen, type Told } from './given.ts';

/** Answers as fast as the rate allows. Returns the rate after each second. */
function answersFor(source: Told, seconds: number, startedAgo = 0): number[] {
  const rates: number[] = [];
  for (let passed = 0, next = 1; passed < seconds; ) {
    const pause = 1 / source.ramping.ramp.rate;
    passed += pause;
    source.after(pause * SECOND, 'success', { startedAgo });
    for (; next <= passed; next++) rates.push(source.ramping.ramp.rate);
  }
  return rates;
}

describe('while a source ramps', () => {
  test('its rate begins at 1/s and grows by a half each second at most', () => {
    const rates = answersFor(ramping(), 8);
    expect(rates[0]).toBeLessThanOrEqual(2);
    for (const [i, rate] of rates.entries()) expect(rate).toBeLessThanOrEqual(1.7 * (rates[i - 1] ?? 1));
    expect(rates.at(-1)).toBeGreaterThan(20);
  });

  test('its rate grows more slowly where an execution takes long to tell', () => {
    const quick = answersFor(ramping(), 6).at(-1) as number;
    const slow = answersFor(ramping(), 6, 5 * SECOND).at(-1) as number;
    expect(slow).toBeLessThan(quick / 3);
  });

  test('a rate limit lowers its rate, once for all executions that had started before', () => {
    const source = ramping();
    answersFor(source, 8);
    const { rate } = source.ramping.ramp;
    source.after(0, 'rate_limited', { startedAgo: 100 });
    const lowered = source.ramping.ramp.rate;
    expect(lowered).toBeLessThan(0.75 * rate);
    expect(source.after(50, 'rate_limited', { startedAgo: 100 }).change).toBeUndefined();
    source.after(0, 'rate_limited', { startedAgo: 10 });
    expect(source.ramping.ramp.rate).toBeLessThan(lowered);
  });

  test('its rate comes back to what the source could do, and stays near it', () => {
    const source = ramping();
    answersFor(source, 8);
    source.after(0, 'rate_limited');
    const { ceiling } = source.ramping.ramp.throttle as { ceiling: number };
    const rates = answersFor(source, 20);
    expect(rates[13]).toBeGreaterThan(0.99 * ceiling);
    expect(rates[19]).toBeLessThan(1.02 * ceiling);
  });

  test('a rate limit after a calm time lowers its rate by a twentieth only', () => {
    const source = ramping();
    answersFor(source, 8);
    source.after(0, 'rate_limited');
    answersFor(source, 20);
    const { rate } = source.ramping.ramp;
    source.after(0, 'rate_limited');
    expect(source.ramping.ramp.rate).toBeGreaterThan(0.85 * rate);
  });

  test('its rate finds a capacity that has grown meanwhile', () => {
    const source = ramping();
    answersFor(source, 8);
    source.after(0, 'rate_limited');
    const { ceiling } = source.ramping.ramp.throttle as { ceiling: number };
    expect(answersFor(source, 60).at(-1)).toBeGreaterThan(1.5 * ceiling);
  });

  test('its rate never falls below one start a minute, and grows again from there', () => {
    const source = ramping();
    for (let i = 0; i < 100; i++) source.after(MINUTE, 'rate_limited');
    expect(source.ramping.ramp.rate).toBeCloseTo(1 / 60, 5);
    for (let i = 0; i < 200; i++) source.after(SECOND / source.ramping.ramp.rate, 'success');
    expect(source.ramping.ramp.rate).toBeGreaterThan(0.1);
  });

  test('a rate that limits nothing for a minute is not enforced any more, and nothing is written for further answers', () => {
    const source = ramping();
    for (let passed = 0; passed < 3 * MINUTE; passed += SECOND) source.after(SECOND, 'success');
    expect(source.ramping.ramp.free).toBe(true);
    const { change } = source.after(SECOND, 'success');
    expect(change).toBeUndefined();
    const throttled = observe(source.memory, seen('rate_limited'), 0.5);
    expect(throttled.change?.restriction?.pace?.perSecond).toBeLessThan(10);
    source.after(6 * HOUR, 'success');
    expect(source.phase).toBe('closed');
  });

  test('its rate does not run away from what the source really answers', () => {
    const source = ramping();
    for (let passed = 0; passed < 50; passed++) source.after(SECOND / 10, 'success');
    for (let passed = 0; passed < 500; passed++) source.after(SECOND / 20, 'success');
    expect(source.ramping.ramp.rate).toBeLessThanOrEqual(2.6 * 20);
  });

  test('a failure of the task counts as an answer, and an unknown one does not', () => {
    const source = ramping();
    source.after(SECOND, 'task_failure');
    expect(source.ramping.ramp.rate).toBe(1.5);
    expect(source.after(SECOND, 'inconclusive').change).toBeUndefined();
  });

  test('an answer soon after a rate limit does not close it, though nothing waits: refused tasks come again', () => {
    const source = ramping();
    source.after(SECOND, 'rate_limited');
    source.after(SECOND, 'success', { drained: true });
    expect(source.phase).toBe('ramping');
    source.after(MINUTE, 'success', { drained: true });
    expect(source.phase).toBe('closed');
  });

  test('a Retry-After shuts it first, and it goes on with a lower rate', () => {
    const source = ramping();
    answersFor(source, 8);
    const { rate } = source.ramping.ramp;
    source.after(0, 'rate_limited', { retryAfter: MINUTE, maxRetryAfter: presets.standard.maxRetryAfter });
    expect(source.ramping.shutFor).toBe(MINUTE);
    expect(source.ramping.ramp.rate).toBeLessThan(rate);
    expect(source.ramping.ramp.rate).toBeGreaterThan(rate / 4);
  });
});
