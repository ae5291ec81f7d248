import { expect, test } from 'vitest';
import { outcomeOf } from '../../src/failure/classify/classify.ts';
import { classifierFrom } from '../../src/failure/classify/rules.ts';
import { PermanentFailure } from '../../src/failure/signals.ts';

const NOW = Date.UTC(2026, 5, 1);

/** Classifies each error anew. */
const anew = classifierFrom([]).outcomeOf;

const MESSAGE = 'socket hang up';

test.each<[what: string, make: () => unknown]>([
  ['an error', () => new Error(MESSAGE)],
  ['another class of JavaScript', () => new TypeError(MESSAGE)],
  ['a class of its own', () => new (class TimeoutError extends Error {})(MESSAGE)],
  ['a name', () => Object.assign(new Error(MESSAGE), { name: 'AbortError' })],
  ['a code', () => Object.assign(new Error(MESSAGE), { code: 'ENOSPC' })],
  ['a status', () => Object.assign(new Error(MESSAGE), { status: 404 })],
  ['a hidden code', () => Object.defineProperty(new Error(MESSAGE), 'code', { value: 'ENOSPC', enumerable: false })],
  ['a cause', () => new Error(MESSAGE, { cause: Object.assign(new Error('x'), { code: 'EACCES' }) })],
  ['errors that happened together', () => new AggregateError([new TypeError('fetch failed')], MESSAGE)],
  ['a signal', () => new PermanentFailure(MESSAGE)],
  ['no prototype', () => Object.assign(Object.create(null), { message: MESSAGE })],
  [
    'a getter that throws',
    () =>
      Object.defineProperty(new Error(), 'message', {
        get() {
          throw new Error('no');
        },
      }),
  ],
  [
    'a revoked Proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    },
  ],
  ['a text', () => MESSAGE],
  ['nothing', () => undefined],
  ['a wait in words', () => new Error('Try again in an hour.')],
  ['a wait', () => new Error('Too many requests, retry after 30 seconds')],
  ['a date', () => new Error('Rate limit exceeded, resets at 2026-06-01T12:00:00Z')],
])('an error with %s is classified by all of it, also after an equal message and at another time', (_, make) => {
  outcomeOf(new Error(MESSAGE), { now: NOW });
  for (const now of [NOW, NOW + 3_600_000, NOW + 86_400_000 * 400]) {
    const error = make();
    expect(outcomeOf(error, { now })).toEqual(anew(error, { now }));
    expect(outcomeOf(error, { now })).toEqual(anew(error, { now }));
  }
});

test('each failure is an object of its own', () => {
  const error = new Error('mine');
  const once = outcomeOf(error, { now: NOW });
  Object.assign(once.kind === 'failure' ? once.failure : {}, { reason: 'changed' });
  expect(outcomeOf(error, { now: NOW })).toEqual(anew(error, { now: NOW }));
});
