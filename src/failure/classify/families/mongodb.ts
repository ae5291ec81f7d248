import type { ErrorFields } from '../error-fields.ts';
import { read } from '../inspect.ts';
import { type Family, type Finding, found, lookUp, SERVER_IS_FULL, type Table } from '../meaning.ts';

/** Codes of the MongoDB server. 13 is a missing permission here and an internal error in gRPC. */
const NUMBERS: Table = {
  2: 'validation',
  6: 'db.connection',
  7: 'db.connection',
  8: 'db.internal',
  9: 'validation',
  11: 'auth.invalid',
  13: 'auth.forbidden',
  14: 'db.data',
  18: 'auth.invalid',
  24: 'db.locked',
  26: 'db.schema',
  27: 'db.schema',
  31: 'auth.forbidden',
  33: 'auth.invalid',
  36: 'db.resources',
  40: 'conflict',
  43: 'db.unavailable',
  46: 'db.locked',
  48: 'conflict',
  50: 'db.timeout',
  59: 'db.schema',
  63: 'db.unavailable',
  64: 'db.timeout',
  66: 'db.data',
  72: 'validation',
  73: 'db.schema',
  85: 'conflict',
  86: 'conflict',
  89: 'db.connection',
  // While the server shuts down or steps down, a write that has begun may have its effect.
  91: { reason: 'db.unavailable', ambiguous: true },
  96: 'db.internal',
  98: 'db.locked',
  107: 'db.locked',
  112: 'db.serialization',
  115: 'not_implemented',
  117: 'db.locked',
  121: 'validation',
  133: 'db.unavailable',
  134: 'db.unavailable',
  136: 'db.resources',
  146: 'db.resources',
  189: { reason: 'db.unavailable', ambiguous: true },
  202: 'db.timeout',
  216: 'db.unavailable',
  225: 'db.serialization',
  234: 'db.unavailable',
  244: 'db.serialization',
  246: 'db.unavailable',
  251: 'db.serialization',
  256: 'db.transaction',
  261: 'db.resources',
  262: 'db.timeout',
  267: 'db.serialization',
  290: 'db.resources',
  292: 'db.resources',
  299: 'db.schema',
  334: 'db.serialization',
  391: 'auth.expired',
  462: 'db.unavailable',
  8000: 'auth.invalid',
  9001: 'db.connection',
  10003: 'db.data',
  10058: 'db.unavailable',
  10107: 'db.unavailable',
  10334: 'too_large',
  11000: 'db.unique',
  11001: 'db.unique',
  11600: { reason: 'db.unavailable', ambiguous: true },
  11601: 'abort',
  11602: { reason: 'db.unavailable', ambiguous: true },
  12501: SERVER_IS_FULL,
  12582: 'db.unique',
  13388: 'db.unavailable',
  13435: 'db.unavailable',
  13436: 'db.unavailable',
  14031: SERVER_IS_FULL,
  16500: 'throttled',
  16755: 'db.data',
  17280: 'too_large',
};

const NAMES: Table = {
  MongoServerSelectionError: 'db.connection',
  MongoNetworkError: 'db.connection',
  MongoNetworkTimeoutError: 'db.connection',
  MongoTopologyClosedError: 'net.closed_client',
  MongoClientClosedError: 'net.closed_client',
  MongoOperationTimeoutError: 'db.timeout',
  MongoWaitQueueTimeoutError: 'db.pool_timeout',
  MongoPoolClearedError: 'db.connection',
  MongoPoolClosedError: 'net.closed_client',
  MongoWriteConcernError: 'db.timeout',
  MongoParseError: 'validation',
  MongoInvalidArgumentError: 'code.bug',
  MongoMissingDependencyError: 'code.bug',
  MongoNotConnectedError: 'code.bug',
  MongoAPIError: 'code.bug',
  MongoTransactionError: 'code.bug',
  MongoExpiredSessionError: 'code.bug',
  MongoCursorExhaustedError: 'code.bug',
  MongoCursorInUseError: 'code.bug',
  MongoCompatibilityError: 'not_implemented',
  MongoMissingCredentialsError: 'auth.invalid',
  MongoAWSError: 'auth.invalid',
  MongoKerberosError: 'auth.invalid',
  MongoOIDCError: 'auth.invalid',
  MongoAzureError: 'auth.invalid',
  MongoCryptError: 'db.data',
  MongoSystemError: 'db.connection',
  BSONError: 'db.data',
  MongooseServerSelectionError: 'db.connection',
  VersionError: 'conflict transient',
  ParallelSaveError: 'code.bug',
  DocumentNotFoundError: 'not_found',
  CastError: 'validation',
  StrictModeError: 'validation',
  OverwriteModelError: 'code.bug',
  MissingSchemaError: 'code.bug',
  ObjectExpectedError: 'validation',
  StrictPopulateError: 'code.bug',
  DivergentArrayError: 'code.bug',
  MongooseBulkWriteError: 'db.data',
};

export const mongodb: Family = {
  name: 'mongodb',
  sorts: ['numbered', 'bare'],
  vendorNames: NAMES,
  recognise: byNumber,
};

function byNumber(fields: ErrorFields): Finding | undefined {
  if (!isMongo(fields)) return undefined;
  const labels = fields.get('errorLabelSet') ?? fields.get('errorLabels');
  // Atlas has one code for all its own refusals.
  if (fields.code === 8000 && !/\bauth/i.test(fields.message))
    return found(/\bquota\b/i.test(fields.message) ? 'quota.exhausted' : 'db.internal', 'message');
  const known = lookUp(NUMBERS, fields.code, 'code');
  if (known && known.meaning.reason !== 'db.internal') {
    return hasLabel(labels, 'UnknownTransactionCommitResult')
      ? { ...known, meaning: { ...known.meaning, ambiguous: true } }
      : known;
  }
  if (hasLabel(labels, 'TransientTransactionError') && typeof fields.code === 'number')
    return found('db.serialization', 'errorLabels');
  if (hasLabel(labels, 'RetryableWriteError') && typeof fields.code === 'number')
    return found('db.unavailable', 'errorLabels');
  if (/^MongoNetwork/.test(fields.name) && fields.get('beforeHandshake') === true) {
    return found({ reason: 'db.connection', ambiguous: false }, 'name');
  }
  // No server could be selected, so nothing was sent.
  if (fields.name === 'MongoServerSelectionError' || fields.name === 'MongooseServerSelectionError') {
    return found({ reason: 'db.connection', ambiguous: false }, 'name');
  }
  return known;
}

function isMongo(fields: ErrorFields): boolean {
  return (
    /^Mongo/.test(fields.name) ||
    /^Mongo/.test(fields.class) ||
    fields.get('codeName') !== undefined ||
    fields.text('errmsg') !== undefined
  );
}

function hasLabel(labels: unknown, label: string): boolean {
  if (labels instanceof Set) return labels.has(label);
  for (let i = 0; i < 16; i++) {
    const found = read(labels, i);
    if (found === undefined) return false;
    if (found === label) return true;
  }
  return false;
}
