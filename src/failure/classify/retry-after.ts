import type { Milliseconds } from '../../duration.ts';
import type { FailureKind } from '../outcome.ts';
import type { HeaderBag } from './headers.ts';
import { read, readNumber, readText } from './inspect.ts';
import { quotasIn, serverNow } from './quotas.ts';
import { retryInfo } from './retry-info.ts';
import { LONGEST_READ, type Seen } from './seen.ts';
import { bounded, httpDate, isoTime, plainNumber, plausible, saidSpan, spokenSpan } from './times.ts';

/** What was recognised, as far as it decides where a wait is looked for. */
interface Recognised {
  readonly kind: FailureKind;
  readonly reason: string;
}

/**
 * How long the other side asks to wait, from wherever it says so, the most exact place first: `retry-after-ms`,
 * `Retry-After`, the fields of a library, the body, gRPC's push-back, the reset headers of a limit that is used up (only for
 * a rate limit), and words in a message that is understood. What is garbage counts as absent, and the next place is asked.
 */
export function waitAskedFor(seen: Seen, now: number, { kind, reason }: Recognised): Milliseconds | undefined {
  const { sort } = seen;
  if (sort === 'system') return undefined;
  if (sort !== 'answered' && kind !== 'rate_limited' && !MAY_HAVE_TRAILERS.test(reason)) {
    return inFields(seen, now) ?? (SPEAKS_OF_WAITING.test(reason) ? inWords(seen) : undefined);
  }
  const { headers } = seen;
  const wait = (headers === undefined ? undefined : inHeaders(headers, now)) ?? inFields(seen, now) ?? inBody(seen);
  if (wait !== undefined) return wait;
  const pushed = headers === undefined ? undefined : pushBack(headers);
  if (pushed !== undefined) return pushed;
  if (kind === 'rate_limited')
    return (headers === undefined ? undefined : untilReset(headers, now)) ?? inWords(seen) ?? usual(seen, reason);
  return SPEAKS_OF_WAITING.test(reason) ? inWords(seen) : undefined;
}

/** Reasons that come without a status and may yet have headers: calls of gRPC. */
const MAY_HAVE_TRAILERS = /^grpc\.|^unknown$/;

/** Reasons other than rate limits whose messages name a wait: a mail server that greylists. */
const SPEAKS_OF_WAITING = /^(?:smtp\.4xx|ftp\.4xx|db\.unavailable|imap\.unavailable)$/;

function inHeaders(headers: HeaderBag, now: number): Milliseconds | undefined {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const ms = plainNumber(headers.get(name) ?? '');
    if (ms !== undefined) return bounded(ms);
  }
  const value = headers.get('retry-after') ?? headers.get('x-retry-after');
  if (value === undefined) return undefined;
  const seconds = plainNumber(value);
  if (seconds !== undefined) return bounded(seconds * 1_000);
  const at = httpDate(value, now);
  return at === undefined ? undefined : bounded(Math.max(0, at - serverNow(headers, now)));
}

/** Fields of libraries, by the unit that they are known to have. */
const MILLISECONDS = ['retryAfterMs', 'retryAfterInMs', 'msBeforeNext', 'throttleReset'] as const;
const SECONDS = ['retryAfter', 'retry_after', 'retryAfterSeconds'] as const;

function inFields(seen: Seen, now: number): Milliseconds | undefined {
  for (const name of MILLISECONDS) {
    const ms = seen.number(name);
    if (ms !== undefined && ms >= 0) return bounded(ms);
  }
  for (const name of SECONDS) {
    const wait = inSeconds(seen.get(name), now);
    // @discordjs/rest counts in milliseconds, under the name that others use for seconds.
    if (wait !== undefined) return bounded(seen.get('timeToReset') === undefined ? wait : wait / 1_000);
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

/** Where bodies keep it: Discord and Dropbox in seconds, Matrix in milliseconds, Telegram among its parameters. */
function inBody(seen: Seen): Milliseconds | undefined {
  const { body } = seen;
  for (const holder of [
    body,
    read(body, 'error'),
    read(body, 'parameters'),
    seen.get('parameters'),
    read(seen.response, 'parameters'),
  ]) {
    if (holder === undefined || holder === null) continue;
    const ms = readNumber(holder, 'retry_after_ms') ?? readNumber(holder, 'retryAfterMs');
    if (ms !== undefined && ms >= 0) return bounded(ms);
    const seconds =
      readNumber(holder, 'retry_after') ?? readNumber(holder, 'retryAfter') ?? readNumber(holder, 'retryAfterSeconds');
    if (seconds !== undefined && seconds >= 0) return bounded(seconds * 1_000);
  }
  return retryInfo(seen) ?? untilAffordable(body);
}

/** Shopify's bucket: how long until it holds what the query costs. */
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

/** gRPC's push-back; a negative one means "do not retry", which is no hint of a wait. */
function pushBack(headers: HeaderBag): Milliseconds | undefined {
  const ms = plainNumber(headers.get('grpc-retry-pushback-ms') ?? '');
  return ms === undefined ? undefined : bounded(ms);
}

/** Until a limit is there again: of several the one that is used up; of several such, the longest. */
function untilReset(headers: HeaderBag, now: number): Milliseconds | undefined {
  const quotas = quotasIn(headers, now);
  const usedUp = quotas.filter(({ remaining }) => remaining === 0);
  const untold = quotas.filter(({ remaining }) => remaining === undefined);
  const waits = (usedUp.length > 0 ? usedUp : untold).map(({ resetsIn }) => resetsIn);
  return waits.length === 0 ? undefined : plausible(Math.max(...waits));
}

/** What is said in words, where it is understood that they speak of waiting. */
function inWords(seen: Seen): Milliseconds | undefined {
  // Cosmos DB behind MongoDB's protocol.
  const ms = /\bRetryAfterMs=(\d{1,9})\b/.exec(seen.message)?.[1];
  if (ms !== undefined) return bounded(Number(ms));
  const bodies = [
    seen.message,
    seen.text('response'),
    readText(seen.body, 'message'),
    readText(read(seen.body, 'error'), 'message'),
  ];
  for (const text of bodies) {
    const span = text === undefined ? undefined : saidSpan(text.slice(0, LONGEST_READ));
    if (span !== undefined) return bounded(span);
  }
  return undefined;
}

/** GitHub asks to wait a minute where its secondary limit names no time. */
function usual(seen: Seen, reason: string): Milliseconds | undefined {
  if (reason !== 'throttled') return undefined;
  const said = `${seen.message} ${readText(seen.body, 'message')?.slice(0, 512) ?? ''}`;
  return /\bsecondary rate limit\b|\babuse detection\b/i.test(said) ? 60_000 : undefined;
}
