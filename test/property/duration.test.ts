import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { duration, formatDuration, LONGEST, span } from '../../src/duration.ts';
import { InvalidInputError } from '../../src/errors.ts';

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

describe('reading a duration', () => {
  test.each<[number | string, number]>([
    [0, 0],
    [1_500, 1_500],
    [1.4, 1],
    ['0s', 0],
    ['450ms', 450],
    ['90s', 90_000],
    ['10m', 600_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['2d', 172_800_000],
    ['1w', 604_800_000],
    [' 5s ', 5_000],
    ['PT15M', 900_000],
    ['PT0.5S', 500],
    ['P1DT2H', 93_600_000],
    ['P2W', 1_209_600_000],
    ['3650d', LONGEST],
  ])('takes %j', (input, ms) => {
    expect(span(input, 'wait')).toBe(ms);
  });

  test.each<[unknown, string]>([
    ['', "wait must be a duration such as '90s', '10m' or 'PT1H', got ''."],
    ['5', "got '5'."],
    ['soon', "got 'soon'."],
    ['5 s', "got '5 s'."],
    ['-5s', "got '-5s'."],
    ['5S', "got '5S'."],
    ['1e3s', "got '1e3s'."],
    ['.5s', "got '.5s'."],
    ['P', "got 'P'."],
    ['PT', "got 'PT'."],
    ['P1DT', "got 'P1DT'."],
    ['P1Y', "got 'P1Y'."],
    ['P-1D', "got 'P-1D'."],
    ['x'.repeat(1_000), `got '${'x'.repeat(79)}…'.`],
    [Number.NaN, 'got NaN.'],
    [undefined, 'got undefined.'],
    [null, 'got null.'],
    [true, 'got true.'],
    [5n, 'got 5n.'],
    [Symbol('x'), 'got Symbol(x).'],
    [{ ms: 5 }, 'got {"ms":5}.'],
    [Object.create(null), 'got {}.'],
    [() => 5, 'got a function.'],
    [-1, 'wait must not be negative, got -1.'],
    [Number.NEGATIVE_INFINITY, 'wait must not be negative, got -Infinity.'],
    [Number.POSITIVE_INFINITY, 'wait must be at most ten years, got Infinity.'],
    [LONGEST + 1, 'wait must be at most ten years'],
    ['3651d', "wait must be at most ten years, got '3651d'."],
    [`${'9'.repeat(60)}d`, 'wait must be at most ten years'],
  ])('refuses %o, and shows it', (input, message) => {
    const read = () => duration(input as string, 'wait');
    expect(read).toThrow(InvalidInputError);
    expect(read).toThrow(message);
  });

  test('adds up its units', () => {
    const amounts = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 50 }), fc.constantFrom(...(Object.keys(UNITS) as (keyof typeof UNITS)[]))),
      {
        minLength: 1,
        maxLength: 6,
      },
    );
    fc.assert(
      fc.property(amounts, (parts) => {
        const text = parts.map(([n, unit]) => `${n}${unit}`).join('');
        expect(duration(text)).toBe(parts.reduce((sum, [n, unit]) => sum + n * UNITS[unit], 0));
      }),
    );
  });

  test('gives a whole span or refuses, whatever it is given', () => {
    fc.assert(
      fc.property(fc.anything(), (input) => {
        try {
          const ms = duration(input as string);
          expect(Number.isSafeInteger(ms) && ms >= 0 && ms <= LONGEST).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidInputError);
        }
      }),
    );
  });
});

describe('writing a duration', () => {
  test.each([
    [0, '0ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_500, '1.5s'],
    [1_999, '2s'],
    [9_949, '9.9s'],
    [9_999, '10s'],
    [59_600, '1m'],
    [90_000, '1m30s'],
    [3_600_000, '1h'],
    [5_400_000, '1h30m'],
    [86_400_000, '1d'],
    [90_061_000, '1d1h'],
    [86_460_000, '1d'],
    [LONGEST, '3650d'],
  ])('%i ms', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('is read back as what was written, to the smaller of the units shown', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: LONGEST })), (ms) => {
        const text = formatDuration(ms);
        const back = duration(text);
        expect(formatDuration(back)).toBe(text);
        const smallest =
          ms < 1_000 ? 0 : ms < 10_000 ? 50 : ms < 3_600_000 ? 500 : ms < 86_400_000 ? 60_000 : 3_600_000;
        expect(Math.abs(back - ms)).toBeLessThanOrEqual(smallest);
      }),
    );
  });

  test('of what was said in two neighbouring units is exact', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 1, max: 3_000 }), (h, d) => {
        const ms = d * UNITS.d + h * UNITS.h;
        expect(duration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});
