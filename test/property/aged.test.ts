import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aged } from '../../src/failure/aged.ts';
import { decide, type Facts } from '../../src/failure/decide.ts';
import { outcomes, policies, rolls, spans } from './policies.ts';

const someFacts: fc.Arbitrary<Facts> = fc.record(
  {
    executions: fc.integer({ min: 1, max: 50 }),
    charged: fc.constant([]),
    deferralsInARow: fc.integer({ min: 0, max: 5 }),
    deferredForMs: spans,
    recoveriesAgoMs: fc.array(spans, { maxLength: 4 }),
    lostInARow: fc.nat(3),
    idempotent: fc.boolean(),
    cancelRequested: fc.boolean(),
    sinceFirstStartMs: spans,
    untilDeadlineMs: spans,
  },
  {
    requiredKeys: [
      'executions',
      'charged',
      'deferralsInARow',
      'deferredForMs',
      'recoveriesAgoMs',
      'lostInARow',
      'idempotent',
      'cancelRequested',
      'sinceFirstStartMs',
    ],
  },
);

test('facts that age twice age as much as at once', () => {
  fc.assert(
    fc.property(someFacts, spans, spans, (facts, a, b) => {
      expect(aged(aged(facts, a), b)).toEqual(aged(facts, a + b));
    }),
  );
});

test('facts that do not age stay as they are, but that a row of no deferrals has no age', () => {
  fc.assert(
    fc.property(someFacts, (facts) => {
      expect(aged(facts, 0)).toEqual({
        ...facts,
        deferredForMs: facts.deferralsInARow === 0 ? 0 : facts.deferredForMs,
      });
    }),
  );
});

test('a task that a deadline or the give-up time ends now is ended by time later too', () => {
  fc.assert(
    fc.property(someFacts, outcomes, policies, rolls, spans, (facts, outcome, policy, roll, elapsed) => {
      const step = decide(facts, outcome, policy, roll).because.step;
      fc.pre(step === 'deadline' || step === 'give_up_after');
      // Old recoveries may be forgotten meanwhile and a row of deferrals grow too long, but nothing goes on.
      expect(decide(aged(facts, elapsed), outcome, policy, roll).next).not.toBe('scheduled');
    }),
    { numRuns: 50 },
  );
});
