import { read } from './inspect.ts';
import type { Seen } from './seen.ts';
import type { Answer } from './verdict.ts';

/** What a status means by itself. What is not in the table goes by its hundred. */
const BY_STATUS: Readonly<Record<number, Answer>> = {
  401: 'auth.invalid',
  402: 'quota.exhausted',
  403: 'auth.forbidden',
  404: 'http.404',
  407: 'auth.invalid',
  408: 'http.408',
  409: 'http.409',
  410: 'http.404',
  412: 'conflict',
  413: 'too_large',
  421: 'http.421',
  423: 'http.423',
  425: 'http.425',
  429: 'http.429',
  431: 'too_large',
  // Cosmos DB: ask again.
  449: 'http.4xx transient',
  // nginx: its client went away before there was an answer.
  499: { reason: 'http.4xx', kind: 'unknown', ambiguous: true },
  501: { reason: 'http.5xx', kind: 'permanent', ambiguous: false },
  // Not taken on at all: overloaded, or nobody behind the proxy.
  503: { reason: 'http.5xx', ambiguous: false },
  521: { reason: 'http.5xx', ambiguous: false },
  523: { reason: 'http.5xx', ambiguous: false },
  525: { reason: 'http.5xx', ambiguous: false },
  529: { reason: 'http.5xx', ambiguous: false },
};

export function byStatus(status: number): Answer {
  const exact = BY_STATUS[status];
  if (exact !== undefined) return exact;
  if (status >= 500) return 'http.5xx';
  return status >= 400 ? 'http.4xx' : 'http.3xx';
}

export interface Status {
  readonly number: number;
  readonly field: string;
  /** Whether an answer of the other side stands beside it. Without one it may be the application's own word. */
  readonly answered: boolean;
}

const DIRECT = ['status', 'statusCode', 'httpStatus', 'httpStatusCode', 'error_code'] as const;

/** Objects that hold a status, and under which names. */
const NESTED = [
  ['response', ['status', 'statusCode', 'error_code']],
  ['$metadata', ['httpStatusCode']],
  ['meta', ['statusCode']],
  ['$response', ['statusCode']],
  ['res', ['status', 'statusCode']],
  ['output', ['statusCode']],
] as const;

/** What stands beside a `code` that is an HTTP status. Without such a sign a number means eight other things. */
const SIGNS = ['response', 'headers', 'isAxiosError', 'statusText', 'statusMessage', 'responseBody'] as const;

export function statusOf(seen: Seen): Status | undefined {
  for (const field of DIRECT) {
    const number = httpNumber(seen.get(field));
    if (number !== undefined) return { number, field, answered: hasAnswer(seen) };
  }
  for (const [outer, names] of NESTED) {
    const holder = outer === 'response' ? seen.response : seen.get(outer);
    if (holder === undefined || holder === null) continue;
    for (const name of names) {
      const number = httpNumber(read(holder, name));
      if (number !== undefined) return { number, field: `${outer}.${name}`, answered: outer !== 'output' };
    }
  }
  const number = httpNumber(seen.code);
  if (number === undefined) return undefined;
  const signed =
    SIGNS.some((sign) => seen.get(sign) != null) || isRpcName(seen.get('status')) || seen.message === PHRASES[number];
  return signed || isGoogle(seen) ? { number, field: 'code', answered: true } : undefined;
}

/** `RESOURCE_EXHAUSTED`: Google's JSON has the status in words beside the number. */
function isRpcName(status: unknown): boolean {
  return typeof status === 'string' && /^[A-Z]{2,}(?:_[A-Z]+)*$/.test(status);
}

/** Google's errors list `{ reason, message }` beside the code. */
function isGoogle(seen: Seen): boolean {
  return typeof read(read(seen.get('errors'), 0), 'reason') === 'string';
}

function hasAnswer(seen: Seen): boolean {
  const { response } = seen;
  return (response !== undefined && response !== null) || seen.get('headers') != null || seen.get('body') != null;
}

function httpNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 300 && value < 600 ? value : undefined;
  return typeof value === 'string' && /^[345]\d\d$/.test(value) ? Number(value) : undefined;
}

/** Reason phrases, by which a bare number is known as a status. */
export const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Entity',
  423: 'Locked',
  425: 'Too Early',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};
