import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { adaptedRetry, type ObservedRetries, waitClass, waitOfClass } from '../../src/failure/adaptive.ts';
import { ceiling, exponential, fixed, linear } from '../../src/failure/backoff.ts';
import { definePolicy } from '../../src/failure/policy.ts';
import { exponentials, linears, rolls } from '../property/policies.ts';
import { charged, decided, failed, SECOND } from './given.ts';

const backoff = exponential({ base: '1s', cap: '5m' });
const next = { backoff, count: 1, left: 7, waited: 0 };

/** Retries after so many seconds, and how many of them succeeded. */
function observed(...all: readonly (readonly [seconds: number, succeeded: number, retries: number])[]) {
  return all.map(([seconds, succeeded, retries]): ObservedRetries => {
    return { waited: waitOfClass(waitClass(seconds * SECOND)), retries, succeeded };
  });
}

const SELDOM_SOON = observed([1, 0, 40], [4, 1, 40], [32, 36, 40]);

describe('adaptive delays', () => {
  test('begin with the delay after which retries succeed, and say what was observed', () => {
    expect(adaptedRetry({ ...next, observed: SELDOM_SOON }, 0.5)).toEqual({
      retry: 4,
      words:
        'adapted to delay 4: of retries for this reason succeeded 0 of 40 after 1s, 1 of 40 after 4s, 36 of 40 after 32s',
    });
  });

  test('are those of the policy where fewer than 20 retries were observed', () => {
    const words = 'not adapted: 19 of the 20 retries that it takes were observed';
    expect(adaptedRetry({ ...next, observed: observed([1, 0, 9], [32, 10, 10]) }, 0.5)).toEqual({ retry: 1, words });
  });

  test.each([
    ['retries succeed as often after a short wait', observed([1, 20, 40], [4, 20, 40], [16, 20, 40])],
    ['no wait helped', observed([1, 0, 40], [4, 0, 40], [16, 0, 40])],
    ['retries succeed at once', observed([1, 39, 40])],
  ])('are those of the policy where %s', (_, seen) => {
    expect(adaptedRetry({ ...next, observed: seen }, 0.5).retry).toBe(1);
  });

  test('are longer where few attempts are left', () => {
    const seen = observed([1, 4, 40], [4, 8, 40], [32, 30, 40]);
    const delays = [11, 1].map((left) => adaptedRetry({ ...next, left, observed: seen }, 0.5).retry);
    expect(delays[1]).toBeGreaterThan(delays[0] as number);
  });

  test('count the waits before: a retry that comes late does not wait as long again', () => {
    const late = { ...next, count: 2, waited: 30 * SECOND, observed: SELDOM_SOON };
    expect(ceiling(backoff, adaptedRetry(late, 0.5).retry)).toBeLessThan(30 * SECOND);
  });

  test('keep the delay of the policy for one retry in ten', () => {
    const kept = Array.from({ length: 1_000 }, (_, i) =>
      adaptedRetry({ ...next, observed: SELDOM_SOON }, (i + 0.5) / 1_237),
    );
    const share = kept.filter(({ words }) => words === 'not adapted, as one retry in ten').length / 1_000;
    expect(share).toBeGreaterThan(0.08);
    expect(share).toBeLessThan(0.12);
  });

  test('are always delays of the policy, never shorter than its own, whatever was observed', () => {
    const seen = fc.array(
      fc.record({
        waited: fc.integer({ min: -10, max: 30 }).map(waitOfClass),
        retries: fc.nat(99),
        part: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    );
    const cases = fc.tuple(
      fc.oneof(exponentials, linears),
      fc.integer({ min: 1, max: 12 }),
      fc.nat(12),
      fc.nat(1e7),
      seen,
      rolls,
    );
    fc.assert(
      fc.property(cases, ([chosen, count, left, waited, all, roll]) => {
        const given = all.map(({ part, ...one }) => ({ ...one, succeeded: Math.floor(part * one.retries) }));
        const { retry } = adaptedRetry({ backoff: chosen, count, left: left + 1, waited, observed: given }, roll);
        expect(retry).toBeGreaterThanOrEqual(count);
        expect(ceiling(chosen, retry)).toBeGreaterThanOrEqual(ceiling(chosen, count));
      }),
      { numRuns: 200 },
    );
  });

  test('are decided, and their inputs kept, only if the policy says adaptive', () => {
    const policy = definePolicy({ backoff, jitter: 'none', maxAttempts: 8 });
    const known = { observed: SELDOM_SOON, charged: [{ ...charged(1), delayMs: SECOND }] };
    expect(decided(failed(), policy, known)).toMatchObject({ after: 2_000 });
    const { after, because } = decided(failed(), definePolicy({ adaptive: true }, policy), known);
    expect(after).toBe(8_000);
    expect(because.formula).toMatch(/^exponential 1s ×2 ≤ 5m, retry 2, adapted to delay 4: .*1 of 40 after 4s/);
    const ofRule = definePolicy({ rules: { 'app.broke': { adaptive: true } } }, policy);
    expect(decided(failed(), ofRule, known).after).toBe(8_000);
    expect(decided(failed({ reason: 'app.other' }), ofRule, known).after).toBe(2_000);
  });

  test('are shorter than what the other side asks for', () => {
    const policy = definePolicy({ backoff, adaptive: true, jitter: 'none' });
    expect(decided(failed({ retryAfterMs: 90_000 }), policy, { observed: SELDOM_SOON }).after).toBe(90_000);
  });

  test.each([fixed('5s'), linear({ step: '5s', cap: '5s' }), 'immediate' as const])(
    'are refused where all delays are the same',
    (same) => {
      expect(() => definePolicy({ adaptive: true, backoff: same })).toThrow('adaptive has no effect with this backoff');
    },
  );
});
