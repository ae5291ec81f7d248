import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Pace } from '../../src/pace.ts';
import { nextStartAfter, startsAllowed, stricter, underPace } from '../../src/starts.ts';

const paces: fc.Arbitrary<Pace> = fc.record({
  perSecond: fc.constantFrom(0.01, 0.3, 1, 7, 50, 2_000),
  burst: fc.integer({ min: 1, max: 9 }),
});
const waits = fc.array(fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 100_000 })), {
  minLength: 1,
  maxLength: 40,
});

/** Starts as many as are allowed after each wait, and answers when. */
function startsOf(pace: Pace, pauses: readonly number[]): number[] {
  let next: number | null = null;
  let now = 1_000_000;
  return pauses.flatMap((pause) => {
    now += pause;
    const count = startsAllowed(pace, next, now);
    if (count > 0) next = nextStartAfter(pace, next, count, now);
    return Array<number>(count).fill(now);
  });
}

describe('a pace', () => {
  test('lets no more start in any span than its rate allows, and a burst', () => {
    fc.assert(
      fc.property(paces, waits, (pace, pauses) => {
        const starts = startsOf(pace, pauses);
        starts.forEach((from, first) => {
          starts.slice(first).forEach((to, n) => {
            expect(n + 1).toBeLessThanOrEqual(pace.burst + ((to - from) * pace.perSecond) / 1_000 + 1e-6);
          });
        });
      }),
    );
  });

  test('allows a start at the time that it names, and none before', () => {
    fc.assert(
      fc.property(paces, fc.integer({ min: 1, max: 9 }), (pace, count) => {
        const next = nextStartAfter(pace, null, Math.min(count, pace.burst), 1_000_000);
        expect(startsAllowed(pace, next, Math.ceil(next))).toBeGreaterThanOrEqual(1);
        if (next > 1_000_000) expect(startsAllowed(pace, next, Math.ceil(next) - 1)).toBe(0);
      }),
    );
  });

  test('lets one start that was never used, and a whole burst after a long pause', () => {
    fc.assert(
      fc.property(paces, (pace) => {
        expect(startsAllowed(pace, null, 5)).toBe(1);
        const next = nextStartAfter(pace, null, 1, 0);
        expect(startsAllowed(pace, next, 10_000_000)).toBe(pace.burst);
      }),
    );
  });

  test('that replaces a slower one holds nothing back for longer than its own interval', () => {
    expect(underPace({ perSecond: 10, burst: 1 }, 3_600_000, 1_000)).toBe(1_100);
    expect(underPace({ perSecond: 10, burst: 1 }, 1_050, 1_000)).toBe(1_050);
  });

  test('of two the slower counts, with the smaller burst', () => {
    expect(stricter({ perSecond: 10, burst: 1 }, { perSecond: 2, burst: 5 })).toEqual({ perSecond: 2, burst: 1 });
    expect(stricter(undefined, { perSecond: 2, burst: 5 })).toEqual({ perSecond: 2, burst: 5 });
    expect(stricter(undefined, undefined)).toBeUndefined();
  });
});
