import { StoreError } from '../../errors.ts';

/** What our own functions raise. */
export const UNIQUE_CONFLICT = 'HF001';

/** How PostgreSQL, or the way to it, said no. */
export function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/** No connection was had, so nothing was asked. */
export class NoConnection extends Error {
  readonly code: string;

  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
    this.code = codeOf(cause);
  }
}

/**
 * Whether nothing is known of what became of the statement, or its server: the connection broke, was never made, or gave no
 * answer in time. Whoever asked it may have been heard.
 */
export function isLost(error: unknown): boolean {
  const code = codeOf(error);
  // A primary that became a standby takes no writes any more, and another server does.
  if (/^(?:08|57P0)/.test(code) || isReadOnly(error)) return true;
  if (/^E(?:CONN|PIPE|AI_|HOST|NET|TIMEDOUT|NOTFOUND)/.test(code)) return true;
  // A socket in a folder, whose server is not there.
  if (code === 'ENOENT') return error instanceof NoConnection;
  return /Connection terminated|timeout|Client has encountered a connection error|socket|server closed/i.test(
    code === '' ? messageOf(error) : '',
  );
}

/** Whether the server takes no writes: a standby, a primary that became one, or one that was set to read only. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === '25006';
}

/** Whether another transaction held a lock for longer than the statement waits: nothing was changed. */
export function isBlocked(error: unknown): boolean {
  return codeOf(error instanceof StoreError ? error.cause : error) === '55P03';
}

/** What is known of the transaction that holds a lock. */
export interface Blocker {
  readonly pid: number;
  readonly application: string;
  /** Null where the role may not see it. */
  readonly openFor: number | null;
}

export function blockedError(error: unknown, where: string, blocker: Blocker | undefined): StoreError {
  const text = `${where} did not do this, and nothing was changed: another transaction holds a lock on the task, or on its key.`;
  return new StoreError('store_busy', `${text} ${adviceOn(blocker)}`, { cause: error, retryable: true });
}

function adviceOn(blocker: Blocker | undefined): string {
  if (!blocker) return 'That transaction has ended by now: try again.';
  const { pid, application, openFor } = blocker;
  const name = application === '' ? 'without an application name' : `application ${JSON.stringify(application)}`;
  const since = openFor === null ? '' : ` It has been open for ${Math.round(openFor / 1000)} s.`;
  return `The oldest open transaction that writes to Holdfast's tables is that of process ${pid} (${name}).${since} Commit it or roll it back, or end it with: select pg_terminate_backend(${pid})`;
}

/** Whether the server was asked too much just now: it did nothing, and the same call may be made again. */
export function isBusy(error: unknown): boolean {
  if (/^(?:40001|40P01|55P03|57014|53300|53400)$/.test(codeOf(error))) return true;
  // The same call, whose answer was lost, was still under way: it is done by now.
  return codeOf(error) === '23505' && (error as { constraint?: string }).constraint === 'calls_pkey';
}

/** What ends a statement whose answer is not waited for because the store is closed. */
export class GivenUp extends StoreError {
  constructor(where: string) {
    super(
      'store_unavailable',
      `${where} did not answer before it was closed. What was asked last may or may not have happened.`,
      { retryable: true },
    );
  }
}

/** Whether the client stopped waiting for the answer of a statement on a connection that may be sound. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof GivenUp || (error instanceof Error && error.message === 'Query read timeout');
}

/** Whether the server itself answered, and its connection goes on. */
export function isAnswer(error: unknown): boolean {
  return !isLost(error) && 'severity' in Object(error);
}

/** Puts PostgreSQL's failure into words: what happened to which database, why, and what to do next. */
export function storeError(error: unknown, where: string): unknown {
  if (error instanceof StoreError) return error;
  const code = codeOf(error);
  const cause = { cause: error };
  const said = messageOf(error);
  if (isReadOnly(error)) {
    return new StoreError(
      'store_read_only',
      `${where} takes no writes: it is a standby, or set to read only. Connect to the primary, or look at default_transaction_read_only of the role and database.`,
      { ...cause, retryable: true },
    );
  }
  if (isLost(error)) {
    return new StoreError(
      'store_unavailable',
      `${where} cannot be reached (${said}). What was asked last may or may not have happened; everything acknowledged before it stands. Look whether the server runs, and whether this is where it is.`,
      { ...cause, retryable: true },
    );
  }
  if (isBusy(error)) {
    return new StoreError(
      'store_busy',
      `${where} was too busy for a statement (${code}: ${said}), and nothing was changed. It may be tried again.`,
      { ...cause, retryable: true },
    );
  }
  switch (code) {
    case '53100':
      return new StoreError(
        'store_full',
        `There is no space left for ${where}. What was being written was rolled back, and everything before it is intact. Free some space; the call may then be repeated.`,
        { ...cause, retryable: true },
      );
    case '42501':
      return new StoreError(
        'store_unavailable',
        `The role that connects to ${where} may not do this (${said}). docs/postgres.md has the GRANTs that it needs.`,
        cause,
      );
    case '28P01':
    case '28000':
    case '3D000':
      return refusedUs(error, where);
    case '58030':
      return new StoreError(
        'store_io',
        `The disk of ${where} failed (${said}). What was being written may or may not have happened.`,
        { ...cause, retryable: true },
      );
    case 'XX001':
    case 'XX002':
      return new StoreError('store_corrupt', `${where} is damaged (${said}). Restore a backup.`, cause);
    case '3F000':
    case '42P01':
    case '42883':
      return new StoreError(
        'store_unsupported',
        `${where} lacks a part of Holdfast's tables (${said}). Open it once with a role that may create them, or without migrate: 'never'.`,
        cause,
      );
    default:
      if (error instanceof NoConnection) return refusedUs(error, where);
      // A mistake of ours is no failure of the database, and must not be told as one.
      return 'severity' in Object(error)
        ? new StoreError('store_unavailable', `${where} refused a statement (${code}): ${said}`, cause)
        : error;
  }
}

function refusedUs(error: unknown, where: string): StoreError {
  return new StoreError(
    'store_unavailable',
    `${where} did not let us in: ${messageOf(error)}. Look at the user, password, database and TLS settings of the connection.`,
    { cause: error },
  );
}

function messageOf(error: unknown): string {
  // A host with several addresses fails with an error for each, and no message.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
