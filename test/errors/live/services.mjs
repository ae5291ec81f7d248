// Clients of services, pointed at the loopback. Bodies are what the service documents for that status.
import { constants } from 'node:http2';
import Anthropic from '@anthropic-ai/sdk';
import { KinesisClient, PutRecordCommand } from '@aws-sdk/client-kinesis';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { PublishCommand, SNSClient } from '@aws-sdk/client-sns';
import { AzureNamedKeyCredential, TableClient } from '@azure/data-tables';
import { createClient as createClickhouse } from '@clickhouse/client';
import { REST } from '@discordjs/rest';
import { Client as Elastic } from '@elastic/elasticsearch';
import { drive } from '@googleapis/drive';
import { Client as Notion } from '@notionhq/client';
import { Octokit } from '@octokit/core';
import { LogLevel, WebClient } from '@slack/web-api';
import { IncomingWebhook } from '@slack/webhook';
import { fetchExchange, Client as Urql } from '@urql/core';
import { Gaxios } from 'gaxios';
import { OAuth2Client } from 'google-auth-library';
import { Bot } from 'grammy';
import { GraphQLClient } from 'graphql-request';
import Groq from 'groq-sdk';
import { Meilisearch } from 'meilisearch';
import { Client as Minio } from 'minio';
import OpenAI from 'openai';
import { ServerClient as Postmark } from 'postmark';
import Stripe from 'stripe';
import { Telegraf } from 'telegraf';
import { each, library } from './cases.mjs';
import { HOST } from './loopback.mjs';

const url = (port) => `http://${HOST}:${port}`;

/** What may happen to any of them on the way; each is called with where the service is. */
const WAY = {
  'nobody listens': ['transient net.refused source', async (call, on) => call(url(await on.closedPort()))],
  'the connection is reset after the request was sent': [
    'transient net.reset source ambiguous',
    async (call, on) => call(url(await on.resetting())),
  ],
  'no answer comes in time': [
    'transient net.timeout source ambiguous | transient timeout task ambiguous',
    async (call, on) => call(url(await on.silent()), 200),
  ],
};

/** Statuses that mean the same everywhere, with a body that says nothing. */
const PLAIN = {
  404: ['permanent http.404 task', async (call, on) => call(await on.answering(404, { message: 'nope' }))],
  500: ['transient http.5xx source ambiguous', async (call, on) => call(await on.answering(500, { message: 'oops' }))],
  '503 from a proxy, with a page': [
    'transient http.5xx source',
    async (call, on) => call(await on.answering(503, '<html>503</html>', { 'content-type': 'text/html' })),
  ],
};
const ALL = { ...WAY, ...PLAIN };

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' };
const awsConfig = (endpoint, requestTimeout = 8_000) => ({
  ...{ endpoint, region: 'eu-west-1', credentials, maxAttempts: 1 },
  requestHandler: { requestTimeout, throwOnRequestTimeout: true, connectionTimeout: 5_000 },
});

const callKinesis = async (endpoint) => {
  const client = new KinesisClient({ endpoint, region: 'eu-west-1', credentials, maxAttempts: 1 });
  try {
    return await client.send(new PutRecordCommand({ StreamName: 's', PartitionKey: 'p', Data: new Uint8Array(1) }));
  } finally {
    client.destroy();
  }
};

const callOpenAi = (at, timeout = 8_000) =>
  new OpenAI({ apiKey: 'k', baseURL: `${at}/v1`, maxRetries: 0, timeout }).chat.completions.create({
    model: 'm',
    messages: [],
  });
const callAnthropic = (at, timeout = 8_000) =>
  new Anthropic({ apiKey: 'k', baseURL: at, maxRetries: 0, timeout }).messages.create({
    model: 'm',
    max_tokens: 5,
    messages: [],
  });
const callGroq = (at, timeout = 8_000) =>
  new Groq({ apiKey: 'k', baseURL: at, maxRetries: 0, timeout }).chat.completions.create({ model: 'm', messages: [] });
const callStripe = (at, timeout = 8_000) => {
  const { hostname, port } = new URL(at);
  return new Stripe('sk_test_x', {
    host: hostname,
    port,
    protocol: 'http',
    maxNetworkRetries: 0,
    timeout,
    telemetry: false,
  }).charges.create({
    amount: 1,
    currency: 'eur',
  });
};
const quiet = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  setLevel() {},
  setName() {},
  getLevel: () => LogLevel.ERROR,
};
const callSlack = (at, timeout = 8_000) =>
  new WebClient('xoxb-x', {
    ...{ slackApiUrl: `${at}/api/`, retryConfig: { retries: 0 }, timeout },
    ...{ rejectRateLimitedCalls: true, logger: quiet },
  }).chat.postMessage({ channel: 'C1', text: 'hi' });
const callWebhook = (at, timeout = 8_000) => new IncomingWebhook(`${at}/services/x`, { timeout }).send('hi');
const callOctokit = (at, timeout = 8_000) =>
  new Octokit({ baseUrl: at, log: quiet }).request('POST /repos/a/b/issues', {
    title: 't',
    request: { signal: AbortSignal.timeout(timeout) },
  });
const callNotion = (at, timeoutMs = 8_000) =>
  new Notion({ auth: 'x', baseUrl: at, timeoutMs, logger() {}, retry: false }).pages.retrieve({
    page_id: '0'.repeat(32),
  });
const callGrammy = (at, timeout = 8_000) =>
  new Bot('1:x', { client: { apiRoot: at, timeoutSeconds: timeout / 1_000 } }).api.sendMessage(1, 'hi');
const callTelegraf = (at, timeout = 8_000) => {
  void timeout;
  return new Telegraf('1:x', { telegram: { apiRoot: at } }).telegram.sendMessage(1, 'hi');
};
const callDiscord = (at, timeout = 8_000) =>
  new REST({ api: `${at}/api`, timeout, retries: 0, rejectOnRateLimit: () => true })
    .setToken('x')
    .post('/channels/1/messages', { body: { content: 'hi' } });
const callPostmark = (at, timeout = 8_000) =>
  new Postmark('x', { requestHost: new URL(at).host, useHttps: false, timeout: timeout / 1_000 }).sendEmail({
    From: 'a@a.example',
    To: 'b@b.example',
  });
const callElastic = (at, requestTimeout = 8_000) =>
  new Elastic({ node: at, maxRetries: 0, requestTimeout }).index({ index: 'i', id: '1', document: { a: 1 } });
const callMeili = (at, timeout = 8_000) => new Meilisearch({ host: at, apiKey: 'x', timeout }).index('i').search('x');
const callClickhouse = async (at, request_timeout = 8_000) => {
  const client = createClickhouse({ url: at, request_timeout, log: { level: 127 } });
  try {
    return await (await client.query({ query: 'SELECT 1' })).json();
  } finally {
    await client.close();
  }
};
const callMinio = (at) => {
  const { hostname, port } = new URL(at);
  const keys = { accessKey: 'k', secretKey: 's', region: 'us-east-1' };
  return new Minio({
    endPoint: hostname,
    port: Number(port),
    useSSL: false,
    ...keys,
    retryOptions: { disableRetry: true },
  }).statObject('bucket', 'o');
};
const callTables = (at, timeout = 8_000) =>
  new TableClient(at, 't', new AzureNamedKeyCredential('a', 'a2V5'), {
    ...{ allowInsecureConnection: true, retryOptions: { maxRetries: 0 } },
  }).createEntity({ partitionKey: 'p', rowKey: 'r' }, { abortSignal: AbortSignal.timeout(timeout) });
const callGaxios = (at, timeout = 8_000) =>
  new Gaxios({ retry: false, timeout }).request({ url: `${at}/x`, method: 'POST', data: { a: 1 } });
const callDrive = (at, timeout = 8_000) =>
  drive({ version: 'v3', rootUrl: `${at}/`, retry: false, timeout }).files.get({ fileId: 'f' });
const callToken = (at) => {
  const client = new OAuth2Client({
    clientId: 'i',
    clientSecret: 's',
    endpoints: { oauth2TokenUrl: `${at}/token` },
    transporterOptions: { retry: false },
  });
  client.setCredentials({ refresh_token: 'r' });
  return client.getAccessToken();
};
const callGraphql = (at, timeout = 8_000) =>
  new GraphQLClient(`${at}/graphql`, { signal: AbortSignal.timeout(timeout) }).request('mutation { a }');
const callUrql = async (at, timeout = 8_000) => {
  const client = new Urql({
    url: `${at}/graphql`,
    exchanges: [fetchExchange],
    preferGetMethod: false,
    fetchOptions: () => ({ signal: AbortSignal.timeout(timeout) }),
  });
  const { error, data } = await client.mutation('mutation { a }', {}).toPromise();
  if (error) throw error;
  return data;
};

const answers = (call, status, body, headers) => async (on) => call(await on.answering(status, body, headers));
const s3 = (code) =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>m</Message><RequestId>1</RequestId></Error>`;
const xml = { 'content-type': 'application/xml' };
const sns = (code) =>
  `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>m</Message></Error></ErrorResponse>`;
const graph = (message, code) => ({ errors: [{ message, extensions: { code } }], data: null });
const odata = (code) => ({ 'odata.error': { code, message: { lang: 'en-US', value: 'm' } } });
const googleError = (code, reason, status) => ({
  error: { code, message: 'm', status, errors: [{ message: 'm', domain: 'usageLimits', reason }] },
});

export default [
  each('openai', callOpenAi, ALL)(
    [
      '429 with the wait in milliseconds',
      'rate_limited http.429 quota after 1.5s',
      answers(
        callOpenAi,
        429,
        { error: { message: 'Rate limit reached', type: 'requests', code: 'rate_limit_exceeded' } },
        { 'retry-after-ms': '1500' },
      ),
    ],
    [
      '429 because the money is used up',
      'permanent quota.exhausted quota',
      answers(callOpenAi, 429, {
        error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' },
      }),
    ],
    [
      'a context that is too long',
      'permanent too_large task',
      answers(callOpenAi, 400, {
        error: { message: 'maximum context length', type: 'invalid_request_error', code: 'context_length_exceeded' },
      }),
    ],
    [
      'a wrong key',
      'permanent auth.invalid source',
      answers(callOpenAi, 401, {
        error: { message: 'Incorrect API key', type: 'invalid_request_error', code: 'invalid_api_key' },
      }),
    ],
    [
      '429 whose buckets say when they fill',
      'rate_limited http.429 quota after 360s',
      answers(
        callOpenAi,
        429,
        { error: { message: 'Rate limit reached', code: 'rate_limit_exceeded' } },
        { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '6m0s' },
      ),
    ],
  ),
  each('@anthropic-ai/sdk', callAnthropic, ALL)(
    [
      'overloaded',
      'transient http.5xx source',
      answers(callAnthropic, 529, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
    ],
    [
      '429 to wait',
      'rate_limited http.429 quota after 20s',
      answers(
        callAnthropic,
        429,
        { type: 'error', error: { type: 'rate_limit_error', message: 'm' } },
        { 'retry-after': '20' },
      ),
    ],
    [
      'no credit',
      'permanent quota.exhausted quota',
      answers(callAnthropic, 400, {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'Your credit balance is too low to access the Anthropic API.',
        },
      }),
    ],
    [
      'a model that does not exist',
      'permanent http.404 task',
      answers(callAnthropic, 404, { type: 'error', error: { type: 'not_found_error', message: 'model: m' } }),
    ],
    [
      'a request that is too large',
      'permanent too_large task',
      answers(callAnthropic, 413, { type: 'error', error: { type: 'request_too_large', message: 'm' } }),
    ],
  ),
  each(
    'groq-sdk',
    callGroq,
    ALL,
  )(
    [
      '429 to wait',
      'rate_limited http.429 quota after 7s',
      answers(
        callGroq,
        429,
        {
          error: {
            message: 'Rate limit reached for model. Please try again in 7s.',
            type: 'tokens',
            code: 'rate_limit_exceeded',
          },
        },
        { 'retry-after': '7' },
      ),
    ],
    [
      'a conflict that the service would have asked again',
      'transient http.409 task',
      answers(callGroq, 409, { error: { message: 'conflict' } }, { 'x-should-retry': 'true' }),
    ],
  ),
  // It takes an answer without an `error` for a good one, whatever its status, and of a page it keeps no status.
  each(
    'stripe',
    callStripe,
    { ...WAY, '503 from a proxy, with a page': PLAIN['503 from a proxy, with a page'] },
    {
      '503 from a proxy, with a page': 'unknown data.parse source ambiguous',
    },
  )(
    [
      'a declined card',
      'permanent payment.declined task',
      answers(callStripe, 402, {
        error: {
          type: 'card_error',
          code: 'card_declined',
          decline_code: 'insufficient_funds',
          message: 'Your card was declined.',
        },
      }),
    ],
    [
      'a lock',
      'rate_limited http.429 quota | transient db.locked task | rate_limited throttled quota',
      answers(callStripe, 429, {
        error: {
          type: 'invalid_request_error',
          code: 'lock_timeout',
          message: 'This object cannot be accessed right now.',
        },
      }),
    ],
    [
      'the same key for another request',
      'permanent validation task | permanent http.4xx task',
      answers(callStripe, 400, {
        error: {
          type: 'idempotency_error',
          message: 'Keys for idempotent requests can only be used with the same parameters.',
        },
      }),
    ],
    [
      'a server error that is not to be repeated',
      'permanent http.5xx source ambiguous',
      answers(callStripe, 500, { error: { type: 'api_error', message: 'm' } }, { 'stripe-should-retry': 'false' }),
    ],
    [
      'a wrong key',
      'permanent auth.invalid source',
      answers(callStripe, 401, { error: { type: 'invalid_request_error', message: 'Invalid API Key provided' } }),
    ],
  ),
  each('@slack/web-api', callSlack, ALL)(
    [
      '429 to wait',
      'rate_limited http.429 quota after 12s',
      answers(callSlack, 429, { ok: false, error: 'ratelimited' }, { 'retry-after': '12' }),
    ],
    [
      'a channel that is not there, in a 200',
      'permanent not_found task',
      answers(callSlack, 200, { ok: false, error: 'channel_not_found' }),
    ],
    [
      'a token that was withdrawn, in a 200',
      'permanent auth.invalid source',
      answers(callSlack, 200, { ok: false, error: 'token_revoked' }),
    ],
    [
      'a fault of the service, in a 200',
      'transient api.unavailable source ambiguous',
      answers(callSlack, 200, { ok: false, error: 'internal_error' }),
    ],
    [
      'a limit told in a 200',
      'rate_limited throttled quota',
      answers(callSlack, 200, { ok: false, error: 'message_limit_exceeded' }),
    ],
  ),
  each('@slack/webhook', callWebhook, ALL)(
    // It does not keep the headers.
    ['429 to wait', 'rate_limited http.429 quota', answers(callWebhook, 429, 'rate_limited', { 'retry-after': '9' })],
    ['a hook that is gone', 'permanent http.404 task', answers(callWebhook, 410, 'channel_is_archived')],
    ['a body that it does not take', 'permanent http.4xx task', answers(callWebhook, 400, 'invalid_payload')],
  ),
  each('@octokit/core', callOctokit, ALL)(
    [
      'the primary limit',
      'rate_limited throttled quota after 60s',
      async (on) =>
        callOctokit(
          await on.answering(
            403,
            { message: 'API rate limit exceeded for user ID 1.' },
            { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(Math.round(Date.now() / 1_000) + 60) },
          ),
        ),
    ],
    [
      'the secondary limit',
      'rate_limited throttled quota after 60s',
      answers(callOctokit, 403, {
        message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
      }),
    ],
    [
      'a right that is missing',
      'permanent auth.forbidden task',
      answers(
        callOctokit,
        403,
        { message: 'Resource not accessible by integration' },
        { 'x-ratelimit-remaining': '4999' },
      ),
    ],
    ['bad credentials', 'permanent auth.invalid source', answers(callOctokit, 401, { message: 'Bad credentials' })],
    [
      'a title that it does not take',
      'permanent http.4xx task',
      answers(callOctokit, 422, {
        message: 'Validation Failed',
        errors: [{ resource: 'Issue', code: 'missing_field', field: 'title' }],
      }),
    ],
  ),
  each('@notionhq/client', callNotion, ALL)(
    [
      '429 to wait',
      'rate_limited http.429 quota after 5s',
      answers(
        callNotion,
        429,
        { object: 'error', status: 429, code: 'rate_limited', message: 'm' },
        { 'retry-after': '5' },
      ),
    ],
    [
      'a page that is not shared with us',
      'permanent http.404 task',
      answers(callNotion, 404, { object: 'error', status: 404, code: 'object_not_found', message: 'm' }),
    ],
    [
      'a conflict while saving',
      'transient http.409 task',
      answers(callNotion, 409, {
        object: 'error',
        status: 409,
        code: 'conflict_error',
        message: 'Conflict occurred while saving. Please try again.',
      }),
    ],
    [
      'a filter that is wrong',
      'permanent validation task | permanent http.4xx task',
      answers(callNotion, 400, { object: 'error', status: 400, code: 'validation_error', message: 'm' }),
    ],
  ),
  each('grammy', callGrammy, WAY)(
    [
      '429 with the wait in the body',
      'rate_limited http.429 quota after 17s',
      answers(callGrammy, 429, {
        ok: false,
        error_code: 429,
        description: 'Too Many Requests: retry after 17',
        parameters: { retry_after: 17 },
      }),
    ],
    [
      'a user who blocked the bot',
      'permanent auth.forbidden task',
      answers(callGrammy, 403, { ok: false, error_code: 403, description: 'Forbidden: bot was blocked by the user' }),
    ],
    [
      'a chat that is not there',
      'permanent not_found task',
      answers(callGrammy, 400, { ok: false, error_code: 400, description: 'Bad Request: chat not found' }),
    ],
    [
      'a gateway that fails',
      'transient http.5xx source ambiguous',
      answers(callGrammy, 502, { ok: false, error_code: 502, description: 'Bad Gateway' }),
    ],
  ),
  each('telegraf', callTelegraf, WAY, { 'no answer comes in time': null })(
    [
      '429 with the wait in the body',
      'rate_limited http.429 quota after 17s',
      answers(callTelegraf, 429, {
        ok: false,
        error_code: 429,
        description: 'Too Many Requests: retry after 17',
        parameters: { retry_after: 17 },
      }),
    ],
    [
      'a message that is too long',
      'permanent too_large task',
      answers(callTelegraf, 400, { ok: false, error_code: 400, description: 'Bad Request: message is too long' }),
    ],
    [
      'a wrong token',
      'permanent auth.invalid source',
      answers(callTelegraf, 401, { ok: false, error_code: 401, description: 'Unauthorized' }),
    ],
  ),
  // Its own time limit is the same AbortError as a stop from outside.
  each('@discordjs/rest', callDiscord, ALL, { 'no answer comes in time': 'transient abort worker ambiguous' })(
    [
      '429 with the wait in the body',
      'rate_limited http.429 quota after 2.5s',
      answers(
        callDiscord,
        429,
        { message: 'You are being rate limited.', retry_after: 2.5, global: false },
        { 'retry-after': '3', 'x-ratelimit-scope': 'user' },
      ),
    ],
    [
      'a right that is missing',
      'permanent auth.forbidden task',
      answers(callDiscord, 403, { message: 'Missing Permissions', code: 50013 }),
    ],
    [
      'a body that it does not take',
      'permanent http.4xx task | permanent validation task',
      answers(callDiscord, 400, {
        message: 'Invalid Form Body',
        code: 50035,
        errors: { content: { _errors: [{ code: 'BASE_TYPE_REQUIRED', message: 'm' }] } },
      }),
    ],
  ),
  // It drops the cause of "fetch failed", so that nobody knows whether anything was sent.
  each('postmark', callPostmark, WAY, {
    'nobody listens': 'transient net.failed source ambiguous',
    'the connection is reset after the request was sent': 'transient net.failed source ambiguous',
  })(
    [
      'a recipient that is switched off',
      'permanent smtp.recipient task | permanent http.4xx task',
      answers(callPostmark, 422, {
        ErrorCode: 406,
        Message: 'You tried to send to a recipient that has been marked as inactive.',
      }),
    ],
    [
      'a wrong token',
      'permanent auth.invalid source',
      answers(callPostmark, 401, { ErrorCode: 10, Message: 'Bad or missing API token' }),
    ],
    [
      'too many requests',
      'rate_limited http.429 quota',
      answers(callPostmark, 429, { ErrorCode: 429, Message: 'Rate limit exceeded' }),
    ],
    ['an outage', 'transient http.5xx source', answers(callPostmark, 503, { ErrorCode: 100, Message: 'Maintenance' })],
    [
      'a server error',
      'transient http.5xx source ambiguous',
      answers(callPostmark, 500, { ErrorCode: 0, Message: 'm' }),
    ],
  ),
  each('@elastic/elasticsearch', callElastic, WAY)(
    [
      'a queue that is full',
      'rate_limited http.429 quota',
      answers(
        callElastic,
        429,
        { error: { type: 'es_rejected_execution_exception', reason: 'rejected' }, status: 429 },
        { 'x-elastic-product': 'Elasticsearch' },
      ),
    ],
    [
      'a version conflict',
      'permanent conflict task',
      answers(
        callElastic,
        409,
        { error: { type: 'version_conflict_engine_exception', reason: 'r' }, status: 409 },
        { 'x-elastic-product': 'Elasticsearch' },
      ),
    ],
    [
      'an index that is not there',
      'permanent http.404 task',
      answers(
        callElastic,
        404,
        { error: { type: 'index_not_found_exception', reason: 'r' }, status: 404 },
        { 'x-elastic-product': 'Elasticsearch' },
      ),
    ],
    [
      'no shards',
      'transient http.5xx source',
      answers(
        callElastic,
        503,
        { error: { type: 'no_shard_available_action_exception', reason: 'r' }, status: 503 },
        { 'x-elastic-product': 'Elasticsearch' },
      ),
    ],
  ),
  // It parses the page before it looks at the status.
  each('meilisearch', callMeili, ALL, { '503 from a proxy, with a page': 'unknown data.parse source ambiguous' })(
    [
      'a wrong key',
      'permanent auth.forbidden task | permanent auth.invalid source',
      answers(callMeili, 403, {
        message: 'The provided API key is invalid.',
        code: 'invalid_api_key',
        type: 'auth',
        link: '',
      }),
    ],
    [
      'a filter that is wrong',
      'permanent http.4xx task | permanent validation task',
      answers(callMeili, 400, { message: 'm', code: 'invalid_search_filter', type: 'invalid_request', link: '' }),
    ],
  ),
  each('@clickhouse/client', callClickhouse, WAY)(
    [
      'a table that is not there',
      'permanent db.schema task',
      answers(
        callClickhouse,
        404,
        "Code: 60. DB::Exception: Unknown table expression identifier 'x'. (UNKNOWN_TABLE) (version 24.8)",
        { 'x-clickhouse-exception-code': '60' },
      ),
    ],
    [
      'too many queries at once',
      'transient db.resources source | transient db.unavailable source | rate_limited throttled quota',
      answers(
        callClickhouse,
        500,
        'Code: 202. DB::Exception: Too many simultaneous queries. Maximum: 100. (TOO_MANY_SIMULTANEOUS_QUERIES) (version 24.8)',
        { 'x-clickhouse-exception-code': '202' },
      ),
    ],
    [
      'a wrong password',
      'permanent auth.invalid source',
      answers(
        callClickhouse,
        403,
        'Code: 516. DB::Exception: default: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED) (version 24.8)',
        { 'x-clickhouse-exception-code': '516' },
      ),
    ],
    [
      'a query that took too long',
      'transient db.timeout source ambiguous',
      answers(
        callClickhouse,
        408,
        'Code: 159. DB::Exception: Timeout exceeded: elapsed 5 seconds, maximum: 5. (TIMEOUT_EXCEEDED) (version 24.8)',
        { 'x-clickhouse-exception-code': '159' },
      ),
    ],
    [
      'out of memory',
      'transient db.resources source',
      answers(
        callClickhouse,
        500,
        'Code: 241. DB::Exception: Memory limit (total) exceeded. (MEMORY_LIMIT_EXCEEDED) (version 24.8)',
        { 'x-clickhouse-exception-code': '241' },
      ),
    ],
    [
      'a syntax error',
      'permanent db.schema task',
      answers(
        callClickhouse,
        400,
        'Code: 62. DB::Exception: Syntax error: failed at position 1. (SYNTAX_ERROR) (version 24.8)',
        { 'x-clickhouse-exception-code': '62' },
      ),
    ],
  ),
  each('minio', callMinio, {
    'nobody listens': WAY['nobody listens'],
    'the connection is reset after the request was sent': WAY['the connection is reset after the request was sent'],
  })(
    ['an object that is not there', 'permanent http.404 task | permanent not_found task', answers(callMinio, 404)],
    ['a denied access', 'permanent auth.forbidden task', answers(callMinio, 403)],
    ['an outage', 'transient http.5xx source', answers(callMinio, 503)],
  ),
  library(
    '@aws-sdk/client-kinesis',
    ['nobody listens', 'transient net.refused source', async (on) => callKinesis(url(await on.closedPort()))],
    ['the peer speaks HTTP/1', 'unknown net.protocol source', async (on) => callKinesis(await on.answering(400))],
    [
      'the stream is refused',
      'transient net.reset source',
      async (on) => callKinesis(await on.http2((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM))),
    ],
    [
      'the connection is reset after the request was sent',
      'transient net.reset source ambiguous',
      async (on) =>
        callKinesis(await on.http2((stream) => stream.session.socket.resetAndDestroy?.() ?? stream.session.destroy())),
    ],
    ...[
      ['throttling, told with 400', 'rate_limited throttled quota', 400, 'ProvisionedThroughputExceededException'],
      [
        'a stream that is not there',
        'permanent not_found task | permanent http.404 task',
        400,
        'ResourceNotFoundException',
      ],
      ['a missing right', 'permanent auth.forbidden task', 400, 'AccessDeniedException'],
      ['a token that ran out', 'transient auth.expired source', 400, 'ExpiredTokenException'],
      ['a failure inside', 'transient http.5xx source ambiguous', 500, 'InternalFailure'],
    ].map(([what, expected, status, name]) => [
      what,
      expected,
      async (on) =>
        callKinesis(
          await on.http2((stream) => {
            stream.respond({ ':status': status, 'content-type': 'application/x-amz-json-1.1' });
            stream.end(JSON.stringify({ __type: name, message: 'm' }));
          }),
        ),
    ]),
  ),
  each(
    '@aws-sdk/client-sns',
    (at, timeout) =>
      new SNSClient(awsConfig(at, timeout)).send(
        new PublishCommand({ TopicArn: 'arn:aws:sns:eu-west-1:1:t', Message: 'm' }),
      ),
    WAY,
  )(
    ...[
      ['throttling', 'rate_limited throttled quota', 400, sns('Throttling')],
      ['a topic that is not there', 'permanent http.404 task | permanent not_found task', 404, sns('NotFound')],
      ['a wrong signature', 'permanent auth.invalid source', 403, sns('SignatureDoesNotMatch')],
      ['an outage', 'transient http.5xx source', 503, sns('ServiceUnavailable')],
      ['a wrong parameter', 'permanent validation task', 400, sns('InvalidParameter')],
    ].map(([what, expected, status, body]) => [
      what,
      expected,
      async (on) =>
        new SNSClient(awsConfig(await on.answering(status, body, xml))).send(
          new PublishCommand({ TopicArn: 'arn:aws:sns:eu-west-1:1:t', Message: 'm' }),
        ),
    ]),
  ),
  each(
    '@aws-sdk/client-s3',
    (at, timeout) =>
      new S3Client({ ...awsConfig(at, timeout), forcePathStyle: true }).send(
        new PutObjectCommand({ Bucket: 'b', Key: 'k', Body: 'x' }),
      ),
    WAY,
  )(
    ...[
      ['told to slow down', 'rate_limited throttled quota', 503, 'SlowDown'],
      ['a key that is not there', 'permanent http.404 task | permanent not_found task', 404, 'NoSuchKey'],
      ['a clock that is wrong', 'transient auth.clock_skew worker', 403, 'RequestTimeTooSkewed'],
      [
        'a body that came too slowly',
        'transient net.timeout source ambiguous | transient timeout task ambiguous | transient http.408 source ambiguous',
        400,
        'RequestTimeout',
      ],
      [
        'an archive that must be restored first',
        'permanent auth.forbidden task | permanent conflict task | permanent http.4xx task',
        403,
        'InvalidObjectState',
      ],
      ['a failure inside', 'transient http.5xx source ambiguous', 500, 'InternalError'],
    ].map(([what, expected, status, code]) => [
      what,
      expected,
      async (on) =>
        new S3Client({ ...awsConfig(await on.answering(status, s3(code), xml)), forcePathStyle: true }).send(
          new GetObjectCommand({ Bucket: 'b', Key: 'k' }),
        ),
    ]),
  ),
  each('@azure/data-tables', callTables, {
    ...WAY,
    'no answer comes in time': [
      'transient abort worker ambiguous | transient timeout task ambiguous',
      WAY['no answer comes in time'][1],
    ],
  })(
    ['an entity that exists', 'permanent conflict task', answers(callTables, 409, odata('EntityAlreadyExists'))],
    [
      'a busy server',
      'rate_limited throttled quota after 3s',
      answers(callTables, 503, odata('ServerBusy'), { 'retry-after': '3' }),
    ],
    [
      'a condition that does not hold',
      'permanent conflict task',
      answers(callTables, 412, odata('UpdateConditionNotSatisfied')),
    ],
    ['a wrong key', 'permanent auth.invalid source', answers(callTables, 403, odata('AuthenticationFailed'))],
    [
      'a time-out of the service',
      'transient http.5xx source ambiguous | transient timeout task ambiguous',
      answers(callTables, 500, odata('OperationTimedOut')),
    ],
    [
      'a table that is not there',
      'permanent http.404 task | permanent not_found task',
      answers(callTables, 404, odata('TableNotFound')),
    ],
    [
      'a table that is being deleted',
      'transient http.409 task | transient db.locked task',
      answers(callTables, 409, odata('TableBeingDeleted')),
    ],
  ),
  // Its time limit is the same AbortError as a stop from outside.
  each('gaxios', callGaxios, ALL, { 'no answer comes in time': 'transient abort worker ambiguous' })([
    '429 to wait',
    'rate_limited http.429 quota after 4s',
    answers(callGaxios, 429, { error: 'x' }, { 'retry-after': '4' }),
  ]),
  each('@googleapis/drive', callDrive, ALL, { 'no answer comes in time': 'transient abort worker ambiguous' })(
    [
      'a rate limit, told with 403',
      'rate_limited throttled quota',
      answers(callDrive, 403, googleError(403, 'userRateLimitExceeded')),
    ],
    [
      'a full store',
      'permanent quota.exhausted quota',
      answers(callDrive, 403, googleError(403, 'storageQuotaExceeded')),
    ],
    [
      'a missing right',
      'permanent auth.forbidden task',
      answers(callDrive, 403, googleError(403, 'insufficientFilePermissions')),
    ],
    [
      'a failure behind',
      'transient http.5xx source ambiguous',
      answers(callDrive, 500, googleError(500, 'backendError')),
    ],
    [
      'a limit of the day',
      'rate_limited quota.exhausted quota',
      answers(callDrive, 403, googleError(403, 'dailyLimitExceeded')),
    ],
  ),
  library(
    'google-auth-library',
    [
      'a consent that was withdrawn',
      'permanent auth.invalid source',
      answers(callToken, 400, { error: 'invalid_grant', error_description: 'Token has been expired or revoked.' }),
    ],
    [
      'a client that is not known',
      'permanent auth.invalid source',
      answers(callToken, 401, { error: 'invalid_client' }),
    ],
    ['an outage', 'transient http.5xx source', answers(callToken, 503, { error: 'temporarily_unavailable' })],
    ['nobody listens', 'transient net.refused source', async (on) => callToken(url(await on.closedPort()))],
  ),
  each('graphql-request', callGraphql, ALL)(
    ['a wrong input, in a 200', 'permanent validation task', answers(callGraphql, 200, graph('bad', 'BAD_USER_INPUT'))],
    [
      'an error of the server, in a 200',
      'transient api.unavailable source ambiguous',
      answers(callGraphql, 200, graph('oops', 'INTERNAL_SERVER_ERROR')),
    ],
    [
      'a code that is not known, in a 200',
      'unknown graphql.error task',
      answers(callGraphql, 200, graph('no', 'TEA_IS_COLD')),
    ],
    [
      'a login that is missing, in a 200',
      'permanent auth.invalid source',
      answers(callGraphql, 200, graph('no', 'UNAUTHENTICATED')),
    ],
  ),
  // It has a signal of its own, and no time limit.
  each('@urql/core', callUrql, ALL, { 'no answer comes in time': null })(
    ['a wrong input, in a 200', 'permanent validation task', answers(callUrql, 200, graph('bad', 'BAD_USER_INPUT'))],
    ['a missing right, in a 200', 'permanent auth.forbidden task', answers(callUrql, 200, graph('no', 'FORBIDDEN'))],
    ['a limit, in a 200', 'rate_limited throttled quota', answers(callUrql, 200, graph('slow', 'RATE_LIMITED'))],
    [
      'a code that is not known, in a 200',
      'unknown graphql.error task',
      answers(callUrql, 200, graph('no', 'TEA_IS_COLD')),
    ],
  ),
];
