import type { Milliseconds } from '../../duration.ts';
import { read, readNumber, readText } from './inspect.ts';
import { header, retryAfter } from './retry-after.ts';
import type { Verdict } from './verdict.ts';

const BY_STATUS: Readonly<Record<number, Verdict>> = {
  401: { reason: 'auth.invalid', kind: 'permanent', fault: 'source' },
  403: { reason: 'auth.forbidden', kind: 'permanent', fault: 'task' },
  404: { reason: 'http.404', kind: 'permanent', fault: 'task' },
  407: { reason: 'auth.invalid', kind: 'permanent', fault: 'source' },
  408: { reason: 'http.408', kind: 'transient', fault: 'source' },
  409: { reason: 'http.409', kind: 'unknown', fault: 'task' },
  410: { reason: 'http.404', kind: 'permanent', fault: 'task' },
  412: { reason: 'conflict', kind: 'permanent', fault: 'task' },
  413: { reason: 'too_large', kind: 'permanent', fault: 'task' },
  421: { reason: 'http.421', kind: 'transient', fault: 'source' },
  423: { reason: 'http.423', kind: 'transient', fault: 'task' },
  425: { reason: 'http.425', kind: 'transient', fault: 'source' },
  429: { reason: 'http.429', kind: 'rate_limited', fault: 'quota' },
  499: { reason: 'http.4xx', kind: 'unknown', fault: 'task' },
  501: { reason: 'http.5xx', kind: 'permanent', fault: 'task' },
  503: { reason: 'http.5xx', kind: 'transient', fault: 'source' },
};

/** Where the AWS SDK keeps the status. */
const AWS_STATUS = '$metadata.httpStatusCode';

/** How much of a message is searched for words. */
const LONGEST_READ = 1_024;

const THROTTLED: Verdict = { reason: 'throttled', kind: 'rate_limited', fault: 'quota' };

/** An error or response that carries an HTTP status, in any of the places where clients put it. */
export function byHttpStatus(error: unknown, now: number): Verdict | undefined {
  const found = statusOf(error);
  if (!found) return undefined;
  const headers = headersOf(error);
  const wait = retryAfter(headers, now);
  const verdict = unlessLimited(error, found.status, headers, wait) ?? verdictOn(found);
  return { ...verdict, field: found.field, ...(wait !== undefined && { retryAfterMs: wait }) };
}

function verdictOn({ status, field }: Found): Verdict {
  const exact = BY_STATUS[status];
  if (exact) return exact;
  // The server took the request before it failed, so the effect may have happened.
  if (status >= 500) return { reason: 'http.5xx', kind: 'transient', fault: 'source', ambiguous: true };
  // AWS answers 400 to throttling, conflicts and time-outs alike: there the number says nothing.
  const kind = status === 400 && field === AWS_STATUS ? 'unknown' : 'permanent';
  return { reason: 'http.4xx', kind, fault: 'task' };
}

/** What would be permanent, were it not that the server also says "later". A wrong "permanent" loses the task. */
function unlessLimited(error: unknown, status: number, headers: unknown, wait?: Milliseconds): Verdict | undefined {
  if (status === 413 && wait !== undefined) return { reason: 'too_large', kind: 'transient', fault: 'task' };
  if (status !== 400 && status !== 403) return undefined;
  const limited = wait !== undefined || header(headers, 'x-ratelimit-remaining') === '0' || speaksOfLimits(error);
  return limited ? THROTTLED : undefined;
}

function speaksOfLimits(error: unknown): boolean {
  const words = /rate.?limit|throttl|too many requests|throughput ?exceeded|request ?limit ?exceeded/i;
  return ['name', 'code', 'message'].some((key) => words.test((readText(error, key) ?? '').slice(0, LONGEST_READ)));
}

interface Found {
  readonly status: number;
  readonly field: string;
}

function statusOf(error: unknown): Found | undefined {
  const response = read(error, 'response');
  const places = [
    ['status', readNumber(error, 'status')],
    ['statusCode', readNumber(error, 'statusCode')],
    ['response.status', readNumber(response, 'status')],
    ['response.statusCode', readNumber(response, 'statusCode')],
    [AWS_STATUS, readNumber(read(error, '$metadata'), 'httpStatusCode')],
  ] as const;
  for (const [field, status] of places) {
    if (status !== undefined && Number.isInteger(status) && status >= 400 && status < 600) return { status, field };
  }
  return undefined;
}

function headersOf(error: unknown): unknown {
  return read(read(error, 'response'), 'headers') ?? read(error, 'headers') ?? read(error, 'responseHeaders');
}
