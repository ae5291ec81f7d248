import { describe, expect, test } from 'vitest';
import { classify } from '../../src/failure/classify/classify.ts';

const now = Date.UTC(2026, 0, 15, 12);

/** An error as a library throws it: its class, its message and its fields. */
function thrown(kind: string, message: string, more: object = {}, hidden: object = {}): Error {
  const { cause, ...own } = more as { cause?: unknown };
  const bare = { [kind]: class extends Error {} }[kind] as ErrorConstructor;
  const error = new bare(message);
  Object.assign(error, own);
  for (const [key, value] of Object.entries({ ...hidden, ...('cause' in more && { cause }) })) {
    Object.defineProperty(error, key, { value, enumerable: false, configurable: true });
  }
  return error;
}

/** An error whose `name` is set, as most libraries do. */
function named(name: string, message: string, more: object = {}): Error {
  return thrown(name, message, { name, ...more });
}

function answered(status: number, data?: unknown, headers: object = {}): object {
  return { response: { status, headers, data } };
}

type Case = readonly [what: string, error: unknown, expected: string, waitMs?: number];

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), {
  errno: -111,
  code: 'ECONNREFUSED',
  syscall: 'connect',
});

const HTTP_CLIENTS: readonly Case[] = [
  [
    'ky',
    named('HTTPError', 'Request failed with status code 429 Too Many Requests: GET http://x', {
      response: new Response(null, { status: 429, headers: { 'retry-after': '3' } }),
    }),
    'rate_limited http.429',
    3_000,
  ],
  ['ky, time limit', named('TimeoutError', 'Request timed out: GET http://x', { request: {} }), 'transient timeout'],
  [
    'superagent',
    thrown('Error', 'Bad Gateway', { status: 502, response: { status: 502, headers: {} } }),
    'transient http.5xx',
  ],
  [
    'superagent, time limit',
    thrown('Error', 'Timeout of 100ms exceeded', { timeout: 100, code: 'ECONNABORTED', errno: 'ETIME' }),
    'transient net.timeout',
  ],
  [
    'ofetch',
    named('FetchError', '[GET] "http://x": 404 Not Found', {
      status: 404,
      statusCode: 404,
      data: undefined,
      response: {},
    }),
    'permanent http.404',
  ],
  [
    'ofetch, network',
    named('FetchError', '[GET] "http://x": <no response> fetch failed', {
      cause: new TypeError('fetch failed', { cause: refused }),
    }),
    'transient net.refused',
  ],
  [
    'node-fetch 2',
    named('FetchError', 'network timeout at: http://x', { type: 'request-timeout' }),
    'transient net.timeout',
  ],
  [
    'node-fetch, cut',
    named('FetchError', 'Invalid response body while trying to fetch http://x: Premature close', {
      type: 'system',
      code: 'ERR_STREAM_PREMATURE_CLOSE',
      errno: 'ERR_STREAM_PREMATURE_CLOSE',
    }),
    'transient net.reset',
  ],
  ['needle', thrown('Error', 'socket hang up', { code: 'ECONNRESET' }), 'transient net.reset'],
  [
    'urllib',
    named('ResponseTimeoutError', 'Response timeout for 10 ms', { code: 'RESPONSE_TIMEOUT' }),
    'transient timeout',
  ],
  [
    'got 11',
    named('HTTPError', 'Response code 503 (Service Unavailable)', { code: 'ERR_NON_2XX_3XX_RESPONSE' }),
    'transient http.5xx',
  ],
  [
    'request-promise',
    named('StatusCodeError', '401 - {"error":"x"}', { statusCode: 401, response: { statusCode: 401 } }),
    'permanent auth.invalid',
  ],
  [
    'axios, no answer',
    named('AxiosError', 'Network Error', { isAxiosError: true, code: 'ERR_NETWORK', request: {} }),
    'transient net.failed',
  ],
  ['axios, aborted', named('CanceledError', 'canceled', { code: 'ERR_CANCELED' }), 'transient abort'],
  [
    'undici, pool gone',
    named('ClientClosedError', 'The client is closed', { code: 'UND_ERR_CLOSED' }),
    'unknown net.closed_client',
  ],
  [
    'http-errors',
    named('ServiceUnavailableError', 'Service Unavailable', { status: 503, statusCode: 503, expose: false }),
    'transient http.5xx',
  ],
  [
    'boom',
    thrown('Error', 'nope', { isBoom: true, isServer: false, output: { statusCode: 404, payload: {}, headers: {} } }),
    'permanent http.404',
  ],
  [
    'nest',
    named('BadRequestException', 'Bad Request', { status: 400, response: { message: ['x'], statusCode: 400 } }),
    'permanent http.4xx',
  ],
  [
    'body-parser',
    named('PayloadTooLargeError', 'request entity too large', { type: 'entity.too.large', status: 413, expected: 5 }),
    'permanent too_large',
  ],
];

const SERVICES: readonly Case[] = [
  [
    'Anthropic, overloaded',
    thrown('InternalServerError', '529 {"type":"error"}', {
      status: 529,
      headers: new Headers({ 'x-should-retry': 'true' }),
      error: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      requestID: 'r',
    }),
    'rate_limited throttled',
  ],
  [
    'Anthropic, tokens',
    thrown('RateLimitError', '429 {"type":"error"}', {
      status: 429,
      headers: new Headers({
        'anthropic-ratelimit-tokens-remaining': '0',
        'anthropic-ratelimit-tokens-reset': '2026-01-15T12:00:40Z',
        'anthropic-ratelimit-requests-remaining': '9',
        'anthropic-ratelimit-requests-reset': '2026-01-15T12:05:00Z',
      }),
      error: { type: 'error', error: { type: 'rate_limit_error' } },
    }),
    'rate_limited http.429',
    40_000,
  ],
  [
    'Anthropic, credit',
    thrown('BadRequestError', '400 {"type":"error"}', {
      status: 400,
      headers: new Headers(),
      error: {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'Your credit balance is too low to access the Anthropic API.',
        },
      },
    }),
    'permanent quota.exhausted',
  ],
  [
    'Anthropic, in a stream',
    thrown('APIError', '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', {
      status: undefined,
      headers: new Headers(),
      error: { type: 'error', error: { type: 'overloaded_error' } },
    }),
    'transient http.5xx',
  ],
  [
    'OpenAI, no connection',
    thrown('APIConnectionError', 'Connection error.', { cause: refused }),
    'transient net.refused',
  ],
  ['OpenAI, time limit', thrown('APIConnectionTimeoutError', 'Request timed out.'), 'transient net.timeout'],
  [
    'OpenAI, used up',
    thrown('RateLimitError', '429 You exceeded your current quota', {
      status: 429,
      headers: new Headers(),
      code: 'insufficient_quota',
      type: 'insufficient_quota',
      error: { code: 'insufficient_quota' },
    }),
    'permanent quota.exhausted',
  ],
  [
    'AI SDK',
    named('AI_APICallError', 'Too Many Requests', {
      statusCode: 429,
      responseHeaders: { 'retry-after': '7' },
      isRetryable: true,
      responseBody: '{}',
    }),
    'rate_limited http.429',
    7_000,
  ],
  [
    'AI SDK, used up its tries',
    named('AI_RetryError', 'Failed after 3 attempts.', {
      reason: 'maxRetriesExceeded',
      errors: [named('AI_APICallError', 'x', { statusCode: 503, isRetryable: true })],
      lastError: named('AI_APICallError', 'x', { statusCode: 503, isRetryable: true }),
    }),
    'transient http.5xx',
  ],
  [
    'Notion',
    named('APIResponseError', 'Conflict occurred while saving. Please try again.', {
      code: 'conflict_error',
      status: 409,
      headers: new Headers(),
      body: '{"code":"conflict_error"}',
    }),
    'transient http.409',
  ],
  [
    'Notion, limit',
    named('APIResponseError', 'You have been rate limited.', {
      code: 'rate_limited',
      status: 429,
      headers: new Headers({ 'retry-after': '2' }),
      body: '{}',
    }),
    'rate_limited http.429',
    2_000,
  ],
  [
    'Notion, time limit',
    named('RequestTimeoutError', 'Request to Notion API has timed out', { code: 'notionhq_client_request_timeout' }),
    'transient timeout',
  ],
  [
    'Notion, hidden',
    named('APIResponseError', 'Could not find page', {
      code: 'object_not_found',
      status: 404,
      headers: new Headers(),
      body: '{}',
    }),
    'permanent http.404',
  ],
  [
    'Twilio',
    thrown('RestException', 'Too Many Requests', { status: 429, code: 20429, moreInfo: 'https://x' }),
    'rate_limited http.429',
  ],
  [
    'Twilio, no such number',
    thrown('RestException', 'Invalid number', { status: 400, code: 21211, moreInfo: 'https://x' }),
    'permanent validation',
  ],
  [
    'Telegraf',
    thrown('TelegramError', '429: Too Many Requests: retry after 14', {
      response: {
        ok: false,
        error_code: 429,
        description: 'Too Many Requests: retry after 14',
        parameters: { retry_after: 14 },
      },
      on: {},
    }),
    'rate_limited http.429',
    14_000,
  ],
  [
    'Telegraf, blocked',
    thrown('TelegramError', '403: Forbidden: bot was blocked by the user', {
      response: { ok: false, error_code: 403, description: 'Forbidden: bot was blocked by the user' },
    }),
    'permanent auth.forbidden',
  ],
  [
    'grammY',
    thrown('GrammyError', "Call to 'sendMessage' failed! (429: Too Many Requests: retry after 5)", {
      name: 'GrammyError',
      ok: false,
      error_code: 429,
      description: 'Too Many Requests: retry after 5',
      parameters: { retry_after: 5 },
    }),
    'rate_limited http.429',
    5_000,
  ],
  [
    'Matrix',
    named('MatrixError', 'M_LIMIT_EXCEEDED', {
      httpStatus: 429,
      data: { errcode: 'M_LIMIT_EXCEEDED', retry_after_ms: 1_500 },
    }),
    'rate_limited http.429',
    1_500,
  ],
  [
    'Meta',
    named('AxiosError', 'Request failed with status code 400', {
      isAxiosError: true,
      code: 'ERR_BAD_REQUEST',
      ...answered(400, {
        error: { message: 'Application request limit reached', type: 'OAuthException', code: 4, fbtrace_id: 'A' },
      }),
    }),
    'rate_limited throttled',
  ],
  [
    'Meta, message',
    named('AxiosError', 'Request failed with status code 400', {
      isAxiosError: true,
      ...answered(400, { error: { message: 'x', type: 'OAuthException', code: 100, fbtrace_id: 'A' } }),
    }),
    'permanent validation',
  ],
  [
    'Salesforce, jsforce',
    named('UNABLE_TO_LOCK_ROW', 'unable to obtain exclusive access', { errorCode: 'UNABLE_TO_LOCK_ROW', data: {} }),
    'transient db.locked',
  ],
  [
    'Dropbox',
    named('DropboxResponseError', 'Response failed with a 409 code', {
      status: 409,
      headers: new Headers(),
      error: { error_summary: 'path/not_found/..', error: { '.tag': 'path', path: { '.tag': 'not_found' } } },
    }),
    'unknown http.409',
  ],
  [
    'Dropbox, limit',
    named('DropboxResponseError', 'Response failed with a 429 code', {
      status: 429,
      headers: new Headers({ 'retry-after': '15' }),
      error: {},
    }),
    'rate_limited http.429',
    15_000,
  ],
  [
    'HubSpot',
    thrown('ApiException', 'HTTP-Code: 429\nMessage: x', {
      code: 429,
      body: { policyName: 'TEN_SECONDLY_ROLLING', errorType: 'RATE_LIMIT' },
      headers: {},
    }),
    'rate_limited http.429',
  ],
  [
    'Airtable',
    { error: 'NOT_FOUND', message: 'Could not find what you are looking for', statusCode: 404 },
    'permanent http.404',
  ],
  ['Resend', { statusCode: 429, name: 'rate_limit_exceeded', message: 'Too many requests' }, 'rate_limited http.429'],
  [
    'Supabase',
    {
      code: '23505',
      details: 'Key (id)=(1) already exists.',
      hint: null,
      message: 'duplicate key value violates unique constraint "x_pkey"',
    },
    'permanent db.unique',
  ],
  [
    'Firestore',
    thrown('Error', '8 RESOURCE_EXHAUSTED: Quota exceeded.', {
      code: 8,
      details: 'Quota exceeded.',
      metadata: { get: () => [] },
    }),
    'rate_limited throttled',
  ],
  [
    'Firebase',
    named('FirebaseError', 'Missing or insufficient permissions.', { code: 'permission-denied' }),
    'permanent auth.forbidden',
  ],
  ['Firebase, functions', named('FirebaseError', 'x', { code: 'functions/unavailable' }), 'transient grpc.unavailable'],
  [
    'Plaid',
    named('AxiosError', 'Request failed with status code 400', {
      isAxiosError: true,
      ...answered(400, { error_type: 'ITEM_ERROR', error_code: 'ITEM_LOGIN_REQUIRED', error_message: 'x' }),
    }),
    'permanent auth.expired',
  ],
  [
    'PayPal',
    named('AxiosError', 'x', {
      isAxiosError: true,
      ...answered(422, { name: 'UNPROCESSABLE_ENTITY', details: [{ issue: 'INSTRUMENT_DECLINED' }] }),
    }),
    'permanent payment.declined',
  ],
  [
    'Algolia',
    named('RetryError', 'Unreachable hosts - your application id may be incorrect.', { transporterStackTrace: [] }),
    'transient net.failed',
  ],
  [
    'Vimeo-like reset',
    named('AxiosError', 'x', {
      isAxiosError: true,
      ...answered(429, '', { 'x-ratelimit-reset': '2026-01-15T12:00:30+00:00', 'x-ratelimit-remaining': '0' }),
    }),
    'rate_limited http.429',
    30_000,
  ],
  [
    'a 403 that says why',
    named('AxiosError', 'x', { isAxiosError: true, ...answered(403, { message: 'API rate limit exceeded' }) }),
    'rate_limited throttled',
  ],
  [
    'Stripe, idempotency',
    thrown('StripeIdempotencyError', 'Keys for idempotent requests can only be used with the same parameters', {
      type: 'StripeIdempotencyError',
      rawType: 'idempotency_error',
      statusCode: 400,
      headers: {},
      raw: { type: 'idempotency_error' },
    }),
    'permanent validation',
  ],
  [
    'Stripe, in use',
    thrown('StripeInvalidRequestError', 'x', {
      type: 'StripeInvalidRequestError',
      rawType: 'invalid_request_error',
      code: 'idempotency_key_in_use',
      statusCode: 409,
      headers: {},
      raw: {},
    }),
    'transient http.409',
  ],
  [
    'GraphQL',
    named('GraphQLError', 'Not logged in', { extensions: { code: 'UNAUTHENTICATED' } }),
    'permanent auth.invalid',
  ],
  [
    'Apollo',
    named('ApolloError', 'Response not successful', {
      graphQLErrors: [],
      networkError: named('ServerError', 'Response not successful: Received status code 503', {
        statusCode: 503,
        response: {},
      }),
    }),
    'transient http.5xx',
  ],
  [
    'Cosmos DB',
    named('ErrorResponse', 'Request rate is large', {
      code: 429,
      headers: { 'x-ms-retry-after-ms': '12' },
      retryAfterInMs: 12,
      activityId: 'x',
    }),
    'rate_limited http.429',
    12,
  ],
  [
    'AWS 2',
    thrown('Error', 'Rate exceeded', {
      code: 'ThrottlingException',
      statusCode: 400,
      retryable: true,
      requestId: 'r',
      retryDelay: 30,
      time: new Date(now),
    }),
    'rate_limited throttled',
  ],
  [
    'AWS 2, a condition',
    thrown('Error', 'The conditional request failed', {
      code: 'ConditionalCheckFailedException',
      statusCode: 400,
      retryable: false,
      requestId: 'r',
      retryDelay: 30,
    }),
    'permanent conflict',
  ],
  [
    'Lambda',
    named('TooManyRequestsException', 'Rate Exceeded.', {
      $fault: 'client',
      $metadata: { httpStatusCode: 429 },
      retryAfterSeconds: '4',
      Reason: 'ReservedFunctionConcurrentInvocationLimitExceeded',
    }),
    'rate_limited http.429',
    4_000,
  ],
  [
    'SES',
    named('MessageRejected', 'Email address is not verified.', {
      $fault: 'client',
      $metadata: { httpStatusCode: 400 },
    }),
    'permanent validation',
  ],
  [
    'Kinesis',
    named('ProvisionedThroughputExceededException', 'Rate exceeded', {
      $fault: 'client',
      $metadata: { httpStatusCode: 400 },
    }),
    'rate_limited throttled',
  ],
  [
    'Cognito',
    named('NotAuthorizedException', 'Incorrect username or password.', {
      $fault: 'client',
      $metadata: { httpStatusCode: 400 },
    }),
    'permanent auth.invalid',
  ],
  [
    'Bedrock',
    named('ThrottlingException', 'Too many tokens, please wait before trying again.', {
      $fault: 'client',
      $metadata: { httpStatusCode: 429 },
    }),
    'rate_limited http.429',
  ],
  [
    'an AWS error of no known name',
    named('FlabbergastedException', 'x', { $fault: 'client', $metadata: { httpStatusCode: 400 } }),
    'unknown http.4xx',
  ],
  ['Service Bus', named('MessagingError', 'x', { code: 'ServerBusyError', retryable: true }), 'rate_limited throttled'],
  [
    'Service Bus, lock',
    named('ServiceBusError', 'The lock supplied is invalid.', { code: 'MessageLockLost', retryable: false }),
    'permanent explicit.permanent',
  ],
];

const MORE_SERVICES: readonly Case[] = [
  [
    'GitHub’s GraphQL, used up',
    named('GraphqlResponseError', 'Request failed due to following response errors:\n - API rate limit exceeded', {
      headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${now / 1_000 + 60}` },
      response: { errors: [{ type: 'RATE_LIMITED', message: 'API rate limit exceeded' }] },
      errors: [{ type: 'RATE_LIMITED', message: 'API rate limit exceeded' }],
    }),
    'rate_limited throttled',
    60_000,
  ],
  [
    'Linear',
    thrown('ClientError', 'x', answered(400, { errors: [{ message: 'x', extensions: { code: 'RATELIMITED' } }] })),
    'rate_limited throttled',
  ],
  [
    'BigQuery',
    thrown('ApiError', 'Exceeded rate limits', { code: 403, errors: [{ reason: 'rateLimitExceeded', message: 'x' }] }),
    'rate_limited throttled',
  ],
  ['Google’s JSON', { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'x' } }, 'rate_limited http.429'],
  [
    'Kubernetes',
    named('HttpError', 'HTTP request failed', {
      statusCode: 409,
      body: { kind: 'Status', reason: 'Conflict', code: 409 },
      response: { statusCode: 409 },
    }),
    'unknown http.409',
  ],
  [
    'Lambda, no function',
    named('ResourceNotFoundException', 'x', { $fault: 'client', $metadata: { httpStatusCode: 404 } }),
    'permanent http.404',
  ],
  [
    'DynamoDB, no table',
    named('ResourceNotFoundException', 'x', { $fault: 'client', $metadata: { httpStatusCode: 400 } }),
    'permanent not_found',
  ],
  [
    'S3, too fast',
    named('SlowDown', 'Please reduce your request rate.', { $fault: 'server', $metadata: { httpStatusCode: 503 } }),
    'rate_limited throttled',
  ],
  ['Cloudflare', named('AxiosError', 'x', { isAxiosError: true, ...answered(526) }), 'transient http.5xx'],
  ['a web socket', { type: 'close', wasClean: false, code: 1006, reason: '' }, 'transient net.reset'],
  [
    'SMTP, no disk',
    thrown('Error', 'x', { responseCode: 452, response: '452 4.3.1 Insufficient system storage' }),
    'transient smtp.4xx',
  ],
  [
    'TLS, no certificate of ours',
    thrown('Error', 'x', { code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED' }),
    'permanent tls.handshake',
  ],
  ['TLS, not ours', thrown('Error', 'x', { code: 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA' }), 'permanent tls.certificate'],
  ['a body cut in Chrome', new TypeError('network error'), 'transient net.failed'],
  [
    'JSON with more after it',
    new SyntaxError('Unexpected non-whitespace character after JSON at position 4'),
    'unknown data.parse',
  ],
];

const DATABASES: readonly Case[] = [
  [
    'postgres.js',
    named('PostgresError', 'duplicate key', { code: '23505', severity_local: 'ERROR', query: 'x' }),
    'permanent db.unique',
  ],
  [
    'postgres.js, closed',
    thrown('Error', 'write CONNECTION_CLOSED localhost:5432', {
      code: 'CONNECTION_CLOSED',
      errno: 'CONNECTION_CLOSED',
      address: 'localhost',
      port: 5432,
    }),
    'transient db.connection',
  ],
  [
    'postgres.js, time limit',
    thrown('Error', 'write CONNECT_TIMEOUT localhost:5432', { code: 'CONNECT_TIMEOUT', errno: 'CONNECT_TIMEOUT' }),
    'transient db.connection',
  ],
  ['pg, a class alone', named('error', 'x', { code: '22P02', severity: 'ERROR' }), 'permanent db.data'],
  [
    'pg, shutdown',
    named('error', 'terminating connection due to administrator command', { code: '57P01', severity: 'FATAL' }),
    'transient db.connection',
  ],
  ['pg, raised', named('error', 'no stock', { code: 'P0001', severity: 'ERROR' }), 'unknown db.data'],
  ['pg, ended', thrown('Error', 'Connection terminated unexpectedly'), 'transient db.connection'],
  [
    'Knex',
    thrown('KnexTimeoutError', 'Knex: Timeout acquiring a connection. The pool is probably full.', {
      name: 'KnexTimeoutError',
    }),
    'transient db.pool_timeout',
  ],
  [
    'Knex, prefixed',
    named('error', 'insert into "t" - duplicate key value', { code: '23505', severity: 'ERROR', constraint: 't_pkey' }),
    'permanent db.unique',
  ],
  [
    'Sequelize',
    named('SequelizeDatabaseError', 'deadlock detected', {
      parent: named('error', 'deadlock detected', { code: '40P01', severity: 'ERROR' }),
      original: named('error', 'deadlock detected', { code: '40P01', severity: 'ERROR' }),
    }),
    'transient db.serialization',
  ],
  [
    'Sequelize, unique',
    named('SequelizeUniqueConstraintError', 'Validation error', {
      errors: [{ message: 'id must be unique', type: 'unique violation' }],
      parent: thrown('Error', 'x', { code: 'SQLITE_CONSTRAINT', errno: 19 }),
    }),
    'permanent db.unique',
  ],
  [
    'Sequelize, refused',
    named('SequelizeConnectionRefusedError', 'connect ECONNREFUSED', { parent: refused, original: refused }),
    'transient net.refused',
  ],
  [
    'Sequelize, pool',
    named('SequelizeConnectionAcquireTimeoutError', 'Operation timeout'),
    'transient db.pool_timeout',
  ],
  [
    'Sequelize, not valid',
    named('SequelizeValidationError', 'notNull Violation: a cannot be null', {
      errors: [{ message: 'a cannot be null' }],
    }),
    'permanent validation',
  ],
  [
    'TypeORM',
    named('QueryFailedError', 'Duplicate entry', {
      query: 'x',
      parameters: [],
      driverError: thrown('Error', 'Duplicate entry', { code: 'ER_DUP_ENTRY', errno: 1062, sqlState: '23000' }),
      code: 'ER_DUP_ENTRY',
      errno: 1062,
      sqlState: '23000',
    }),
    'permanent db.unique',
  ],
  [
    'TypeORM, not found',
    named('EntityNotFoundError', 'Could not find any entity of type "User"'),
    'permanent not_found',
  ],
  [
    'TypeORM, lock',
    named('OptimisticLockVersionMismatchError', 'The optimistic lock on entity User failed'),
    'transient conflict',
  ],
  [
    'Objection',
    named('UniqueViolationError', 'x', { nativeError: { code: '23505' }, client: 'postgres' }),
    'permanent db.unique',
  ],
  [
    'MikroORM',
    named('DeadlockException', 'deadlock', { code: '40P01', severity: 'ERROR' }),
    'transient db.serialization',
  ],
  [
    'MariaDB connector',
    named('SqlError', '(conn:5, no: 1213, SQLState: 40001) Deadlock found', {
      errno: 1213,
      sqlState: '40001',
      code: 'ER_LOCK_DEADLOCK',
      fatal: false,
    }),
    'transient db.serialization',
  ],
  [
    'MariaDB connector, pool',
    named('SqlError', '(conn:-1, no: 45028, SQLState: HY000) retrieve connection from pool timeout', {
      errno: 45_028,
      sqlState: 'HY000',
      code: 'ER_GET_CONNECTION_TIMEOUT',
    }),
    'transient db.pool_timeout',
  ],
  ['mysql2, pool closed', thrown('Error', 'Pool is closed.'), 'unknown net.closed_client'],
  [
    'node-sqlite3',
    thrown('Error', 'SQLITE_CONSTRAINT: UNIQUE constraint failed: u.id', { errno: 19, code: 'SQLITE_CONSTRAINT' }),
    'permanent db.unique',
  ],
  [
    'libsql',
    named('LibsqlError', 'SQLITE_BUSY: database is locked', { code: 'SQLITE_BUSY', rawCode: 5 }),
    'transient db.locked',
  ],
  ['sqlite, I/O', named('SqliteError', 'disk I/O error', { code: 'SQLITE_IOERR_WRITE' }), 'transient fs.io'],
  [
    'mssql, time limit',
    named('RequestError', 'Timeout: Request failed to complete in 15000ms', { code: 'ETIMEOUT' }),
    'transient db.timeout',
  ],
  [
    'tedious, login',
    named('ConnectionError', "Login failed for user 'sa'.", { code: 'ELOGIN' }),
    'permanent auth.invalid',
  ],
  [
    'tedious, socket',
    named('ConnectionError', 'Failed to connect to db:1433 - connect ECONNREFUSED 127.0.0.1:1433', { code: 'ESOCKET' }),
    'transient net.refused',
  ],
  [
    'Oracle',
    thrown('Error', 'ORA-00001: unique constraint violated', { errorNum: 1, code: 'ORA-00001', offset: 0 }),
    'permanent db.unique',
  ],
  [
    'node-redis',
    thrown('SimpleError', "READONLY You can't write against a read only replica."),
    'transient db.unavailable',
  ],
  ['node-redis, closed', thrown('ClientClosedError', 'The client is closed'), 'unknown net.closed_client'],
  [
    'node-redis, socket',
    thrown('SocketClosedUnexpectedlyError', 'Socket closed unexpectedly'),
    'transient db.connection',
  ],
  [
    'ioredis, retries used up',
    named(
      'MaxRetriesPerRequestError',
      'Reached the max retries per request limit (which is 20). Refer to "maxRetriesPerRequest" option for details.',
    ),
    'transient db.connection',
  ],
  [
    'MongoDB, replica',
    named('MongoServerError', 'not primary', {
      code: 10_107,
      codeName: 'NotWritablePrimary',
      errorLabelSet: new Set(['RetryableWriteError']),
    }),
    'transient db.unavailable',
  ],
  [
    'MongoDB, conflict',
    named('MongoServerError', 'Write conflict', {
      code: 112,
      codeName: 'WriteConflict',
      errorLabelSet: new Set(['TransientTransactionError']),
    }),
    'transient db.serialization',
  ],
  [
    'MongoDB, pool',
    named('MongoWaitQueueTimeoutError', 'Timed out while checking out a connection from connection pool'),
    'transient db.pool_timeout',
  ],
  ['Mongoose, cast', named('CastError', 'Cast to ObjectId failed', { kind: 'ObjectId' }), 'permanent validation'],
  [
    'Mongoose, validation',
    named('ValidationError', 'U validation failed: a: Path `a` is required.', {
      errors: { a: named('ValidatorError', 'Path `a` is required.') },
      _message: 'U validation failed',
    }),
    'permanent validation',
  ],
  [
    'Prisma, conflict',
    named('PrismaClientKnownRequestError', 'x', { code: 'P2034', clientVersion: '6' }),
    'transient db.serialization',
  ],
  ['Prisma, arguments', named('PrismaClientValidationError', 'Argument `x` is missing.'), 'permanent code.bug'],
  [
    'Prisma, raw',
    named('PrismaClientKnownRequestError', 'Raw query failed. Code: `40001`', {
      code: 'P2010',
      meta: { code: '40001', message: 'x' },
    }),
    'transient db.serialization',
  ],
  [
    'Elasticsearch, no node',
    named('NoLivingConnectionsError', 'There are no living connections'),
    'transient net.failed',
  ],
  [
    'Neo4j',
    named('Neo4jError', 'x', { code: 'Neo.TransientError.Transaction.DeadlockDetected', retriable: true }),
    'transient db.serialization',
  ],
  [
    'Cassandra',
    named('NoHostAvailableError', 'All host(s) tried for query failed.', { innerErrors: {} }),
    'transient db.connection',
  ],
];

const OTHERS: readonly Case[] = [
  [
    'execa',
    thrown('ExecaError', 'Command failed with exit code 75: x', {
      exitCode: 75,
      command: 'x',
      failed: true,
      timedOut: false,
      isCanceled: false,
      signal: undefined,
    }),
    'transient process.tempfail',
  ],
  [
    'execa, time limit',
    thrown('ExecaError', 'Command timed out after 10 milliseconds: sleep 5', {
      timedOut: true,
      signal: 'SIGTERM',
      command: 'sleep 5',
      failed: true,
    }),
    'transient timeout',
  ],
  [
    'execa, no program',
    thrown('ExecaError', 'Command failed with ENOENT: nope\nspawn nope ENOENT', {
      code: 'ENOENT',
      command: 'nope',
      failed: true,
      timedOut: false,
      exitCode: undefined,
      cause: Object.assign(new Error('spawn nope ENOENT'), { code: 'ENOENT', errno: -2, syscall: 'spawn nope' }),
    }),
    'permanent process.not_found',
  ],
  [
    'exec, time limit',
    thrown('Error', 'Command failed: sleep 5', {
      killed: true,
      code: null,
      signal: 'SIGTERM',
      cmd: 'sleep 5',
      stdout: '',
      stderr: '',
    }),
    'transient timeout',
  ],
  [
    'killed',
    thrown('Error', 'Command failed: x', { killed: false, code: null, signal: 'SIGKILL', cmd: 'x' }),
    'transient process.killed',
  ],
  [
    'zx',
    thrown(
      'ProcessOutput',
      '\n    at file\n    exit code: 127 (Command not found)',
      { exitCode: 127, signal: null, stdout: '', stderr: '' },
      { exitCode: 127 },
    ),
    'permanent process.not_found',
  ],
  ['only text', thrown('Error', 'process exited with code 137'), 'transient process.killed'],
  [
    'valibot',
    named('ValiError', 'Invalid type: Expected string but received 5', { issues: [{}] }),
    'permanent validation',
  ],
  [
    'arktype',
    thrown('TraversalError', 'a must be a number (was a string)', { name: 'TraversalError', arkErrors: [] }),
    'permanent validation',
  ],
  [
    'superstruct',
    thrown('StructError', 'Expected a string, but received: 5', { path: [], key: undefined, value: 5 }),
    'permanent validation',
  ],
  [
    'class-validator',
    [{ target: {}, property: 'a', constraints: { isInt: 'a must be an integer' }, children: [] }],
    'permanent validation',
  ],
  [
    'typebox',
    thrown('TransformDecodeCheckError', 'Unable to decode value as it does not match the expected schema'),
    'permanent validation',
  ],
  ['standard schema', thrown('SchemaError', 'x', { issues: [{ message: 'x', path: [] }] }), 'permanent validation'],
  [
    'fastify',
    thrown('FastifyError', 'body must be object', { code: 'FST_ERR_VALIDATION', statusCode: 400, validation: [{}] }),
    'permanent validation',
  ],
  [
    'jose',
    thrown('JWTExpired', '"exp" claim timestamp check failed', {
      name: 'JWTExpired',
      code: 'ERR_JWT_EXPIRED',
      claim: 'exp',
    }),
    'permanent auth.expired',
  ],
  ['jsonwebtoken', named('TokenExpiredError', 'jwt expired', { expiredAt: new Date(now) }), 'permanent auth.expired'],
  ['NATS', named('NatsError', 'TIMEOUT', { code: 'TIMEOUT' }), 'transient timeout'],
  ['NATS, nobody', named('NatsError', '503', { code: '503' }), 'transient mq.unavailable'],
  [
    'MQTT',
    thrown('ErrorWithReasonCode', 'Connection refused: Bad username or password', { code: 4 }),
    'permanent auth.invalid',
  ],
  [
    'Kafka, retries used up',
    named('KafkaJSNumberOfRetriesExceeded', 'x', {
      retriable: false,
      retryCount: 5,
      cause: named('KafkaJSProtocolError', 'Not authorized', {
        type: 'TOPIC_AUTHORIZATION_FAILED',
        code: 29,
        retriable: false,
      }),
    }),
    'permanent auth.forbidden',
  ],
  [
    'librdkafka',
    named('LibrdKafkaError', 'Local: Broker transport failure', { code: -195, errno: -195, origin: 'local' }),
    'transient mq.connection',
  ],
  [
    'Connect',
    named('ConnectError', '[unavailable] x', { code: 14, metadata: new Headers() }),
    'transient grpc.unavailable',
  ],
  [
    'nice-grpc',
    named('ClientError', '/p.S/m UNAVAILABLE: x', { code: 14, path: '/p.S/m', details: 'x' }),
    'transient grpc.unavailable',
  ],
  [
    'rate-limiter-flexible',
    { msBeforeNext: 1_234, remainingPoints: 0, consumedPoints: 6, isFirstInDuration: false },
    'rate_limited throttled',
    1_234,
  ],
  ['opossum', thrown('Error', 'Breaker is open', { code: 'EOPENBREAKER' }), 'transient api.unavailable'],
  [
    'cockatiel',
    thrown('BrokenCircuitError', 'Execution prevented because the circuit breaker is open', {
      isBrokenCircuitError: true,
    }),
    'transient api.unavailable',
  ],
  ['async-mutex', thrown('Error', 'timeout while waiting for mutex to become available'), 'transient timeout'],
  ['Puppeteer', named('TimeoutError', 'Navigation timeout of 30000 ms exceeded'), 'transient timeout'],
  [
    'Puppeteer, closed',
    named('TargetCloseError', 'Protocol error (Runtime.callFunctionOn): Target closed'),
    'transient browser.closed',
  ],
  ['Puppeteer, network', thrown('Error', 'net::ERR_CONNECTION_REFUSED at http://x'), 'transient net.refused'],
  [
    'Playwright, time limit',
    named('TimeoutError', "page.waitForSelector: Timeout 1000ms exceeded.\nCall log:\n  - waiting for locator('#x')"),
    'transient timeout',
  ],
  ['Firefox', thrown('Error', 'page.goto: NS_ERROR_CONNECTION_REFUSED'), 'transient net.refused'],
  ['Inngest, later', named('RetryAfterError', 'x', { retryAfter: '90' }), 'transient explicit.transient', 90_000],
  [
    'Temporal',
    thrown('ActivityFailure', 'Activity task failed', {
      name: 'ActivityFailure',
      cause: named('ApplicationFailure', 'x', { nonRetryable: true, type: 'X' }),
    }),
    'permanent explicit.permanent',
  ],
  [
    'p-retry',
    named('AbortError', 'no such user', { originalError: new Error('no such user') }),
    'permanent explicit.permanent',
  ],
  [
    'AbortSignal with a reason',
    named('AbortError', 'The operation was aborted', {
      code: 'ABORT_ERR',
      cause: new DOMException('The operation was aborted due to timeout', 'TimeoutError'),
    }),
    'transient timeout',
  ],
  [
    'imapflow, throttled',
    thrown('Error', 'Command failed', {
      responseStatus: 'NO',
      serverResponseCode: 'THROTTLED',
      code: 'ETHROTTLE',
      throttleReset: 5_000,
    }),
    'rate_limited throttled',
    5_000,
  ],
  [
    'node-imap',
    thrown('Error', 'Invalid credentials (Failure)', {
      type: 'no',
      textCode: 'AUTHENTICATIONFAILED',
      source: 'authentication',
    }),
    'permanent auth.invalid',
  ],
  [
    'emailjs-imap',
    thrown('Error', 'getaddrinfo ENOTFOUND imap.x', { code: 'ENOTFOUND', source: 'socket', syscall: 'getaddrinfo' }),
    'transient net.dns',
  ],
  [
    'ssh2',
    thrown('Error', 'All configured authentication methods failed', { level: 'client-authentication' }),
    'permanent auth.invalid',
  ],
  [
    'ssh2, time limit',
    thrown('Error', 'Timed out while waiting for handshake', { level: 'client-timeout' }),
    'transient net.timeout',
  ],
  [
    'ssh2, socket',
    thrown('Error', 'connect ECONNREFUSED 127.0.0.1:22', {
      level: 'client-socket',
      code: 'ECONNREFUSED',
      errno: -111,
      syscall: 'connect',
    }),
    'transient net.refused',
  ],
  ['SFTP of ssh2', thrown('Error', 'No such file', { code: 2 }), 'permanent fs.not_found'],
  ['FTP, busy', named('FTPError', '450 File unavailable, try later', { code: 450 }), 'transient fs.locked'],
  ['FTP, missing', named('FTPError', '550 /x: No such file or directory', { code: 550 }), 'permanent fs.not_found'],
  [
    'nodemailer, OAuth',
    thrown('Error', "Can't create new access token for user", { code: 'EAUTH', command: 'AUTH XOAUTH2' }),
    'permanent auth.invalid',
  ],
  [
    'nodemailer, refused',
    thrown('Error', 'connect ECONNREFUSED 127.0.0.1:25', {
      errno: -111,
      code: 'ESOCKET',
      syscall: 'connect',
      address: '127.0.0.1',
      port: 25,
      command: 'CONN',
    }),
    'transient net.refused',
  ],
  [
    'nodemailer, daily limit',
    thrown('Error', 'Message failed: 550 5.4.5 Daily user sending limit exceeded.', {
      code: 'EMESSAGE',
      response: '550 5.4.5 Daily user sending limit exceeded.',
      responseCode: 550,
      command: 'DATA',
    }),
    'rate_limited quota.exhausted',
  ],
  [
    'spawnSync, full',
    thrown('Error', 'spawnSync x ENOBUFS', {
      errno: -105,
      code: 'ENOBUFS',
      syscall: 'spawnSync x',
      path: 'x',
      spawnargs: [],
    }),
    'permanent process.max_buffer',
  ],
  ['heap', thrown('RangeError', 'Array buffer allocation failed'), 'unknown resource.memory'],
  [
    'suppressed',
    Object.assign(new Error('x'), { name: 'SuppressedError', error: refused, suppressed: new Error('y') }),
    'transient net.refused',
  ],
  ['settled', { status: 'rejected', reason: refused }, 'transient net.refused'],
  [
    'YAML',
    named('YAMLParseError', 'Nested mappings are not allowed', { code: 'BLOCK_AS_IMPLICIT_KEY', pos: [0, 1] }),
    'unknown data.parse',
  ],
];

/** Errors that real libraries threw in `npm run errors:live`. */
const PROVOKED: readonly Case[] = [
  [
    'node-fetch 2, TLS to a plain port',
    named(
      'FetchError',
      'request to https://x/ failed, reason: write EPROTO 80:error:0A00010B:SSL routines::wrong version',
      {
        type: 'system',
        errno: 'EPROTO',
        code: 'EPROTO',
      },
    ),
    'permanent tls.handshake',
  ],
  [
    'ofetch, stopped',
    named('FetchError', '[POST] "http://x/": <no response> This operation was aborted', {
      cause: new DOMException('This operation was aborted', 'AbortError'),
    }),
    'transient abort',
  ],
  [
    'undici, no HTTP',
    named('HTTPParserError', 'Response does not match the HTTP/1.1 protocol'),
    'unknown net.protocol',
  ],
  [
    'HTTP/2, what was pending when nobody listened',
    thrown('Error', 'The pending stream has been canceled', { code: 'ERR_HTTP2_STREAM_CANCEL', cause: refused }),
    'transient net.refused',
  ],
  [
    'HTTP/2, a peer that speaks HTTP/1',
    thrown('NghttpError', 'Protocol error', { code: 'ERR_HTTP2_ERROR', errno: -505 }),
    'unknown net.protocol',
  ],
  [
    'azure tables',
    named('RestError', '{"odata.error":{}}', {
      statusCode: 409,
      details: { odataError: { code: 'EntityAlreadyExists' } },
      response: { status: 409 },
    }),
    'permanent conflict',
  ],
  [
    'minio',
    named('S3Error', 'Valid and authorized credentials required', { code: 'AccessDenied' }),
    'permanent auth.forbidden',
  ],
  ['grammy', new Error("Request to 'sendMessage' timed out after 0.2 seconds"), 'transient timeout'],
  [
    'nodemailer, STARTTLS refused',
    thrown('Error', 'Error upgrading connection with STARTTLS: 502 5.5.1 no', {
      code: 'ETLS',
      response: '502 5.5.1 no',
      responseCode: 502,
    }),
    'permanent tls.handshake',
  ],
  [
    'nodemailer, STARTTLS not now',
    thrown('Error', 'Error upgrading connection with STARTTLS: 454 TLS not available', {
      code: 'ETLS',
      response: '454 4.7.0 TLS not available due to temporary reason',
      responseCode: 454,
    }),
    'transient smtp.4xx',
  ],
  [
    'emailjs, greylisting',
    thrown('SMTPError', "bad response on command 'RCPT': Greylisted", { code: 2, smtp: '451 4.7.1 Greylisted\n' }),
    'transient smtp.4xx',
  ],
  [
    'emailjs, a login that was refused',
    thrown('SMTPError', 'authorization.failed', {
      code: 3,
      previous: thrown('SMTPError', 'bad response', {
        code: 2,
        smtp: '535 5.7.8 Authentication credentials invalid\n',
      }),
    }),
    'permanent auth.invalid',
  ],
  [
    'emailjs, a login that is for later',
    thrown('SMTPError', 'authorization.failed', {
      code: 3,
      previous: thrown('SMTPError', 'bad response', { code: 2, smtp: '454 4.7.0 Temporary authentication failure\n' }),
    }),
    'transient smtp.4xx',
  ],
  [
    'emailjs, silence',
    thrown('SMTPError', 'timedout while connecting to smtp server', { code: 4 }),
    'transient net.timeout',
  ],
  [
    'imap, a directory that is away',
    thrown('Error', 'Temporary authentication failure', {
      type: 'no',
      textCode: 'UNAVAILABLE',
      source: 'authentication',
    }),
    'transient imap.unavailable',
  ],
  ['POP3, in use', new Error('[IN-USE] Do you have another POP session running?'), 'transient imap.in_use'],
  ['POP3, for now', new Error('-ERR [SYS/TEMP] try again'), 'transient imap.unavailable'],
  ['POP3, too soon', new Error('[LOGIN-DELAY] minimum time between mail checks violation'), 'rate_limited throttled'],
  [
    'ssh2, another host key',
    thrown('Error', 'Host denied (verification failed)', { level: 'handshake', fatal: true }),
    'permanent tls.certificate',
  ],
  ['fs-extra', new SyntaxError('/app/a.json: Unexpected end of JSON input'), 'unknown data.parse'],
  [
    'clickhouse, a table',
    thrown('ClickHouseError', "Unknown table expression identifier 'x'.", { code: '60', type: 'UNKNOWN_TABLE' }),
    'permanent db.schema',
  ],
  [
    'clickhouse, memory',
    thrown('ClickHouseError', 'Memory limit (total) exceeded.', { code: '241', type: 'MEMORY_LIMIT_EXCEEDED' }),
    'transient db.resources',
  ],
  [
    'neo4j, silence',
    named('Neo4jError', 'Connection acquisition timed out in 2000 ms. Pool status: Active conn count = 0', {
      code: 'N/A',
      retriable: false,
      retryable: false,
    }),
    'transient db.connection',
  ],
  [
    'neo4j, whatever else',
    named('Neo4jError', 'x', { code: 'N/A', retriable: false, retryable: false }),
    'unknown unknown',
  ],
  ['ldapts, an entry', named('NoSuchObjectError', ' Code: 0x20', { code: 32 }), 'permanent not_found'],
  ['ldapts, busy', named('BusyError', 'The server is busy. Code: 0x33', { code: 51 }), 'transient db.unavailable'],
  [
    'ldapts, reset',
    new Error('Socket error. Message type: BindRequest (0x60)\nread ECONNRESET'),
    'transient net.reset',
  ],
  [
    'kafkajs, a wrong call',
    named('KafkaJSNonRetriableError', 'Invalid topic', { retriable: false }),
    'permanent explicit.permanent',
  ],
  [
    'kafkajs, what it would not repeat',
    named('KafkaJSNonRetriableError', 'x', { retriable: false, cause: new Error('x') }),
    'unknown unknown',
  ],
  [
    'ws, a frame that is none',
    thrown('RangeError', 'Invalid WebSocket frame: RSV1 must be clear', { code: 'WS_ERR_UNEXPECTED_RSV_1' }),
    'unknown net.protocol',
  ],
  [
    'ws, a message that is too large',
    thrown('RangeError', 'Max payload size exceeded', { code: 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH' }),
    'permanent too_large',
  ],
  ['mqtt', new Error('connack timeout'), 'transient net.timeout'],
  ['rhea', named('ProtocolError', 'Invalid protocol header for AMQP: 48545450'), 'unknown net.protocol'],
  ['amqplib, no AMQP', new Error('Frame size 1668246885 exceeds maxFrameSize 67108864'), 'unknown net.protocol'],
  ['amqplib, a host', new Error('Expected ConnectionOpenOk; got <ConnectionClose channel:0>'), 'unknown mq.rejected'],
  ['opossum, taken', thrown('Error', 'Semaphore locked', { code: 'ESEMLOCKED' }), 'transient resource.limit'],
  [
    'opossum, shut down',
    thrown('Error', 'The circuit has been shutdown.', { code: 'ESHUTDOWN' }),
    'unknown net.closed_client',
  ],
  [
    'class-validator, deeper down',
    [{ property: 'people', children: [{ property: '0', children: [], constraints: { isInt: 'x' } }] }],
    'permanent validation',
  ],
  [
    'csv-parse',
    thrown('CsvError', 'Invalid Record Length: expect 2, got 1 on line 2', {
      code: 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH',
    }),
    'unknown data.parse',
  ],
];

describe.each([
  ['libraries that were provoked', PROVOKED],
  ['clients of HTTP', HTTP_CLIENTS],
  ['services', SERVICES],
  ['services, told in other ways', MORE_SERVICES],
  ['databases', DATABASES],
  ['other libraries', OTHERS],
])('errors of %s', (_, cases) => {
  test.each(cases)('%s', (_what, error, expected, waitMs) => {
    const failure = classify(error, { now });
    expect(`${failure.kind} ${failure.reason}`, JSON.stringify(failure.evidence)).toBe(expected);
    expect(failure.retryAfterMs).toBe(waitMs);
  });
});

describe('whether the effect may have happened', () => {
  const ambiguous = (error: unknown) => classify(error, { now }).ambiguous;

  test('depends on the status, whatever code the body has', () => {
    const body = { error: { type: 'no_shard_available_action_exception' } };
    expect(ambiguous(named('ResponseError', 'x', { meta: { statusCode: 503, body }, ...answered(503, body) }))).toBe(
      false,
    );
    expect(ambiguous(named('ResponseError', 'x', answered(500, body)))).toBe(true);
  });

  test('is unknown if a client only says that the network failed', () => {
    expect(ambiguous(named('PostmarkError', 'fetch failed', { statusCode: 0 }))).toBe(true);
  });

  test('is excluded while a handshake is not complete', () => {
    for (const text of ['Opening handshake has timed out', 'connack timeout', 'Timed out while waiting for handshake'])
      expect(ambiguous(new Error(text)), text).toBe(false);
  });
});
