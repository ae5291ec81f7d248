import fc from 'fast-check';
import { expect, test } from 'vitest';
import { classify, outcomeOf } from '../../src/failure/classify/classify.ts';
import { isReason } from '../../src/failure/outcome.ts';

const numbers = fc.oneof(fc.integer({ min: 0, max: 700 }), fc.anything());
const codes = fc.oneof(fc.constantFrom('ENOENT', 'EBUSY', 'ECONNRESET', 'EACCES', 'EPERM', 'UNKNOWN'), fc.anything());

/** Things with the fields in which evidence is looked for, holding what belongs there or anything else. */
const { thrown } = fc.letrec<{ thrown: unknown }>((tie) => ({
  thrown: fc.oneof(
    { depthSize: 'small' },
    fc.anything(),
    fc.record(
      {
        name: fc.oneof(fc.string(), fc.anything()),
        message: fc.oneof(fc.string({ unit: 'binary' }), fc.anything()),
        code: codes,
        errno: numbers,
        syscall: fc.oneof(fc.constantFrom('connect', 'rename', 'spawn x'), fc.anything()),
        status: numbers,
        headers: fc.oneof(fc.dictionary(fc.constantFrom('Retry-After', 'date', 'x'), fc.anything()), fc.anything()),
        response: fc.record(
          { status: numbers, headers: fc.dictionary(fc.string(), fc.anything()) },
          { requiredKeys: [] },
        ),
        cause: tie('thrown'),
        errors: fc.oneof(fc.array(tie('thrown'), { maxLength: 3 }), fc.anything()),
      },
      { requiredKeys: [] },
    ),
  ),
}));

test('anything that can be thrown becomes a failure that can be stored, the same each time', () => {
  fc.assert(
    fc.property(thrown, fc.boolean(), (value, asError) => {
      const error = asError
        ? Object.defineProperties(new Error('x'), Object.getOwnPropertyDescriptors(Object(value)))
        : value;
      const failure = classify(error, { now: 0 });
      expect(JSON.parse(JSON.stringify(failure))).toEqual(failure);
      expect(isReason(failure.reason)).toBe(true);
      expect(`${failure.name}${failure.message}${failure.code ?? ''}`.isWellFormed()).toBe(true);
      expect(classify(error, { now: 0 })).toEqual(failure);
      expect(outcomeOf(error, { now: 0 })).toEqual({ kind: 'failure', failure });
    }),
    { numRuns: 300 },
  );
});
