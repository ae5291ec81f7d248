import { expect, test } from 'vitest';
import { type LimitFlags, limitsFrom } from '../../src/cli/flags/limit-flags.ts';
import { Problem } from '../../src/cli/problem.ts';

test.each<[LimitFlags, object]>([
  [{ pace: '10/s' }, { pace: '10/s' }],
  [{ concurrency: '4' }, { concurrency: 4 }],
  [
    { pace: '5000/h', concurrency: 'none' },
    { pace: '5000/h', concurrency: null },
  ],
  [{ pace: 'none' }, { pace: null }],
  [{ none: true }, { pace: null, concurrency: null }],
])('limits are read from %j', (flags, limits) => {
  expect(limitsFrom(flags, 'holdfast sources limit')).toEqual(limits);
});

test.each<[LimitFlags, string]>([
  [{}, 'there is no limit to set'],
  [{ none: true, pace: '10/s' }, '--none removes both limits'],
  [{ pace: '10' }, "--pace must be a rate such as '10/s'"],
  [{ pace: '' }, "got ''"],
  [{ concurrency: '0' }, '--concurrency'],
  [{ concurrency: 'four' }, '--concurrency'],
])('limits are refused in %j, naming what is wrong', (flags, why) => {
  expect(() => limitsFrom(flags, 'holdfast sources limit')).toThrow(Problem);
  expect(() => limitsFrom(flags, 'holdfast sources limit')).toThrow(why);
});
