import { describe, expect, test } from 'vitest';
import { LONGEST } from '../../src/duration.ts';
import { InvalidInputError } from '../../src/errors.ts';
import {
  type Backoff,
  ceiling,
  custom,
  describeBackoff,
  exponential,
  fixed,
  immediate,
  linear,
  none,
  parseBackoff,
  schedule,
} from '../../src/failure/backoff.ts';
import { jittered, jitteredAbove, parseJitter, proportional } from '../../src/failure/jitter.ts';

function ceilings(backoff: Backoff, retries: number): number[] {
  return Array.from({ length: retries }, (_, i) => ceiling(backoff, i + 1));
}

describe('backoff', () => {
  test('of exponential: the first retry waits base, each next one factor times as long, up to the cap', () => {
    expect(ceilings(exponential({ base: '1s', cap: '10s' }), 6)).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    expect(ceilings(exponential({ base: '1s', factor: 3, cap: '1h' }), 3)).toEqual([1_000, 3_000, 9_000]);
    expect(ceilings(exponential({ base: '100ms', factor: 1.5, cap: '1h' }), 4)).toEqual([100, 150, 225, 338]);
  });

  test('of exponential with factor 1, or with base 0, stays where it is', () => {
    expect(ceilings(exponential({ base: '3s', factor: 1 }), 3)).toEqual([3_000, 3_000, 3_000]);
    expect(ceilings(exponential({ base: 0 }), 3)).toEqual([0, 0, 0]);
  });

  test('has a cap of one hour by default, or the first delay if that is longer', () => {
    expect(ceiling(exponential({ base: '1s' }), 100)).toBe(3_600_000);
    expect(ceiling(linear({ step: '1m' }), 1_000)).toBe(3_600_000);
    expect(ceiling(exponential({ base: '2h' }), 5)).toBe(7_200_000);
  });

  test('of linear: retry k waits k steps, up to the cap', () => {
    expect(ceilings(linear({ step: '1m', cap: '150s' }), 4)).toEqual([60_000, 120_000, 150_000, 150_000]);
  });

  test('of fixed: every retry waits the same', () => {
    expect(ceilings(fixed('90s'), 3)).toEqual([90_000, 90_000, 90_000]);
  });

  test('of a schedule: retry k waits the k-th delay, and the last one repeats', () => {
    expect(ceilings(schedule(['5m', '15m', '60m']), 5)).toEqual([300_000, 900_000, 3_600_000, 3_600_000, 3_600_000]);
  });

  test('of immediate is 0', () => {
    expect(ceilings(immediate, 3)).toEqual([0, 0, 0]);
  });

  test('of a custom function is what it returns for the number of the retry', () => {
    expect(
      ceilings(
        custom('squares', (k) => k * k * 1_000),
        3,
      ),
    ).toEqual([1_000, 4_000, 9_000]);
  });

  test.each<[string, () => number, number]>([
    ['NaN', () => Number.NaN, 0],
    ['a negative number', () => -5, 0],
    ['no number', () => 'soon' as never, 0],
    [
      'a throw',
      () => {
        throw new Error('no');
      },
      0,
    ],
    ['infinity', () => Number.POSITIVE_INFINITY, LONGEST],
    ['a fraction', () => 1.6, 2],
  ])('turns %s from a function of one’s own into a delay that a store can write', (_, delay, ms) => {
    expect(ceiling(custom('odd', delay), 1)).toBe(ms);
  });

  test('describes its formula in words', () => {
    const words = [
      exponential({ base: '5m', cap: '24h' }),
      linear({ step: '1s', cap: '1m' }),
      fixed('90s'),
      schedule(['5m', '15m']),
      immediate,
      none,
      custom('mine', () => 1),
    ].map(describeBackoff);
    expect(words).toEqual([
      'exponential 5m ×2 ≤ 1d',
      'linear 1s ≤ 1m',
      'fixed 1m30s',
      'schedule 5m, 15m',
      'immediate',
      'none',
      'custom mine',
    ]);
  });

  test.each<[string, () => unknown, string]>([
    [
      'a factor below 1',
      () => exponential({ base: '1s', factor: 0.5 }),
      'factor must be a number of at least 1, got 0.5.',
    ],
    ['a factor that is text', () => exponential({ base: '1s', factor: '2' as never }), "got '2'."],
    ['a factor that is NaN', () => exponential({ base: '1s', factor: Number.NaN }), 'got NaN.'],
    ['an infinite factor', () => exponential({ base: '1s', factor: Infinity }), 'got Infinity.'],
    ['a cap below the base', () => exponential({ base: '1m', cap: '1s' }), 'got 1s below 1m'],
    ['a cap below the step', () => linear({ step: '1m', cap: '1s' }), 'cap must not be below step'],
    ['a base that is no duration', () => exponential({ base: 'soon' }), 'base must be a duration such as'],
    ['a base that is missing', () => exponential({} as never), 'got undefined.'],
    ['a negative delay', () => fixed(-1 as never), 'delay must not be negative, got -1.'],
    ['a delay of NaN', () => fixed(Number.NaN as never), 'got NaN.'],
    ['a delay beyond ten years', () => fixed('4000d'), "delay must be at most ten years, got '4000d'."],
    ['an empty schedule', () => schedule([]), 'got [].'],
    ['a schedule that is no list', () => schedule('5m' as never), "got '5m'."],
    ['a schedule with a hole', () => schedule(new Array(2)), 'delay 1 must be a duration'],
    ['a delay of a schedule', () => schedule(['5m', 'x']), 'delay 2 must be a duration'],
    ['a custom one without a name', () => custom('', () => 1), "got ''."],
    ['a custom one without a function', () => custom('mine', undefined as never), 'got undefined.'],
  ])('refuses %s, and shows it', (_, build, message) => {
    expect(build).toThrow(InvalidInputError);
    expect(build).toThrow(
      expect.objectContaining({ code: 'invalid_policy', message: expect.stringContaining(message) }),
    );
  });

  test('read from data equals that of its function', () => {
    expect(parseBackoff({ kind: 'exponential', base: '5s', cap: '1h' })).toEqual(
      exponential({ base: '5s', cap: '1h' }),
    );
    expect(parseBackoff({ kind: 'linear', step: '5s' })).toEqual(linear({ step: '5s' }));
    expect(parseBackoff({ kind: 'schedule', delays: ['5m'] })).toEqual(schedule(['5m']));
    for (const backoff of [fixed('5ms'), immediate, none, custom('mine', (k) => k)]) {
      expect(parseBackoff(backoff)).toEqual(backoff);
    }
  });

  test.each<[unknown, string]>([
    [undefined, 'write a backoff such as exponential('],
    ['exponential', "got 'exponential'."],
    [{ kind: 'exponentiel' }, "got 'exponentiel'."],
    [{ kind: 'toString' }, "got 'toString'."],
    [{}, 'got {}.'],
    [{ kind: 'exponential' }, 'base must be a duration'],
    [
      { kind: 'exponential', base: 1, max: '1h' },
      "a backoff of kind 'exponential' has no option 'max'. It has: kind, base, factor, cap. Did you mean 'cap'?",
    ],
    [{ kind: 'immediate', delay: 5 }, "has no option 'delay'. It has: kind."],
    [{ kind: 'fixed', delay: '5' }, "got '5'."],
    [{ kind: 'custom', name: 'mine' }, "The custom backoff 'mine' needs a function"],
  ])('read from data refuses %o, and shows it', (value, message) => {
    expect(() => parseBackoff(value)).toThrow(message);
  });
});

describe('jitter', () => {
  const rolls = [0, 0.5, 0.999_999_999];

  function drawn(kind: Parameters<typeof jittered>[1], delay = 10_000): number[] {
    return rolls.map((roll) => jittered(delay, kind, roll).delay);
  }

  test('none leaves a delay as it is, and draws nothing', () => {
    expect(drawn({ kind: 'none' })).toEqual([10_000, 10_000, 10_000]);
    expect(jittered(10_000, { kind: 'none' }, 0.3)).toEqual({ delay: 10_000, low: 10_000, high: 10_000 });
  });

  test('proportional spreads by its factor to both sides', () => {
    expect(drawn(proportional(0.1))).toEqual([9_000, 10_000, 11_000]);
    expect(drawn(proportional(1))).toEqual([0, 10_000, 20_000]);
    expect(drawn(proportional(0))).toEqual([10_000, 10_000, 10_000]);
  });

  test('full spreads between 0 and the delay', () => {
    expect(drawn({ kind: 'full' })).toEqual([0, 5_000, 10_000]);
  });

  test('equal keeps half and spreads the other half', () => {
    expect(drawn({ kind: 'equal' })).toEqual([5_000, 7_500, 10_000]);
  });

  test('is spread after the cap, so a capped delay may be longer than the cap', () => {
    const capped = ceiling(exponential({ base: '1s', cap: '5m' }), 50);
    expect(jittered(capped, proportional(0.1), 0.999_999_999).delay).toBe(330_000);
  });

  test('leaves a delay of zero at zero', () => {
    for (const jitter of [proportional(0.5), { kind: 'full' }, { kind: 'equal' }] as const) {
      expect(jittered(0, jitter, 0.7)).toEqual({ delay: 0, low: 0, high: 0 });
    }
  });

  test('gives the density of the draw, per millisecond', () => {
    expect(jittered(10_000, { kind: 'full' }, 0.25)).toEqual({ delay: 2_500, low: 0, high: 10_000, density: 1e-4 });
  });

  test('never draws beyond ten years', () => {
    expect(jittered(LONGEST, proportional(1), 0.999).high).toBe(LONGEST);
    expect(jitteredAbove(LONGEST, { kind: 'full' }, 0.999)).toEqual({ delay: LONGEST, low: LONGEST, high: LONGEST });
  });

  test('only adds to a delay that a server asked for', () => {
    const range = (jitter: Parameters<typeof jittered>[1]) => {
      const { low, high } = jitteredAbove(60_000, jitter, 0.5);
      return [low, high];
    };
    expect(range({ kind: 'none' })).toEqual([60_000, 60_000]);
    expect(range(proportional(0.2))).toEqual([60_000, 72_000]);
    expect(range({ kind: 'full' })).toEqual([60_000, 120_000]);
    expect(range({ kind: 'equal' })).toEqual([60_000, 90_000]);
  });

  test('adds at most five minutes to what a server asked for', () => {
    expect(jitteredAbove(86_400_000, { kind: 'full' }, 0.999_999_999).high).toBe(86_400_000 + 300_000);
  });

  test('draws from what is left above a floor, so that its density stays true', () => {
    expect(jittered(10_000, { kind: 'full' }, 0, 4_000)).toEqual({
      delay: 4_000,
      low: 4_000,
      high: 10_000,
      density: 1 / 6_000,
    });
    expect(jittered(10_000, { kind: 'none' }, 0, 12_000).delay).toBe(12_000);
  });

  test.each<[unknown, string]>([
    [1.5, 'got 1.5.'],
    [-0.1, 'got -0.1.'],
    [Number.NaN, 'got NaN.'],
    ['0.1', "got '0.1'."],
  ])('refuses a proportional factor of %o', (factor, message) => {
    expect(() => proportional(factor as number)).toThrow(message);
    expect(() => parseJitter({ kind: 'proportional', factor })).toThrow(message);
  });

  test('read from data refuses an unknown kind and stray fields', () => {
    expect(parseJitter({ kind: 'full' })).toEqual({ kind: 'full' });
    expect(parseJitter(proportional(0.3))).toEqual(proportional(0.3));
    for (const given of [0.1, '10%']) expect(parseJitter(given)).toEqual(proportional(0.1));
    for (const kind of ['none', 'full', 'equal']) expect(parseJitter(kind)).toEqual({ kind });
    expect(() => parseJitter('ful')).toThrow(
      "it must be none, full, equal, a part from 0 to 1 or a percentage, got 'ful'.",
    );
    expect(() => parseJitter({ kind: 'decorrelated' })).toThrow("got 'decorrelated'.");
    expect(() => parseJitter({ kind: 'full', factor: 0.2 })).toThrow("has no option 'factor'. It has: kind.");
  });
});
