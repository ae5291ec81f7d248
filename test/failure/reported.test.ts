import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { thrownFrom } from '../../src/documents/thrown.ts';
import { classify } from '../../src/failure/classify/classify.ts';
import { messageRules } from '../../src/failure/classify/message-rules.ts';
import { classifierFrom } from '../../src/failure/classify/rules.ts';
import type { Failure } from '../../src/failure/outcome.ts';
import { rebuild } from '../errors/rebuild.mjs';

/*
 * Errors that people reported, with the same members, and similar ones: the members of an error, as `holdfast classify` reads
 * them, or only a message.
 */

const now = Date.UTC(2026, 0, 15, 12);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The expected failure. A wait of undefined must be absent. */
type Expected = Omit<Partial<Failure>, 'retryAfterMs'> & { readonly retryAfterMs?: number | undefined };

type Row = readonly [what: string, error: object | string, expected: Expected];

function check(rows: readonly Row[]): void {
  test.each(rows)('%s', (_what, error, expected) => {
    const thrown = typeof error === 'string' ? new Error(error) : thrownFrom(error);
    expect({ retryAfterMs: undefined, ...classify(thrown, { now }) }).toMatchObject(expected);
  });
}

const limited = (retryAfterMs?: number): Expected => ({ kind: 'rate_limited', retryAfterMs });
const json = (value: unknown): string => JSON.stringify(value);

describe('a wait in words', () => {
  const said = (text: string) => ({ name: 'RateLimitError', message: `429 ${text}`, status: 429 });
  const rows: readonly (readonly [text: string, ms: number | undefined])[] = [
    ['Limit 200, Used 200, Requested 1. Please try again in 7m12s.', 7 * MINUTE + 12_000],
    ['Please try again in 1h12m3.5s.', HOUR + 12 * MINUTE + 3_500],
    ['Please try again in 17m32.64s. Visit https://example.com/limits for more', 17 * MINUTE + 32_640],
    ['Please retry in 53.016342224s.', 53_017],
    ['Please try again in 850ms.', 850],
    ['Please try again in 6m0s.', 6 * MINUTE],
    ['Please try again in 1d2h.', DAY + 2 * HOUR],
    ['Try again in 1 minute, 30 seconds', 90_000],
    ['Try again in 1 minute and 30 seconds.', 90_000],
    ['Try again in 2 hours, 5 minutes and 10 seconds.', 2 * HOUR + 5 * MINUTE + 10_000],
    ['Try again in about an hour.', HOUR],
    ['You must wait one minute before the next call', MINUTE],
    ['Retry after 00:01:30.', 90_000],
    ['Retry after PT1M30S', 90_000],
    ['Too Many Requests: retry after 35', 35_000],
    ['Rate limited. Retry-After: 12', 12_000],
    ['slow down, "retry_after": 3.5', 3_500],
    ['FLOOD_WAIT_42', 42_000],
    ['A wait of 3421 seconds is required (caused by messages.GetHistory)', 3_421_000],
    ['Request is throttled. Suggested Backoff Time: 92415 milliseconds', 92_415],
    ['Limit: 100 requests every 1 minute. Please wait another 12 seconds.', 12_000],
    ['More than 60 requests within 60 seconds, your limit resets in 4 min', 4 * MINUTE],
    ['more requests available in 81085 seconds', 81_085_000],
    ['Your quota will reset after 3h12m5s.', 3 * HOUR + 12 * MINUTE + 5_000],
    ['reset in 12 seconds. Complexity budget exhausted', 12_000],
    ['Blocked until 2026-01-15T12:10:00Z', 10 * MINUTE],
    ['Try again after 2026-01-15T13:10:00.500+01:00', 10 * MINUTE + 500],
    ['You will regain access on 2026-01-16 at 00:00 UTC.', 12 * HOUR],
    ['The limit resets at 2026-01-15 12:30:00 UTC', 30 * MINUTE],
    ['The limit resets at 2026-01-15 12:30:00', 30 * MINUTE],
    ['Recipient limit exceeded, try again after: Thu, 15 Jan 2026 12:00:20 GMT', 20_000],
    ['Locked until January 16, 2026 00:00 UTC', 12 * HOUR],
    ['Locked until 16 Jan 2026 00:00 UTC', 12 * HOUR],
    ['Limit reached. Resets Jan 16, 2026, 6:00 AM (UTC)', 18 * HOUR],
    [`IP banned until ${now + 90_000}. Use the stream instead.`, 90_000],
    [`Rate limit resets at ${now / 1_000 + 45}`, 45_000],
    ['Daily limit reached, try again after midnight UTC', 12 * HOUR],
    ['Daily limit reached, it resets at 18:30 UTC', 6.5 * HOUR],
    ['The limit was reset at 2026-01-15T11:00:00Z', 0],
    ['Retry in ~30s', 30 * 1_000],
    ['try again in approx. 20 seconds', 20 * 1_000],
    ['Next request allowed at 2026-01-15T12:00:10Z', 10 * 1_000],
    ['Cooldown: 30s', 30 * 1_000],
    ['"retryDelay":"34.07s"', 34_070],
    ['retry_after_ms: 2500', 2500],
    ['retryAfterMs=2500', 2500],
    ['Your limit will reset at 3pm (UTC)', 3 * HOUR],
    ['Resets Jan 16 at 6:00 AM (UTC)', 18 * HOUR],
    ['Blocked until 2026/01/15 12:05:00 UTC', 5 * MINUTE],
    ['limit exceeded (resetAfter: 12s)', 12 * 1_000],
    ['Rate limit resets 9pm (America/New_York)', undefined],
    ['until Feb 31', undefined],
    ['The limit resets Jan 2', 352 * DAY - 12 * HOUR],
    // Texts that name no wait.
    ['Please wait a few minutes before you try again', undefined],
    ['Rate limit reached: 20 requests', undefined],
    ['Try again in a while', undefined],
    ['Try again after 3 more failed logins', undefined],
    ['Blocked until 2026-13-45', undefined],
  ];
  test.each(rows)('%s', (text, ms) => {
    expect({ retryAfterMs: undefined, ...classify(thrownFrom(said(text)), { now }) }).toMatchObject(limited(ms));
  });

  test('a moment is held against the clock of whoever said it', () => {
    const headers = { date: 'Thu, 15 Jan 2026 13:00:00 GMT' };
    const error = { ...said('Try again after 2026-01-15T13:00:20Z'), headers };
    expect(classify(thrownFrom(error), { now })).toMatchObject(limited(20_000));
  });

  check([
    [
      'in a body',
      { status: 429, response: { status: 429, data: { error: 'slow down, try again in 1m30s' } } },
      limited(90_000),
    ],
    [
      'in its detail',
      { status: 429, body: { detail: 'Request was throttled. Expected available in 30 seconds.' } },
      limited(30_000),
    ],
    ['in its first error', { status: 429, body: { errors: [{ message: 'Retry in 5 s' }] } }, limited(5_000)],
    ['as a plain message', 'try again in 30 seconds', { ...limited(30_000), reason: 'throttled' }],
    ['as a plain message with a name', 'Error: Please wait 5 minutes before trying again.', limited(5 * MINUTE)],
    [
      'of a server that is away',
      { status: 503, message: 'Down for maintenance, try again in 10 minutes' },
      { reason: 'http.5xx', retryAfterMs: 10 * MINUTE },
    ],
    [
      'that a client announces for itself',
      'connect ECONNREFUSED 1.2.3.4:80, retrying in 5 s',
      { kind: 'transient', retryAfterMs: undefined },
    ],
  ]);
});

describe('a service’s own short wait wins over words about plans and billing', () => {
  const quota = {
    error: {
      code: 429,
      message:
        'You exceeded your current quota, please check your plan and billing details. Please retry in 53.016342224s.',
      status: 'RESOURCE_EXHAUSTED',
      details: [
        { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId: 'PerMinute' }] },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '53s' },
      ],
    },
  };
  check([
    ['the body is JSON inside the message', { name: 'ApiError', status: 429, message: json(quota) }, limited(53_000)],
    [
      'behind the status',
      { name: 'ApiError', message: `got status: 429 Too Many Requests. ${json(quota)}` },
      limited(53_000),
    ],
    [
      'JSON inside that JSON',
      {
        name: 'ApiError',
        status: 429,
        message: json({ error: { message: json(quota), code: 429, status: 'Too Many Requests' } }),
      },
      limited(53_000),
    ],
    ['nothing but the JSON', json(quota), limited(53_000)],
    [
      'details behind the text',
      `[GoogleGenerativeAI Error]: Error fetching from https://example.com: [429 Too Many Requests] You exceeded your current quota, please check your plan and billing details. ${json(quota.error.details)}`,
      limited(53_000),
    ],
    [
      'a header',
      {
        status: 429,
        message: 'You exceeded your current quota, please check your plan',
        headers: { 'retry-after': '20' },
      },
      limited(20_000),
    ],
    [
      'no wait at all',
      { status: 429, message: 'You exceeded your current quota, please check your plan and billing details.' },
      { kind: 'permanent', reason: 'quota.exhausted' },
    ],
    [
      'a status, a code and words in JSON alone',
      json({ statusCode: 503, message: 'try later' }),
      { kind: 'transient', reason: 'http.5xx' },
    ],
    [
      'the code of a body in a message',
      `400 ${json({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })}`,
      { kind: 'transient' },
    ],
  ]);
});

describe('a request that exceeds the whole allowance', () => {
  const tokens = (limit: number, used: number, asked: number) => ({
    name: 'RateLimitError',
    status: 429,
    code: 'rate_limit_exceeded',
    message: `429 Request too large for model-x on tokens per min (TPM): Limit ${limit}, ${used ? `Used ${used}, ` : ''}Requested ${asked}.`,
  });
  check([
    ['more than the limit', tokens(30_000, 0, 36_278), { kind: 'permanent', reason: 'too_large', fault: 'task' }],
    ['one that fits', tokens(30_000, 29_000, 2_000), { kind: 'rate_limited', reason: 'http.429' }],
    ['with 413', { ...tokens(6_000, 0, 9_000), status: 413 }, { kind: 'permanent', reason: 'too_large' }],
    ['one that fits, with 413', { ...tokens(6_000, 4_000, 3_000), status: 413 }, { kind: 'rate_limited' }],
    [
      'with thousands',
      'Rate limit exceeded: limit 30,000 tokens, requested 36,278 tokens',
      { kind: 'permanent', reason: 'too_large' },
    ],
    [
      'the other way round',
      { status: 429, message: 'Requested 500 tokens exceeds bucket size 400' },
      { kind: 'permanent', reason: 'too_large' },
    ],
    [
      'in a body',
      { status: 429, body: { error: { message: 'Limit 10, Requested 11' } } },
      { kind: 'permanent', reason: 'too_large' },
    ],
    [
      'a query that costs more than the bucket holds',
      {
        status: 429,
        body: {
          extensions: {
            cost: {
              requestedQueryCost: 3_000,
              throttleStatus: { maximumAvailable: 2_000, currentlyAvailable: 1_900, restoreRate: 100 },
            },
          },
        },
      },
      { kind: 'permanent', reason: 'too_large' },
    ],
    [
      'a message larger than gRPC takes',
      {
        code: 8,
        details: 'Received message larger than max (5000000 vs. 4194304)',
        message: '8 RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)',
        metadata: {},
      },
      { kind: 'permanent', reason: 'too_large', ambiguous: true },
    ],
    [
      'a message larger than gRPC sends',
      '8 RESOURCE_EXHAUSTED: Attempted to send message with a size larger than the max (5 vs. 4)',
      { kind: 'permanent', reason: 'too_large', ambiguous: false },
    ],
    [
      'a date that was requested',
      { status: 429, message: 'Limit 100 a day, requested 2026-01-15' },
      { kind: 'rate_limited' },
    ],
  ]);
});

describe('a limit in the body, whatever the status', () => {
  const usage = 'You have reached your specified API usage limits. You will regain access on 2026-02-01 at 00:00 UTC.';
  const body = { type: 'error', error: { type: 'invalid_request_error', message: usage } };
  const untilFebruary = {
    kind: 'rate_limited',
    reason: 'quota.exhausted',
    fault: 'quota',
    retryAfterMs: Date.UTC(2026, 1, 1) - now,
  } as const;
  const answer = (status: number, data: unknown, headers: object = {}) => ({
    name: 'AxiosError',
    isAxiosError: true,
    message: `Request failed with status code ${status}`,
    code: 'ERR_BAD_REQUEST',
    response: { status, headers, data },
  });
  check([
    [
      'usage limits with 400',
      { name: 'BadRequestError', status: 400, message: `400 ${json(body)}`, error: body },
      untilFebruary,
    ],
    ['only in the message', { name: 'BadRequestError', message: `400 ${json(body)}` }, untilFebruary],
    ['only as text', { status: 400, message: usage }, untilFebruary],
    [
      'throttling with 400',
      answer(400, {
        error_id: 502,
        error_name: 'throttle_violation',
        error_message: 'too many requests from this IP, more requests available in 81 seconds',
      }),
      limited(81_000),
    ],
    [
      'calls an hour with 400',
      answer(
        400,
        {
          errorCode: 'HOURLY_APIINVOCATION_LIMIT_EXCEEDED',
          message: 'The maximum number of hourly API invocations has been exceeded.',
        },
        { 'x-ratelimit-reset': String(now / 1_000 + 60) },
      ),
      limited(MINUTE),
    ],
    [
      'calls a minute with 400',
      answer(400, { code: 99991400, msg: 'request trigger frequency limit' }, { 'x-ogw-ratelimit-reset': '7' }),
      limited(7_000),
    ],
    [
      'too many continuously with 400',
      answer(400, {
        error: 'Access Denied',
        error_description: 'You have made too many requests continuously. Please try again after some time.',
      }),
      { kind: 'rate_limited' },
    ],
    [
      'a transient fault with 400',
      answer(400, {
        error: { message: 'Please retry your request later.', type: 'OAuthException', is_transient: true, code: 2 },
      }),
      { kind: 'transient' },
    ],
    [
      'credits with 401',
      answer(401, { errors: [{ message: 'Maximum credits exceeded' }] }),
      { reason: 'quota.exhausted', fault: 'quota' },
    ],
    [
      'a quota with 401',
      answer(401, { detail: { status: 'quota_exceeded', message: 'This request exceeds your quota of 10000.' } }),
      { reason: 'quota.exhausted' },
    ],
    [
      'spending with 403',
      answer(403, { error: 'Your team has either used all available credits or reached its monthly spending limit.' }),
      { kind: 'permanent', reason: 'quota.exhausted', fault: 'quota' },
    ],
    [
      'a daily limit with 403',
      answer(403, { errors: [{ code: 185, message: 'User is over daily status update limit.' }] }),
      { kind: 'rate_limited' },
    ],
    ['requests with 403', answer(403, { message: 'Request limit reached, retry in 5 minutes' }), limited(5 * MINUTE)],
    [
      'a base branch that moved with 405',
      answer(405, { message: 'Base branch was modified. Review and try the merge again.' }),
      { kind: 'transient', reason: 'conflict' },
    ],
    [
      'a merge in progress with 405',
      answer(405, { message: 'Merge already in progress' }),
      { kind: 'transient', reason: 'conflict' },
    ],
    [
      'what cannot be merged yet with 405',
      answer(405, { message: 'Pull Request is not mergeable' }),
      { kind: 'unknown', reason: 'conflict' },
    ],
    [
      'an expected check with 405',
      answer(405, { message: 'Required status check "build" is expected.' }),
      { kind: 'unknown', reason: 'conflict' },
    ],
    [
      'a method that is not allowed with 405',
      answer(405, { message: 'Method Not Allowed' }),
      { kind: 'permanent', reason: 'http.4xx' },
    ],
    [
      'calls too close together with 409',
      answer(409, 'This API cannot be run again until later', {
        'x-ratelimit-remaining': '0',
        'x-ratelimit-towait-sec': '30',
      }),
      limited(30_000),
    ],
    [
      'a ban with 418',
      answer(418, { code: -1003, msg: `Way too many requests; IP banned until ${now + 60_000}.` }),
      limited(MINUTE),
    ],
    [
      '420',
      answer(
        420,
        { error: 'This software has exceeded the error limit.' },
        { 'x-esi-error-limit-remain': '0', 'x-esi-error-limit-reset': '41' },
      ),
      { ...limited(41_000), reason: 'throttled' },
    ],
    [
      '420 of a chat',
      { code: 420, errorMessage: 'FLOOD', seconds: 42, message: 'A wait of 42 seconds is required' },
      limited(42_000),
    ],
    ['420 alone', { status: 420 }, { kind: 'rate_limited', reason: 'throttled', fault: 'quota' }],
    ['430', answer(430, {}), { kind: 'rate_limited', fault: 'quota' }],
    ['456', answer(456, { message: 'Quota Exceeded' }), { reason: 'quota.exhausted', fault: 'quota' }],
    ['509', answer(509, 'Bandwidth Limit Exceeded'), { kind: 'rate_limited', fault: 'quota' }],
    ['529', answer(529, {}), { kind: 'rate_limited', ambiguous: false }],
    [
      '503 with limit headers',
      answer(503, {}, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '12' }),
      limited(12_000),
    ],
    ['503 with words', answer(503, { message: 'Rate limit exceeded' }), { kind: 'rate_limited' }],
    [
      '503 with something left',
      answer(503, {}, { 'x-ratelimit-remaining': '7', 'x-ratelimit-reset': '12' }),
      { kind: 'transient', reason: 'http.5xx', retryAfterMs: undefined },
    ],
    [
      'a model that loads',
      answer(503, { error: 'Model x is currently loading', estimated_time: 20 }),
      { kind: 'transient', retryAfterMs: 20_000 },
    ],
    // Headers of a service's own.
    [
      'x-app-limit-24hour-reset',
      answer(429, {}, { 'x-app-limit-24hour-remaining': '0', 'x-app-limit-24hour-reset': String(now / 1_000 + 90) }),
      limited(90_000),
    ],
    ['x-rate-limit-retry-after-seconds', answer(429, {}, { 'x-rate-limit-retry-after-seconds': '8' }), limited(8_000)],
    [
      'x-rate-limit-retry-after-milliseconds',
      answer(429, {}, { 'x-rate-limit-retry-after-milliseconds': '800' }),
      limited(800),
    ],
    [
      'x-ratelimit-requests-reset',
      answer(429, {}, { 'x-ratelimit-requests-remaining': '0', 'x-ratelimit-requests-reset': String(now + 4_000) }),
      limited(4_000),
    ],
    [
      'retry_in_seconds',
      answer(429, { errors: [{ extensions: { code: 'ComplexityException', retry_in_seconds: 11 } }] }),
      limited(11_000),
    ],
    // Texts that are not about such a limit.
    [
      'a limit of a parameter',
      answer(400, { message: 'limit must be between 1 and 100' }),
      { kind: 'permanent', reason: 'http.4xx' },
    ],
    [
      'a limit of a field',
      answer(400, { message: 'The name exceeds the limit of 255 characters' }),
      { kind: 'permanent', reason: 'http.4xx' },
    ],
    [
      'a right that is missing',
      answer(403, { message: 'You may not change rate plans' }),
      { kind: 'permanent', reason: 'auth.forbidden' },
    ],
  ]);
});

describe('an answer that cannot be read came from a server that had the request', () => {
  const maybe = { ambiguous: true } as const;
  const parse = (code: string, message = 'Parse Error: Expected HTTP/') => ({ code, message });
  check([
    [
      'fetch',
      {
        name: 'TypeError',
        message: 'fetch failed',
        cause: {
          name: 'HTTPParserError',
          message: 'Response does not match the HTTP/1.1 protocol',
          code: 'HPE_CR_EXPECTED',
        },
      },
      maybe,
    ],
    [
      'fetch without the code',
      {
        name: 'TypeError',
        message: 'fetch failed',
        cause: { name: 'HTTPParserError', message: 'Response does not match the HTTP/1.1 protocol' },
      },
      maybe,
    ],
    [
      'axios',
      {
        name: 'AxiosError',
        isAxiosError: true,
        ...parse('HPE_INVALID_CONSTANT'),
        cause: parse('HPE_INVALID_CONSTANT'),
      },
      maybe,
    ],
    ['got', { name: 'RequestError', ...parse('HPE_INVALID_HEADER_TOKEN') }, maybe],
    [
      'node-fetch',
      {
        name: 'FetchError',
        type: 'system',
        errno: 'HPE_INVALID_CHUNK_SIZE',
        code: 'HPE_INVALID_CHUNK_SIZE',
        message: 'request to http://x/ failed, reason: Parse Error',
      },
      maybe,
    ],
    ['headers that are too long', parse('HPE_HEADER_OVERFLOW'), maybe],
    ['every other one', parse('HPE_UNEXPECTED_CONTENT_LENGTH'), maybe],
    ['only the message', 'Parse Error: Invalid header value char', { ...maybe, reason: 'net.protocol' }],
    ['an answer larger than is taken', { code: 'UND_ERR_RES_EXCEEDED_MAX_SIZE', message: 'x' }, maybe],
    [
      'the same of axios',
      { isAxiosError: true, code: 'ERR_BAD_RESPONSE', message: 'maxContentLength size of 10 exceeded' },
      maybe,
    ],
    [
      'a request larger than axios sends',
      { isAxiosError: true, code: 'ERR_BAD_REQUEST', message: 'maxBodyLength size of 10 exceeded' },
      { ambiguous: false },
    ],
    ['headers larger than undici takes', { code: 'UND_ERR_HEADERS_OVERFLOW', message: 'x' }, maybe],
    [
      'HTTP/2 that is none',
      { code: 'ERR_HTTP2_STREAM_ERROR', message: 'Stream closed with error code NGHTTP2_PROTOCOL_ERROR' },
      maybe,
    ],
    [
      'HTTP/2 refused before it was read',
      { code: 'ERR_HTTP2_STREAM_ERROR', message: 'Stream closed with error code NGHTTP2_REFUSED_STREAM' },
      { ambiguous: false },
    ],
    ['a client that was destroyed meanwhile', { code: 'UND_ERR_DESTROYED', message: 'The client is destroyed' }, maybe],
    [
      'a client that was closed before',
      { code: 'UND_ERR_CLOSED', message: 'The client is closed' },
      { ambiguous: false },
    ],
    [
      'redirects without end',
      { code: 'ERR_FR_TOO_MANY_REDIRECTS', message: 'Maximum number of redirects exceeded' },
      maybe,
    ],
    ['packets out of order', { code: 'PROTOCOL_PACKETS_OUT_OF_ORDER', message: 'x' }, maybe],
    ['a compressed body that is damaged', { code: 'Z_DATA_ERROR', message: 'incorrect header check' }, maybe],
  ]);
});

describe('an effect that may have happened although no response says so', () => {
  const grpc = (details: string) => ({ code: 14, details, message: `14 UNAVAILABLE: ${details}`, metadata: {} });
  const connecting = { ambiguous: false } as const;
  check([
    ['a gRPC connection that was dropped', grpc('Connection dropped'), { reason: 'grpc.unavailable', ambiguous: true }],
    ['a gRPC connection that was never made', grpc('No connection established'), connecting],
    ['a program that was stopped for its output', { code: 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER' }, { ambiguous: true }],
    [
      'a write of MongoDB while it shuts down',
      { name: 'MongoServerError', code: 11600, errmsg: 'x' },
      { ambiguous: true },
    ],
    ['an error beside an answer of success', { message: 'unexpected payload', status: 200 }, { ambiguous: true }],
    ['an FTP transfer that was cut', { name: 'FTPError', code: 426, message: '426 aborted' }, { ambiguous: true }],
    [
      'TLS that was never made',
      {
        code: 'ECONNRESET',
        message: 'Client network socket disconnected before secure TLS connection was established',
      },
      connecting,
    ],
    ['a database that was not reached', "Can't reach database server at `x`", connecting],
    ['a connection that was not made in time', 'Connection terminated due to connection timeout', connecting],
  ]);
});

describe('a pooler in front of a database', () => {
  const server = (code: string, message: string, more: object = {}) => ({
    class: 'DatabaseError',
    name: 'error',
    severity: 'FATAL',
    code,
    message,
    ...more,
  });
  const lost = { kind: 'transient', ambiguous: true } as const;
  const before = { kind: 'transient', ambiguous: false, fault: 'source' } as const;
  check([
    ['that lost the server', server('08P01', 'server conn crashed?'), { ...lost, reason: 'db.connection' }],
    ['whose server closed', server('08P01', 'server closed the connection unexpectedly'), lost],
    ['whose query took too long', server('08P01', 'query timeout'), { ...lost, reason: 'db.timeout' }],
    ['whose transaction took too long', server('08P01', 'transaction timeout'), lost],
    ['in which the client waited for a server', server('08P01', 'query_wait_timeout'), before],
    [
      'that cannot log in',
      server('08P01', 'server login has been failing, try again later (server_login_retry)'),
      before,
    ],
    ['that cannot connect', server('08P01', 'pgbouncer cannot connect to server'), before],
    ['that is shutting down', server('08P01', 'the database system is shutting down'), before],
    ['that is full', server('08P01', 'no more connections allowed (max_client_conn)'), before],
    ['that is full, with its own code', server('53300', 'no more connections allowed (max_client_conn)'), before],
    [
      'with a code of another thing',
      server('XX000', 'Max client connections reached'),
      { ...before, reason: 'db.unavailable' },
    ],
    [
      'in session mode',
      server(
        'XX000',
        'MaxClientsInSessionMode: max clients reached - in Session mode max clients are limited to pool_size',
      ),
      before,
    ],
    ['with a code inside the text', server('XX000', '(EMAXCONN) max client connections reached, limit: 200'), before],
    [
      'whose database was lost',
      server('XX000', '(EDBHANDLEREXITED) connection to database closed. Check logs for more information'),
      lost,
    ],
    ['that has no server free', server('58000', 'could not get connection from the pool - AllServersDown'), before],
    ['whose remote server failed', server('58030', 'remote server read/write error'), lost],
    [
      'that waits for compute',
      server(
        'XX000',
        'Failed to acquire permit to connect to the database. Too many database connection attempts are currently ongoing.',
      ),
      before,
    ],
    ['whose backend was lost', server('XX000', 'unable to read data from DB node 0'), lost],
    [
      'in front of MySQL, whose server was lost',
      { code: 'ER_UNKNOWN_ERROR', errno: 2013, sqlState: 'HY000', message: 'Lost connection to server during query' },
      lost,
    ],
    [
      'in front of MySQL, which found none',
      {
        code: 'ER_UNKNOWN_ERROR',
        errno: 9001,
        sqlState: 'HY000',
        message: 'Max connect timeout reached while reaching hostgroup 0 after 10000ms',
      },
      before,
    ],
    [
      'an internal error of the server',
      server('XX000', 'cache lookup failed for relation 16384', { severity: 'ERROR', routine: 'x' }),
      { kind: 'unknown', reason: 'db.internal' },
    ],
    [
      'a protocol that the server does not speak',
      server('08P01', 'invalid frontend message type 112', { severity: 'FATAL' }),
      { kind: 'unknown', reason: 'net.protocol' },
    ],
    [
      'too many clients of the server itself',
      server('53300', 'sorry, too many clients already'),
      { kind: 'transient', ambiguous: false },
    ],
    [
      'a server that rejects the connection',
      server('08004', 'server rejected the connection'),
      { kind: 'transient', ambiguous: false },
    ],
    ['only its message', 'server conn crashed?', lost],
    [
      'too many clients of Redis',
      { name: 'ReplyError', message: 'ERR max number of clients reached', command: { name: 'get' } },
      { kind: 'transient', ambiguous: false },
    ],
  ]);
});

describe('a mail or file server', () => {
  check([
    [
      'IMAP that asks for a back-off in its text',
      {
        responseStatus: 'NO',
        responseText: 'Request is throttled. Suggested Backoff Time: 92415 milliseconds',
        message: 'Command failed',
      },
      { ...limited(92_415), reason: 'throttled' },
    ],
    [
      'the same as BAD',
      {
        responseStatus: 'BAD',
        responseText: 'Request is throttled. Suggested Backoff Time: 92415 milliseconds',
        message: 'Command failed',
      },
      limited(92_415),
    ],
    [
      'the same beside a refused login',
      {
        authenticationFailed: true,
        serverResponseCode: 'UNAVAILABLE',
        responseStatus: 'NO',
        responseText: 'Backoff time: 5000 ms',
        message: 'Command failed',
      },
      limited(5_000),
    ],
    [
      'only its message',
      'Command failed: NO Request is throttled. Suggested Backoff Time: 1500 milliseconds',
      limited(1_500),
    ],
    [
      'IMAP at a limit',
      {
        responseStatus: 'NO',
        serverResponseCode: 'LIMIT',
        responseText: '[LIMIT] Rate limit hit.',
        message: 'Command failed',
      },
      { kind: 'rate_limited', reason: 'throttled' },
    ],
    [
      'IMAP that is busy',
      { responseStatus: 'NO', responseText: 'Server busy, try again later', message: 'Command failed' },
      { kind: 'transient', reason: 'imap.unavailable' },
    ],
    [
      'IMAP that fails for now',
      { source: 'protocol', message: 'Service temporarily unavailable' },
      { kind: 'transient', reason: 'imap.unavailable' },
    ],
    [
      'SFTP that was dropped',
      { code: 'ERR_GENERIC_CLIENT', message: 'put: Unexpected close event' },
      { kind: 'transient', reason: 'net.reset' },
    ],
    [
      'SFTP whose end came',
      { code: 'ERR_GENERIC_CLIENT', message: 'list: Unexpected end event' },
      { reason: 'net.reset' },
    ],
    ['SFTP without its connection', { code: 7, custom: true, message: 'Connection lost' }, { reason: 'net.reset' }],
    [
      'SFTP with a number and its text alone',
      { code: 7, message: 'Connection lost' },
      { kind: 'transient', reason: 'net.reset' },
    ],
    ['SFTP with its text alone', 'get: Connection lost', { kind: 'transient', reason: 'net.reset' }],
    [
      'SFTP that does not answer',
      { code: 'ERR_GENERIC_CLIENT', message: 'get: No response from server' },
      { kind: 'transient' },
    ],
    ['a copy whose destination is there', "'/data/b' already exists", { reason: 'fs.dest_exists' }],
    ['a copy that says no more', 'already exists', { reason: 'fs.dest_exists' }],
    ['a file that is there', 'Error: File already exists.', { reason: 'fs.dest_exists' }],
    ["Node's text of a taken name", "EEXIST: file already exists, copyfile 'a' -> 'b'", { reason: 'fs.dest_exists' }],
    ["Node's text after a prefix", "Error: EEXIST: file already exists, open '/x'", { reason: 'fs.dest_exists' }],
    ["Node's text of a missing file", "ENOENT: no such file or directory, open '/x'", { reason: 'fs.not_found' }],
    ["Node's text of a missing right", "EACCES: permission denied, open '/x'", { reason: 'fs.permission' }],
    ["Node's text of a lock", "EBUSY: resource busy or locked, rename 'a'", { kind: 'transient', reason: 'fs.locked' }],
    ["Node's text of too many files", "EMFILE: too many open files, open '/x'", { reason: 'fs.too_many_files' }],
    ['a database that says ERROR first', 'ERROR: deadlock detected', { reason: 'db.serialization' }],
    [
      'SMTP that counts messages a day',
      { responseCode: 454, response: '454 Throttling failure: Maximum sending rate exceeded.', message: 'x' },
      { kind: 'rate_limited' },
    ],
  ]);
});

describe('what libraries and services say in their own way', () => {
  const axios = (status: number, data: unknown, headers: object = {}) => ({
    isAxiosError: true,
    message: `Request failed with status code ${status}`,
    code: status < 500 ? 'ERR_BAD_REQUEST' : 'ERR_BAD_RESPONSE',
    response: { status, headers, data },
  });
  const mail = (responseCode: number, response: string, more: object = {}) => ({
    code: 'EENVELOPE',
    command: 'RCPT TO',
    responseCode,
    response,
    message: response,
    ...more,
  });
  const imap = (responseText: string) => ({ responseStatus: 'NO', responseText, message: 'Command failed' });
  const pg = (code: string, message: string) => ({
    class: 'DatabaseError',
    name: 'error',
    severity: 'ERROR',
    code,
    message,
  });
  const my = (errno: number, message: string, code = 'ER_UNKNOWN_ERROR', sqlState = 'HY000') => ({
    code,
    errno,
    sqlState,
    message,
  });
  const aws = (name: string, message: string, httpStatusCode: number) => ({
    name,
    message,
    $metadata: { httpStatusCode },
  });
  const got = (name: string, code: string, more: object) => ({ name, code, ...more });
  check([
    [
      'openrouter headers in metadata',
      {
        name: 'Error',
        status: 429,
        error: {
          message:
            'Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day',
          code: 429,
          metadata: {
            headers: { 'X-RateLimit-Limit': '50', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '1768521600000' },
          },
        },
        message: '429 Rate limit exceeded',
      },
      { kind: 'rate_limited', retryAfterMs: 43200000 },
    ],
    [
      'ai sdk',
      {
        name: 'AI_APICallError',
        statusCode: 429,
        responseHeaders: {},
        responseBody: json({
          error: {
            code: 429,
            message: 'You exceeded your current quota, please check your plan and billing details.',
            status: 'RESOURCE_EXHAUSTED',
            details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '14s' }],
          },
        }),
        message: 'You exceeded your current quota, please check your plan and billing details.',
        isRetryable: true,
      },
      { kind: 'rate_limited', retryAfterMs: 14000 },
    ],
    [
      'anthropic prompt too long',
      {
        name: 'BadRequestError',
        status: 400,
        message: '400 x',
        error: {
          type: 'error',
          error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
        },
      },
      { kind: 'permanent', reason: 'too_large' },
    ],
    [
      'SMTP: message size',
      mail(552, '552 Message size exceeds maximum permitted', { code: 'EMESSAGE', command: 'DATA' }),
      { kind: 'permanent', reason: 'too_large', fault: 'task' },
    ],
    [
      'AMQP: message too large',
      {
        code: 406,
        message:
          'Channel closed by server: 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - message size 20000000 is larger than configured max size 16777216"',
      },
      { kind: 'permanent', reason: 'too_large' },
    ],
    [
      'Stripe: declined but try later',
      {
        name: 'StripeCardError',
        class: 'StripeCardError',
        type: 'StripeCardError',
        rawType: 'card_error',
        code: 'card_declined',
        decline_code: 'try_again_later',
        statusCode: 402,
        message: 'Your card was declined.',
      },
      { kind: 'transient', reason: 'payment.declined' },
    ],
    [
      'Stripe: processing error',
      {
        class: 'StripeCardError',
        type: 'StripeCardError',
        rawType: 'card_error',
        code: 'processing_error',
        statusCode: 402,
        message: 'An error occurred while processing your card. Try again in a little bit.',
      },
      { kind: 'transient' },
    ],
    [
      'Firebase: rate',
      {
        class: 'FirebaseMessagingError',
        codePrefix: 'messaging',
        code: 'messaging/message-rate-exceeded',
        message: 'Sending limit exceeded for the message target.',
      },
      { kind: 'rate_limited' },
    ],
    [
      'Firebase: quota',
      { class: 'FirebaseMessagingError', code: 'messaging/quota-exceeded', message: 'Quota exceeded' },
      { kind: 'rate_limited' },
    ],
    [
      'Firebase: token gone',
      {
        class: 'FirebaseMessagingError',
        code: 'messaging/registration-token-not-registered',
        message: 'Requested entity was not found.',
      },
      { kind: 'permanent' },
    ],
    [
      'Firebase: away',
      {
        class: 'FirebaseMessagingError',
        code: 'messaging/server-unavailable',
        message: 'The FCM server could not process the request in time.',
      },
      { kind: 'transient' },
    ],
    [
      'AWS: signature expired',
      aws(
        'InvalidSignatureException',
        'Signature expired: 20260115T114000Z is now earlier than 20260115T115500Z (20260115T120000Z - 5 min.)',
        403,
      ),
      { kind: 'transient', reason: 'auth.clock_skew' },
    ],
    [
      'AWS: signature not yet current',
      aws(
        'SignatureDoesNotMatch',
        'Signature not yet current: 20260115T124000Z is still later than 20260115T120500Z (20260115T120000Z + 5 min.)',
        403,
      ),
      { kind: 'transient', reason: 'auth.clock_skew' },
    ],
    [
      'openai server_error in a stream',
      {
        class: 'APIError',
        name: 'Error',
        type: 'server_error',
        code: 'server_error',
        error: {
          type: 'server_error',
          code: 'server_error',
          message: 'The server had an error while processing your request. Sorry about that!',
        },
        message: 'The server had an error while processing your request. Sorry about that!',
      },
      { kind: 'transient', ambiguous: true },
    ],
    [
      'atlas over its space',
      {
        name: 'MongoServerError',
        code: 8000,
        codeName: 'AtlasError',
        message: 'you are over your space quota, using 513 MB of 512 MB',
      },
      { kind: 'permanent', reason: 'quota.exhausted', fault: 'quota' },
    ],
    [
      'exchange smtp connections',
      mail(432, '432 4.3.2 Concurrent connections limit exceeded. Visit https://example.com'),
      { kind: 'rate_limited' },
    ],
    [
      'SMTP: outgoing limit with 554',
      mail(
        554,
        '554 5.7.0 Your message could not be sent. The limit on the number of allowed outgoing messages was exceeded. Try again later.',
      ),
      { kind: 'rate_limited' },
    ],
    [
      'SMTP: daily quota with 550',
      mail(550, '550 5.7.1 Daily user sending quota exceeded'),
      { kind: 'rate_limited', fault: 'quota' },
    ],
    [
      'ews back-off',
      axios(
        500,
        '<m:ResponseCode>ErrorServerBusy</m:ResponseCode><t:Value Name="BackOffMilliseconds">297749</t:Value>',
      ),
      { kind: 'transient', retryAfterMs: 297749 },
    ],
    [
      'got: connect timeout',
      got('TimeoutError', 'ETIMEDOUT', { event: 'connect', message: "Timeout awaiting 'connect' for 1000ms" }),
      { kind: 'transient', ambiguous: false },
    ],
    [
      'got: lookup timeout',
      got('TimeoutError', 'ETIMEDOUT', { event: 'lookup', message: "Timeout awaiting 'lookup' for 1000ms" }),
      { kind: 'transient', ambiguous: false },
    ],
    [
      'got: tls timeout',
      got('TimeoutError', 'ETIMEDOUT', {
        event: 'secureConnect',
        message: "Timeout awaiting 'secureConnect' for 1000ms",
      }),
      { kind: 'transient', ambiguous: false },
    ],
    [
      'got: aborted',
      got('ReadError', 'ERR_READING_RESPONSE_STREAM', { message: 'The server aborted pending request' }),
      { kind: 'transient', ambiguous: true },
    ],
    [
      'Smithy: connect timeout',
      {
        name: 'TimeoutError',
        message:
          '@smithy/node-http-handler - the request socket did not establish a connection with the server within the configured timeout of 1000 ms.',
        $metadata: { attempts: 3, totalRetryDelay: 100 },
      },
      { kind: 'transient', ambiguous: false },
    ],
    [
      'Smithy: old connect timeout',
      {
        name: 'TimeoutError',
        message: 'Socket timed out without establishing a connection within 1000 ms',
        $metadata: { attempts: 3 },
      },
      { kind: 'transient', ambiguous: false },
    ],
    [
      'nodemailer connection time-out',
      { code: 'ETIMEDOUT', command: 'CONN', message: 'Connection timeout' },
      { kind: 'transient', ambiguous: false },
    ],
    [
      'ssh keepalive',
      { level: 'client-timeout', message: 'Keepalive timeout' },
      { kind: 'transient', ambiguous: true },
    ],
    [
      'MySQL: shutdown',
      my(1053, 'Server shutdown in progress', 'ER_SERVER_SHUTDOWN', '08S01'),
      { kind: 'transient', ambiguous: true },
    ],
    [
      'MySQL: session killed',
      my(3169, 'Session was killed.', 'ER_SESSION_WAS_KILLED'),
      { kind: 'transient', ambiguous: true },
    ],
    [
      'MySQL: inactive',
      my(4031, 'The client was disconnected by the server because of inactivity.', 'ER_CLIENT_INTERACTION_TIMEOUT'),
      { kind: 'transient' },
    ],
    [
      'prisma too many',
      {
        name: 'PrismaClientKnownRequestError',
        code: 'P2037',
        message: 'Too many database connections opened: sorry, too many clients already',
        clientVersion: '6',
      },
      { kind: 'transient', ambiguous: false },
    ],
    [
      'Vitess: pool full',
      my(
        1105,
        'target: x.-.primary: vttablet: rpc error: code = ResourceExhausted desc = query pool wait time exceeded',
        'ER_UNKNOWN_ERROR',
      ),
      { kind: 'rate_limited', ambiguous: false },
    ],
    [
      'Vitess: lost',
      my(
        1105,
        'target: x.-.primary: vttablet: rpc error: code = Unavailable desc = error reading from server: EOF',
        'ER_UNKNOWN_ERROR',
      ),
      { kind: 'transient', ambiguous: true },
    ],
    [
      'Vitess: deadline',
      my(
        1105,
        'target: x.-.primary: vttablet: rpc error: code = DeadlineExceeded desc = context deadline exceeded',
        'ER_UNKNOWN_ERROR',
      ),
      { kind: 'transient', ambiguous: true },
    ],
    [
      'Vitess: aborted',
      my(
        1105,
        'target: x.-.primary: vttablet: rpc error: code = Aborted desc = transaction 1: ended (exceeded timeout: 20s)',
        'ER_UNKNOWN_ERROR',
      ),
      { kind: 'transient' },
    ],
    [
      'rds proxy mysql',
      my(9501, 'Timed-out waiting to acquire database connection'),
      { kind: 'transient', ambiguous: false },
    ],
    [
      'maxscale lost',
      my(
        2003,
        'Lost connection to backend server: network error (server1: 104, Connection reset by peer)',
        'CR_CONN_HOST_ERROR',
      ),
      { kind: 'transient', ambiguous: true },
    ],
    [
      'MySQL: router none',
      my(2003, "Can't connect to remote MySQL server for client connected to '0.0.0.0:6446'", 'CR_CONN_HOST_ERROR'),
      { kind: 'transient', ambiguous: false },
    ],
    [
      'Redis: exec of memory',
      {
        name: 'ReplyError',
        message: "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.",
        command: { name: 'exec' },
      },
      { kind: 'transient' },
    ],
    [
      'Redis: exec of earlier errors',
      {
        name: 'ReplyError',
        message: 'EXECABORT Transaction discarded because of previous errors.',
        command: { name: 'exec' },
        previousErrors: [
          {
            name: 'ReplyError',
            message: "READONLY You can't write against a read only replica.",
            command: { name: 'set' },
          },
        ],
      },
      { kind: 'transient' },
    ],
    [
      'Redis: script of memory',
      {
        name: 'ReplyError',
        message:
          "ERR Error running script (call to f_1): @user_script:1: OOM command not allowed when used memory > 'maxmemory'.",
        command: { name: 'evalsha' },
      },
      { kind: 'transient' },
    ],
    [
      'Redis: script of a replica',
      {
        name: 'ReplyError',
        message:
          "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
        command: { name: 'evalsha' },
      },
      { kind: 'transient' },
    ],
    [
      'AMQP: ack timeout',
      {
        code: 406,
        classId: 0,
        methodId: 0,
        message:
          'Channel closed by server: 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms."',
      },
      { kind: 'transient' },
    ],
    [
      'gRPC of Go: text',
      'rpc error: code = Unavailable desc = transport is closing',
      { kind: 'transient', reason: 'grpc.unavailable' },
    ],
    [
      'gRPC of Go: limited',
      'rpc error: code = ResourceExhausted desc = grpc: received message larger than max (5 vs. 4)',
      { kind: 'permanent', reason: 'too_large' },
    ],
    ['gRPC of Go: exhausted', 'rpc error: code = ResourceExhausted desc = too many requests', { kind: 'rate_limited' }],
    [
      'pg disk of the server',
      pg('53100', 'could not extend file "base/1": No space left on device'),
      { kind: 'transient', reason: 'fs.no_space', fault: 'source' },
    ],
    [
      'MySQL: table full',
      my(1114, "The table 'x' is full", 'ER_RECORD_FILE_FULL'),
      { kind: 'transient', fault: 'source' },
    ],
    [
      'sftp server full',
      { code: 14, custom: true, message: 'put: No space left' },
      { kind: 'transient', fault: 'source' },
    ],
    [
      'ftp server full',
      { name: 'FTPError', code: 452, message: '452 Insufficient storage space' },
      { kind: 'transient', fault: 'source' },
    ],
    [
      'mongo server full',
      { name: 'MongoServerError', code: 14031, codeName: 'OutOfDiskSpace', message: 'x' },
      { kind: 'transient', fault: 'source' },
    ],
    [
      'envoy lost the server',
      axios(503, 'upstream connect error or disconnect/reset before headers. reset reason: connection termination'),
      { kind: 'transient', ambiguous: true },
    ],
    ['AWS: 400 rate exceeded in words', axios(400, { message: 'Rate exceeded' }), { kind: 'rate_limited' }],
    [
      'google 403 quota metric',
      axios(403, {
        error: {
          code: 403,
          message:
            "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of service 'x.googleapis.com'.",
        },
      }),
      { kind: 'rate_limited' },
    ],
    ['bybit', axios(403, '403, access too frequent. Please try again later.'), { kind: 'rate_limited' }],
    [
      'meta usage header',
      axios(
        400,
        {
          error: {
            message: 'There have been too many calls to this ad-account.',
            type: 'OAuthException',
            code: 80004,
            fbtrace_id: 'x',
          },
        },
        {
          'x-business-use-case-usage':
            '{"123":[{"type":"ads_management","call_count":100,"estimated_time_to_regain_access":12}]}',
        },
      ),
      { kind: 'rate_limited', retryAfterMs: 720000 },
    ],
    [
      'zoom retry-after iso',
      axios(429, {}, { 'retry-after': '2026-01-15T12:00:30Z' }),
      { kind: 'rate_limited', retryAfterMs: 30000 },
    ],
    [
      'retry-after with a unit',
      axios(429, {}, { 'retry-after': '30s' }),
      { kind: 'rate_limited', retryAfterMs: 30000 },
    ],
    [
      'retry-after as an epoch',
      axios(429, {}, { 'retry-after': String(now / 1000 + 45) }),
      { kind: 'rate_limited', retryAfterMs: 45000 },
    ],
    ['a moment in the body', axios(429, { resetAt: '2026-01-15T12:01:00Z' }), limited(MINUTE)],
    [
      'a reset in milliseconds',
      axios(429, {}, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset-ms': '1500' }),
      limited(1_500),
    ],
    ['402 with a wait', axios(402, { message: 'Daily limit reached, resets in 3 hours' }), limited(3 * HOUR)],
    ['402 alone', axios(402, { message: 'Payment required' }), { kind: 'permanent', reason: 'quota.exhausted' }],
    ['retry-after twice', axios(503, {}, { 'retry-after': '120, 120' }), { kind: 'transient', retryAfterMs: 120000 }],
    ['IMAP: back off', imap('Rate exceeded, back off for 30 seconds'), { kind: 'rate_limited', retryAfterMs: 30000 }],
    ['IMAP: slow down', imap('Too much traffic, slow down'), { kind: 'rate_limited' }],
    [
      'dovecot connections',
      imap('Maximum number of connections from user+IP exceeded (mail_max_userip_connections=10)'),
      { kind: 'rate_limited' },
    ],
    ['gmail system error', imap('System Error (Failure)'), { kind: 'transient' }],
    ['IMAP: lock', imap('Unable to lock mailbox, already in use'), { kind: 'transient' }],
    [
      'IMAP: internal',
      imap('Internal error occurred. Refer to server log for more information.'),
      { kind: 'transient' },
    ],
    [
      'SMTP: 554 too many',
      mail(554, '554 5.7.1 Too many messages from your host, slow down'),
      { kind: 'rate_limited' },
    ],
    [
      'zoho unusual',
      mail(550, '550 5.4.6 Unusual sending activity detected. Please try after sometime'),
      { kind: 'unknown' },
    ],
    [
      'dockerode',
      {
        statusCode: 500,
        reason: 'server error',
        json: { message: 'toomanyrequests' },
        message: '(HTTP code 500) server error - toomanyrequests: You have reached your pull rate limit.',
      },
      { kind: 'rate_limited' },
    ],
    [
      'Kubernetes',
      {
        statusCode: 429,
        body: {
          kind: 'Status',
          status: 'Failure',
          reason: 'TooManyRequests',
          details: { retryAfterSeconds: 1 },
          code: 429,
        },
        message: 'HTTP request failed',
      },
      { kind: 'rate_limited', retryAfterMs: 1000 },
    ],
    [
      'Kubernetes server timeout',
      {
        statusCode: 500,
        body: { kind: 'Status', reason: 'ServerTimeout', details: { retryAfterSeconds: 2 }, code: 500 },
        message: 'HTTP request failed',
      },
      { kind: 'transient', retryAfterMs: 2000 },
    ],
    [
      'PostgREST: pool',
      {
        name: 'PostgrestError',
        code: 'PGRST003',
        details: null,
        hint: null,
        message: 'Timed out acquiring connection from connection pool.',
      },
      { kind: 'transient', ambiguous: false },
    ],
    [
      'PostgREST: no database',
      {
        name: 'PostgrestError',
        code: 'PGRST000',
        details: 'x',
        hint: null,
        message: 'Database connection error. Retrying the connection.',
      },
      { kind: 'transient' },
    ],
    [
      'PlanetScale: unavailable',
      {
        name: 'DatabaseError',
        status: 400,
        message: 'target: x.-.primary: vttablet: rpc error: code = Unavailable desc = error reading from server: EOF',
        body: {
          message: 'target: x.-.primary: vttablet: rpc error: code = Unavailable desc = error reading from server: EOF',
          code: 'UNAVAILABLE',
        },
      },
      { kind: 'transient', ambiguous: true },
    ],
    [
      'http2 goaway',
      { code: 'ERR_HTTP2_GOAWAY_SESSION', message: 'New streams cannot be created after receiving a GOAWAY' },
      { kind: 'transient', ambiguous: false },
    ],
    [
      'brotli',
      { code: 'ERR__ERROR_FORMAT_EXUBERANT_NIBBLE', message: 'Decompression failed' },
      { kind: 'permanent', reason: 'data.parse', ambiguous: true },
    ],
    [
      'zstd',
      { code: 'ZSTD_error_prefix_unknown', message: 'Unknown frame descriptor' },
      { kind: 'permanent', reason: 'data.parse', ambiguous: true },
    ],
    [
      'gemini too long',
      {
        name: 'ApiError',
        status: 400,
        message:
          '{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}',
      },
      { kind: 'permanent', reason: 'too_large' },
    ],
    [
      'http 500 in words of a limit',
      axios(500, { message: 'Request was throttled. Expected available in 5 seconds.' }),
      { kind: 'rate_limited', retryAfterMs: 5000 },
    ],
    [
      'Stripe: declined for good',
      {
        class: 'StripeCardError',
        rawType: 'card_error',
        code: 'card_declined',
        decline_code: 'stolen_card',
        statusCode: 402,
        message: 'Your card was declined.',
      },
      { kind: 'permanent', reason: 'payment.declined' },
    ],
    [
      'AWS: a signature that is wrong',
      aws(
        'SignatureDoesNotMatch',
        'The request signature we calculated does not match the signature you provided.',
        403,
      ),
      { kind: 'permanent', reason: 'auth.invalid' },
    ],
    [
      'Atlas: a wrong login',
      { name: 'MongoServerError', code: 8000, codeName: 'AtlasError', message: 'bad auth : authentication failed' },
      { kind: 'permanent', reason: 'auth.invalid' },
    ],
    ['SMTP: too many hops', mail(554, '554 5.4.6 Too many hops'), { kind: 'permanent' }],
    ['SMTP: spam', mail(554, '554 5.7.1 Message rejected as spam'), { kind: 'permanent' }],
    ['SMTP: too many recipients', mail(452, '452 4.5.3 Too many recipients'), { kind: 'transient' }],
    ['SMTP: a full mailbox', mail(552, '552 Mailbox has exceeded its storage limit'), { reason: 'quota.exhausted' }],
    ['IMAP: no such mailbox', imap("Mailbox doesn't exist: x"), { kind: 'permanent' }],
    [
      'AMQP: other arguments',
      {
        code: 406,
        message:
          'Operation failed: QueueDeclare; 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - inequivalent arg"',
      },
      { kind: 'permanent', reason: 'conflict' },
    ],
    [
      'Redis: a script with a bug',
      {
        name: 'ReplyError',
        message: 'ERR Error running script (call to f_1): @user_script:1: attempt to call a nil value',
        command: { name: 'evalsha' },
      },
      { kind: 'permanent' },
    ],
    [
      'got: no answer',
      got('TimeoutError', 'ETIMEDOUT', { event: 'response', message: "Timeout awaiting 'response' for 1000ms" }),
      { kind: 'transient', ambiguous: true },
    ],
    [
      'nodemailer: closed in the middle',
      { code: 'ECONNECTION', command: 'CONN', message: 'Connection closed unexpectedly' },
      { kind: 'transient', ambiguous: true },
    ],
    [
      'ssh handshake',
      { level: 'client-timeout', message: 'Timed out while waiting for handshake' },
      { kind: 'transient', ambiguous: false },
    ],
    [
      'envoy did not connect',
      axios(503, 'upstream connect error or disconnect/reset before headers. reset reason: connection failure'),
      { kind: 'transient', ambiguous: false },
    ],
    [
      'own disk full',
      { code: 'ENOSPC', errno: -28, syscall: 'write', message: 'ENOSPC: no space left on device, write' },
      { fault: 'worker' },
    ],
    [
      'PlanetScale: a duplicate',
      {
        name: 'DatabaseError',
        status: 400,
        message: "rpc error: code = AlreadyExists desc = Duplicate entry '1' for key (errno 1062)",
      },
      { kind: 'permanent' },
    ],
  ]);
});

describe('a status as the only evidence', () => {
  const down = { kind: 'transient', reason: 'http.5xx' } as const;
  check([
    ['with its phrase', '503 Service Unavailable', down],
    ['after a name', 'Error: 503 Service Unavailable', down],
    ['in lower case', '503 service unavailable', down],
    ['with a dash', '503 - Service Unavailable', down],
    ['in brackets', 'Service Unavailable (503)', down],
    ['of a proxy', '502 Bad Gateway: nginx', down],
    ['as nginx writes it', '504 Gateway Time-out', down],
    ['of something upstream', 'upstream returned 503 Service Unavailable', down],
    ['with an exclamation', 'Bad Gateway!', down],
    ['before a limit', '429 Too Many Requests', { kind: 'rate_limited', reason: 'http.429' }],
    ['a number that is none', 'item 503 is unavailable', { kind: 'unknown' }],
  ]);
});

describe('an abort of the user’s own signal', () => {
  check([
    [
      'is charged to the task',
      { name: 'AbortError', message: 'This operation was aborted', code: 20 },
      { reason: 'abort', kind: 'transient', fault: 'task' },
    ],
  ]);
});

describe('no retryable error is called permanent by its message alone', () => {
  const withRules = classifierFrom(messageRules);
  const isPermanent = (message: string) =>
    [classify(new Error(message), { now }), withRules.classify(new Error(message), { now })].some(
      ({ kind }) => kind === 'permanent',
    );

  test('of the errors that were recorded from real libraries, with nothing left but the message', () => {
    const wrong = readFileSync(new URL('../errors/cases.dev.jsonl', import.meta.url), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { error: unknown; expect: Failure; alt?: Failure[] })
      .filter(({ expect: label, alt = [] }) => [label, ...alt].every(({ kind }) => kind !== 'permanent'))
      .map(({ error }) => (rebuild(error) as { message?: unknown } | undefined)?.message)
      .filter((message) => typeof message === 'string' && isPermanent(message));
    expect(wrong).toEqual([]);
  });

  // Words of libraries and services that mean a permanent failure by themselves.
  const PERMANENT = [
    'redirect count exceeded',
    'unknown scheme',
    'self-signed certificate',
    'All configured authentication methods failed',
    'duplicate key value violates unique constraint',
    'FOREIGN KEY constraint failed',
    'no such table: x',
    'password authentication failed for user "x"',
    'database disk image is malformed',
    'WRONGPASS invalid username-password pair',
    'Cannot open database because the directory does not exist',
    'No credentials',
    'dest already exists',
    "Cannot find module 'x'",
    'Invalid string length',
    'HTTP 404',
    '401 Unauthorized',
    '5 NOT_FOUND: nothing here',
    '7 PERMISSION_DENIED: no',
  ];
  test.each(PERMANENT)('%s, unless it mentions a retry or a limit', (message) => {
    expect(classify(new Error(message), { now }).kind).toBe('permanent');
    for (const more of [
      'please try again later',
      'rate limit exceeded',
      'a temporary problem',
      'retry after 30 seconds',
    ])
      expect(isPermanent(`${message}: ${more}`)).toBe(false);
  });

  test.each(['Permission denied', 'authentication failed', 'Mailbox not found'])(
    '%s by the rules for messages, unless it mentions a retry or a limit',
    (message) => {
      expect(isPermanent(message)).toBe(true);
      for (const more of ['please try again later', 'too many requests', 'temporary failure', 'retry in 30 seconds'])
        expect(isPermanent(`${message}: ${more}`)).toBe(false);
    },
  );
});
