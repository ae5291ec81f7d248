import { describe, expect, test } from 'vitest';
import { classify } from '../../src/failure/classify/classify.ts';

const now = Date.UTC(2026, 0, 15, 12);
const EPOCH = now / 1_000;

function wait(error: unknown): number | undefined {
  return classify(error, { now }).retryAfterMs;
}

function limited(headers: object, more: object = {}): object {
  return { status: 429, headers, ...more };
}

describe('how long to wait', () => {
  test.each<[string, object, number | undefined]>([
    ['retry-after-ms before Retry-After', { 'retry-after': '9', 'retry-after-ms': '1250.5' }, 1_251],
    ['x-ms-retry-after-ms', { 'x-ms-retry-after-ms': '40' }, 40],
    ['garbage there leaves the word to the next', { 'retry-after-ms': '-1', 'retry-after': '9' }, 9_000],
    ['an old form of date', { 'retry-after': 'Thursday, 15-Jan-26 12:00:20 GMT' }, 20_000],
    ['asctime, which is GMT', { 'retry-after': 'Thu Jan 15 12:00:30 2026' }, 30_000],
    ['asctime with one digit', { 'retry-after': 'Sun Feb  1 12:00:00 2026' }, 17 * 86_400_000],
    ['a date with an offset', { 'retry-after': 'Thu, 15 Jan 2026 13:00:30 +0100' }, 30_000],
    ['X-RateLimit-Reset as epoch', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${EPOCH + 45}` }, 45_000],
    ['… in milliseconds', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${now + 1_500}` }, 1_500],
    ['… as seconds from now', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '12' }, 12_000],
    ['… with something left', { 'x-ratelimit-remaining': '4', 'x-ratelimit-reset': '12' }, undefined],
    ['… without "remaining"', { 'x-rate-limit-reset': '12' }, 12_000],
    ['… that is past', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${EPOCH - 45}` }, 0],
    [
      '… corrected by the other side’s clock',
      { date: 'Thu, 15 Jan 2026 13:00:00 GMT', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${EPOCH + 3_610}` },
      10_000,
    ],
    ['… as a time', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2026-01-15T12:01Z' }, 60_000],
    ['… as a span', { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '6m0s' }, 360_000],
    [
      'the bucket that is used up',
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '20ms',
        'x-ratelimit-remaining-tokens': '9',
        'x-ratelimit-reset-tokens': '6m0s',
      },
      20,
    ],
    [
      'the longest of several used up',
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '1h2m3s',
      },
      3_723_000,
    ],
    ['the IETF field', { ratelimit: '"burst";r=12;t=5, "daily";r=0;t=3600' }, 3_600_000],
    ['an older draft of it', { ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
    ['RateLimit-Reset', { 'ratelimit-remaining': '0', 'ratelimit-reset': '20' }, 20_000],
    [
      'Retry-After before all of these',
      { 'retry-after': '5', 'ratelimit-remaining': '0', 'ratelimit-reset': '20' },
      5_000,
    ],
  ])('stands in headers: %s', (_, headers, ms) => {
    expect(wait(limited(headers))).toBe(ms);
  });

  test('stands in a reset header only where the rate is limited', () => {
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '12' };
    expect(wait({ status: 500, headers })).toBeUndefined();
    expect(wait({ status: 403, headers })).toBe(12_000);
  });

  test('stands in headers that keep a store of their own beside it', () => {
    // Fields of Azure's and gRPC's objects are not headers. node-fetch's object has a number, its size.
    class Kept {
      readonly size = 1;
      readonly _headersMap = new Map([['retry-after', { name: 'retry-after', value: '3' }]]);
      get(name: string): string | undefined {
        return this._headersMap.get(name)?.value;
      }
    }
    class Listed extends Kept {
      *[Symbol.iterator](): Generator<[string, string]> {
        for (const { name, value } of this._headersMap.values()) yield [name, value];
      }
    }
    for (const headers of [new Kept(), new Listed()]) {
      const error = Object.assign(new Error('x'), { response: { status: 429, headers } });
      expect(classify(error, { now }).retryAfterMs).toBe(3_000);
    }
  });

  test('stands in headers that are a list of pairs', () => {
    expect(wait(limited([['Retry-After', '5']]))).toBe(5_000);
  });

  test.each<[string, object, number | undefined]>([
    ['retryAfter in seconds', { retryAfter: 30 }, 30_000],
    ['… as text', { retryAfter: '30' }, 30_000],
    ['… as a time', { retryAfter: '2026-01-15T12:02:00Z' }, 120_000],
    ['… as a Date', { retryAfter: new Date(now + 5_000) }, 5_000],
    ['… negative', { retryAfter: -1 }, undefined],
    ['retry_after', { retry_after: 0.65 }, 650],
    ['retryAfterMs', { retryAfterMs: 1_500 }, 1_500],
    ['@discordjs/rest counts in milliseconds', { retryAfter: 2_050, timeToReset: 1_600 }, 2_050],
    ['a body, in seconds', { body: { retry_after: 3 } }, 3_000],
    ['a body, in milliseconds', { data: { retry_after_ms: 1_500 } }, 1_500],
    ['a body that is text', { response: { status: 429, body: '{"retry_after": 3}' } }, 3_000],
    ['parameters, as Telegram has it', { response: { error_code: 429, parameters: { retry_after: 14 } } }, 14_000],
    [
      'Google’s RetryInfo',
      { response: { status: 429, data: { error: { details: [{}, { retryDelay: '34.07s' }] } } } },
      34_070,
    ],
    ['the same, decoded', { statusDetails: [{ retryDelay: { seconds: '12', nanos: 250_000_000 } }] }, 12_250],
    ['a message that is understood', { message: 'Rate limited, try again in 2 minutes' }, 120_000],
  ])('stands in the error: %s', (_, more, ms) => {
    expect(wait({ status: 429, ...more })).toBe(ms);
  });

  test('is never longer than ten years, nor anything but a number', () => {
    expect(wait({ status: 429, retryAfter: 1e12 })).toBe(315_360_000_000);
    for (const retryAfter of [Number.NaN, Number.POSITIVE_INFINITY, '', 'soon', {}, '1e3']) {
      expect(wait({ status: 429, retryAfter })).toBeUndefined();
    }
  });

  test('of a wrapper counts where what it wraps names none', () => {
    expect(
      wait(
        Object.assign(
          new Error('x', { cause: Object.assign(new Error('y'), { code: 'ThrottlingException', $metadata: {} }) }),
          { retryAfter: 4 },
        ),
      ),
    ).toBe(4_000);
  });
});
