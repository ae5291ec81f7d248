import { textIn } from './body.ts';
import type { HeaderBag } from './headers.ts';
import type { Seen } from './seen.ts';
import type { Status } from './status.ts';
import { byStatus } from './status-answers.ts';
import { type Finding, kindOf, type Verdict, verdictOf } from './verdict.ts';

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

/** What would mean something else, were it not for what the answer says besides. */
function unlessSaid(seen: Seen, { number }: Status, headers: HeaderBag | undefined): Verdict | undefined {
  switch (number) {
    case 401:
      return isExpired(seen, headers) ? verdictOf('auth.expired transient') : undefined;
    case 400:
    case 403:
      if (isUsedUp(seen)) return verdictOf('quota.exhausted');
      return isLimited(seen, headers) ? verdictOf('throttled') : undefined;
    case 429:
      return isUsedUp(seen) ? verdictOf('quota.exhausted') : undefined;
    case 409:
      // OpenAI, Anthropic and Stripe mean by it: another request was faster, ask again.
      return seen.get('requestID') !== undefined || seen.get('rawType') !== undefined
        ? verdictOf('http.409 transient')
        : undefined;
    case 413:
      return headers?.get('retry-after') === undefined ? undefined : verdictOf('too_large transient');
    default:
      return undefined;
  }
}

/** RFC 6750: a token that ran out, so the next try may fetch a fresh one. */
function isExpired(seen: Seen, headers: HeaderBag | undefined): boolean {
  if (/\binvalid_token\b.*\bexpired\b/i.test(headers?.get('www-authenticate') ?? '')) return true;
  return /^(?:the |your )?(?:access |auth(?:entication|orization)? |bearer |id |session )?(?:token|session|jwt) (?:has |is )?expired\b/i.test(
    textIn(seen.body),
  );
}

/** Services that bill say so in words where they have no code for it. */
function isUsedUp(seen: Seen): boolean {
  const words =
    /\bcredit balance is too low\b|\bexceeded your current quota, please check your plan\b|\bbilling (?:hard )?limit\b|\b(?:out of|insufficient|no) credits\b/i;
  return words.test(seen.message) || words.test(textIn(seen.body));
}

const LIMIT_WORDS =
  /\brate.?limit(?:s|ed|ing)?\b|\brate ?limit ?exceeded|throttl|too many requests|throughput ?exceeded|request ?limit ?exceeded|\babuse detection\b|\bsecondary rate\b/i;

function isLimited(seen: Seen, headers: HeaderBag | undefined): boolean {
  if (headers?.get('retry-after') !== undefined || headers?.get('x-ratelimit-remaining') === '0') return true;
  const { code } = seen;
  return (
    LIMIT_WORDS.test(seen.name) ||
    (typeof code === 'string' && LIMIT_WORDS.test(code.slice(0, 128))) ||
    LIMIT_WORDS.test(seen.message) ||
    LIMIT_WORDS.test(textIn(seen.body))
  );
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
