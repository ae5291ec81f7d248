import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, type Table } from '../meaning.ts';

/** Time limits and aborts, by the names that the platform and common libraries use. */
const NAMES: Table = {
  TimeoutError: 'timeout',
  AbortError: 'abort',
  AbortException: 'abort',
  ResponseAborted: 'abort',
  OperationCanceledError: 'abort',
  CancellationError: 'abort',
  Cancel: 'abort',
  TaskCancelledError: 'abort',
  CancelledFailure: 'abort',
  TerminatedFailure: 'abort',
  TimeoutFailure: 'timeout',
  RequestTimeoutError: 'timeout',
  RequestAbortedError: 'abort',
  DeadlineExceededError: 'timeout',
  OperationTimeoutError: 'timeout',
  TimeoutException: 'timeout',
  ExitPromptError: 'abort',
};

export const abort: Family = {
  name: 'abort',
  sorts: ['numbered', 'bare'],
  codes: {
    ERR_OPERATION_ABORTED: 'abort',
    E_TIMEOUT: 'timeout',
    E_CANCELED: 'abort',
    ETIME: 'timeout',
    ERR_TIMEOUT: 'timeout',
    TIMEOUT: 'timeout',
    ABORTED: 'abort',
  },
  names: NAMES,
  recognise: byDomException,
};

/** A DOMException is recognised by its name. Its `code` is a legacy number. */
function byDomException(fields: ErrorFields): Finding | undefined {
  if (fields.class !== 'DOMException' && fields.class !== 'QuotaExceededError') return undefined;
  switch (fields.name) {
    case 'QuotaExceededError':
      return found('quota.exhausted', 'name');
    case 'ConstraintError':
      return found('db.constraint', 'name');
    case 'DataCloneError':
    case 'InvalidStateError':
    case 'InvalidAccessError':
    case 'InvalidCharacterError':
      return found('code.bug', 'name');
    case 'SyntaxError':
      return found('validation', 'name');
    case 'NetworkError':
      return found('net.failed', 'name');
    case 'NotFoundError':
      return found('not_found', 'name');
    case 'NotSupportedError':
      return found('not_implemented', 'name');
    case 'NotAllowedError':
    case 'SecurityError':
      return found('auth.forbidden', 'name');
    case 'EncodingError':
    case 'DataError':
    case 'OperationError':
      return found('data.parse permanent', 'name');
    default:
      return undefined;
  }
}
