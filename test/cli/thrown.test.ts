import { describe, expect, test } from 'vitest';
import { thrownFrom } from '../../src/documents/thrown.ts';
import { classify } from '../../src/failure/classify/classify.ts';

const kindOf = (json: string) => classify(thrownFrom(JSON.parse(json)), { now: 0 });

describe('an error made of JSON', () => {
  test.each<[string, object]>([
    ['{"status": 429, "headers": {"retry-after": "120"}}', { reason: 'http.429', retryAfterMs: 120_000 }],
    ['{"response": {"status": 503, "headers": {"Retry-After": "5"}}}', { kind: 'transient', retryAfterMs: 5_000 }],
    ['{"code": "ENOENT", "syscall": "open", "path": "/x"}', { reason: 'fs.not_found', code: 'ENOENT' }],
    ['{"message": "fetch failed", "cause": {"code": "ECONNREFUSED"}}', { reason: 'net.refused' }],
    ['{"name": "AggregateError", "errors": [{"code": "ECONNRESET"}]}', { reason: 'net.reset', ambiguous: true }],
    ['{"name": "TypeError", "message": "x is not a function"}', { kind: 'permanent', name: 'TypeError' }],
    ['{"name": "TimeoutError", "class": "DOMException", "message": "timed out"}', { reason: 'timeout' }],
    ['{"class": "OrderClosed", "message": "no"}', { reason: 'unknown', name: 'OrderClosed', message: 'no' }],
    ['"connect ECONNREFUSED 127.0.0.1:5432"', { message: 'connect ECONNREFUSED 127.0.0.1:5432' }],
    ['null', { kind: 'unknown' }],
    ['[]', { kind: 'unknown' }],
    ['{"__proto__": {"code": "ENOENT"}, "constructor": null, "toString": 1}', { kind: 'unknown' }],
  ])('%s', (json, expected) => {
    expect(kindOf(json)).toMatchObject(expected);
  });

  test('is an Error, whose causes and errors are too, to a depth', () => {
    const thrown = thrownFrom({ cause: { cause: {} }, errors: [{}] }) as Error & { errors: unknown[] };
    expect(
      [thrown, thrown.cause, (thrown.cause as Error).cause, thrown.errors[0]].every((each) => each instanceof Error),
    ).toBe(true);
    let deep: object = {};
    for (let level = 0; level < 10_000; level += 1) deep = { cause: deep };
    expect(classify(thrownFrom(deep), { now: 0 }).kind).toBe('unknown');
  });
});
