import type { ErrorCode } from './error-codes.ts';

export { ERROR_CODES, type ErrorCode } from './error-codes.ts';

/** The base of all errors of Holdfast. It has a stable `code`, and a message that says what happened, why, and what to do next. */
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
  declare readonly code: 'invalid_input' | 'invalid_policy' | 'unknown_type';
  /** For `enqueueAll`: which of the inputs, or their options, counted from 0. */
  declare readonly index?: number;
  /** Which member of an input is refused, such as `timeoutMs`, or would have to allow the value. */
  declare readonly member?: string;

  constructor(
    message: string,
    code: InvalidInputError['code'] = 'invalid_input',
    options?: { cause?: unknown; index?: number; member?: string },
  ) {
    super(code, message, options);
    if (options?.index !== undefined) this.index = options.index;
    if (options?.member !== undefined) this.member = options.member;
  }
}

/** A problem of a configuration, and its place. */
export interface ConfigProblem {
  /** An error makes the whole file invalid. A warning is about something that has no effect. */
  readonly severity: 'error' | 'warning';
  /** Such as `types.order.retry.backoff.cap`; empty for the file itself. */
  readonly path: string;
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  /** The offending key or value as it is written there, cut at 80 characters. */
  readonly value: string;
  readonly message: string;
  /** What was probably meant, or what to write instead. */
  readonly suggestion?: string;
}

/** An invalid configuration. It is not used at all. `problems` lists everything that is wrong, in order. */
export class InvalidConfigError extends HoldfastError {
  declare readonly code: 'invalid_config';
  readonly file: string;
  readonly problems: readonly ConfigProblem[];

  constructor(file: string, problems: readonly ConfigProblem[], options?: { cause?: unknown }) {
    const errors = problems.filter(({ severity }) => severity === 'error').length;
    const lines = problems.map(
      ({ line, column, severity, message, suggestion }) =>
        `  ${line}:${column}  ${severity}  ${message}${suggestion === undefined ? '' : ` ${suggestion}`}`,
    );
    const what = `${file} is refused: ${errors} ${errors === 1 ? 'error' : 'errors'}. The file is not used.`;
    super('invalid_config', [what, ...lines].join('\n'), options);
    this.file = file;
    this.problems = problems;
  }
}

/** A payload or result that JSON cannot carry faithfully, or that is over the size limit. `path` is where, as in `$.items[3]`. */
export class PayloadError extends HoldfastError {
  declare readonly code: 'payload_rejected' | 'payload_too_large';
  readonly path: string;
  /** For `enqueueAll`: which of the inputs, counted from 0. */
  declare readonly index?: number;

  constructor(
    code: PayloadError['code'],
    message: string,
    path: string,
    options?: { cause?: unknown; index?: number },
  ) {
    super(code, message, options);
    this.path = path;
    if (options?.index !== undefined) this.index = options.index;
  }
}

/** No task has this id or key in this store. */
export class TaskNotFoundError extends HoldfastError {
  readonly task: number | string;

  constructor(task: number | string) {
    const name = typeof task === 'number' ? `#${task}` : `with the key '${task}'`;
    const isId = typeof task === 'string' && /^[1-9]\d{0,15}$/.test(task);
    const next = isId ? `For the task with this id, pass a number: ${task}.` : 'It may be in another store.';
    super('task_not_found', `There is no task ${name} in this store. ${next}`);
    this.task = task;
  }
}

/** No worker of this store has this id: it has left, was ended, or never existed. */
export class WorkerNotFoundError extends HoldfastError {
  readonly worker: number;

  constructor(worker: number) {
    super(
      'worker_not_found',
      `There is no worker ${worker} in this store. It may have left. \`workers()\` lists the workers.`,
    );
    this.worker = worker;
  }
}

/** No redrive of this store has this id. It was never there, or ended more than 30 days ago. */
export class RedriveNotFoundError extends HoldfastError {
  readonly redrive: number;

  constructor(redrive: number) {
    super(
      'redrive_not_found',
      `There is no redrive ${redrive} in this store. \`redrives.list()\` lists those that run or ended in the last 30 days.`,
    );
    this.redrive = redrive;
  }
}

/** No schedule of this store has this name. */
export class ScheduleNotFoundError extends HoldfastError {
  readonly schedule: string;

  constructor(schedule: string) {
    super(
      'schedule_not_found',
      `There is no schedule '${schedule}' in this store. \`schedules.list()\` lists those that exist.`,
    );
    this.schedule = schedule;
  }
}

/** No group of failures of this store has this id. */
export class FailureGroupNotFoundError extends HoldfastError {
  readonly group: string;

  constructor(group: string) {
    super(
      'failure_group_not_found',
      `There is no group of failures '${group}' in this store. \`failures.list()\` lists those that exist.`,
    );
    this.group = group;
  }
}

/** The state of the redrive does not allow the action. */
export class RedriveConflictError extends HoldfastError {
  readonly redrive: number;
  readonly state: string;

  constructor(redrive: number, state: string, message: string) {
    super('redrive_conflict', message);
    this.redrive = redrive;
    this.state = state;
  }
}

/** The state of the task does not allow the action, or another task has its unique key now. */
export class StateConflictError extends HoldfastError {
  readonly task: number;
  readonly state: string;
  /** The task that has the unique key which this one would take up again. */
  declare readonly occupiedBy?: number;

  constructor(task: number, state: string, message: string, options?: { occupiedBy?: number }) {
    super('state_conflict', message);
    this.task = task;
    this.state = state;
    if (options?.occupiedBy !== undefined) this.occupiedBy = options.occupiedBy;
  }
}

/** Another task has the unique key of a task that was enqueued with `onConflict: 'reject'`. */
export class UniqueConflictError extends HoldfastError {
  /** The task that has it. */
  readonly task: number;
  readonly type: string;
  readonly key: string;

  /** `state`: of the other task, if its input was to be merged with the new one. */
  constructor(task: number, type: string, key: string, state?: string) {
    super(
      'unique_conflict',
      state === undefined
        ? `Task #${task} of the type '${type}' has the unique key '${key}', so nothing was enqueued. ` +
            "Enqueue it again when the key is free, or use onConflict 'ignore' or 'replace'."
        : `Task #${task} of the type '${type}' has the unique key '${key}' and is ${state}, so nothing was merged into its input, and nothing was ` +
            "enqueued. With while: 'waiting', a task frees its key when it starts.",
    );
    this.task = task;
    this.type = type;
    this.key = key;
  }
}

/** The task whose result was waited for has ended without one, or waits for a person. */
export class TaskFailedError extends HoldfastError {
  readonly task: number;
  readonly state: string;
  /** The reason of its last decision, such as `http.404`. */
  declare readonly reason?: string;

  constructor(task: number, state: string, reason: string | undefined, message: string | undefined) {
    const why = [reason, message].filter((part) => part !== undefined).join(': ');
    super(
      'task_failed',
      `Task #${task} is ${state}, so it has no result.${why === '' ? '' : ` Its last outcome: ${why}`}${/[.!?]$/.test(why) || why === '' ? '' : '.'} ` +
        `\`explain(${task})\` says why and what can be done.`,
    );
    this.task = task;
    this.state = state;
    if (reason !== undefined) this.reason = reason;
  }
}

/** The task did not end within the time for which its result was waited for. The task goes on. */
export class ResultTimeoutError extends HoldfastError {
  readonly task: number;
  readonly state: string;

  constructor(task: number, state: string, waited: string) {
    super(
      'result_timeout',
      `Task #${task} is ${state} and has not ended within ${waited}. It goes on: call \`result\` again, or raise \`timeout\`.` +
        ` \`explain(${task})\` says what it waits for.`,
    );
    this.task = task;
    this.state = state;
  }
}

/** The worker no longer has the lease, so nothing was changed. */
export class LeaseLostError extends HoldfastError {
  readonly task: number;
  readonly execution: number;

  constructor(task: number, execution: number) {
    super(
      'lease_lost',
      `The lease on task #${task} (execution ${execution}) had ended, so its outcome was kept as evidence but not applied. ` +
        'Raise `leaseFor`, or renew in time: a handler that blocks the event loop prevents renewals.',
    );
    this.task = task;
    this.execution = execution;
  }
}

/** The store could not do this: busy, full, read-only, corrupt, unreachable, or written by a newer version. */
export class StoreError extends HoldfastError {
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** If tables are too old for this version: their schema version; 0 if there are none. */
  declare readonly schema?: number;

  constructor(
    code: Extract<ErrorCode, `store_${string}`>,
    message: string,
    options: { cause?: unknown; retryable?: boolean; schema?: number } = {},
  ) {
    super(code, message, 'cause' in options ? { cause: options.cause } : undefined);
    this.retryable = options.retryable ?? false;
    if (options.schema !== undefined) this.schema = options.schema;
  }
}

/** The store, worker or testing kit was already closed. */
export class ClosedError extends HoldfastError {
  constructor(what: string) {
    super('closed', `${what} is closed, so it takes no more calls.`);
  }
}
