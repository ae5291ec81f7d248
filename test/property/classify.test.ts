import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LONGEST } from '../../src/duration.ts';
import { classify, outcomeOf } from '../../src/failure/classify/classify.ts';
import { messageRules } from '../../src/failure/classify/message-rules.ts';
import { classifierFrom } from '../../src/failure/classify/rules.ts';
import { isReason } from '../../src/failure/outcome.ts';

const numbers = fc.oneof(fc.integer({ min: 0, max: 700 }), fc.anything());
const codes = fc.oneof(
  fc.constantFrom(
    'ENOENT',
    'EBUSY',
    'ECONNRESET',
    'EACCES',
    'UNKNOWN',
    'ERR_SSL_X',
    '23505',
    'P2002',
    'SQLITE_BUSY',
    'ORA-1',
  ),
  fc.integer({ min: -5, max: 600 }),
  fc.anything(),
);
const texts = fc.oneof(
  fc.constantFrom(
    '14 UNAVAILABLE: x',
    'connect ECONNREFUSED 1',
    'HTTP 503',
    '550 5.1.1 no such user',
    'Error: net::ERR_FAILED',
  ),
  fc.string({ unit: 'binary' }),
  fc.anything(),
);
const names = fc.oneof(
  fc.constantFrom(
    'MongoServerError',
    'ReplyError',
    'FTPError',
    'KafkaJSError',
    'TypeError',
    'AbortError',
    'PrismaClientX',
    'error',
  ),
  fc.anything(),
);
const headers = fc.oneof(
  fc.dictionary(fc.constantFrom('Retry-After', 'date', 'x-ratelimit-reset', 'ratelimit', 'x'), fc.anything()),
  fc.array(fc.tuple(fc.anything(), fc.anything())),
  fc.anything(),
);

/** Things with the fields in which evidence is looked for, holding what belongs there or anything else. */
const { thrown } = fc.letrec<{ thrown: unknown }>((tie) => {
  const inner = fc.oneof(tie('thrown'), fc.anything());
  return {
    thrown: fc.oneof(
      { depthSize: 'small' },
      fc.anything(),
      fc.array(tie('thrown'), { maxLength: 3 }),
      fc.record(
        {
          ...{ name: names, message: texts, code: codes, errno: numbers, status: numbers, statusCode: numbers },
          syscall: fc.oneof(fc.constantFrom('connect', 'rename', 'spawn x'), fc.anything()),
          ...{ headers, metadata: headers, body: inner, data: inner, error: inner, original: inner, details: inner },
          ...{
            responseCode: numbers,
            sqlState: codes,
            number: numbers,
            exitCode: numbers,
            signal: texts,
            errorCode: codes,
          },
          ...{
            serverResponseCode: texts,
            errorLabels: inner,
            $metadata: inner,
            statusDetails: inner,
            retryAfter: inner,
          },
          response: fc.oneof(
            fc.record({ status: numbers, headers, data: inner, body: inner }, { requiredKeys: [] }),
            inner,
          ),
          ...{ cause: inner, errors: fc.oneof(fc.array(tie('thrown'), { maxLength: 3 }), fc.anything()) },
          ...{ retryable: fc.anything(), type: texts, isAxiosError: fc.boolean(), description: texts, level: texts },
        },
        { requiredKeys: [] },
      ),
    ),
  };
});

/** The same as a value, as an Error with those fields, behind a Proxy, and with getters of which some throw. */
const dressed = fc.tuple(thrown, fc.constantFrom('plain', 'error', 'proxy', 'getters')).map(([value, how]) => {
  switch (how) {
    case 'plain':
      return value;
    case 'error':
      return Object.defineProperties(new Error('x'), Object.getOwnPropertyDescriptors(Object(value)));
    case 'proxy':
      return new Proxy(Object(value), {});
    default:
      return withGetters(Object(value));
  }
});

function withGetters(value: Record<string, unknown>): object {
  const error = new Error('x');
  for (const key of Object.keys(value)) {
    const get = () => {
      if (key.length % 3 === 0) throw new Error('no');
      return value[key];
    };
    Object.defineProperty(error, key, { get, configurable: true, enumerable: true });
  }
  return error;
}

test('anything that can be thrown becomes a failure that can be stored, the same each time', () => {
  const withRules = classifierFrom(messageRules);
  fc.assert(
    fc.property(dressed, (error) => {
      const failure = classify(error, { now: 1e12 });
      expect(JSON.parse(JSON.stringify(failure))).toEqual(failure);
      expect(isReason(failure.reason)).toBe(true);
      expect(`${failure.name}${failure.message}${failure.code ?? ''}`.isWellFormed()).toBe(true);
      expect(failure.fingerprint).toMatch(/^2:[0-9a-f]{13}$/);
      const wait = failure.retryAfterMs ?? 0;
      expect(Number.isInteger(wait) && wait >= 0 && wait <= LONGEST).toBe(true);
      expect(classify(error, { now: 1e12 })).toEqual(failure);
      expect(outcomeOf(error, { now: 1e12 })).toEqual({ kind: 'failure', failure });
      expect(isReason(withRules.classify(error, { now: 1e12, type: 'x' }).reason)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test('a message in any other script than ours is never a guess', () => {
  const letters = fc.integer({ min: 0x400, max: 0x9fff }).map((code) => String.fromCodePoint(code));
  fc.assert(
    fc.property(
      fc.string({ unit: fc.oneof(letters, fc.constantFrom(' ', '4', '2', '9', '5', '0', '3')) }),
      (message) => {
        expect(classify(new Error(message), { now: 0 })).toMatchObject({ kind: 'unknown', reason: 'unknown' });
      },
    ),
  );
});
