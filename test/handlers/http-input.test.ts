import { describe, expect, test } from 'vitest';
import { InvalidInputError } from '../../src/errors.ts';
import { isPrivateAddress } from '../../src/handlers/http-address.ts';
import {
  checkHttp,
  type HttpInput,
  includesStatus,
  mayBeRepeated,
  parseHeader,
  parseStatuses,
  sourceOfHttp,
} from '../../src/handlers/http-input.ts';

const request = (more: object = {}) => ({ method: 'POST', url: 'https://api.example/hook', ...more });

describe('addresses', () => {
  test.each([
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '127.0.0.1', '127.255.0.9', '169.254.169.254', '172.16.0.1'],
    ...['172.31.255.255', '192.168.1.1', '192.0.2.7', '198.18.0.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:a9fe:a9fe', '64:ff9b::10.0.0.1'],
    ...['fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1', '2001:db8::1', '2002:7f00:1::'],
    ...['2001::1', '100::1', '64:ff9b:1::1', '4000::1', 'no address', ''],
  ])('%s leads to nobody else', (address) => {
    expect(isPrivateAddress(address)).toBe(true);
  });

  test.each([
    ...['1.1.1.1', '93.184.216.34', '100.63.255.255', '100.128.0.1', '172.15.0.1', '172.32.0.1', '192.167.0.1'],
    ...['223.255.255.255', '2606:4700::1111', '2001:4860:4860::8888', '::ffff:1.1.1.1', '::ffff:5db8:d822'],
    '64:ff9b::101:101',
  ])('%s is public', (address) => {
    expect(isPrivateAddress(address)).toBe(false);
  });

  test.each([
    ...['http://127.0.0.1/', 'http://127.1/', 'http://2130706433/', 'http://0x7f000001/', 'http://0177.0.0.1/'],
    ...['http://0/', 'http://0.0.0.0:80/', 'http://localhost:3000/', 'http://LOCALHOST./', 'http://api.localhost/'],
    ...['http://[::1]/', 'http://[::]/', 'http://[::ffff:127.0.0.1]/', 'http://[::ffff:7f00:1]/', 'http://[fe80::1]/'],
    ...['http://①②⑦.⓪.⓪.①/', 'http://169.254.169.254/latest/meta-data/', 'http://192.168.0.1/'],
  ])('%s is refused unless it is allowed, however it is written', (url) => {
    expect(() => checkHttp(request({ url }))).toThrow(/in a private network/);
    expect(checkHttp(request({ url, allowPrivate: true })).url).toBe(new URL(url).href);
  });
});

test.each([
  ['timeoutMs', { timeoutMs: 0 }],
  ['idempotency.key', { idempotency: { header: 'Idempotency-Key', key: 'a b' } }],
  ['idempotency.header', { idempotency: { header: 'no name', key: 'a' } }],
  ['allowPrivate', { url: 'http://127.0.0.1/' }],
])('what is refused says that it is about %s', (member, input) => {
  expect(() => checkHttp(request(input))).toThrow(expect.objectContaining({ code: 'invalid_input', member }));
});

describe('a request', () => {
  test('is read as it is, with a URL in its normal form and without its fragment', () => {
    const input = {
      method: 'PATCH',
      url: 'HTTPS://API.example:443/a/../b?c=d#e',
      headers: [
        { name: 'X-One', value: '1' },
        { name: 'Authorization', env: 'TOKEN', scheme: 'Bearer' },
        { file: '/run/headers' },
      ],
      body: { base64: 'AAE=' },
      ok: [[200, 299], 409],
      connectTimeoutMs: 1,
      timeoutMs: 2,
      maxBody: 0,
      maxRedirects: 0,
      allowPrivate: false,
      idempotent: false,
      idempotency: { header: 'X-Key', key: 'k' },
    };
    expect(checkHttp(input)).toEqual({ ...input, url: 'https://api.example/b?c=d' });
    expect(checkHttp(request())).toEqual(request());
  });

  test.each<[object, string]>([
    [{ method: 'post' }, 'method must be an HTTP method such as GET'],
    [{ method: 'CONNECT' }, 'method must be'],
    [{ method: undefined }, 'method must be'],
    [{ url: '/relative' }, 'url must be an absolute URL'],
    [{ url: undefined }, 'url must be an absolute URL'],
    [{ url: 'ftp://host/' }, "url must begin with http or https, got 'ftp:'"],
    [{ url: 'file:///etc/passwd' }, 'url must begin with http or https'],
    [{ url: 'https://eva:geheim@host/' }, 'url has a user name or password'],
    [{ url: 'https://geheim@host/' }, "'Authorization: Basic env:VARIABLE'"],
    [
      { headers: [{ name: 'Authorization', value: 'Bearer geheim' }] },
      'could read the value of the header Authorization.',
    ],
    [{ headers: [{ name: 'x-api-key', value: 'geheim' }] }, "'x-api-key: env:VARIABLE'"],
    [{ headers: [{ name: 'X-Auth-Token', value: 'geheim' }] }, 'could read the value of the header'],
    [{ headers: [{ name: 'Cookie', value: 'sid=geheim' }] }, 'could read the value of the header'],
    [{ headers: [{ name: 'X', value: 'a\r\nSet-Cookie: b' }] }, 'The header X needs a value of one line'],
    [{ headers: [{ name: 'bad name', value: 'x' }] }, "headers[0] must be the name of a header, got 'bad name'"],
    [{ headers: [{ name: 'Host', value: 'x' }] }, 'The header Host cannot be set'],
    [{ headers: [{ name: 'transfer-encoding', value: 'chunked' }] }, 'cannot be set'],
    [{ headers: [{ name: 'X', env: 'not a name' }] }, 'must name a variable as env'],
    [{ headers: [{ name: 'X', env: 'A', scheme: 'a b' }] }, 'must name a variable as env'],
    [{ headers: [{ name: 'X', env: 'A', value: 'b' }] }, "has no option 'value'"],
    [{ headers: [{ file: 'relative' }] }, 'headers[0].file must be an absolute path'],
    [{ headers: 'X: y' }, 'headers must be a list'],
    [{ body: 7 }, 'body must be a text'],
    [{ body: { base64: '*' } }, 'body must be a text'],
    [{ ok: [99] }, 'ok[0] must be a status'],
    [{ ok: [[300, 200]] }, 'ok[0] must be a status'],
    [{ timeoutMs: 0 }, 'timeoutMs must be a whole number between 1 and 3600000'],
    [{ maxRedirects: 21 }, 'maxRedirects must be a whole number between 0 and 20'],
    [{ maxBody: -1 }, 'maxBody must be'],
    [{ idempotent: 'yes' }, 'idempotent must be true or false'],
    [{ idempotency: { header: 'K', key: 'has space' } }, 'idempotency.key must be 1 to 255 visible characters'],
    [{ idempotency: { header: '', key: 'k' } }, 'idempotency.header must be the name of a header'],
    [{ retries: 3 }, "An HTTP request has no option 'retries'"],
  ])('%j is refused, without a word of what may be secret', (more, why) => {
    let error: unknown;
    try {
      checkHttp(request(more));
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidInputError);
    expect((error as Error).message).toContain(why);
    expect((error as Error).message).not.toContain('geheim');
  });

  test.each<[Partial<HttpInput>, boolean]>([
    [{ method: 'GET' }, true],
    [{ method: 'HEAD' }, true],
    [{ method: 'PUT' }, true],
    [{ method: 'DELETE' }, true],
    [{ method: 'OPTIONS' }, true],
    [{ method: 'POST' }, false],
    [{ method: 'PATCH' }, false],
    [{ method: 'REPORT' }, false],
    [{ method: 'POST', idempotent: true }, true],
    [{ method: 'PUT', idempotent: false }, false],
    [{ method: 'POST', idempotency: { header: 'X', key: 'k' } }, true],
    [{ method: 'POST', headers: [{ name: 'idempotency-key', value: 'k' }] }, true],
    [{ method: 'POST', headers: [{ name: 'X-Other', value: 'k' }] }, false],
  ])('%j may be repeated: %s', (more, yes) => {
    expect(mayBeRepeated(request(more) as HttpInput)).toBe(yes);
  });

  test('belongs to the host that it goes to', () => {
    expect(sourceOfHttp({ method: 'GET', url: 'https://API.example/x' })).toBe('http:api.example');
    expect(sourceOfHttp({ method: 'GET', url: 'http://api.example:8080/x' })).toBe('http:api.example:8080');
  });
});

describe('what is written for statuses and headers', () => {
  test.each<[string, readonly number[], readonly number[]]>([
    ['2xx', [200, 299], [199, 300]],
    ['2XX, 409', [204, 409], [408]],
    ['200-204,404', [200, 204, 404], [205]],
  ])('%s', (text, included, others) => {
    const ranges = parseStatuses(text);
    expect(included.every((status) => includesStatus(ranges, status))).toBe(true);
    expect(others.some((status) => includesStatus(ranges, status))).toBe(false);
  });

  test.each(['', '2x', '6xx', '99', '200-', '204-200', '200;201', '2xx,'])('%j is no list of statuses', (text) => {
    expect(() => parseStatuses(text)).toThrow(/Statuses are written like/);
  });

  test.each<[string, object]>([
    ['X-One: 1', { name: 'X-One', value: '1' }],
    ['X-Empty:', { name: 'X-Empty', value: '' }],
    ['X-Url: http://a/b:c', { name: 'X-Url', value: 'http://a/b:c' }],
    ['Authorization: env:TOKEN', { name: 'Authorization', env: 'TOKEN' }],
    ['Authorization:Bearer env:MY_TOKEN', { name: 'Authorization', env: 'MY_TOKEN', scheme: 'Bearer' }],
    ['X: see env:A for more', { name: 'X', value: 'see env:A for more' }],
  ])('%s', (line, header) => {
    expect(parseHeader(line)).toEqual(header);
  });

  test('a header without a colon is refused without being shown', () => {
    expect(() => parseHeader('geheim')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('geheim') }),
    );
  });
});
