import { expect, test } from 'vitest';
import { valueWords } from '../../src/views/policy-values.ts';

test.each<[string, unknown, string]>([
  ['source', { gate: true, breaker: false, budget: true }, 'gate, budget'],
  ['source', { gate: false, breaker: false, budget: false }, 'off'],
  ['pace', { perSecond: 10, burst: 1 }, '10/s'],
  ['pace', null, 'none'],
  ['concurrency', null, 'none'],
  ['concurrency', 4, '4'],
  ['timeout', 90_000, '1m30s'],
])('a value of %s is shown as people write it: %j', (name, value, words) => {
  expect(valueWords([name], value)).toBe(words);
});
