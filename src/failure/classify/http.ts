import { wordsIn } from './body.ts';
import type { HeaderBag } from './headers.ts';
import { isLimitUsedUp } from './quotas.ts';
import type { Seen } from './seen.ts';
import { byServiceWords } from './service-words.ts';
import type { Status } from './status.ts';
import { byStatus } from './status-answers.ts';
import { type Answer, type Finding, kindOf, type Verdict, verdictOf } from './verdict.ts';

/** What an HTTP status means, with what stands beside it: headers that forbid or ask for a retry, words of limits. */
export function byHttp(seen: Seen): Finding | undefined {
  const { status } = seen;
  if (status === undefined) return undefined;
  const { number, field } = status;
  const { headers } = seen;
  const plain = verdictOf(unlessSaid(seen, status, headers) ?? byStatus(number));
  // An application's own 5xx only says that something below it failed; what that was is said by the cause.
  const strength = number < 400 || (number >= 500 && !status.answered) ? 'hint' : 'status';
  return { verdict: asTold(plain, headers), field, strength };
}

/** Refusals by which services also report limits. */
export const LIMIT_STATUSES: readonly number[] = [400, 403, 405, 409, 418, 422, 503];

/** What would mean something else, were it not for what the answer says besides. */
function unlessSaid(seen: Seen, { number }: Status, headers: HeaderBag | undefined): Answer | undefined {
  const said = byServiceWords(number, () => seen.words);
  if (said !== undefined) return said;
  if (number === 401 && isExpired(seen, headers)) return 'auth.expired transient';
  if (MAY_BE_USED_UP.includes(number) && USED_UP.test(seen.words)) return USED_UP_UNLESS_WAIT;
  if (LIMIT_STATUSES.includes(number) && isLimited(seen, number, headers)) return 'throttled';
  // OpenAI, Anthropic and Stripe mean by it: another request was faster, ask again.
  if (number === 409 && (seen.get('requestID') !== undefined || seen.get('rawType') !== undefined))
    return 'http.409 transient';
  if (number === 413 && headers?.get('retry-after') !== undefined) return 'too_large transient';
  return undefined;
}

/** RFC 6750: a token that ran out, so the next try may fetch a fresh one. */
function isExpired(seen: Seen, headers: HeaderBag | undefined): boolean {
  return (
    /\binvalid_token\b.*\bexpired\b/i.test(headers?.get('www-authenticate') ?? '') ||
    /^(?:the |your )?(?:access |auth(?:entication|orization)? |bearer |id |session )?(?:token|session|jwt) (?:has |is )?expired\b/im.test(
      wordsIn(seen.body),
    )
  );
}

const MAY_BE_USED_UP = [400, 401, 403, 429];
/** Services that bill say so in words where they have no code for it. */
const USED_UP =
  /\bcredit balance is too low\b|\bexceeded your current quota, please check your plan\b|\bbilling (?:hard )?limit\b|\bspending limit\b|\b(?:out of|insufficient|no|used all(?: available)?|maximum) credits\b/i;
/** Where the service names a wait in the same breath, its limit is one that refills. */
const USED_UP_UNLESS_WAIT: Verdict = { reason: 'quota.exhausted', ifWait: 'throttled' };

const LIMIT_WORDS =
  /\brate.?limit(?:s|ed|ing)?\b|\brate ?limit ?exceeded|throttl|too many (?:requests|calls|queries)|throughput ?exceeded|\b(?:request|call|usage|frequency|api|minute|hour|hourly|dai|daily|monthly) ?(?:limit|quota)s? ?(?:(?:was|were|is|has been|have been) )?(?:exceeded|reached|hit)\b|\b(?:exceeded|reached|over) (?:the|your|its|a) (?:\w+ ){0,3}(?:request|call|usage|frequency|api|daily|hourly|monthly) (?:limit|quota)\b|\babuse detection\b|\bsecondary rate\b/i;

/** Whether a text speaks of a rate limit that was exceeded. */
export function speaksOfLimit(text: string): boolean {
  return LIMIT_WORDS.test(text);
}

function isLimited(seen: Seen, status: number, headers: HeaderBag | undefined): boolean {
  if (headers !== undefined && isLimitUsedUp(headers)) return true;
  // A server that is away, or a conflict, may also name a wait.
  if ((status === 400 || status === 403) && headers?.get('retry-after') !== undefined) return true;
  const code = typeof seen.code === 'string' ? seen.code.slice(0, 128) : '';
  return speaksOfLimit(`${seen.name}\n${code}\n${seen.words}`);
}

/** Headers of Stripe, OpenAI and Anthropic by which the server says whether another try makes sense. */
function asTold(verdict: Verdict, headers: HeaderBag | undefined): Verdict {
  if (headers === undefined) return verdict;
  const told = headers.get('x-should-retry') ?? headers.get('stripe-should-retry');
  if (told === 'false' && kindOf(verdict) === 'transient') return { ...verdict, kind: 'permanent' };
  if (told === 'true' && kindOf(verdict) !== 'rate_limited') return { ...verdict, kind: 'transient' };
  return verdict;
}

/** Whether what a body says may stand against the status that it came with. */
export function mayOutrank(verdict: Verdict, status: number): boolean {
  const kind = kindOf(verdict);
  // A server that failed cannot be held to what it says of our request; that a stock is used up it knows.
  if (status >= 500) return kind !== 'permanent' || verdict.reason === 'quota.exhausted';
  if (status === 429)
    return verdict.reason === 'quota.exhausted' || (kind === 'rate_limited' && verdict.reason !== 'throttled');
  return true;
}
