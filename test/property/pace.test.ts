import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidInputError } from '../../src/errors.ts';
import { formatPace, formatRate, paced, parsePace } from '../../src/pace.ts';

describe('reading a pace', () => {
  test.each<[unknown, number, number]>([
    ['10/s', 10, 1],
    ['1/s', 1, 1],
    ['25/s', 25, 3],
    [' 10 / s ', 10, 1],
    ['90/m', 1.5, 1],
    ['5000/h', 5_000 / 3_600, 1],
    ['1/d', 1 / 86_400, 1],
    ['3/10s', 0.3, 1],
    ['0.5/s', 0.5, 1],
    ['100/15m', 100 / 900, 1],
    [{ rate: '10/s' }, 10, 1],
    [{ rate: '10/s', burst: 5 }, 10, 5],
  ])('takes %j', (input, perSecond, burst) => {
    expect(parsePace(input)).toEqual({ perSecond, burst });
  });

  test.each<[unknown, string]>([
    ['', "pace must be a rate such as '10/s', '100/m', '5000/h' or '3/10s'"],
    ['10', "got '10'."],
    ['10/x', "got '10/x'."],
    ['0/s', "got '0/s'."],
    ['-1/s', "got '-1/s'."],
    ['1e3/s', "got '1e3/s'."],
    ['10/0s', "got '10/0s'."],
    ['99999999/s', "got '99999999/s'."],
    ['10 per second', "got '10 per second'."],
    [10, 'got 10.'],
    [null, 'got null.'],
    [{ rate: 10 }, 'pace.rate must be a rate'],
    [{ rate: '10/s', burst: 0 }, 'pace.burst must be a whole number'],
    [{ rate: '10/s', most: 5 }, "pace has no option 'most'"],
  ])('refuses %j', (input, why) => {
    expect(() => parsePace(input)).toThrow(InvalidInputError);
    expect(() => parsePace(input)).toThrow(why);
  });
});

describe('writing a pace', () => {
  test.each<[number, string]>([
    [10, '10/s'],
    [1.5, '90/m'],
    [5_000 / 3_600, '5000/h'],
    [0.3, '18/m'],
    [1 / 86_400, '1/d'],
    [1 / 604_800, '1/7d'],
    [Math.PI, '3.1/s'],
  ])('writes %d a second as %s', (perSecond, text) => {
    expect(formatRate(perSecond)).toBe(text);
  });

  test('says a burst of its own only', () => {
    expect(formatPace(paced(25))).toBe('25/s');
    expect(formatPace({ perSecond: 25, burst: 9 })).toBe('25/s (9 at once)');
  });

  test('reads what it wrote, to within 5 %', () => {
    fc.assert(
      fc.property(fc.double({ min: 1 / 86_400, max: 9e5, noNaN: true }), (perSecond) => {
        const read = parsePace(formatRate(perSecond)).perSecond;
        expect(Math.abs(read - perSecond) / perSecond).toBeLessThan(0.06);
      }),
    );
  });

  test('reads whole amounts exactly', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), fc.constantFrom('s', 'm', 'h', 'd'), (amount, unit) => {
        const { perSecond } = parsePace(`${amount}/${unit}`);
        expect(parsePace(formatRate(perSecond)).perSecond).toBeCloseTo(perSecond, 9);
      }),
    );
  });
});
