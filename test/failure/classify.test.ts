import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, open, readFile, rename, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, get } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { classify } from '../../src/failure/classify/classify.ts';
import type { Failure } from '../../src/failure/outcome.ts';

const now = Date.UTC(2026, 0, 1);

function seen(thrown: unknown): Failure {
  return classify(thrown, { now });
}

async function thrownBy(act: () => unknown): Promise<unknown> {
  try {
    await act();
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was thrown.');
}

describe('an error of the file system, as this system throws it', () => {
  let at: string;
  beforeAll(async () => {
    at = await mkdtemp(join(tmpdir(), 'holdfast-classify-'));
    await mkdir(join(at, 'full'));
    await mkdir(join(at, 'empty'));
    await writeFile(join(at, 'file'), 'x');
    await writeFile(join(at, 'full', 'x'), 'x');
    await symlink('loop', join(at, 'loop'));
  });
  afterAll(() => rm(at, { recursive: true }));

  const cases: readonly [string, () => unknown, Partial<Failure>][] = [
    ['ENOENT', () => readFile(join(at, 'missing')), { reason: 'fs.not_found', kind: 'permanent' }],
    [
      'EEXIST',
      () => copyFile(join(at, 'file'), join(at, 'full', 'x'), 1),
      { reason: 'fs.dest_exists', kind: 'permanent' },
    ],
    ['EEXIST', () => open(join(at, 'file'), 'wx'), { reason: 'fs.dest_exists' }],
    ['ENOTEMPTY', () => rename(join(at, 'empty'), join(at, 'full')), { reason: 'fs.dest_exists' }],
    ['ENOTEMPTY', () => rmdir(join(at, 'full')), { reason: 'fs.dest_exists' }],
    ['EISDIR', () => readFile(at), { reason: 'fs.invalid', kind: 'permanent' }],
    ['ENOTDIR', () => readFile(join(at, 'file', 'x')), { reason: 'fs.invalid' }],
    ['ELOOP', () => readFile(join(at, 'loop')), { reason: 'fs.invalid' }],
    ['ENAMETOOLONG', () => readFile(join(at, 'x'.repeat(300))), { reason: 'fs.invalid' }],
  ];
  test.each(cases)('%s', async (code, act, expected) => {
    const failure = seen(await thrownBy(act));
    expect(failure).toMatchObject({ code, fault: 'task', ambiguous: false, name: 'Error', ...expected });
    expect(failure.evidence).toEqual({ rule: 'system', field: 'code' });
    expect(failure.message).toContain(code);
  });

  test('ENOENT of a missing program is not a missing file', async () => {
    const child = spawn(join(at, 'no-such-program'));
    const [error] = await once(child, 'error');
    expect(seen(error)).toMatchObject({ reason: 'process.not_found', kind: 'permanent' });
  });

  test('EACCES of a file that is not a program', async () => {
    const child = spawn(join(at, 'file'));
    const [error] = await once(child, 'error');
    expect(seen(error)).toMatchObject({ reason: 'process.not_executable', kind: 'permanent' });
  });

  test('ENOENT of a socket that nobody listens on is a refused connection', async () => {
    const [error] = await once(connect(join(at, 'no.sock')), 'error');
    expect(seen(error)).toMatchObject({ reason: 'net.refused', kind: 'transient', fault: 'source' });
  });
});

describe('an error of the network, as this system throws it', () => {
  const sockets = new Set<Socket>();
  /** Resets each connection. */
  const rude: Server = createServer((socket) => {
    sockets.add(socket);
    socket.once('data', () => socket.resetAndDestroy());
    socket.on('error', () => {});
  });
  const silent = createHttpServer(() => {});
  let closedPort: number;

  const portOf = (server: Server) => (server.address() as AddressInfo).port;
  const url = (port: number) => `http://127.0.0.1:${port}/`;

  beforeAll(async () => {
    await Promise.all([rude, silent].map((server) => once(server.listen(0, '127.0.0.1'), 'listening')));
    const spare = createServer().listen(0, '127.0.0.1');
    await once(spare, 'listening');
    closedPort = portOf(spare);
    await new Promise((closed) => spare.close(closed));
  });
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    silent.closeAllConnections();
    silent.close();
    rude.close();
  });

  test('ECONNREFUSED through fetch, which hides it in the cause of a TypeError', async () => {
    const error = await thrownBy(() => fetch(url(closedPort)));
    expect(error).toBeInstanceOf(TypeError);
    expect(seen(error)).toMatchObject({
      reason: 'net.refused',
      kind: 'transient',
      fault: 'source',
      ambiguous: false,
      code: 'ECONNREFUSED',
      name: 'TypeError',
      message: expect.stringMatching(/^fetch failed: .*ECONNREFUSED/),
    });
  });

  test('ECONNRESET of a request that was sent is ambiguous: its effect may have happened', async () => {
    const [error] = await once(get(url(portOf(rude))), 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
    expect(seen(error)).toMatchObject({ reason: 'net.reset', kind: 'transient', fault: 'source', ambiguous: true });
  });

  test('a time limit of AbortSignal, and an abort', async () => {
    const timeout = await thrownBy(() => fetch(url(portOf(silent)), { signal: AbortSignal.timeout(20) }));
    expect(seen(timeout)).toMatchObject({ reason: 'timeout', kind: 'transient', fault: 'task', ambiguous: true });
    const control = new AbortController();
    setImmediate(() => control.abort());
    const abort = await thrownBy(() => fetch(url(portOf(silent)), { signal: control.signal }));
    expect(seen(abort)).toMatchObject({ reason: 'abort', kind: 'transient', ambiguous: true });
  });

  test('EADDRINUSE', async () => {
    const [error] = await once(createServer().listen(portOf(rude), '127.0.0.1'), 'error');
    expect(seen(error)).toMatchObject({ reason: 'net.address_in_use', fault: 'worker' });
  });
});

describe('a system error', () => {
  function system(code: string, more: object = {}): Error {
    return Object.assign(new Error(`${code}: it went wrong`), { code, ...more });
  }

  test.each<[string, Partial<Failure>]>([
    ['EBUSY', { reason: 'fs.locked', kind: 'transient', fault: 'task' }],
    ['EACCES', { reason: 'fs.permission', kind: 'permanent' }],
    ['EPERM', { reason: 'fs.permission', kind: 'permanent' }],
    ['EROFS', { reason: 'fs.permission', kind: 'permanent' }],
    ['ENOSPC', { reason: 'fs.no_space', kind: 'transient', fault: 'worker' }],
    ['EMFILE', { reason: 'fs.too_many_files', kind: 'transient', fault: 'worker' }],
    ['EIO', { reason: 'fs.io', kind: 'transient', ambiguous: true }],
    ['EXDEV', { reason: 'fs.cross_device', kind: 'permanent' }],
    ['ENOTFOUND', { reason: 'net.dns', kind: 'transient', fault: 'source' }],
    ['EAI_AGAIN', { reason: 'net.dns', kind: 'transient' }],
    ['EHOSTUNREACH', { reason: 'net.unreachable', kind: 'transient' }],
    ['EPIPE', { reason: 'net.reset', ambiguous: true }],
    ['ETIMEDOUT', { reason: 'net.timeout', ambiguous: true }],
    ['ENOMEM', { reason: 'resource.memory', kind: 'transient' }],
  ])('%s is known by its code alone, as libraries copy it', (code, expected) => {
    expect(seen(system(code))).toMatchObject(expected);
  });

  test.each(['EFOO', 'E', 'constructor', 'toString', '__proto__', 'ERR_BAD_REQUEST', '42501'])(
    'with the code %s is not known',
    (code) => {
      expect(seen(system(code))).toMatchObject({ reason: 'unknown', kind: 'unknown', code });
      expect(seen(system(code, { syscall: 'spawn x' })).reason).toBe('unknown');
    },
  );

  test('ETIMEDOUT while connecting is not ambiguous: nothing was sent', () => {
    expect(seen(system('ETIMEDOUT', { syscall: 'connect' }))).toMatchObject({
      reason: 'net.timeout',
      ambiguous: false,
    });
  });

  test.each(['connect', 'listen', 'bind'])('EACCES at %s is about the network, not about a file', (syscall) => {
    expect(seen(system('EACCES', { syscall }))).toMatchObject({ reason: 'net.permission', kind: 'permanent' });
  });

  describe('of Windows, recognised on any system by its number below −4000', () => {
    test.each([
      ['EPERM', -4048, 'rename'],
      ['EACCES', -4092, 'unlink'],
      ['EBUSY', -4082, 'unlink'],
      ['ENOTEMPTY', -4051, 'rmdir'],
      ['UNKNOWN', -4094, 'open'],
      ['EPERM', -4048, 'copyfile'],
    ])('%s (%i) at %s is a file that another program has open', (code, errno, syscall) => {
      expect(seen(system(code, { errno, syscall }))).toMatchObject({ reason: 'fs.locked', kind: 'transient' });
    });

    test.each([
      ['EPERM', -4048, 'mkdir', 'fs.permission'],
      ['ENOENT', -4058, 'open', 'fs.not_found'],
      ['EEXIST', -4075, 'mkdir', 'fs.dest_exists'],
      ['UNKNOWN', -4094, 'read', 'unknown'],
    ])('%s (%i) at %s is not', (code, errno, syscall, reason) => {
      expect(seen(system(code, { errno, syscall })).reason).toBe(reason);
    });

    test('EPERM of Linux at the same call is a missing permission', () => {
      expect(seen(system('EPERM', { errno: -1, syscall: 'rename' }))).toMatchObject({ reason: 'fs.permission' });
    });
  });
});

describe('an HTTP status', () => {
  test.each<[number, Partial<Failure>]>([
    [400, { reason: 'http.4xx', kind: 'permanent' }],
    [401, { reason: 'auth.invalid', kind: 'permanent', fault: 'source' }],
    [403, { reason: 'auth.forbidden', kind: 'permanent' }],
    [404, { reason: 'http.404', kind: 'permanent' }],
    [407, { reason: 'auth.invalid', kind: 'permanent' }],
    [408, { reason: 'http.408', kind: 'transient' }],
    [409, { reason: 'http.409', kind: 'unknown' }],
    [410, { reason: 'http.404', kind: 'permanent' }],
    [412, { reason: 'conflict', kind: 'permanent' }],
    [413, { reason: 'too_large', kind: 'permanent' }],
    [418, { reason: 'http.4xx', kind: 'permanent' }],
    [421, { reason: 'http.421', kind: 'transient' }],
    [422, { reason: 'http.4xx', kind: 'permanent' }],
    [423, { reason: 'http.423', kind: 'transient' }],
    [425, { reason: 'http.425', kind: 'transient' }],
    [429, { reason: 'http.429', kind: 'rate_limited', fault: 'quota', ambiguous: false }],
    [499, { reason: 'http.4xx', kind: 'unknown' }],
    [500, { reason: 'http.5xx', kind: 'transient', fault: 'source', ambiguous: true }],
    [501, { reason: 'http.5xx', kind: 'permanent' }],
    [502, { reason: 'http.5xx', kind: 'transient', ambiguous: true }],
    [503, { reason: 'http.5xx', kind: 'transient', ambiguous: false }],
    [504, { reason: 'http.5xx', kind: 'transient', ambiguous: true }],
    [599, { reason: 'http.5xx', kind: 'transient' }],
  ])('%i', (status, expected) => {
    expect(seen(Object.assign(new Error('x'), { status }))).toMatchObject({
      ...expected,
      evidence: { rule: 'http', field: 'status' },
    });
  });

  test.each<[string, object]>([
    ['status', { status: 429 }],
    ['statusCode', { statusCode: 429 }],
    ['response.status', { response: { status: 429 } }],
    ['response.statusCode', { response: { statusCode: 429 } }],
    ['$metadata.httpStatusCode', { $metadata: { httpStatusCode: 429 } }],
  ])('is found in %s', (field, where) => {
    expect(seen(Object.assign(new Error('x'), where))).toMatchObject({ reason: 'http.429', evidence: { field } });
    const wrapped = seen(new Error('wrapper', { cause: where }));
    expect(wrapped).toMatchObject({ reason: 'http.429', evidence: { field: `cause.${field}` } });
  });

  test('of a Response that was thrown is its own', () => {
    const response = new Response(null, { status: 503, headers: { 'Retry-After': '7' } });
    expect(seen(response)).toMatchObject({ reason: 'http.5xx', retryAfterMs: 7_000, name: 'Response' });
  });

  test.each([0, 1, 200, 299, 600, 1_000, 404.5, Number.NaN, '404 ', 404n, null])('is not what %s is', (status) => {
    expect(seen(Object.assign(new Error('x'), { status })).reason).toBe('unknown');
  });

  test('of a wrapper outranks what it wraps', () => {
    const cause = Object.assign(new Error('x'), { code: 'ECONNRESET' });
    expect(seen(Object.assign(new Error('y', { cause }), { status: 404 })).reason).toBe('http.404');
  });

  test('of success is outranked by the code: a response may be interrupted', () => {
    for (const response of [null, { status: 200 }]) {
      expect(seen(Object.assign(new Error('x'), { code: 'ECONNRESET', response })).reason).toBe('net.reset');
    }
  });

  test('of a response outranks the code of the client library', () => {
    const axios = Object.assign(new Error('x'), { code: 'ETIMEDOUT', response: { status: 404, headers: {} } });
    expect(seen(axios).reason).toBe('http.404');
  });

  describe('that would be permanent is a rate limit where the server says "later" too', () => {
    const limited = { kind: 'rate_limited', reason: 'throttled', fault: 'quota' };
    const forbidden = (headers: object, message = 'Forbidden') =>
      Object.assign(new Error(message), { status: 403, response: { headers } });

    test('by Retry-After', () => {
      expect(seen(forbidden({ 'retry-after': '60' }))).toMatchObject({ ...limited, retryAfterMs: 60_000 });
    });

    test('by an exhausted X-RateLimit-Remaining', () => {
      expect(seen(forbidden({ 'X-RateLimit-Remaining': '0' }))).toMatchObject(limited);
      expect(seen(forbidden({ 'X-RateLimit-Remaining': '1' })).reason).toBe('auth.forbidden');
    });

    test.each([
      [403, 'You have exceeded a secondary rate limit.', {}],
      [403, 'User Rate Limit Exceeded', {}],
      [403, 'x', { name: 'RequestThrottled' }],
      [400, 'x', { name: 'ThrottlingException' }],
      [400, 'x', { name: 'ProvisionedThroughputExceededException' }],
      [400, 'x', { code: 'RequestLimitExceeded' }],
    ])('by its words: %i %s %o', (status, message, more) => {
      expect(seen(Object.assign(new Error(message), { status, ...more }))).toMatchObject(limited);
    });

    test('but words alone do not outrank a status with a clear meaning', () => {
      expect(seen(Object.assign(new Error('rate limit plan 404'), { status: 404 })).reason).toBe('http.404');
    });
  });

  test('413 with Retry-After is worth another try, 404 with it is not', () => {
    const headers = { 'retry-after': '5' };
    expect(seen({ status: 413, headers })).toMatchObject({
      kind: 'transient',
      reason: 'too_large',
      retryAfterMs: 5_000,
    });
    expect(seen({ status: 404, headers })).toMatchObject({ kind: 'permanent', retryAfterMs: 5_000 });
  });

  test('400 of the AWS SDK says nothing by itself: throttling and conflicts have it too', () => {
    expect(seen({ name: 'SomethingException', $metadata: { httpStatusCode: 400 } }).kind).toBe('unknown');
    expect(seen({ name: 'TransactionConflictException', $metadata: { httpStatusCode: 400 } })).toMatchObject({
      kind: 'transient',
      reason: 'db.serialization',
    });
    expect(seen({ name: 'AccessDenied', $metadata: { httpStatusCode: 403 } }).kind).toBe('permanent');
  });
});

describe('Retry-After', () => {
  const wait = (value: unknown, more: object = {}) =>
    seen({ status: 429, headers: { 'retry-after': value, ...more } }).retryAfterMs;

  test.each<[unknown, number | undefined]>([
    ['120', 120_000],
    [' 120 ', 120_000],
    ['0', 0],
    ['1.5', 1_500],
    ['0.0001', 1],
    ['Thu, 01 Jan 2026 00:02:00 GMT', 120_000],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    [120, 120_000],
    [0, 0],
    [1.5, 1_500],
    [['120', '5'], 120_000],
    ['315360000', 315_360_000_000],

    // A longer wait becomes ten years, which is more than the default maxRetryAfter.
    ['315360001', 315_360_000_000],
    ['99999999999', 315_360_000_000],
    ['9'.repeat(400), undefined],
    ['Thu, 01 Jan 2037 00:02:00 GMT', 315_360_000_000],
    ['-5', undefined],
    [-5, undefined],
    ['120junk', undefined],
    ['', undefined],
    [' ', undefined],
    ['soon', undefined],
    ['1e3', undefined],
    ['0x10', undefined],
    ['1.', undefined],
    ['.5', undefined],
    ['+5', undefined],
    ['12 0', undefined],
    ['120\n5', undefined],
    [null, undefined],
    [undefined, undefined],
    [Number.NaN, undefined],
    [Infinity, undefined],
    [true, undefined],
    [{}, undefined],
    [[], undefined],
    [new Date(0), undefined],
    ['2026-01-01', undefined],
    ['Thu, 32 Jan 2026 00:02:00 GMT', undefined],
    ['Thu, 01 Foo 2026 00:02:00 GMT', undefined],
    ['Thu, 01 Jan 2026 24:02:00 GMT', undefined],
    ['Thu, 01 Jan 2026 00:02:00 CET', undefined],
    ['Thu, 01 Jan 2026 00:02:00', undefined],
  ])('%j asks for %s', (value, ms) => {
    expect(wait(value)).toBe(ms);
  });

  test('takes the response’s own Date for now, so that a skewed clock does not matter', () => {
    const sent = { date: 'Thu, 01 Jan 2026 05:00:00 GMT' };
    expect(wait('Thu, 01 Jan 2026 05:01:00 GMT', sent)).toBe(60_000);
    expect(wait('Thu, 01 Jan 2026 04:00:00 GMT', sent)).toBe(0);
    expect(wait('Thu, 01 Jan 2026 00:02:00 GMT', { date: 'rubbish' })).toBe(120_000);
    expect(wait('30', sent)).toBe(30_000);
  });

  test.each<[string, unknown]>([
    ['an object in lower case', { 'retry-after': '9' }],
    ['an object in mixed case', { 'ReTrY-AfTeR': '9' }],
    ['a Headers', new Headers({ 'Retry-After': '9' })],
    ['a Map in mixed case', new Map([['Retry-After', '9']])],
    ['an object with a getter of its own', { get: (name: string) => (name === 'retry-after' ? '9' : null) }],
    ['an object without a prototype', Object.assign(Object.create(null), { 'Retry-After': 9 })],
  ])('is read from %s, wherever clients keep headers', (_, headers) => {
    for (const error of [
      { status: 429, headers },
      { status: 429, responseHeaders: headers },
      { response: { status: 429, headers } },
      new Error('x', { cause: { response: { status: 429, headers } } }),
    ]) {
      expect(seen(error).retryAfterMs).toBe(9_000);
    }
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['text', 'retry-after: 9'],
    [
      'a getter that throws',
      {
        get: () => {
          throw new Error('no');
        },
      },
    ],
    [
      'a Proxy that throws',
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('no');
          },
        },
      ),
    ],
    ['a polluted name', { constructor: '9' }],
  ])('is not read from headers that are %s, and nothing is thrown', (_, headers) => {
    expect(seen({ status: 429, headers }).retryAfterMs).toBeUndefined();
  });

  test('is kept for every status, not only for 429', () => {
    expect(seen({ status: 503, headers: { 'retry-after': '3' } })).toMatchObject({
      kind: 'transient',
      retryAfterMs: 3_000,
    });
  });
});

describe('errors that were thrown together', () => {
  const coded = (code: string) => Object.assign(new Error(code), { code });

  test('are recognised in the errors of an AggregateError', () => {
    expect(seen(new AggregateError([coded('ECONNREFUSED'), coded('ECONNREFUSED')])).reason).toBe('net.refused');
    expect(seen(new Error('x', { cause: new AggregateError([coded('ENOENT')]) })).reason).toBe('fs.not_found');
  });

  test('have the kind that is most likely to pass: rate limit, then transient, then unknown, then permanent', () => {
    expect(seen(new AggregateError([coded('ENOENT'), coded('ECONNREFUSED')]))).toMatchObject({
      reason: 'net.refused',
      code: 'ECONNREFUSED',
    });
    expect(seen(new AggregateError([{ status: 404 }, { status: 409 }])).reason).toBe('http.409');
    expect(seen(new AggregateError([coded('ECONNREFUSED'), { status: 429 }])).kind).toBe('rate_limited');
    expect(seen(new AggregateError([coded('ENOENT'), coded('EEXIST')])).reason).toBe('fs.not_found');
  });

  test('have the longest of their waits', () => {
    const limited = (seconds: string) => ({ status: 429, headers: { 'retry-after': seconds } });
    expect(seen(new AggregateError([limited('5'), limited('60'), { status: 429 }])).retryAfterMs).toBe(60_000);
  });

  test('are ambiguous if one of them is: its effect may have happened', () => {
    expect(seen(new AggregateError([{ status: 429 }, coded('ECONNRESET')]))).toMatchObject({
      kind: 'rate_limited',
      ambiguous: true,
    });
  });

  test('that say nothing are outranked by their causes', () => {
    expect(seen(new AggregateError([new Error('a'), new Error('b', { cause: coded('EBUSY') })])).reason).toBe(
      'fs.locked',
    );
  });
});

describe('the name and message', () => {
  class Fatal extends Error {}

  test('are those of what was thrown', () => {
    expect(seen(new RangeError('too far'))).toMatchObject({ name: 'RangeError', message: 'too far' });
    expect(seen(Object.assign(new Error('x'), { name: 'MyError' })).name).toBe('MyError');
  });

  test('of a subclass that does not set its name contain its class', () => {
    expect(seen(new Fatal('x')).name).toBe('Fatal');
    expect(seen(new Error('x')).name).toBe('Error');
  });

  test('are not taken from what everything inherits', () => {
    expect(seen({}).name).toBe('object');
    Object.assign(Object.prototype, { code: 'ENOENT', status: 404, cause: { status: 404 }, message: 'polluted' });
    try {
      expect(seen({})).toMatchObject({ reason: 'unknown', message: 'an object without a message was thrown' });
      expect(seen(new Error('own'))).toMatchObject({ reason: 'unknown', message: 'own' });
      expect(seen({ code: 'ENOENT' }).reason).toBe('fs.not_found');
    } finally {
      for (const name of ['code', 'status', 'cause', 'message'])
        delete (Object.prototype as Record<string, unknown>)[name];
    }
  });

  test('of an error without a message are its code', () => {
    expect(seen(new AggregateError([], '')).message).toBe('an object without a message was thrown');
    expect(seen(Object.assign(new Error(''), { code: 'EBUSY' })).message).toBe('EBUSY');
  });
});
