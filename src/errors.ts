/**
 * Every code that an error of Holdfast can carry. Programs branch on the code; the message is for people and may change.
 */
export const ERROR_CODES = [
  'invalid_input',
  'invalid_policy',
  'payload_rejected',
  'payload_too_large',
  'unknown_type',
  'task_not_found',
  'state_conflict',
  'lease_lost',
  'store_busy',
  'store_read_only',
  'store_full',
  'store_corrupt',
  'store_too_new',
  'store_unsupported',
  'store_unavailable',
  'store_io',
  'closed',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** What all errors of Holdfast have in common: a stable `code`, and a message that says what happened, why and what to do next. */
export class HoldfastError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** An option or argument has a value that Holdfast refuses. The message names it and shows the value. */
export class InvalidInputError extends HoldfastError {
  constructor(
    message: string,
    code: 'invalid_input' | 'invalid_policy' | 'unknown_type' = 'invalid_input',
    options?: { cause?: unknown },
  ) {
    super(code, message, options);
  }
}

/** A payload or result that JSON cannot carry faithfully, or that is over the size limit. `path` is where, as in `$.items[3]`. */
export class PayloadError extends HoldfastError {
  readonly path: string;

  constructor(
    code: 'payload_rejected' | 'payload_too_large',
    message: string,
    path: string,
    options?: { cause?: unknown },
  ) {
    super(code, message, options);
    this.path = path;
  }
}

/** No task has this id or key in this store. */
export class TaskNotFoundError extends HoldfastError {
  readonly task: number | string;

  constructor(task: number | string) {
    const name = typeof task === 'number' ? `#${task}` : `with the key '${task}'`;
    super('task_not_found', `There is no task ${name} in this store. It may live in another one.`);
    this.task = task;
  }
}

/** The task is in a state from which the requested step is not possible. */
export class StateConflictError extends HoldfastError {
  readonly task: number;
  readonly state: string;

  constructor(task: number, state: string, message: string) {
    super('state_conflict', message);
    this.task = task;
    this.state = state;
  }
}

/** The lease was no longer this worker's, so nothing was changed. */
export class LeaseLostError extends HoldfastError {
  readonly task: number;
  readonly execution: number;

  constructor(task: number, execution: number) {
    super(
      'lease_lost',
      `The lease on task #${task} (execution ${execution}) had ended, so its outcome was kept as evidence but not applied. ` +
        'Raise `leaseFor`, or let the event loop breathe: a blocked process cannot renew.',
    );
    this.task = task;
    this.execution = execution;
  }
}

/** The store could not do what was asked: busy, full, read-only, corrupt, unreachable, or written by a newer version. */
export class StoreError extends HoldfastError {
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean;

  constructor(
    code: Extract<ErrorCode, `store_${string}`>,
    message: string,
    options: { cause?: unknown; retryable?: boolean } = {},
  ) {
    super(code, message, 'cause' in options ? { cause: options.cause } : undefined);
    this.retryable = options.retryable ?? false;
  }
}

/** The store, worker or testing kit was already closed. */
export class ClosedError extends HoldfastError {
  constructor(what: string) {
    super('closed', `${what} is closed, so it takes no more calls.`);
  }
}
