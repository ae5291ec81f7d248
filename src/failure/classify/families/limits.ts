import { type Family, found, type Table } from '../meaning.ts';

/** Rate limiters, circuit breakers, bulkheads and locks inside the program. */
const NAMES: Table = {
  RateLimitError: 'throttled',
  RateLimitExceeded: 'throttled',
  RateLimitExceededError: 'throttled',
  TooManyRequestsError: 'http.429',
  ThrottledError: 'throttled',
  ThrottlingError: 'throttled',
  QuotaExceededError: 'quota.exhausted rate_limited',
  BottleneckError: 'resource.limit',
  BrokenCircuitError: { reason: 'api.unavailable', ambiguous: false },
  BulkheadRejectedError: 'resource.limit',
  QueueFullError: 'resource.limit',
  LockError: 'db.locked',
  LockTimeoutError: 'db.locked',
  LockAcquisitionError: 'db.locked',
};

export const limits: Family = {
  name: 'limits',
  sorts: ['bare'],
  codes: {
    ERATELIMIT: 'throttled',
    RATE_LIMITED: 'throttled',
    RATE_LIMIT_EXCEEDED: 'throttled',
    rate_limit_exceeded: 'throttled',
    TOO_MANY_REQUESTS: 'http.429',
    E_ALREADY_LOCKED: 'db.locked',
  },
  names: NAMES,
  recognise(fields) {
    // rate-limiter-flexible throws its result object.
    if (fields.number('msBeforeNext') !== undefined && fields.get('remainingPoints') !== undefined) {
      return found('throttled', 'msBeforeNext');
    }
    if (fields.get('isBrokenCircuitError') === true)
      return found({ reason: 'api.unavailable', ambiguous: false }, 'isBrokenCircuitError');
    if (fields.get('isBulkheadRejectedError') === true) return found('resource.limit', 'isBulkheadRejectedError');
    if (fields.get('isTaskCancelledError') === true) return found('abort', 'isTaskCancelledError', 'hint');
    return undefined;
  },
};
