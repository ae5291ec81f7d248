import { describe, expect, test } from 'vitest';
import { classify } from '../../src/failure/classify/classify.ts';

function kept(message: string, more: object = {}) {
  return classify(Object.assign(new Error(message), more), { now: 0 });
}

describe('what is kept of an error', () => {
  test.each([
    'GET https://ann:hunter2@api.test/x failed',
    'Authorization: Bearer hunter2hunter2',
    '{"authorization":"Basic hunter2hunter2"}',
    'Invalid header: authorization=Token hunter2',
    'request with Bearer hunter2.hunter2 was refused',
    'Set-Cookie: session=hunter2; Path=/',
    'cookie: a=hunter2; b=hunter2',
    'GET /x?api_key=hunter2&n=1 failed',
    'https://s3.test/x?X-Amz-Signature=hunter2&X-Amz-Credential=hunter2',
    'https://a.test/x?sig=hunter2',
    'postgres://ann:hunter2@db/x: connection failed',
    'login with password "hunter2" failed',
    'password=hunter2;host=x',
    '{"client_secret": "hunter2", "a": 1}',
    "{ token: 'hunter2' }",
    'AccountKey=hunter2;EndpointSuffix=x',
    'Incorrect API key provided: sk-hunter2hunter2hunter2',
    'ghp_hunter2hunter2hunter2hunter2hunter2 is no good',
    'xoxb-hunter2-hunter2-hunter2',
    'jwt eyJhbGciOiJI.eyJhunter2.hunter2 expired',
    'https://api.telegram.org/bot123456789:AAhunter2hunter2hunter2hunter2/getMe',
    '-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----',
    '-----BEGIN RSA PRIVATE KEY-----\nhunter2',
  ])('has no secret in it: %s', (message) => {
    const failure = kept(message, { code: message.slice(0, 100) });
    expect(JSON.stringify(failure)).not.toContain('hunter2');
    expect(failure.message).toContain('***');
  });

  test.each([
    'Unexpected token < in JSON at position 0',
    "Access denied for user 'lab'@'localhost' (using password: YES)",
    'connect ECONNREFUSED 127.0.0.1:5432',
    'The session ended',
    'https://api.test/a/b?page=2',
    'Mail to ann@test.test failed',
  ])('is left as it was where nothing is secret: %s', (message) => {
    expect(kept(message).message).toBe(message);
  });

  test('is nothing of a request, its headers or its configuration', () => {
    const config = { headers: { Authorization: 'Bearer hunter2' }, auth: { password: 'hunter2' } };
    const failure = kept('Request failed with status code 500', {
      isAxiosError: true,
      config,
      request: config,
      response: { status: 500, headers: { 'set-cookie': 'hunter2' }, config },
    });
    expect(JSON.stringify(failure)).not.toContain('hunter2');
  });
});

describe('the stack', () => {
  test('is kept without its message, and without the frames of Node and of what called the own code', () => {
    const stack = `Error: with\n    at no point
    at parse (/app/node_modules/pg/parser.js:3:4)
    at Array.map (<anonymous>)
    at async close (file:///app/src/order.ts:10:20)
    at process.x (node:internal/process/task_queues:95:5)
    at run (/app/node_modules/framework/run.js:1:1)`;
    expect(kept('x', { stack }).stack?.split('\n').slice(1)).toEqual([
      'parse (/app/node_modules/pg/parser.js:3:4)',
      'Array.map (<anonymous>)',
      'async close (/app/src/order.ts:10:20)',
    ]);
  });

  test('is bounded, and has no secrets and no control characters', () => {
    const frame = '    at x (https://ann:hunter2@a.test/\u001b[2J.js:1:1)\n';
    const { stack } = kept('x', { stack: `Error\n${frame.repeat(100_000)}` });
    expect(stack?.length).toBeLessThanOrEqual(4_096);
    expect(stack).not.toContain('hunter2');
    expect(stack).not.toContain('\u001b');
    expect(kept('x', { stack: 7 }).stack).toBeUndefined();
  });
});

describe('the causes', () => {
  test('are kept with their place, message and code', () => {
    const dns = Object.assign(new Error('getaddrinfo ENOTFOUND db.test'), { code: 'ENOTFOUND', stack: '' });
    const cause = Object.assign(new TypeError('password=hunter2', { cause: dns }), { stack: '' });
    expect(kept('cannot save', { cause }).causes).toEqual([
      { path: 'cause', name: 'TypeError', message: 'password=***' },
      { path: 'cause.cause', name: 'Error', message: 'getaddrinfo ENOTFOUND db.test', code: 'ENOTFOUND' },
    ]);
  });

  test('of an AggregateError are its members, at most ten; its message is theirs if it has none', () => {
    const members = Array.from({ length: 50 }, (_, i) => new Error(`refused ${i}`));
    const failure = classify(new AggregateError(members), { now: 0 });
    expect(failure.message).toBe('refused 0');
    expect(failure.causes?.map(({ path }) => path)).toEqual(Array.from({ length: 10 }, (_, i) => `errors.${i}`));
  });

  test('are bounded in length, and end when they repeat', () => {
    const error = new Error('x'.repeat(10_000_000));
    error.cause = new Error('y'.repeat(10_000_000), { cause: error });
    const { causes = [] } = classify(error, { now: 0 });
    expect(causes).toHaveLength(1);
    expect(causes[0]?.message.length).toBe(1_024);
  });

  test('say what happened to a fetch', () => {
    const dns = Object.assign(new Error('getaddrinfo ENOTFOUND api.test'), { code: 'ENOTFOUND' });
    const { message } = classify(new TypeError('fetch failed', { cause: dns }), { now: 0 });
    expect(message).toBe('fetch failed: getaddrinfo ENOTFOUND api.test');
    const refused = new AggregateError([new Error('connect ECONNREFUSED ::1:1')]);
    expect(classify(new TypeError('fetch failed', { cause: refused }), { now: 0 }).message).toContain('ECONNREFUSED');
    expect(classify(new TypeError('fetch failed'), { now: 0 }).message).toBe('fetch failed');
  });
});

describe('the fingerprint', () => {
  const print = (message: string, more: object = {}) => kept(message, { stack: '', ...more }).fingerprint;

  test('contains its version, and is the same everywhere', () => {
    expect(print('order 17 not found')).toBe(print('order 4711 not found'));
    expect(print('order 17 not found')).toMatch(/^2:[0-9a-f]{13}$/);
    // Fixed here, because a change would change every group of failures.
    expect(print('order 17 not found')).toBe('2:cf8ce580b9ef9');
  });

  test.each([
    ["ENOENT: no such file or directory, open '/a/b/c.txt'", "ENOENT: no such file or directory, open '/x/y.txt'"],
    ['timed out at 2026-01-15T12:00:00Z', 'timed out at 2027-02-01T03:04:05Z'],
    ['user 6b09f0c3207a91627ff7ed01 is gone', 'user 7c10f0c3207a91627ff7ed02 is gone'],
    ['mail to ann@a.test bounced', 'mail to bob@b.test bounced'],
    ['GET https://a.test/x?y=1 failed', 'GET https://b.test/z failed'],
    ['read C:\\a\\b failed', 'read D:\\c failed'],
    ['took 12.5s (3 of 7)', 'took 0.1s (1 of 9)'],
    ['no answer from api.acme.test', 'no answer from www.other.test'],
    ['getaddrinfo ENOTFOUND acme.test', 'getaddrinfo ENOTFOUND localhost'],
  ])('does not see what differs from one to the next: %s', (one, other) => {
    expect(print(one)).toBe(print(other));
  });

  test('differs for another message, class or reason', () => {
    const prints = [
      print('the order is closed'),
      print('the order is open'),
      print('the order is closed', { name: 'OrderError' }),
      print('the order is closed', { code: 'EBUSY' }),
      print('the order is closed', { stack: 'Error: x\n    at close (/app/order.ts:1:2)' }),
      print('the order is closed', { stack: 'Error: x\n    at close (/app/shop.ts:1:2)' }),
    ];
    expect(new Set(prints).size).toBe(prints.length);
  });

  test('does not see folders, lines and the frames of packages and of Node', () => {
    const stack = `Error: x
    at parse (/app/node_modules/pg/parser.js:3:4)
    at async close (file:///app/1.2.3/src/order.ts:10:20)
    at main (/app/1.2.3/src/main.ts:1:1)`;
    const other = `Error: x
    at process.x (node:internal/process/task_queues:95:5)
    at close (C:\\app\\2\\src\\order.ts:7:8)`;
    expect(print('closed', { stack })).toBe(print('closed', { stack: other }));
  });
});
