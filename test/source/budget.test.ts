import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FULL, REFILL_EVERY, tokensAfter, untilToken } from '../../src/budget.ts';

const amounts = fc.double({ min: 0, max: FULL, noNaN: true });
const spans = fc.integer({ min: 0, max: 400_000 });

test('a token is added every ten seconds, as long as there is room for it', () => {
  expect(tokensAfter(0, 25_000)).toBe(2.5);
  expect(tokensAfter(19, 60_000)).toBe(FULL);
});

test('waiting twice gives as much as waiting once for the whole time', () => {
  fc.assert(
    fc.property(amounts, spans, spans, (tokens, first, second) => {
      const twice = tokensAfter(tokensAfter(tokens, first), second);
      expect(twice).toBeCloseTo(tokensAfter(tokens, first + second), 6);
    }),
  );
});

test('after the time that is said a token can be taken, and not much earlier', () => {
  fc.assert(
    fc.property(amounts, (tokens) => {
      const wait = untilToken(tokens);
      expect(tokensAfter(tokens, wait)).toBeGreaterThanOrEqual(1 - 1e-9);
      if (wait > 1) expect(tokensAfter(tokens, wait - 2)).toBeLessThan(1);
      expect(wait).toBeLessThanOrEqual(REFILL_EVERY);
    }),
  );
});
