import { expect, test } from 'vitest';

/*
 * When to look whether something has recovered (Barlow, Hunter and Proschan 1963; Keller 1974): a look costs c1, and a second in which it
 * had recovered and nobody knew costs c2. The time between two looks follows from the chance of recovery. The spacing of probes of a source
 * that is down stands against it: with a chance that falls as 1/t, the best spacing grows as the square root of the time.
 */

/** Of a recovery at a constant rate: the fixed spacing of looks that costs least, found by looking at many. */
function bestSpacing(rate: number, c1: number): number {
  const costOf = (spacing: number) => {
    // Looks until the first one after the recovery, and the mean time between the recovery and that look.
    const looks = 1 / (1 - Math.exp(-rate * spacing));
    return c1 * looks + looks * spacing - 1 / rate;
  };
  let [low, high] = [0.01, 1_000];
  const golden = (Math.sqrt(5) - 1) / 2;
  while (high - low > 1e-9) {
    const [a, b] = [high - golden * (high - low), low + golden * (high - low)];
    if (costOf(a) < costOf(b)) high = b;
    else low = a;
  }
  return (low + high) / 2;
}

test.each([
  [1, 10.631],
  [5, 22.936],
  [10, 31.605],
])('at one recovery a minute and a price of %d s a look, the best spacing is %d s', (c1, published) => {
  const rate = 1 / 60;
  const best = bestSpacing(rate, c1);
  expect(best).toBeCloseTo(published, 3);
  // The closed form, and Keller's approximation of it.
  expect(Math.exp(rate * best) - rate * best).toBeCloseTo(1 + rate * c1, 6);
  expect(Math.abs(Math.sqrt((2 * c1) / rate) / best - 1)).toBeLessThan(0.1);
});

test('where recovery is equally likely at any time up to T, each interval is c1 / c2 shorter than the one before', () => {
  const [T, c1] = [600, 10];
  const looks = Math.max(...Array.from({ length: 100 }, (_, n) => n).filter((n) => n * (n - 1) < (2 * T) / c1));
  const first = T / looks + (c1 * (looks - 1)) / 2;
  const intervals = Array.from({ length: looks }, (_, i) => first - i * c1);
  expect(intervals.reduce((sum, each) => sum + each, 0)).toBeCloseTo(T, 9);
  expect(intervals.at(-1)).toBeGreaterThan(0);

  const costOf = (spacing: readonly number[]) => {
    let [from, cost] = [0, 0];
    for (const [i, interval] of spacing.entries()) {
      cost += (interval / T) * (c1 * (i + 1) + interval / 2);
      from += interval;
    }
    expect(from).toBeCloseTo(T, 6);
    return cost;
  };
  const best = costOf(intervals);
  for (const [i, j] of [
    [0, 1],
    [2, 5],
    [looks - 1, 0],
  ] as const) {
    for (const shift of [-1, 1]) {
      const other = intervals.map((each, k) => each + (k === i ? shift : k === j ? -shift : 0));
      expect(costOf(other)).toBeGreaterThan(best);
    }
  }
});
