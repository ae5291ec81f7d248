/** What is said of an error's code in docs/reference/errors.md, and as the title of a problem of the command line. */
export interface ErrorInfo {
  readonly title: string;
  /** When it is thrown. */
  readonly cause: string;
  /** What to do next. */
  readonly next: string;
}

/**
 * Every code that an error of Holdfast can carry. Programs branch on the code; the message is for people and may change.
 * docs/reference/errors.md is generated from this table: `npm run classify:docs`.
 */
export const ERRORS = {
  invalid_input: {
    title: 'Invalid flag or argument',
    cause:
      'An option or argument has a value that Holdfast refuses: a wrong type, an unknown name, a bare number as a duration.',
    next: 'Change the value that the message shows. The message says what is accepted.',
  },
  invalid_policy: {
    title: 'Invalid policy',
    cause:
      'A retry policy would not work: an unknown option or reason, a delay without a unit, a cap below the first delay.',
    next: 'Write what the message proposes. docs/guides/policies.md has a table of all options.',
  },
  invalid_config: {
    title: 'Invalid configuration',
    cause:
      'A configuration file has errors, or cannot be read. Nothing of it is used; what was loaded before stays in use.',
    next: '`problems` has line, column and a suggestion for each error. `holdfast policies validate` prints them.',
  },
  payload_rejected: {
    title: 'Payload rejected',
    cause:
      'A payload, result or checkpoint holds something that JSON cannot carry: a BigInt, a Map, a cycle, NaN, `undefined` in a list.',
    next: 'Convert the value at the `path` of the error, such as a Map by Object.fromEntries.',
  },
  payload_too_large: {
    title: 'Payload too large',
    cause: 'A payload or result is larger than `maxPayloadBytes` (1 MiB), or a checkpoint than 64 KiB.',
    next: 'Keep large data elsewhere and put its address in the payload, or raise `maxPayloadBytes`.',
  },
  unknown_type: {
    title: 'Unknown type of task',
    cause: 'This process has no definition of the type of a task that it should work.',
    next: 'Pass the definition in `tasks` of openHoldfast.',
  },
  task_not_found: {
    title: 'Task not found',
    cause: 'No task of this store has the id or key: it is in another store, or retention removed it.',
    next: 'Check which store is open. An id is a number, a key is a text: get(12), get("order-12").',
  },
  worker_not_found: {
    title: 'Worker not found',
    cause: 'No worker of this store has the id: it has left, or was ended.',
    next: '`workers()` or `holdfast workers` lists the workers.',
  },
  redrive_not_found: {
    title: 'Redrive not found',
    cause: 'No redrive of this store has the id, or it ended more than 30 days ago.',
    next: '`redrives.list()` or `holdfast redrives` lists them.',
  },
  schedule_not_found: {
    title: 'Schedule not found',
    cause: 'No schedule of this store has the name: it is in another store, or was removed.',
    next: '`schedules.list()` or `holdfast schedules` lists them.',
  },
  failure_group_not_found: {
    title: 'Group of failures not found',
    cause:
      'No group of failures of this store has the id, several ids begin with it, or a thousand others have failed since.',
    next: '`failures.list()` or `holdfast failures` lists them.',
  },
  state_conflict: {
    title: "The task's state does not allow it",
    cause: 'An action does not fit the state of the task, such as `hold` of one that runs.',
    next: 'The message names the action that fits. `explain(id)` lists all that are possible.',
  },
  redrive_conflict: {
    title: "The redrive's state does not allow it",
    cause: 'A redrive that has ended cannot be paused, resumed or cancelled.',
    next: 'Start a new redrive with the same filter.',
  },
  unique_conflict: {
    title: 'Unique key is taken',
    cause: "Another task has the unique key, and the new one said `onConflict: 'reject'`.",
    next: "Wait for the other task (`task` of the error) or cancel it, or use onConflict 'ignore' or 'replace'.",
  },
  task_failed: {
    title: 'Task has no result',
    cause: 'The task whose result was waited for is dead or cancelled, or needs a person.',
    next: '`explain(id)` says why. `retry` starts a new round; `resolve` answers a task that needs a person.',
  },
  result_timeout: {
    title: 'Task has not ended in time',
    cause: 'The task had not ended within the `timeout` of `result`. It goes on.',
    next: 'Call `result` again, raise `timeout`, or ask `explain(id)` what it waits for: often no worker runs its type.',
  },
  lease_lost: {
    title: 'Lease lost',
    cause:
      'The worker no longer has the task: it did not renew in time, because its event loop was blocked or its process was stopped.',
    next: 'Move long computations out of the event loop, or raise `leaseFor`. The task runs again elsewhere.',
  },
  store_busy: {
    title: 'Store is locked',
    cause: 'Another process or transaction holds a lock on the database.',
    next: 'Try again. If it stays, end the transaction that the message names; begin your own with BEGIN IMMEDIATE.',
  },
  store_read_only: {
    title: 'Not permitted, or read-only',
    cause: 'The user of this process may not write the file, its folder, or the tables.',
    next: 'Give this user the right to write, or run as the user who owns the store.',
  },
  store_full: {
    title: 'No space left for the store',
    cause: 'The disk, quota or tablespace is full. What was acknowledged is safe.',
    next: 'Free some space. Workers go on by themselves.',
  },
  store_corrupt: {
    title: 'Store is damaged',
    cause: 'The file is no SQLite database, or a part of it is damaged.',
    next: 'Copy the file, then restore a backup.',
  },
  store_too_new: {
    title: 'Store was written by a newer Holdfast',
    cause: 'The tables have a newer form than this version knows.',
    next: 'Use the version that wrote them, or a newer one.',
  },
  store_unsupported: {
    title: 'Store cannot work here',
    cause:
      'This database, driver or file system lacks something: an old version, also of Node, a network drive, a missing table, a call that the store does not have.',
    next: 'The message says what is missing. On PostgreSQL, `holdfast db migrate` makes the tables.',
  },
  store_unavailable: {
    title: 'Store is not there',
    cause: 'The database does not answer: it is down, the address is wrong, or it refused the login.',
    next: 'Check that the server runs, and the address, user and password. Workers go on when it is back.',
  },
  store_replaced: {
    title: 'Store was removed or replaced',
    cause: 'The file of the store was deleted, moved or replaced while it was open.',
    next: 'Stop all processes that use it, put the right file in place, and start them again.',
  },
  store_io: {
    title: 'Disk failed under the store',
    cause: 'Reading or writing the file failed. What was acknowledged may be damaged.',
    next: 'Check the disk and the logs of the system, then try again.',
  },
  closed: {
    title: 'Already closed',
    cause: 'Holdfast, a worker or a testing kit was closed before the call.',
    next: 'Call it before `close`, or open a new one.',
  },
} as const satisfies Readonly<Record<string, ErrorInfo>>;
export type ErrorCode = keyof typeof ERRORS;
export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];
