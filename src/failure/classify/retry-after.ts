import type { Milliseconds } from '../../duration.ts';
import type { FailureKind } from '../outcome.ts';
import type { ErrorFields } from './error-fields.ts';
import { bagOf, type HeaderBag } from './headers.ts';
import { read, readNumber, readText } from './inspect.ts';
import { quotasIn, serverNow } from './quotas.ts';
import { retryInfo } from './retry-info.ts';
import { askedInWords, saidInWords } from './spoken-wait.ts';
import { bounded, httpDate, isoTime, plainNumber, plausible, resetIn, spokenSpan } from './times.ts';

/** The kind and reason of a failure. They decide where a wait is looked for. */
interface Recognised {
  readonly kind: FailureKind;
  readonly reason: string;
}

/**
 * How long the other side asks to wait. These places are read, the most exact first: `retry-after-ms`, `Retry-After`, the fields
 * of a library, the body, gRPC's push-back, the reset headers of a limit that is used up (only for a rate limit), and words in the
 * message of a recognised error. An invalid value counts as absent.
 */
export function waitAskedFor(fields: ErrorFields, now: number, { kind, reason }: Recognised): Milliseconds | undefined {
  const { sort } = fields;
  if (sort === 'system') return undefined;
  if (sort !== 'answered' && kind !== 'rate_limited' && !MAY_HAVE_TRAILERS.test(reason)) {
    return inFields(fields, now) ?? (SPEAKS_OF_WAITING.test(reason) ? inWords(fields, now, false) : undefined);
  }
  const { headers } = fields;
  const wait =
    (headers === undefined ? undefined : inHeaders(headers, now)) ?? inFields(fields, now) ?? inBody(fields, now);
  if (wait !== undefined) return wait;
  const pushed = headers === undefined ? undefined : pushBack(headers);
  if (pushed !== undefined) return pushed;
  if (kind === 'rate_limited')
    return (
      (headers === undefined ? undefined : untilReset(headers, now)) ??
      inQuotedHeaders(fields, now) ??
      inWords(fields, now, true) ??
      usual(fields, reason)
    );
  return SPEAKS_OF_WAITING.test(reason) ? inWords(fields, now, false) : undefined;
}

/** Reasons of gRPC calls, which have no status but may have headers. */
const MAY_HAVE_TRAILERS = /^grpc\.|^unknown$/;

/** Reasons other than rate limits whose messages may name a wait: an unavailable server, a mail server that greylists. */
const SPEAKS_OF_WAITING = /^(?:smtp\.4xx|ftp\.4xx|http\.(?:5xx|408)|(?:db|api|imap|grpc)\.unavailable)$/;

const MS_HEADERS = /(?:^|-)retry-after-(?:ms|milliseconds)$/;
const SECONDS_HEADERS = /(?:^|-)(?:retry-after(?:-sec(?:onds)?)?|towait-sec)$/;

function inHeaders(headers: HeaderBag, now: number): Milliseconds | undefined {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms', ...headers.names(MS_HEADERS)]) {
    const ms = plainNumber(headers.get(name) ?? '');
    if (ms !== undefined) return bounded(ms);
  }
  for (const name of ['retry-after', ...headers.names(SECONDS_HEADERS)]) {
    const value = headers.get(name);
    // A header that was sent twice arrives as a list.
    const wait = value && resetIn(value.replace(/^(\d+)(?:, ?\d+)+$/, '$1'), serverNow(headers, now));
    if (typeof wait === 'number') return bounded(wait);
  }
  const minutes = TO_REGAIN_ACCESS.exec(headers.get('x-business-use-case-usage') ?? '')?.[1];
  return minutes === undefined ? undefined : bounded(Number(minutes) * 60_000);
}

/** Meta's header, in minutes; 0 if the limit is not reached. */
const TO_REGAIN_ACCESS = /"estimated_time_to_regain_access": ?([1-9]\d{0,5})\b/;

/** Fields of libraries whose unit is known. */
const MILLISECONDS = ['retryAfterMs', 'retryAfterInMs', 'msBeforeNext', 'throttleReset'] as const;
const SECONDS = ['retryAfter', 'retry_after', 'retryAfterSeconds'] as const;

function inFields(fields: ErrorFields, now: number): Milliseconds | undefined {
  for (const name of MILLISECONDS) {
    const ms = fields.number(name);
    if (ms !== undefined && ms >= 0) return bounded(ms);
  }
  for (const name of SECONDS) {
    const wait = inSeconds(fields.get(name), now);
    // @discordjs/rest gives milliseconds under a name that others use for seconds.
    if (wait !== undefined) return bounded(fields.get('timeToReset') === undefined ? wait : wait / 1_000);
  }
  return undefined;
}

/** Seconds as a number or text, a Date, an ISO time, an HTTP-date or a span, in milliseconds. */
function inSeconds(value: unknown, now: number): number | undefined {
  if (typeof value === 'number') return value >= 0 ? value * 1_000 : undefined;
  if (value instanceof Date) return Math.max(0, value.getTime() - now);
  if (typeof value !== 'string' || value.length > 64) return undefined;
  const seconds = plainNumber(value);
  if (seconds !== undefined) return seconds * 1_000;
  const at = isoTime(value) ?? httpDate(value, now);
  return at === undefined ? spokenSpan(value) : Math.max(0, at - now);
}

/** The wait in a body. Matrix gives milliseconds, most others seconds, and some a time. */
const BODY_MILLISECONDS = ['retry_after_ms', 'retryAfterMs'] as const;
const BODY_SECONDS = [
  'retry_after',
  'retryAfter',
  'retryAfterSeconds',
  'retry_after_seconds',
  'retry_in_seconds',
  'resets_in_seconds',
  // Stack Exchange, and Hugging Face while a model is loading.
  'backoff',
  'estimated_time',
] as const;
const BODY_MOMENTS = [
  'resets_at',
  'reset_at',
  'retry_at',
  'resetsAt',
  'resetAt',
  'retryAt',
  'reset_time',
  'resetTime',
] as const;

function inBody(fields: ErrorFields, now: number): Milliseconds | undefined {
  const { body, response } = fields;
  const parameters = fields.get('parameters');
  if (body === undefined && response === undefined && parameters === undefined) return retryInfo(fields);
  const first = read(read(body, 'errors'), 0);
  for (const holder of [
    body,
    read(body, 'error'),
    read(body, 'parameters'),
    read(body, 'error_data'),
    read(body, 'details'),
    first,
    read(first, 'extensions'),
    parameters,
    read(response, 'parameters'),
  ]) {
    const wait = holder === undefined || holder === null ? undefined : inHolder(holder, now);
    if (wait !== undefined) return wait;
  }
  return retryInfo(fields) ?? untilAffordable(body);
}

function inHolder(holder: unknown, now: number): Milliseconds | undefined {
  for (const name of BODY_MILLISECONDS) {
    const ms = readNumber(holder, name);
    if (ms !== undefined && ms >= 0) return bounded(ms);
  }
  for (const name of BODY_SECONDS) {
    const wait = inSeconds(read(holder, name), now);
    if (wait !== undefined) return bounded(wait);
  }
  for (const name of BODY_MOMENTS) {
    const moment = read(holder, name);
    const wait = typeof moment === 'number' || typeof moment === 'string' ? resetIn(String(moment), now) : undefined;
    if (wait !== undefined) return plausible(wait);
  }
  return undefined;
}

/** Shopify: how long until there are enough points for the cost of the query. */
function untilAffordable(body: unknown): Milliseconds | undefined {
  const cost = read(read(body, 'extensions'), 'cost');
  const status = read(cost, 'throttleStatus');
  const [asked, left, rate] = [
    readNumber(cost, 'requestedQueryCost'),
    readNumber(status, 'currentlyAvailable'),
    readNumber(status, 'restoreRate'),
  ];
  if (asked === undefined || left === undefined || rate === undefined || rate <= 0) return undefined;
  return bounded((Math.max(0, asked - left) / rate) * 1_000);
}

/** gRPC's push-back. A negative one means "do not retry", so it is not a wait. */
function pushBack(headers: HeaderBag): Milliseconds | undefined {
  const ms = plainNumber(headers.get('grpc-retry-pushback-ms') ?? '');
  return ms === undefined ? undefined : bounded(ms);
}

/** How long until a limit resets. If there are several: the longest of those that are used up. */
function untilReset(headers: HeaderBag, now: number): Milliseconds | undefined {
  const quotas = quotasIn(headers, now);
  const usedUp = quotas.filter(({ remaining }) => remaining === 0);
  const unknown = quotas.filter(({ remaining }) => remaining === undefined);
  const waits = (usedUp.length > 0 ? usedUp : unknown).map(({ resetsIn }) => resetsIn);
  return waits.length === 0 ? undefined : plausible(Math.max(...waits));
}

/** OpenRouter quotes the headers of the provider in the body. */
function inQuotedHeaders({ body }: ErrorFields, now: number): Milliseconds | undefined {
  const quoted = bagOf(read(read(read(body, 'error') ?? body, 'metadata'), 'headers'));
  return quoted && untilReset(quoted, now);
}

/** The wait that a message names in words, for reasons whose messages may name one. */
function inWords(fields: ErrorFields, now: number, limited: boolean): Milliseconds | undefined {
  const { headers } = fields;
  const there = headers === undefined ? now : serverNow(headers, now);
  return limited ? saidInWords(fields.words, there) : askedInWords(fields.words, there);
}

/** GitHub's documentation asks to wait a minute if its secondary limit names no time. */
function usual(fields: ErrorFields, reason: string): Milliseconds | undefined {
  if (reason !== 'throttled') return undefined;
  const said = `${fields.message} ${readText(fields.body, 'message')?.slice(0, 512) ?? ''}`;
  return /\bsecondary rate limit\b|\babuse detection\b/i.test(said) ? 60_000 : undefined;
}
