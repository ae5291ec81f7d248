import { StoreError } from '../../errors.ts';

/** The codes that our own functions raise. */
export const UNIQUE_CONFLICT = 'HF001';

/** The code of an error of PostgreSQL or of the connection. */
export function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/** No connection could be made, so nothing was sent. */
export class NoConnection extends Error {
  readonly code: string;

  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
    this.code = codeOf(cause);
  }
}

/**
 * Whether it is unknown what happened to the statement: the connection broke, was never made, or gave no answer in time. The
 * statement may have had its effect.
 */
export function isLost(error: unknown): boolean {
  const code = codeOf(error);
  // A primary that became a standby accepts no writes any more; another server does.
  if (/^(?:08|57P0)/.test(code) || isReadOnly(error)) return true;
  if (/^E(?:CONN|PIPE|AI_|HOST|NET|TIMEDOUT|NOTFOUND)/.test(code)) return true;
  // A socket in a folder without a server.
  if (code === 'ENOENT') return error instanceof NoConnection;
  return /Connection terminated|timeout|Client has encountered a connection error|socket|server closed/i.test(
    code === '' ? messageOf(error) : '',
  );
}

/** Whether the server runs and will accept connections soon. */
export function isStarting(error: unknown): boolean {
  return codeOf(error) === '57P03';
}

/** Whether the server is read-only: a standby, a primary that became one, or a setting. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === '25006';
}

/** Whether another transaction held a lock for longer than the statement waits: nothing was changed. */
export function isBlocked(error: unknown): boolean {
  return codeOf(error instanceof StoreError ? error.cause : error) === '55P03';
}

/** The transaction that holds a lock, as far as it is known. */
export interface Blocker {
  readonly pid: number;
  readonly application: string;
  /** Null where the role may not see it. */
  readonly openFor: number | null;
}

export function blockedError(error: unknown, where: string, blocker: Blocker | undefined): StoreError {
  const text = `${where} did not do this, and nothing was changed: another transaction holds a lock on the task, its key or its queue.`;
  return new StoreError('store_busy', `${text} ${adviceOn(blocker)}`, { cause: error, retryable: true });
}

function adviceOn(blocker: Blocker | undefined): string {
  if (!blocker) return 'That transaction has ended by now: try again.';
  const { pid, application, openFor } = blocker;
  const name = application === '' ? 'without an application name' : `application ${JSON.stringify(application)}`;
  const since = openFor === null ? '' : ` It has been open for ${Math.round(openFor / 1000)} s.`;
  return `The oldest open transaction that writes to Holdfast's tables is that of process ${pid} (${name}).${since} Commit it or roll it back, or end it with: select pg_terminate_backend(${pid})`;
}

/** Whether the server was too busy: it did nothing, and the same call may be repeated. */
export function isBusy(error: unknown): boolean {
  if (/^(?:40001|40P01|55P03|57014|53300|53400)$/.test(codeOf(error))) return true;
  // The first attempt of the same call, whose answer was lost, was still running. It has finished by now.
  return codeOf(error) === '23505' && (error as { constraint?: string }).constraint === 'calls_pkey';
}

/** What ends a statement whose answer is not waited for because the store is closed. */
export class GivenUp extends StoreError {
  constructor(where: string) {
    super('store_unavailable', `${where} did not answer before it was closed. The last call may have had an effect.`, {
      retryable: true,
    });
    // Callers get it like any other error of the store.
    this.name = 'StoreError';
  }
}

/** Whether the client stopped waiting for the answer of a statement on a connection that may be sound. */
export function isGivenUp(error: unknown): boolean {
  return error instanceof GivenUp || (error instanceof Error && error.message === 'Query read timeout');
}

/** Whether the server answered, so that its connection can be used again. */
export function isAnswer(error: unknown): boolean {
  return !isLost(error) && 'severity' in Object(error);
}

/** The error for a failure of PostgreSQL: what happened to which database, why, and what to do next. */
export function storeError(error: unknown, where: string): unknown {
  if (error instanceof StoreError) return error;
  const code = codeOf(error);
  const cause = { cause: error };
  const said = messageOf(error);
  if (isReadOnly(error)) {
    return new StoreError(
      'store_read_only',
      `${where} is read-only: it is a standby, or default_transaction_read_only is on. Connect to the primary, or change that setting of the role or database.`,
      { ...cause, retryable: true },
    );
  }
  if (isLost(error)) {
    return new StoreError(
      'store_unavailable',
      `Cannot connect to ${where} (${said}). Check that the server runs and that the address is right. The last call may have had an effect; everything that was acknowledged before it is stored.`,
      { ...cause, retryable: true },
    );
  }
  if (isBusy(error)) {
    return new StoreError(
      'store_busy',
      `${where} was too busy for a statement (${code}: ${said}). Nothing was changed. Try again.`,
      { ...cause, retryable: true },
    );
  }
  switch (code) {
    case '53100':
      return new StoreError(
        'store_full',
        `There is no space left for ${where}. The last write was rolled back, and everything before it is intact. Free some space, then repeat the call.`,
        { ...cause, retryable: true },
      );
    case '42501':
      return new StoreError(
        'store_unavailable',
        `The role that connects to ${where} is not allowed to do this (${said}). docs/operations/postgres.md lists the GRANTs that it needs.`,
        cause,
      );
    case '28P01':
    case '28000':
    case '3D000':
      return refusedLogin(error, where);
    case '58030':
      return new StoreError(
        'store_io',
        `The disk of ${where} failed (${said}). The last write may or may not be stored: look the task up before you enqueue it again.`,
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
        `${where} lacks some of Holdfast's tables or functions (${said}). Open it once with a role that may create them, without migrate: 'never'.`,
        cause,
      );
    default:
      if (error instanceof NoConnection) return refusedLogin(error, where);
      // A bug of ours is not a failure of the database, and must not be reported as one.
      return 'severity' in Object(error)
        ? new StoreError('store_unavailable', `${where} refused a statement (${code}): ${said}`, cause)
        : error;
  }
}

function refusedLogin(error: unknown, where: string): StoreError {
  return new StoreError(
    'store_unavailable',
    `${where} refused the login: ${messageOf(error)}. Check the user, password, database and TLS settings of the connection.`,
    { cause: error },
  );
}

function messageOf(error: unknown): string {
  // A host with several addresses fails with an error for each, and no message.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
