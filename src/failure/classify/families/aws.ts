import type { ErrorFields } from '../error-fields.ts';
import { read } from '../inspect.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** Errors of AWS by name. Many have the status 400, which says nothing by itself. */
const NAMES: Table = {
  Throttling: 'throttled',
  ThrottlingException: 'throttled',
  ThrottledException: 'throttled',
  RequestThrottled: 'throttled',
  RequestThrottledException: 'throttled',
  TooManyRequestsException: 'throttled',
  ProvisionedThroughputExceededException: 'throttled',
  ProvisionedThroughputExceeded: 'throttled',
  TransactionInProgressException: 'db.serialization',
  RequestLimitExceeded: 'throttled',
  BandwidthLimitExceeded: 'throttled',
  LimitExceededException: 'throttled',
  PriorRequestNotComplete: 'throttled',
  SlowDown: 'throttled',
  EC2ThrottledException: 'throttled',
  KmsThrottled: 'throttled',
  KMSThrottlingException: 'throttled',
  OverLimit: 'throttled',
  ReplicatedWriteConflictException: 'db.serialization',
  ModelNotReadyException: 'http.5xx',
  ModelTimeoutException: 'timeout',
  ModelErrorException: 'http.5xx unknown',
  ModelStreamErrorException: 'http.5xx unknown',
  ServiceQuotaExceededException: 'quota.exhausted',
  MaxSendingRateExceeded: 'throttled',
  DailyQuotaExceeded: 'quota.exhausted rate_limited',
  AccountSendingPausedException: 'quota.exhausted',
  ConditionalCheckFailedException: { reason: 'conflict', ambiguous: true },
  ConditionalCheckFailed: { reason: 'conflict', ambiguous: true },
  ConditionalRequestConflict: 'http.409 transient',
  PreconditionFailed: 'conflict',
  TransactionConflictException: 'db.serialization',
  TransactionConflict: 'db.serialization',
  OperationAborted: 'http.409 transient',
  ConcurrentModificationException: 'http.409 transient',
  IdempotentParameterMismatchException: 'validation',
  BucketAlreadyExists: 'conflict',
  BucketAlreadyOwnedByYou: 'conflict',
  ResourceAlreadyExistsException: 'conflict',
  ResourceInUseException: 'http.409 transient',
  ResourceConflictException: 'http.409 transient',
  ResourceNotReadyException: 'http.5xx transient',
  ItemCollectionSizeLimitExceededException: 'quota.exhausted',
  AccessDenied: 'auth.forbidden',
  AccessDeniedException: 'auth.forbidden',
  UnauthorizedOperation: 'auth.forbidden',
  AuthorizationError: 'auth.forbidden',
  AuthorizationErrorException: 'auth.forbidden',
  NotAuthorizedException: 'auth.invalid',
  OptInRequired: 'auth.forbidden',
  AccountProblem: 'auth.forbidden',
  AllAccessDisabled: 'auth.forbidden',
  InvalidSecurity: 'auth.forbidden',
  KMSAccessDeniedException: 'auth.forbidden',
  KmsAccessDenied: 'auth.forbidden',
  InvalidAccessKeyId: 'auth.invalid',
  InvalidClientTokenId: 'auth.invalid',
  UnrecognizedClientException: 'auth.invalid',
  UnrecognizedClient: 'auth.invalid',
  SignatureDoesNotMatch: 'auth.invalid',
  InvalidSignatureException: 'auth.invalid',
  IncompleteSignature: 'auth.invalid',
  IncompleteSignatureException: 'auth.invalid',
  MissingAuthenticationToken: 'auth.invalid',
  MissingAuthenticationTokenException: 'auth.invalid',
  InvalidToken: 'auth.invalid',
  AuthFailure: 'auth.invalid',
  CredentialsProviderError: 'auth.invalid',
  CredentialsError: 'auth.invalid',
  ProviderError: 'auth.invalid',
  InvalidIdentityToken: 'auth.invalid',
  ExpiredToken: 'auth.expired transient',
  ExpiredTokenException: 'auth.expired transient',
  TokenRefreshRequired: 'auth.expired transient',
  ExpiredTokenId: 'auth.expired transient',
  RequestExpired: 'auth.clock_skew',
  RequestTimeTooSkewed: 'auth.clock_skew',
  RequestInTheFuture: 'auth.clock_skew',
  InvalidSignatureTimestamp: 'auth.clock_skew',
  RequestTimeout: 'net.timeout',
  RequestTimeoutException: 'net.timeout',
  RequestAbortedException: 'abort',
  InternalError: 'http.5xx',
  InternalFailure: 'http.5xx',
  InternalServerException: 'http.5xx',
  InternalServerErrorException: 'http.5xx',
  InternalServiceError: 'http.5xx',
  InternalServiceException: 'http.5xx',
  InternalErrorException: 'http.5xx',
  ServiceException: 'http.5xx',
  ServiceUnavailable: { reason: 'http.5xx', ambiguous: false },
  ServiceUnavailableException: { reason: 'http.5xx', ambiguous: false },
  ServiceFailureException: 'http.5xx',
  DependencyTimeoutException: 'http.5xx',
  KMSInternalException: 'http.5xx',
  KMSInvalidStateException: 'http.5xx unknown',
  EntityTooLarge: 'too_large',
  MaxMessageLengthExceeded: 'too_large',
  BatchRequestTooLong: 'too_large',
  RequestEntityTooLargeException: 'too_large',
  RequestTooLargeException: 'too_large',
  PermanentRedirect: 'http.redirect',
  TemporaryRedirect: 'http.redirect transient',
  AuthorizationHeaderMalformed: 'http.redirect',
  IllegalLocationConstraintException: 'http.redirect',
  NoSuchKey: 'http.404',
  NoSuchBucket: 'http.404',
  NoSuchUpload: 'http.404',
  NoSuchVersion: 'http.404',
  QueueDoesNotExist: 'not_found',
  'AWS.SimpleQueueService.NonExistentQueue': 'not_found',
  QueueDeletedRecently: 'http.409 transient',
  ReceiptHandleIsInvalid: 'validation',
  InvalidReceiptHandle: 'validation',
  MessageNotInflight: 'conflict',
  PurgeQueueInProgress: 'throttled',
  ResourceNotFoundException: 'not_found',
  TableNotFoundException: 'not_found',
  FunctionNotFoundException: 'not_found',
  NotFoundException: 'not_found',
  NoSuchEntity: 'not_found',
  NoSuchEntityException: 'not_found',
  ParameterNotFound: 'not_found',
  StateMachineDoesNotExist: 'not_found',
  ExecutionDoesNotExist: 'not_found',
  ExecutionAlreadyExists: 'conflict',
  InvalidParameterException: 'validation',
  InvalidParameterValueException: 'validation',
  InvalidParameterValue: 'validation',
  InvalidParameterCombination: 'validation',
  MissingParameter: 'validation',
  ValidationException: 'validation',
  SerializationException: 'validation',
  MalformedXML: 'validation',
  InvalidRequestException: 'validation',
  InvalidBucketName: 'validation',
  InvalidDigest: 'validation',
  BadDigest: 'net.reset',
  IncompleteBody: 'net.reset',
  XAmzContentSHA256Mismatch: 'net.reset unknown',
  MessageRejected: 'validation',
  MailFromDomainNotVerifiedException: 'auth.forbidden',
  InvalidObjectState: 'conflict',
  NotFound: 'not_found',
  NotImplemented: 'not_implemented',
  MethodNotAllowed: 'http.4xx',
  ProvisionedConcurrencyConfigNotFoundException: 'not_found',
  CodeStorageExceededException: 'quota.exhausted',
  InvalidClientException: 'auth.invalid',
};

/** Reasons inside a cancelled transaction. If there are several, the one that a retry is most likely to solve counts. */
const CANCELLED: Table = {
  TransactionConflict: 'db.serialization',
  ThrottlingError: 'throttled',
  ProvisionedThroughputExceeded: 'throttled',
  ConditionalCheckFailed: 'conflict',
  ItemCollectionSizeLimitExceeded: 'quota.exhausted',
  ValidationError: 'validation',
};

export const aws: Family = {
  name: 'aws',
  sorts: ['answered', 'coded', 'bare'],
  bodyCodes: pick(NAMES),
  recognise: byName,
};

/** Names that no other service uses with another meaning. */
function pick(names: Table): Table {
  return Object.fromEntries(
    Object.entries(names).filter(
      ([name]) =>
        /Exception$|^Throttling$|^SlowDown$|^ExpiredToken$|^NoSuch|^RequestLimitExceeded$/.test(name) &&
        name !== 'ServiceException',
    ),
  );
}

function byName(fields: ErrorFields): Finding | undefined {
  if (!isAws(fields)) return undefined;
  const list = fields.get('CancellationReasons');
  if (fields.name === 'TransactionCanceledException' || list !== undefined) return byCancellation(list);
  if (isThrottling(fields)) return found('throttled', '$retryable');
  // The signature is right, but a clock is wrong.
  if (/^signature (?:expired|not yet current)\b/i.test(fields.message))
    return found('auth.clock_skew', 'message', 'code');
  const names = [
    [fields.name, 'name'],
    [fields.text('Code'), 'Code'],
    [fields.code, 'code'],
    [fields.class, 'name'],
  ] as const;
  for (const [name, field] of names) {
    if (typeof name !== 'string') continue;
    const known = lookUp(NAMES, name.slice(name.indexOf('#') + 1), field);
    if (known) return known;
  }
  // A 400 of AWS with an unknown name may mean anything.
  const { status } = fields;
  if (status?.number === 400)
    return found(/Throttl|TooManyRequests|RateExceeded/.test(fields.name) ? 'throttled' : 'http.4xx unknown', 'name');
  return undefined;
}

function isAws(fields: ErrorFields): boolean {
  return (
    fields.get('$metadata') !== undefined ||
    fields.get('$fault') !== undefined ||
    fields.get('tryNextLink') !== undefined ||
    // The client of MinIO.
    fields.is('S3Error') ||
    (fields.get('requestId') !== undefined && fields.get('retryDelay') !== undefined)
  );
}

function isThrottling(fields: ErrorFields): boolean {
  return fields.in('$retryable', 'throttling') === true;
}

function byCancellation(list: unknown): Finding {
  const codes = Array.from({ length: 100 }, (_, i) => read(read(list, i), 'Code'));
  for (const [code, answer] of Object.entries(CANCELLED)) {
    if (codes.includes(code)) return found(answer, 'CancellationReasons');
  }
  return found('db.serialization unknown', 'CancellationReasons');
}
