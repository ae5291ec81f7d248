import type { ErrorFields } from './error-fields.ts';

/** Whether the error itself says that it may be retried, and in which field. */
export interface Said {
  readonly again: boolean;
  readonly field: string;
}

/** Names that other queues and libraries give to errors that must not be retried. */
const NEVER_NAMES = new Set([
  ...['UnrecoverableError', 'NonRetriableError', 'NonRetryableError', 'NonRetryableException', 'AbortTaskRunError'],
  ...['TerminalError', 'PermanentError', 'UnretryableError', 'NotRetryableError', 'DoNotRetryError', 'DiscardJobError'],
]);
const AGAIN_NAMES = new Set([
  'RetryableError',
  'RetriableError',
  'TransientError',
  'TemporaryError',
  'RetryAfterError',
]);

/** Fields that forbid a retry if they are true. */
const NEVER = ['nonRetryable', 'nonRetriable', 'unrecoverable', 'noRetry'] as const;
/** Fields that allow a retry if they are true and forbid it if they are false. */
const EITHER = ['retryable', 'isRetryable', 'retriable'] as const;
/** Fields that allow a retry if they are true. */
const AGAIN = ['isTransient', 'transient', 'temporary'] as const;

/** In kafkajs it means that its own retries are used up; in neo4j-driver, that it does not know the code. */
function hasOwnMeaning(fields: ErrorFields): boolean {
  return fields.name.startsWith('KafkaJS') || fields.name === 'Neo4jError';
}

export function explicit(fields: ErrorFields): Said | undefined {
  if (NEVER_NAMES.has(fields.name) || NEVER_NAMES.has(fields.class)) return { again: false, field: 'name' };
  // p-retry's AbortError means "do not retry". Unlike others of that name, it has `originalError`.
  if (fields.name === 'AbortError' && fields.get('originalError') !== undefined)
    return { again: false, field: 'originalError' };
  for (const field of NEVER) if (fields.get(field) === true) return { again: false, field };
  if (!hasOwnMeaning(fields)) {
    for (const field of EITHER) {
      const value = fields.get(field);
      if (typeof value === 'boolean') return { again: value, field };
    }
  }
  for (const field of AGAIN) if (fields.get(field) === true) return { again: true, field };
  if (AGAIN_NAMES.has(fields.name) || AGAIN_NAMES.has(fields.class)) return { again: true, field: 'name' };
  return undefined;
}
