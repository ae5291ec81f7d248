import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LONGEST } from '../../src/duration.ts';
import { ceiling } from '../../src/failure/backoff.ts';
import { type Drawn, type Jitter, jittered, jitteredAbove, WIDEST_ABOVE_FLOOR } from '../../src/failure/jitter.ts';
import { backoffs, exponentials, jitters, linears, rolls, spans } from './policies.ts';

const retries = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(1_024, 2_000, 10_000, 2 ** 31));

describe('every backoff', () => {
  test('gives a whole delay between nothing and ten years, however often it is asked', () => {
    fc.assert(
      fc.property(backoffs, retries, (backoff, k) => {
        const delay = ceiling(backoff, k);
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(LONGEST);
      }),
    );
  });

  test('that is exponential or linear never falls, and ends at its cap', () => {
    fc.assert(
      fc.property(fc.oneof(exponentials, linears), fc.integer({ min: 1, max: 60 }), (backoff, k) => {
        const delay = ceiling(backoff, k);
        expect(ceiling(backoff, k + 1)).toBeGreaterThanOrEqual(delay);
        expect(delay).toBeLessThanOrEqual((backoff as { cap: number }).cap);
      }),
    );
  });

  test('that is exponential waits its base first', () => {
    fc.assert(
      fc.property(exponentials, (backoff) => {
        expect(ceiling(backoff, 1)).toBe((backoff as { base: number }).base);
      }),
    );
  });
});

describe('every jitter', () => {
  function within({ delay, low, high, density }: Drawn): void {
    for (const ms of [delay, low, high]) expect(Number.isSafeInteger(ms)).toBe(true);
    expect(delay).toBeGreaterThanOrEqual(low);
    expect(delay).toBeLessThanOrEqual(high);
    expect(low).toBeGreaterThanOrEqual(0);
    expect(high).toBeLessThanOrEqual(LONGEST);
    if (density === undefined) expect(low).toBe(high);
    else expect(density * (high - low)).toBeCloseTo(1, 12);
  }

  function bounds(delay: number, jitter: Jitter): [number, number] {
    switch (jitter.kind) {
      case 'none':
        return [delay, delay];
      case 'proportional':
        return [delay * (1 - jitter.factor), delay * (1 + jitter.factor)];
      case 'full':
        return [0, delay];
      case 'equal':
        return [delay / 2, delay];
    }
  }

  test('draws between its bounds, and says how likely the draw was', () => {
    fc.assert(
      fc.property(spans, jitters, rolls, (delay, jitter, roll) => {
        const drawn = jittered(delay, jitter, roll);
        within(drawn);
        const [low, high] = bounds(delay, jitter);
        expect([drawn.low, drawn.high]).toEqual([Math.round(low), Math.min(Math.round(high), LONGEST)]);
      }),
    );
  });

  test('never draws below a floor', () => {
    fc.assert(
      fc.property(spans, jitters, rolls, spans, (delay, jitter, roll, floor) => {
        const drawn = jittered(delay, jitter, roll, floor);
        within(drawn);
        expect(drawn.low).toBeGreaterThanOrEqual(floor);
      }),
    );
  });

  test('above what a server asked for only adds, five minutes at most', () => {
    fc.assert(
      fc.property(spans, jitters, rolls, (floor, jitter, roll) => {
        const drawn = jitteredAbove(floor, jitter, roll);
        within(drawn);
        expect(drawn.low).toBe(floor);
        expect(drawn.high - floor).toBeLessThanOrEqual(WIDEST_ABOVE_FLOOR);
      }),
    );
  });

  test('draws later for a higher roll', () => {
    fc.assert(
      fc.property(spans, jitters, rolls, rolls, (delay, jitter, a, b) => {
        const [less, more] = [Math.min(a, b), Math.max(a, b)];
        expect(jittered(delay, jitter, less).delay).toBeLessThanOrEqual(jittered(delay, jitter, more).delay);
      }),
    );
  });

  test('full spreads a thousand failures of one moment evenly: no 1 % of the delay gets more than 3 % of them', () => {
    const counts = new Array<number>(100).fill(0);
    for (let i = 0; i < 1_000; i++) {
      // Every roll in a shuffled order, as good dice would give them.
      const { delay } = jittered(10_000, { kind: 'full' }, (i * 0.618_033_988_749_895) % 1);
      const bucket = Math.min(99, Math.floor(delay / 100));
      counts[bucket] = (counts[bucket] as number) + 1;
    }
    expect(Math.max(...counts)).toBeLessThanOrEqual(30);
  });
});
