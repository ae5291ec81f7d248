import { describe, expect, test } from 'vitest';
import { tightestLimit } from '../../src/failure/classify/quotas.ts';

const NOW = Date.UTC(2026, 0, 1);
const SECONDS = NOW / 1_000;

describe('the rate limit in a response', () => {
  test.each<[string, object, { remaining: number; resetsIn: number } | undefined]>([
    ['nothing', { 'content-type': 'text/html' }, undefined],
    ['the IETF field', { ratelimit: '"default";r=50;t=30' }, { remaining: 50, resetsIn: 30_000 }],
    ['its older draft', { RateLimit: 'limit=100, remaining=0, reset=50' }, { remaining: 0, resetsIn: 50_000 }],
    ['three headers', { 'RateLimit-Remaining': '9', 'RateLimit-Reset': '60' }, { remaining: 9, resetsIn: 60_000 }],
    [
      'an epoch, as GitHub',
      { 'x-ratelimit-remaining': '4999', 'x-ratelimit-reset': String(SECONDS + 3_600) },
      { remaining: 4_999, resetsIn: 3_600_000 },
    ],
    [
      'an epoch by a server whose clock is an hour ahead',
      {
        date: new Date(NOW + 3_600_000).toUTCString(),
        'x-ratelimit-remaining': '1',
        'x-ratelimit-reset': String(SECONDS + 3_610),
      },
      { remaining: 1, resetsIn: 10_000 },
    ],
    [
      'a time after which it resets, as Discord',
      { 'x-ratelimit-remaining': '1', 'x-ratelimit-reset-after': '1.5' },
      { remaining: 1, resetsIn: 1_500 },
    ],
    [
      'two limits, of which one allows less',
      {
        'x-ratelimit-remaining-requests': '100',
        'x-ratelimit-reset-requests': '1s',
        'x-ratelimit-remaining-tokens': '100',
        'x-ratelimit-reset-tokens': '6m0s',
      },
      { remaining: 100, resetsIn: 360_000 },
    ],
    ['a reset that says nothing of what is left', { 'x-ratelimit-reset': '30' }, undefined],
    ['what is left until no time', { 'x-ratelimit-remaining': '30' }, undefined],
    ['a reset in the past', { 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': String(SECONDS - 5) }, undefined],
    ['garbage', { 'x-ratelimit-remaining': 'many', 'x-ratelimit-reset': 'soon' }, undefined],
  ])('%s', (_, headers, limit) => {
    expect(tightestLimit(headers, NOW)).toEqual(limit);
    expect(tightestLimit(new Headers(headers as Record<string, string>), NOW)).toEqual(limit);
  });
});
