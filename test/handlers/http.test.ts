import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { classify } from '../../src/failure/classify/classify.ts';
import type { Failure } from '../../src/failure/outcome.ts';
import { type HttpOptions, type HttpResult, type HttpTask, http } from '../../src/handlers/http.ts';
import { checkHttp, type HttpInput } from '../../src/handlers/http-input.ts';
import { gate } from '../worker/scene.ts';
import { type Answering, serve, serveSocket } from './loopback.ts';

type More = Partial<HttpInput> & { readonly options?: Partial<HttpOptions>; readonly task?: Partial<HttpTask> };

function send(method: string, url: string, { options, task, ...more }: More = {}): Promise<HttpResult> {
  const input = checkHttp({ method, url, allowPrivate: true, ...more });
  return http({ environment: {}, ...options })(input, {
    signal: new AbortController().signal,
    heartbeat: () => {},
    ...task,
  });
}

/** What a request failed with, as the worker will see it. */
async function failureOf(sending: Promise<unknown>): Promise<Failure> {
  const thrown = await sending.then(
    (result) => {
      throw new Error(`It should have failed, and ended with ${JSON.stringify(result)}.`);
    },
    (error: unknown) => error,
  );
  return classify(thrown, { now: Date.now() });
}

const never = new Promise<never>(() => {});
const hello: Answering = (_, response) => response.end('hello');

describe('a request', () => {
  test.each([200, 429, 503])('tells what an answer with status %i says of the rate limit', async (status) => {
    const server = await serve((_, response) =>
      response.writeHead(status, { 'ratelimit-remaining': '7', 'ratelimit-reset': '60' }).end(),
    );
    const limits: unknown[] = [];
    const task = { rateLimit: (limit: unknown) => void limits.push(limit) };
    await send('GET', server.url, { task }).catch(() => {});
    expect(limits).toEqual([{ remaining: 7, resetsIn: '60000ms' }]);
  });

  test('is sent as it was recorded, and its answer is the result', async () => {
    const server = await serve((_, response) =>
      response.writeHead(201, { 'content-type': 'text/plain', location: '/orders/7' }).end('made'),
    );
    const headers = [
      { name: 'X-One', value: 'a' },
      { name: 'x-one', value: 'b' },
    ];
    const result = await send('POST', `${server.url}/orders?dry=1`, { headers, body: '{"a":1}' });
    expect(result).toEqual({ status: 201, contentType: 'text/plain', location: '/orders/7', bytes: 4, body: 'made' });
    expect(server.heard).toMatchObject([
      {
        method: 'POST',
        path: '/orders?dry=1',
        body: '{"a":1}',
        headers: {
          'x-one': 'a, b',
          'content-type': 'application/json',
          'content-length': '7',
          'user-agent': 'holdfast',
          host: `127.0.0.1:${server.port}`,
        },
      },
    ]);
  });

  test.each<[HttpInput['body'], readonly HttpInput['headers'][], string | undefined]>([
    ['a=1', [], 'application/x-www-form-urlencoded'],
    ['[1]', [], 'application/json'],
    ['7', [], 'application/x-www-form-urlencoded'],
    [{ base64: '/w==' }, [], 'application/octet-stream'],
    ['{}', [[{ name: 'content-type', value: 'text/x' }]], 'text/x'],
    [undefined, [], undefined],
  ])('declares a body %j as what it is, unless that is said', async (body, [headers], type) => {
    const server = await serve(hello);
    await send('PUT', server.url, { ...(body !== undefined && { body }), ...(headers && { headers }) });
    expect(server.heard[0]?.headers['content-type']).toBe(type);
  });

  test.each(['GET', 'DELETE', 'POST', 'PATCH', 'OPTIONS'])(
    'of the method %s brings its body, and one request only',
    async (method) => {
      const server = await serve(hello);
      await send(method, server.url, { body: 'GET / HTTP/1.1\r\n\r\n' });
      expect(server.heard).toMatchObject([{ method, body: 'GET / HTTP/1.1\r\n\r\n' }]);
    },
  );

  test('succeeds by the statuses that it names, a redirect too', async () => {
    const server = await serve((_, response) => response.writeHead(303, { location: '/elsewhere' }).end());
    expect(await send('POST', server.url, { ok: [303] })).toMatchObject({ status: 303, location: '/elsewhere' });
    expect(server.heard).toHaveLength(1);
  });

  test('sends its idempotency key, the same at each attempt', async () => {
    const server = await serve(hello);
    const idempotency = { header: 'X-Key', key: 'order-1' };
    for (let attempt = 1; attempt <= 2; attempt += 1) await send('POST', server.url, { idempotency });
    expect(server.heard.map(({ headers }) => headers['x-key'])).toEqual(['order-1', 'order-1']);
  });

  test('tells of signs of life while a body comes', async () => {
    let beats = 0;
    const server = await serve(hello);
    await send('GET', server.url, { task: { heartbeat: () => (beats += 1) } });
    expect(beats).toBeGreaterThan(1);
  });
});

describe('an answer', () => {
  test('is read up to a limit; the status has said what matters', async () => {
    const server = await serve((_, response) => response.end('x'.repeat(100_000)));
    expect(await send('POST', server.url, { maxBody: 10 })).toEqual({
      status: 200,
      bytes: 10,
      cut: true,
      body: 'x'.repeat(10),
    });
    expect(await send('POST', server.url)).toEqual({
      status: 200,
      bytes: 100_000,
      cut: true,
      body: 'x'.repeat(64 * 1024),
    });
  });

  test('is handed on whole and byte for byte, anew at each attempt, and only if it is good', async () => {
    const body = Buffer.alloc(1_200_000, 0xff);
    const server = await serve((_, response, nth) => {
      if (nth === 1) response.writeHead(503).end('no');
      else if (nth === 2) response.writeHead(200, { 'content-length': '9' }).end('half', () => response.destroy());
      else response.end(body);
    });
    const calls: string[] = [];
    const chunks: Buffer[] = [];
    const answer = {
      begin: () => {
        calls.push('begin');
        chunks.length = 0;
      },
      write: (chunk: Buffer) => void chunks.push(chunk),
    };
    await expect(send('GET', server.url, { options: { answer } })).rejects.toThrow('503');
    await expect(send('GET', server.url, { options: { answer } })).rejects.toThrow();
    expect(await send('GET', server.url, { options: { answer } })).toEqual({
      status: 200,
      bytes: body.length,
      cut: true,
    });
    expect(calls).toEqual(['begin', 'begin']);
    expect(Buffer.concat(chunks).equals(body)).toBe(true);
    expect(await send('GET', server.url, { maxBody: 10, options: { answer } })).toMatchObject({ bytes: 10 });
    expect(Buffer.concat(chunks)).toHaveLength(10);
  });

  test('without an end is left where the limit is', async () => {
    const server = await serve((_, response) => {
      const more = () => {
        while (response.write('y'.repeat(10_000)));
      };
      response.on('drain', more);
      more();
    });
    expect(await send('GET', server.url, { maxBody: 1_000_000 })).toMatchObject({ bytes: 1_000_000, cut: true });
  });

  test.each<[string, Buffer, string | undefined]>([
    ['that is no text is counted and not kept', Buffer.from([0xff, 0xfe, 0x00]), undefined],
    ['with NUL is kept with a sign for it', Buffer.from('a\0b'), 'a␀b'],
    ['in UTF-8 is kept', Buffer.from('grüße'), 'grüße'],
  ])('%s', async (_, bytes, body) => {
    const server = await serve((__, response) => response.end(bytes));
    const result = await send('GET', server.url);
    expect([result.bytes, result.body]).toEqual([bytes.length, body]);
  });

  test('that is cut within a character keeps the whole ones', async () => {
    const server = await serve((_, response) => response.end('aü'));
    expect(await send('GET', server.url, { maxBody: 2 })).toMatchObject({ bytes: 2, cut: true, body: 'a' });
  });
});

describe('a failure', () => {
  test.each<[number, Record<string, string>, string, Partial<Failure>]>([
    [429, { 'retry-after': '7' }, '', { kind: 'rate_limited', reason: 'http.429', retryAfterMs: 7_000 }],
    [503, { 'retry-after': '1.5' }, 'busy', { kind: 'transient', retryAfterMs: 1_500, ambiguous: false }],
    [429, {}, '{"retry_after": 2}', { kind: 'rate_limited', retryAfterMs: 2_000 }],
    [504, {}, '', { kind: 'transient', fault: 'source', ambiguous: true }],
    [404, {}, 'no such hook', { kind: 'permanent', reason: 'http.404' }],
    [400, {}, '', { kind: 'permanent', ambiguous: false }],
    [304, {}, '', { reason: 'http.3xx' }],
  ])('of status %i with %j says what the classifier needs', async (status, headers, body, expected) => {
    const server = await serve((_, response) => response.writeHead(status, headers).end(body));
    expect(await failureOf(send('POST', server.url))).toMatchObject({ name: 'HttpStatusError', ...expected });
  });

  test('of a status counts although its body breaks off, or does not come', async () => {
    const server = await serve(({ path }, response) => {
      response.writeHead(429, { 'retry-after': '3', 'content-length': '100' });
      response.write('slow ', () => path === '/cut' && response.destroy());
    });
    for (const path of ['/cut', '/silent']) {
      const failure = await failureOf(send('POST', server.url + path, { timeoutMs: 200 }));
      expect(failure).toMatchObject({ kind: 'rate_limited', retryAfterMs: 3_000 });
    }
  });

  test('quotes the first line of a body, and no page for browsers', async () => {
    const bodies = ['\n  quota for "eva" is used up\nmore', '<html><h1>Nope</h1>', ''];
    const server = await serve((_, response, nth) => response.writeHead(422).end(bodies[nth - 1]));
    const messages: string[] = [];
    for (const _ of bodies) messages.push((await failureOf(send('GET', server.url))).message);
    expect(messages).toEqual([
      '422 Unprocessable Entity: quota for "eva" is used up',
      '422 Unprocessable Entity',
      '422 Unprocessable Entity',
    ]);
  });

  test('after the request was sent is ambiguous: a reset', async () => {
    const server = await serve((_, response) => response.destroy());
    expect(await failureOf(send('POST', server.url))).toMatchObject({ reason: 'net.reset', ambiguous: true });
  });

  test('after the request was sent is ambiguous: an answer that ends too early', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.destroy());
    });
    expect(await failureOf(send('POST', server.url))).toMatchObject({ reason: 'net.reset', ambiguous: true });
  });

  test('after the request was sent is ambiguous: silence, before the headers or within the body', async () => {
    const server = await serve(({ path }, response) => {
      if (path === '/body') response.write('and now …');
    });
    for (const path of ['/headers', '/body']) {
      const failure = await failureOf(send('POST', server.url + path, { timeoutMs: 100 }));
      expect(failure).toMatchObject({ reason: 'net.timeout', fault: 'source', ambiguous: true });
      expect(failure.message).toBe('No complete answer within 100 ms');
    }
  });

  test('after the request was sent is ambiguous: an answer that is no HTTP', async () => {
    const { url } = await serveSocket((socket) => socket.once('data', () => socket.end('220 mail.example ESMTP\r\n')));
    expect(await failureOf(send('POST', url))).toMatchObject({ reason: 'net.reset', ambiguous: true });
    expect(await failureOf(send('GET', url))).toMatchObject({ reason: 'net.protocol' });
  });

  test('after the request was sent is ambiguous: a switch to another protocol, whose connection is closed', async () => {
    const closed = gate();
    const { url } = await serveSocket((socket) => {
      socket.once('close', closed.open);
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhi'),
      );
    });
    const failure = await failureOf(send('POST', url));
    expect(failure).toMatchObject({ reason: 'net.reset', ambiguous: true });
    expect(failure.message).toBe(
      '101 Switching Protocols: the server changed to another protocol (websocket), so the request was not delivered.',
    );
    await closed.passed;
    expect(await failureOf(send('GET', url))).toMatchObject({ reason: 'net.protocol', message: failure.message });
  });

  test('before the request was sent is not: nobody listens', async () => {
    const { url } = await serveSocket(() => {});
    // Port 9 of the loopback network; the one above shows that connecting works.
    expect(await failureOf(send('POST', url.replace(/:\d+$/, ':9')))).toMatchObject({
      reason: 'net.refused',
      ambiguous: false,
    });
  });

  test('before the request was sent is not: no encryption, as nobody answers or the connection is cut', async () => {
    const silent = await serveSocket(() => {});
    const secure = (url: string) => url.replace('http:', 'https:');
    const slow = send('POST', secure(silent.url), { connectTimeoutMs: 50 });
    expect(await failureOf(slow)).toMatchObject({ reason: 'net.timeout', ambiguous: false });
    const all = send('POST', secure(silent.url), { timeoutMs: 50 });
    expect(await failureOf(all)).toMatchObject({ reason: 'net.timeout', ambiguous: false });
    const cutting = await serveSocket((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(await failureOf(send('POST', secure(cutting.url)))).toMatchObject({ reason: 'net.reset', ambiguous: false });
  });

  test('before the request was sent is not: the name', async () => {
    const slow = send('POST', 'http://slow.test/', { connectTimeoutMs: 50, options: { lookup: () => never } });
    expect(await failureOf(slow)).toMatchObject({ reason: 'net.timeout', ambiguous: false });
    const lookup = () => Promise.reject(Object.assign(new Error('getaddrinfo ENOTFOUND x'), { code: 'ENOTFOUND' }));
    expect(await failureOf(send('POST', 'http://none.test/', { options: { lookup } }))).toMatchObject({
      reason: 'net.dns',
      ambiguous: false,
    });
  });

  test('is the reason of the signal when it was told to stop', async () => {
    const [stop, enough] = [new AbortController(), new Error('enough')];
    const server = await serve(() => stop.abort(enough));
    await expect(send('POST', server.url, { task: { signal: stop.signal } })).rejects.toBe(enough);
    await expect(send('POST', server.url, { task: { signal: stop.signal } })).rejects.toBe(enough);
    expect(server.heard).toHaveLength(1);
  });

  const stages: readonly (readonly [string, string, (socket: Socket, reached: () => void) => void])[] = [
    ['the encryption begins', 'https:', (socket, reached) => socket.once('data', reached)],
    ['nothing was answered', 'http:', (socket, reached) => socket.once('data', reached)],
    [
      'only headers of no answer came',
      'http:',
      (socket, reached) => socket.once('data', () => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n', reached)),
    ],
  ];

  test.each(stages)('is the reason of the signal, and closes the connection, when %s', async (_, protocol, answer) => {
    const [stop, enough, closed] = [new AbortController(), new Error('enough'), gate()];
    const { url } = await serveSocket((socket) => {
      socket.once('close', closed.open);
      answer(socket, () => stop.abort(enough));
    });
    const sending = send('POST', url.replace('http:', protocol), { task: { signal: stop.signal } });
    await expect(sending).rejects.toBe(enough);
    await closed.passed;
  });

  test('is the reason of the signal while a name is looked up, and within a body', async () => {
    const [asking, reading, enough] = [new AbortController(), new AbortController(), new Error('enough')];
    const lookup = () => {
      queueMicrotask(() => asking.abort(enough));
      return never;
    };
    const unnamed = send('POST', 'http://slow.test/', { task: { signal: asking.signal }, options: { lookup } });
    await expect(unnamed).rejects.toBe(enough);
    const server = await serve((_, response) => void response.write('and now …'));
    const heartbeat = vi
      .fn()
      .mockImplementationOnce(() => {})
      .mockImplementation(() => reading.abort(enough));
    await expect(send('GET', server.url, { task: { signal: reading.signal, heartbeat } })).rejects.toBe(enough);
    expect(heartbeat).toHaveBeenCalledTimes(2);
  });
});

describe('a name', () => {
  test('is resolved once, and the connection goes to exactly that address', async () => {
    const server = await serve(hello);
    const answers = [{ address: '127.0.0.1', family: 4 }];
    let asked: string[] = [];
    const lookup = async (host: string) => {
      asked.push(host);
      // Whoever asked again would be led astray.
      return [answers.shift() ?? { address: '192.0.2.1', family: 4 }];
    };
    expect(await send('GET', `http://rebind.test:${server.port}/x`, { options: { lookup } })).toMatchObject({
      status: 200,
    });
    expect(asked).toEqual(['rebind.test']);
    expect(server.heard[0]?.headers.host).toBe(`rebind.test:${server.port}`);

    // What is public when it is judged, and this machine when it is asked again, is not connected to.
    asked = [];
    answers.push({ address: '192.88.98.1', family: 4 });
    const rebinding = async (host: string) => {
      asked.push(host);
      return [answers.shift() ?? { address: '127.0.0.1', family: 4 }];
    };
    const sending = send('GET', `http://rebind.test:${server.port}/y`, {
      allowPrivate: false,
      connectTimeoutMs: 300,
      options: { lookup: rebinding },
    });
    expect((await failureOf(sending)).reason).toMatch(/^net\./);
    expect([asked, server.heard.length]).toEqual([['rebind.test'], 1]);
  });

  test('whose first address is dead is reached at its next', async () => {
    const server = await serve(hello);
    const lookup = async () => [
      { address: '127.0.0.2', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    expect(await send('GET', `http://two.test:${server.port}/`, { options: { lookup } })).toMatchObject({
      status: 200,
    });
  });

  test.each([['127.0.0.1'], ['::1'], ['::ffff:127.0.0.1'], ['10.0.0.1'], ['1.1.1.1', '169.254.169.254']])(
    'that leads to %s is refused before anything is sent',
    async (...found) => {
      const server = await serve(hello);
      const lookup = async () => found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
      const sending = send('GET', `http://inside.test:${server.port}/`, { allowPrivate: false, options: { lookup } });
      expect(await failureOf(sending)).toMatchObject({
        kind: 'permanent',
        reason: 'http.private_address',
        message: expect.stringContaining(`inside.test is ${found.at(-1)}, an address of this machine`),
      });
      expect(server.heard).toEqual([]);
    },
  );

  test('that the system leads to this machine is refused', async () => {
    const sending = send('GET', 'http://localhost:9/', { allowPrivate: true });
    expect((await failureOf(sending)).reason).toBe('net.refused');
    const input = { method: 'GET', url: 'http://localhost:9/' } as const;
    const unchecked = http({ environment: {} })(input, { signal: new AbortController().signal, heartbeat() {} });
    expect((await failureOf(unchecked)).reason).toBe('http.private_address');
  });
});

describe('a redirect', () => {
  const redirecting =
    (status: number, location: string): Answering =>
    ({ path }, response) => {
      if (path === '/start') response.writeHead(status, { location }).end('moved');
      else response.end('here');
    };

  test.each<[number, string, string, string]>([
    [301, 'GET', 'GET', ''],
    [302, 'OPTIONS', 'OPTIONS', ''],
    [303, 'POST', 'GET', ''],
    [303, 'PUT', 'GET', ''],
    [303, 'HEAD', 'HEAD', ''],
    [307, 'POST', 'POST', 'b=1'],
    [308, 'PATCH', 'PATCH', 'b=1'],
    [307, 'PUT', 'PUT', 'b=1'],
    [308, 'DELETE', 'DELETE', 'b=1'],
  ])('%i turns %s into %s', async (status, method, after, body) => {
    const server = await serve(redirecting(status, 'there?x=1'));
    const hasBody = !['GET', 'HEAD', 'OPTIONS'].includes(method);
    const result = await send(method, `${server.url}/start`, hasBody ? { body: 'b=1' } : {});
    expect(result).toMatchObject({ status: 200, redirects: 1, url: `${server.url}/there` });
    expect(server.heard[1]).toMatchObject({ method: after, path: '/there?x=1', body });
    expect(server.heard[1]?.headers['content-type'] === undefined).toBe(body === '');
  });

  test.each(
    [301, 302].flatMap((status) => ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [status, method] as const)),
  )('%i is no proof that a %s was done: it fails for good, and nothing more is sent', async (status, method) => {
    const server = await serve(redirecting(status, 'there?x=1'));
    for (const idempotent of [true, false]) {
      const sending = send(method, `${server.url}/start`, { body: 'b=1', idempotent });
      expect(await failureOf(sending)).toMatchObject({
        kind: 'permanent',
        reason: 'http.moved',
        message: expect.stringContaining(
          `to ${server.url}/there: this answer does not say whether the ${method} was done`,
        ),
      });
    }
    expect(server.heard.map((heard) => [heard.method, heard.path])).toEqual([
      [method, '/start'],
      [method, '/start'],
    ]);
    const counted = await send(method, `${server.url}/start`, { ok: [[200, 299], status] });
    expect(counted).toMatchObject({ status });
  });

  test.each([
    ['UTF-8', Buffer.from('/café'), '/caf%C3%A9'],
    ['Latin-1', Buffer.from('/café', 'latin1'), '/caf%C3%A9'],
    ['percent-encoded', Buffer.from('/caf%C3%A9'), '/caf%C3%A9'],
    ['in both ways', Buffer.from('/%C3%A9é?q=ü'), '/%C3%A9%C3%A9?q=%C3%BC'],
  ])('leads to a place that is written in %s', async (_, location, path) => {
    const asked: (string | undefined)[] = [];
    const server = await serveSocket((socket) =>
      socket.once('data', (request) => {
        asked.push(request.toString('latin1').split(' ')[1]);
        const parts = ['HTTP/1.1 302 Found\r\nLocation: ', location, '\r\nContent-Length: 0\r\n\r\n'];
        const found = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
        socket.end(asked.length === 1 ? found : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      }),
    );
    expect(await send('GET', `${server.url}/a`)).toMatchObject({ status: 200, body: 'ok' });
    expect(asked).toEqual(['/a', path]);
  });

  test('that a 307 leads to is judged alike', async () => {
    const server = await serve(({ path }, response) =>
      path === '/start'
        ? response.writeHead(307, { location: '/next' }).end()
        : response.writeHead(302, { location: '/page' }).end(),
    );
    expect((await failureOf(send('POST', `${server.url}/start`))).reason).toBe('http.moved');
    expect(server.heard.map(({ path }) => path)).toEqual(['/start', '/next']);
  });

  test('is followed so often and no more', async () => {
    const server = await serve(({ path }, response, nth) =>
      response.writeHead(302, { location: `${path}${nth}` }).end(),
    );
    expect(await failureOf(send('GET', `${server.url}/`))).toMatchObject({
      kind: 'permanent',
      reason: 'http.redirect',
      message: '302 Found: this is more than the 5 redirects that are followed.',
    });
    expect(server.heard).toHaveLength(6);
    expect((await failureOf(send('GET', `${server.url}/`, { maxRedirects: 0 }))).reason).toBe('http.redirect');
    expect(server.heard).toHaveLength(7);
  });

  test.each([
    ['ftp://127.0.0.1/', 'it leads to ftp:'],
    ['file:///etc/passwd', 'it leads to file:'],
    ['http://eva:geheim@127.0.0.1/', 'it leads to a URL with a user name'],
    ['http://[', 'it leads to what is no URL'],
  ])('to %s is refused', async (location, why) => {
    const server = await serve(redirecting(302, location));
    const failure = await failureOf(send('GET', `${server.url}/start`));
    expect(failure).toMatchObject({
      kind: 'permanent',
      reason: 'http.redirect',
      message: expect.stringContaining(why),
    });
    expect(failure.message).not.toContain('geheim');
  });

  test('without a place to go to is a failure of its status', async () => {
    const server = await serve((_, response) => response.writeHead(302).end());
    expect((await failureOf(send('GET', server.url))).reason).toBe('http.3xx');
  });

  test('takes secrets along within an origin, and to no other', async () => {
    const other = await serve(hello);
    const server = await serve(({ path }, response) => {
      if (path === '/start') response.writeHead(307, { location: '/next' }).end();
      else response.writeHead(307, { location: `${other.url}/` }).end();
    });
    const headers = [
      { name: 'Authorization', env: 'TOKEN', scheme: 'Bearer' },
      { name: 'X-Signature', env: 'TOKEN' },
      { name: 'X-Plain', value: 'p' },
    ];
    const options = { environment: { TOKEN: 'geheim' } };
    await send('POST', `${server.url}/start`, { headers, options });
    expect(server.heard.map(({ headers: { authorization } }) => authorization)).toEqual([
      'Bearer geheim',
      'Bearer geheim',
    ]);
    expect(other.heard[0]?.headers).toMatchObject({ 'x-plain': 'p' });
    expect(JSON.stringify(other.heard)).not.toContain('geheim');
  });

  test('that follows what was done asks a person if its page fails; what may be repeated is', async () => {
    const server = await serve(({ path }, response) => {
      if (path === '/start') response.writeHead(303, { location: '/page' }).end();
      else response.writeHead(503, { 'retry-after': '9' }).end();
    });
    expect(await failureOf(send('POST', `${server.url}/start`))).toMatchObject({
      word: 'needs_manual',
      message: expect.stringMatching(/^POST was answered with 303 See Other, so it was probably done\. .* 503 Service/),
    });
    expect(await failureOf(send('POST', `${server.url}/start`, { idempotent: true }))).toMatchObject({
      kind: 'transient',
      retryAfterMs: 9_000,
      message: '503 Service Unavailable, after 1 redirect',
    });
  });
});

describe('a secret', () => {
  const TOKEN = 'tok/"en"-geheim';
  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), 'holdfast-http-'));
    onTestFinished(() => rmSync(path, { recursive: true }));
    return path;
  };

  test('is read anew at each attempt, from the environment or a file', async () => {
    const server = await serve(hello);
    const file = join(folder(), 'headers');
    const environment: Record<string, string> = {};
    for (const nth of [1, 2]) {
      environment.TOKEN = `geheim-${nth}\n`;
      environment.LOGIN = `eva:pass-${nth}`;
      writeFileSync(file, `# for the hook\r\n\r\nX-File: file-${nth}\r\nX-Both: Token env:TOKEN\n`);
      const headers = [
        { name: 'X-Env', env: 'TOKEN' },
        { name: 'Authorization', env: 'LOGIN', scheme: 'Basic' },
        { file },
      ];
      await send('GET', server.url, { headers, options: { environment } });
      expect(server.heard.at(-1)?.headers).toMatchObject({
        'x-env': `geheim-${nth}`,
        authorization: `Basic ${Buffer.from(`eva:pass-${nth}`).toString('base64')}`,
        'x-file': `file-${nth}`,
        'x-both': `Token geheim-${nth}`,
      });
    }
  });

  test('that the other side sends back is in no result and no failure', async () => {
    const server = await serve(({ headers, path }, response) => {
      const { authorization = '' } = headers;
      response.setHeader('location', `/?t=${encodeURIComponent(TOKEN)}`);
      response.writeHead(path === '/bad' ? 400 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ authorization, bare: authorization.split(' ')[1] }));
    });
    const more = {
      headers: [{ name: 'Authorization', env: 'T', scheme: 'Bearer' }],
      options: { environment: { T: TOKEN } },
    };
    const result = await send('GET', `${server.url}/`, more);
    expect(result).toMatchObject({ body: '{"authorization":"***","bare":"***"}', location: '/?t=***' });
    const failure = await failureOf(send('GET', `${server.url}/bad`, more));
    expect(JSON.stringify([result, failure])).not.toContain('geheim');
    expect(failure.message).toContain('***');
  });

  test.each<[string, object, string]>([
    ['that is missing', { name: 'X', env: 'NONE' }, 'The header X needs the environment variable NONE'],
    ['that no header can carry', { name: 'X', env: 'BROKEN' }, 'The value for the header X has line ends'],
    ['whose file is missing', { file: '/nowhere/headers' }, 'The file of headers /nowhere/headers cannot be read'],
    ['whose file is none', { file: tmpdir() }, 'it is no file of at most 64 KiB'],
  ])('%s asks a person, and nothing is sent', async (_, header, why) => {
    const server = await serve(hello);
    const options = { environment: { BROKEN: 'geheim\r\nX-Evil: 1' } };
    const failure = await failureOf(send('GET', server.url, { headers: [header as never], options }));
    expect(failure).toMatchObject({
      word: 'needs_manual',
      reason: 'http.secret_missing',
      message: expect.stringContaining(why),
    });
    expect(failure.message).not.toContain('geheim');
    expect(server.heard).toEqual([]);
  });

  test('that stands in a file where a name should is not shown', async () => {
    const file = join(folder(), 'headers');
    writeFileSync(file, 'geheim geheim: x\n');
    const failure = await failureOf(send('GET', 'http://127.0.0.1:9/', { headers: [{ file }] }));
    expect([failure.reason, failure.message.includes('geheim')]).toEqual(['http.secret_missing', false]);
  });
});
