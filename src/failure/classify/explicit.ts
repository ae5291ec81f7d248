import type { Seen } from './seen.ts';

/** Whether whoever threw it said if it may be tried again. */
export interface Said {
  readonly again: boolean;
  readonly field: string;
}

/** Names by which other queues and helpers know an error that must not be retried. */
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

/** Fields that mean "never again" when they are true. */
const NEVER = ['nonRetryable', 'nonRetriable', 'unrecoverable', 'noRetry'] as const;
/** Fields that mean what they hold. */
const EITHER = ['retryable', 'isRetryable', 'retriable'] as const;
/** Fields that mean "try again" when they are true. */
const AGAIN = ['isTransient', 'transient', 'temporary'] as const;

/** kafkajs means by it that its own retries are used up, and neo4j-driver that it does not know the code. */
function hasOwnMeaning(seen: Seen): boolean {
  return seen.name.startsWith('KafkaJS') || seen.name === 'Neo4jError';
}

export function explicit(seen: Seen): Said | undefined {
  if (NEVER_NAMES.has(seen.name) || NEVER_NAMES.has(seen.class)) return { again: false, field: 'name' };
  // p-retry's way to say "do not retry": it has the name of an abort, and what was thrown.
  if (seen.name === 'AbortError' && seen.get('originalError') !== undefined)
    return { again: false, field: 'originalError' };
  for (const field of NEVER) if (seen.get(field) === true) return { again: false, field };
  if (!hasOwnMeaning(seen)) {
    for (const field of EITHER) {
      const value = seen.get(field);
      if (typeof value === 'boolean') return { again: value, field };
    }
  }
  for (const field of AGAIN) if (seen.get(field) === true) return { again: true, field };
  if (AGAIN_NAMES.has(seen.name) || AGAIN_NAMES.has(seen.class)) return { again: true, field: 'name' };
  return undefined;
}
