import type { Refusal } from '../documents/duplicate.ts';
import { ERRORS, type ErrorCode } from '../error-codes.ts';
import { HoldfastError, StoreError } from '../errors.ts';

/** Problems that only the API has. */
const OWN = {
  unauthorized: { status: 401, title: 'Not authorised' },
  forbidden: { status: 403, title: 'Not permitted' },
  read_only: { status: 403, title: 'The dashboard is read-only' },
  cross_site: { status: 403, title: 'Request from another site' },
  wrong_host: { status: 421, title: 'Wrong host' },
  not_found: { status: 404, title: 'No such address' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  not_json: { status: 415, title: 'The body is not JSON' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unexpected: { status: 500, title: 'Unexpected failure' },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

type OwnCode = keyof typeof OWN;

/** Why a request is refused: the code for programs, and what happened and what to do next for people. */
export class ApiProblem extends Error {
  readonly code: OwnCode | ErrorCode;
  readonly hints: readonly string[];

  constructor(code: OwnCode | ErrorCode, message: string, hints: readonly string[] = []) {
    super(message);
    this.name = 'ApiProblem';
    this.code = code;
    this.hints = hints;
  }
}

export function readOnlyProblem(): ApiProblem {
  return new ApiProblem('read_only', 'This dashboard is read-only, so nothing was changed.');
}

export function refused({ what, why, hints }: Refusal): ApiProblem {
  return new ApiProblem('state_conflict', [`${what}.`, ...why].join(' '), hints);
}

/** The answer to a request that failed: RFC 9457. An unexpected error says nothing of itself, because its message may hold secrets. */
export function problemResponse(error: unknown): Response {
  const { code, message, hints, retryable } = partsOf(error);
  const own = code in OWN ? OWN[code as OwnCode] : undefined;
  const status = own?.status ?? STATUS[code as ErrorCode];
  const title = own?.title ?? ERRORS[code as ErrorCode].title;
  const body = { type: `urn:holdfast:problem:${code}`, title, status, detail: message, code, hints, retryable };
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
  });
}

interface Parts {
  readonly code: OwnCode | ErrorCode;
  readonly message: string;
  readonly hints: readonly string[];
  readonly retryable: boolean;
}

function partsOf(error: unknown): Parts {
  if (error instanceof ApiProblem) return { ...error, message: error.message, retryable: false };
  if (error instanceof HoldfastError) {
    const retryable = error instanceof StoreError && error.retryable;
    return { code: error.code, message: error.message, hints: [], retryable };
  }
  return {
    code: 'unexpected',
    message: 'This is an unexpected error, probably a bug in Holdfast. The log of the server has its message.',
    hints: [],
    retryable: false,
  };
}

/** Whether the error is worth a line in the log of the server. */
export function isUnexpected(error: unknown): boolean {
  return partsOf(error).code === 'unexpected';
}

const STATUS: Readonly<Record<ErrorCode, number>> = {
  invalid_input: 400,
  invalid_policy: 400,
  invalid_config: 400,
  payload_rejected: 400,
  payload_too_large: 413,
  unknown_type: 409,
  task_not_found: 404,
  worker_not_found: 404,
  redrive_not_found: 404,
  schedule_not_found: 404,
  failure_group_not_found: 404,
  state_conflict: 409,
  redrive_conflict: 409,
  unique_conflict: 409,
  task_failed: 409,
  result_timeout: 504,
  lease_lost: 409,
  store_busy: 503,
  store_read_only: 503,
  store_full: 503,
  store_corrupt: 503,
  store_too_new: 503,
  store_unsupported: 503,
  store_unavailable: 503,
  store_replaced: 503,
  store_io: 503,
  closed: 503,
};
