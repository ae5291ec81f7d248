import { wordsIn } from './body.ts';
import type { ErrorFields } from './error-fields.ts';
import { byGrpcMessage } from './families/grpc.ts';
import type { HeaderBag } from './headers.ts';
import { type Answer, type Finding, kindOf, type Meaning, meaningOf } from './meaning.ts';
import { isLimitUsedUp } from './quotas.ts';
import { byServiceWords } from './service-words.ts';
import type { Status } from './status.ts';
import { byStatus } from './status-answers.ts';

/** What an HTTP status means, together with headers about retries and messages about limits. */
export function byHttp(fields: ErrorFields): Finding | undefined {
  const { status } = fields;
  if (status === undefined) return undefined;
  const { number, field } = status;
  const { headers } = fields;
  const plain = meaningOf(unlessSaid(fields, status, headers) ?? byStatus(number));
  // A 5xx that the application made itself only says that something failed. The cause says what.
  const strength = number < 400 || (number >= 500 && !status.answered) ? 'hint' : 'status';
  return { meaning: withRetryHeaders(plain, headers), field, strength };
}

/** Statuses of refusals that some services also use for rate limits. */
export const LIMIT_STATUSES: readonly number[] = [400, 403, 405, 409, 418, 422, 500, 503];

/** The meaning of the response if its headers, body or message change the meaning of its status. */
function unlessSaid(fields: ErrorFields, { number }: Status, headers: HeaderBag | undefined): Answer | undefined {
  const said = byServiceWords(number, () => fields.words);
  if (said !== undefined) return said;
  if (number === 401 && isExpired(fields, headers)) return 'auth.expired transient';
  if (MAY_BE_USED_UP.includes(number) && USED_UP.test(fields.words)) return USED_UP_UNLESS_WAIT;
  if (LIMIT_STATUSES.includes(number) && isLimited(fields, number, headers)) return 'throttled';
  // OpenAI, Anthropic and Stripe answer 409 to concurrent requests, which may be retried.
  if (number === 409 && (fields.get('requestID') !== undefined || fields.get('rawType') !== undefined))
    return 'http.409 transient';
  // PlanetScale answers 400 to everything. The words of the server tell.
  if (number === 400 && fields.words.includes('rpc error: code = ')) return byGrpcMessage(fields.words);
  if (number === 503 && LOST_SERVER.test(fields.words)) return { reason: 'http.5xx', ambiguous: true };
  if (number === 413 && headers?.get('retry-after') !== undefined) return 'too_large transient';
  return undefined;
}

/** Whether the token has expired (RFC 6750). The next attempt may fetch a new one. */
function isExpired(fields: ErrorFields, headers: HeaderBag | undefined): boolean {
  return (
    /\binvalid_token\b.*\bexpired\b/i.test(headers?.get('www-authenticate') ?? '') ||
    /^(?:the |your )?(?:access |auth(?:entication|orization)? |bearer |id |session )?(?:token|session|jwt) (?:has |is )?expired\b/im.test(
      wordsIn(fields.body),
    )
  );
}

/** Envoy answers 503 also if it lost the server that had the request. */
const LOST_SERVER =
  /\breset before headers\b(?!.*\breset reason: (?:(?:remote|local) )?(?:connection failure|overflow))/i;

const MAY_BE_USED_UP = [400, 401, 403, 429];
/** Messages of paid services that have no code for used-up credit. */
const USED_UP =
  /\bcredit balance is too low\b|\bexceeded your current quota, please check your plan\b|\bbilling (?:hard )?limit\b|\bspending limit\b|\b(?:out of|insufficient|no|used all(?: available)?|maximum) credits\b/i;
/** If the response also names a wait, the limit refills. */
const USED_UP_UNLESS_WAIT: Meaning = { reason: 'quota.exhausted', ifWait: 'throttled' };

const LIMIT_WORDS =
  /\brate.?limit(?:s|ed|ing)?\b|\brate ?limit ?exceeded|throttl|too ?many ?(?:requests|calls|queries)|\brate exceeded\b|\btoo frequent(?:ly)?\b|\bquota exceeded\b.{0,160}\bper (?:second|minute|hour|day)\b|throughput ?exceeded|\b(?:request|call|usage|frequency|api|minute|hour|hourly|dai|daily|monthly) ?(?:limit|quota)s? ?(?:(?:was|were|is|has been|have been) )?(?:exceeded|reached|hit)\b|\b(?:exceeded|reached|over) (?:the|your|its|a) (?:\w+ ){0,3}(?:request|call|usage|frequency|api|daily|hourly|monthly) (?:limit|quota)\b|\babuse detection\b|\bsecondary rate\b/i;

/** Whether a text says that a rate limit was exceeded. */
export function speaksOfLimit(text: string): boolean {
  return LIMIT_WORDS.test(text);
}

function isLimited(fields: ErrorFields, status: number, headers: HeaderBag | undefined): boolean {
  // A server that fails does so whatever is left of a limit.
  if (status !== 500 && headers !== undefined && isLimitUsedUp(headers)) return true;
  // With 503 or a conflict, Retry-After does not mean a rate limit.
  if ((status === 400 || status === 403) && headers?.get('retry-after') !== undefined) return true;
  const code = typeof fields.code === 'string' ? fields.code.slice(0, 128) : '';
  return speaksOfLimit(`${fields.name}\n${code}\n${fields.words}`);
}

/** Applies the headers in which Stripe, OpenAI and Anthropic say whether a retry makes sense. */
function withRetryHeaders(meaning: Meaning, headers: HeaderBag | undefined): Meaning {
  if (headers === undefined) return meaning;
  const retry = headers.get('x-should-retry') ?? headers.get('stripe-should-retry');
  if (retry === 'false' && kindOf(meaning) === 'transient') return { ...meaning, kind: 'permanent' };
  if (retry === 'true' && kindOf(meaning) !== 'rate_limited') return { ...meaning, kind: 'transient' };
  return meaning;
}

/** Whether an error code in the body outranks the status of the response. */
export function mayOutrank(meaning: Meaning, status: number): boolean {
  const kind = kindOf(meaning);
  // A server that failed may be wrong about the request, but it knows that a quota is used up.
  if (status >= 500) return kind !== 'permanent' || meaning.reason === 'quota.exhausted';
  if (status === 429)
    return meaning.reason === 'quota.exhausted' || (kind === 'rate_limited' && meaning.reason !== 'throttled');
  return true;
}
