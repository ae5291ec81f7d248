import type { ErrorFields } from '../error-fields.ts';
import { read, readText } from '../inspect.ts';
import { type Family, type Finding, lookUp, type Table } from '../meaning.ts';

/** Codes of Azure's services: storage, Service Bus, Event Hubs, Cosmos, Resource Manager. */
const CODES: Table = {
  ServerBusy: 'throttled',
  ServerBusyError: 'throttled',
  ServiceBusy: 'throttled',
  ServiceBusyError: 'throttled',
  OperationTimedOut: 'http.5xx',
  InternalError: 'http.5xx',
  TooManyRequests: 'throttled',
  AccountIsDisabled: 'auth.forbidden',
  LeaseAlreadyPresent: 'http.409 transient',
  LeaseIdMissing: 'http.409 transient',
  LeaseIdMismatchWithBlobOperation: 'conflict',
  LeaseLost: 'conflict',
  ContainerBeingDeleted: 'http.409 transient',
  ContainerBeingDisabled: 'http.409 transient',
  QueueBeingDeleted: 'http.409 transient',
  TableBeingDeleted: 'http.409 transient',
  ShareBeingDeleted: 'http.409 transient',
  BlobBeingRehydrated: 'http.409 transient',
  PendingCopyOperation: 'http.409 transient',
  SharingViolation: 'fs.locked',
  FileLockConflict: 'fs.locked',
  ContainerAlreadyExists: 'conflict',
  BlobAlreadyExists: 'conflict',
  QueueAlreadyExists: 'conflict',
  TableAlreadyExists: 'conflict',
  EntityAlreadyExists: 'conflict',
  ResourceAlreadyExists: 'conflict',
  ConditionNotMet: 'conflict',
  UpdateConditionNotSatisfied: 'conflict',
  TargetConditionNotMet: 'conflict',
  RequestBodyTooLarge: 'too_large',
  MessageSizeExceeded: 'too_large',
  MessageSizeExceededError: 'too_large',
  AuthenticationFailed: 'auth.invalid',
  InvalidAuthenticationInfo: 'auth.invalid',
  NoAuthenticationInformation: 'auth.invalid',
  InvalidAuthenticationToken: 'auth.invalid',
  ExpiredAuthenticationToken: 'auth.expired transient',
  AuthorizationFailure: 'auth.forbidden',
  AuthorizationFailed: 'auth.forbidden',
  AuthorizationPermissionMismatch: 'auth.forbidden',
  AuthorizationServiceMismatch: 'auth.forbidden',
  InsufficientAccountPermissions: 'auth.forbidden',
  UnauthorizedError: 'auth.forbidden',
  UnauthorizedAccess: 'auth.forbidden',
  QuotaExceeded: 'quota.exhausted',
  QuotaExceededError: 'quota.exhausted',
  AccountQuotaExceeded: 'quota.exhausted',
  InsufficientStorage: 'quota.exhausted',
  MessagingEntityNotFound: 'not_found',
  MessagingEntityNotFoundError: 'not_found',
  MessagingEntityDisabled: 'mq.rejected',
  MessagingEntityAlreadyExists: 'conflict',
  MessageLockLost: 'mq.locked unknown',
  MessageLockLostError: 'mq.locked unknown',
  SessionLockLost: 'mq.locked',
  SessionLockLostError: 'mq.locked',
  SessionCannotBeLocked: 'mq.locked',
  SessionCannotBeLockedError: 'mq.locked',
  ServiceCommunicationProblem: 'mq.connection',
  ServiceCommunicationError: 'mq.connection',
  ServiceTimeout: 'timeout',
  ServiceUnavailableError: 'mq.unavailable',
  OperationTimeoutError: 'timeout',
  InternalServerError: 'http.5xx',
  ReceiverDisconnectedError: 'mq.locked',
  GeneralError: 'mq.unavailable unknown',
  REQUEST_SEND_ERROR: 'net.failed',
  PARSE_ERROR: 'data.parse',
};

const NAMES: Table = {
  CredentialUnavailableError: 'auth.invalid',
  CredentialUnavailable: 'auth.invalid',
  AuthenticationRequiredError: 'auth.invalid',
  AggregateAuthenticationError: 'auth.invalid',
};

const CLASSES = ['RestError', 'ServiceBusError', 'MessagingError', 'EventHubsError', 'StorageError'];

export const azure: Family = { name: 'azure', sorts: ['answered', 'coded'], vendorNames: NAMES, recognise: byCode };

function byCode(fields: ErrorFields): Finding | undefined {
  if (!fields.is(...CLASSES) && fields.in('details', 'errorCode') === undefined) return undefined;
  const details = fields.get('details');
  const coded =
    lookUp(CODES, fields.code, 'code') ??
    lookUp(CODES, readText(details, 'errorCode'), 'details.errorCode') ??
    // Table storage uses OData.
    lookUp(CODES, readText(read(details, 'odataError'), 'code'), 'details.odataError.code');
  if (coded?.meaning.reason === 'data.parse' || coded?.meaning.reason === 'net.failed') {
    // The client's own code. The status of the response, or the system's code in the cause, says more.
    return fields.status === undefined ? { ...coded, strength: 'hint' } : undefined;
  }
  return coded;
}
