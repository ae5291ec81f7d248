import type { ErrorFields } from '../error-fields.ts';
import { type Answer, type Family, type Finding, found, lookUp, SERVER_IS_FULL, type Table } from '../meaning.ts';

/** Oracle: the server's ORA numbers and the driver's NJS codes. */
const ORACLE: Table = {
  'ORA-00001': 'db.unique',
  'ORA-00018': 'db.connection',
  'ORA-00020': 'db.connection',
  'ORA-00028': 'db.connection',
  'ORA-00054': 'db.locked',
  'ORA-00060': 'db.serialization',
  'ORA-00604': 'db.internal',
  'ORA-00600': 'db.internal',
  'ORA-00904': 'db.schema',
  'ORA-00936': 'db.schema',
  'ORA-00942': 'db.schema',
  'ORA-01013': 'db.timeout',
  'ORA-01017': 'auth.invalid',
  'ORA-01031': 'auth.forbidden',
  'ORA-01033': 'db.unavailable',
  'ORA-01034': 'db.unavailable',
  'ORA-01089': 'db.unavailable',
  'ORA-01400': 'db.constraint',
  'ORA-01403': 'not_found',
  'ORA-01422': 'db.data',
  'ORA-01438': 'db.data',
  'ORA-01555': 'db.serialization',
  'ORA-01653': SERVER_IS_FULL,
  'ORA-01722': 'db.data',
  'ORA-02290': 'db.constraint',
  'ORA-02291': 'db.constraint',
  'ORA-02292': 'db.constraint',
  'ORA-03113': 'db.connection',
  'ORA-03114': 'db.connection',
  'ORA-03135': 'db.connection',
  'ORA-04021': 'db.locked',
  'ORA-04031': 'db.resources',
  'ORA-08177': 'db.serialization',
  'ORA-12154': 'validation',
  'ORA-12170': 'db.connection',
  'ORA-12514': 'db.unavailable',
  'ORA-12516': 'db.connection',
  'ORA-12519': 'db.connection',
  'ORA-12520': 'db.connection',
  'ORA-12528': 'db.unavailable',
  'ORA-12541': 'net.refused',
  'ORA-12899': 'db.data',
  'ORA-28000': 'auth.invalid',
  'ORA-28001': 'auth.expired',
  'NJS-003': 'net.closed_client',
  'NJS-040': 'db.pool_timeout',
  'NJS-076': 'db.pool_timeout',
  'NJS-500': 'db.connection',
  'NJS-501': 'auth.invalid',
  'NJS-503': 'net.refused',
  'NJS-510': 'net.timeout',
};

/** Neo4j, by the beginning of its code, the most exact first. */
const NEO4J: readonly (readonly [prefix: string, answer: Answer])[] = [
  ['Neo.TransientError.Transaction.DeadlockDetected', 'db.serialization'],
  ['Neo.TransientError.Transaction.LockClientStopped', 'db.locked'],
  ['Neo.TransientError.General.MemoryPoolOutOfMemory', 'db.resources'],
  ['Neo.TransientError', 'db.unavailable'],
  ['Neo.ClientError.Security.Forbidden', 'auth.forbidden'],
  ['Neo.ClientError.Security', 'auth.invalid'],
  ['Neo.ClientError.Schema.ConstraintValidationFailed', 'db.unique'],
  ['Neo.ClientError.Cluster.NotALeader', 'db.unavailable'],
  ['Neo.ClientError.Transaction.TransactionTimedOut', 'db.timeout'],
  ['Neo.ClientError.Transaction', 'db.transaction'],
  ['Neo.ClientError', 'db.schema'],
  ['Neo.DatabaseError', 'db.internal'],
];

/** Cassandra and ScyllaDB: codes of the native protocol. */
const CASSANDRA: Table = {
  0: 'db.internal',
  10: 'net.protocol',
  256: 'auth.invalid',
  4096: 'db.unavailable',
  4097: 'db.unavailable',
  4098: 'db.unavailable',
  4099: 'db.internal',
  4352: { reason: 'db.timeout', ambiguous: true },
  4608: { reason: 'db.timeout', ambiguous: false },
  8192: 'db.schema',
  8448: 'auth.forbidden',
  8704: 'db.schema',
  8960: 'db.schema',
  9216: 'conflict',
  9472: 'db.schema unknown',
};

const NAMES: Table = {
  NoHostAvailableError: 'db.connection',
  OperationTimedOutError: 'db.timeout',
  BusyConnectionError: 'db.resources',
  ServiceUnavailable: 'db.unavailable',
  SessionExpired: 'db.connection',
  // Couchbase.
  CasMismatchError: 'conflict transient',
  DocumentExistsError: 'db.unique',
  DocumentLockedError: 'db.locked',
  TemporaryFailureError: 'db.unavailable',
  AmbiguousTimeoutError: { reason: 'db.timeout', ambiguous: true },
  UnambiguousTimeoutError: { reason: 'db.timeout', ambiguous: false },
  DurabilityAmbiguousError: { reason: 'db.timeout', ambiguous: true },
  RateLimitedError: 'throttled',
};

/** ClickHouse, by the names of its codes. */
const CLICKHOUSE: Table = {
  UNKNOWN_TABLE: 'db.schema',
  UNKNOWN_DATABASE: 'db.schema',
  UNKNOWN_IDENTIFIER: 'db.schema',
  UNKNOWN_FUNCTION: 'db.schema',
  UNKNOWN_SETTING: 'db.schema',
  SYNTAX_ERROR: 'db.schema',
  NO_SUCH_COLUMN_IN_TABLE: 'db.schema',
  NUMBER_OF_ARGUMENTS_DOESNT_MATCH: 'db.schema',
  ILLEGAL_TYPE_OF_ARGUMENT: 'db.schema',
  TABLE_ALREADY_EXISTS: 'conflict',
  DATABASE_ALREADY_EXISTS: 'conflict',
  TYPE_MISMATCH: 'db.data',
  CANNOT_PARSE_TEXT: 'db.data',
  CANNOT_PARSE_NUMBER: 'db.data',
  CANNOT_PARSE_DATETIME: 'db.data',
  CANNOT_PARSE_INPUT_ASSERTION_FAILED: 'db.data',
  INCORRECT_DATA: 'db.data',
  VIOLATED_CONSTRAINT: 'db.constraint',
  AUTHENTICATION_FAILED: 'auth.invalid',
  UNKNOWN_USER: 'auth.invalid',
  WRONG_PASSWORD: 'auth.invalid',
  REQUIRED_PASSWORD: 'auth.invalid',
  ACCESS_DENIED: 'auth.forbidden',
  READONLY: 'auth.forbidden',
  QUOTA_EXCEEDED: 'quota.exhausted rate_limited',
  TOO_MANY_SIMULTANEOUS_QUERIES: 'db.resources',
  TOO_MANY_PARTS: 'db.resources',
  MEMORY_LIMIT_EXCEEDED: 'db.resources',
  NOT_ENOUGH_SPACE: SERVER_IS_FULL,
  TIMEOUT_EXCEEDED: 'db.timeout',
  TOO_SLOW: 'db.timeout',
  QUERY_WAS_CANCELLED: 'db.timeout',
  SOCKET_TIMEOUT: 'db.connection',
  NETWORK_ERROR: 'db.connection',
  ALL_CONNECTION_TRIES_FAILED: 'db.connection',
  TABLE_IS_READ_ONLY: 'db.unavailable',
  KEEPER_EXCEPTION: 'db.unavailable',
  NO_ZOOKEEPER: 'db.unavailable',
  ALL_REPLICAS_ARE_STALE: 'db.unavailable',
  TOO_FEW_LIVE_REPLICAS: 'db.unavailable',
  UNKNOWN_STATUS_OF_INSERT: { reason: 'db.timeout', ambiguous: true },
  QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING: 'db.locked',
};

/** Result codes of LDAP (RFC 4511). */
const LDAP: Table = {
  1: 'db.internal',
  2: 'net.protocol',
  3: 'db.timeout',
  4: 'too_large',
  7: 'auth.invalid',
  8: 'auth.invalid',
  11: 'db.resources',
  13: 'tls.handshake',
  16: 'db.schema',
  17: 'db.schema',
  19: 'db.constraint',
  20: 'conflict',
  21: 'db.data',
  32: 'not_found',
  34: 'validation',
  48: 'auth.invalid',
  49: 'auth.invalid',
  50: 'auth.forbidden',
  51: 'db.unavailable',
  52: 'db.unavailable',
  53: 'unknown',
  64: 'db.schema',
  65: 'db.constraint',
  66: 'conflict',
  67: 'db.schema',
  68: 'conflict',
};

export const databases: Family = { name: 'databases', sorts: ['coded', 'numbered'], names: NAMES, recognise: byCode };

function byCode(fields: ErrorFields): Finding | undefined {
  const { code } = fields;
  if (typeof code === 'string') {
    if (code.startsWith('ORA-') || code.startsWith('NJS-')) return lookUp(ORACLE, code, 'code');
    if (code.startsWith('Neo.')) {
      const answer = NEO4J.find(([prefix]) => code.startsWith(prefix))?.[1];
      return answer && found(answer, 'code');
    }
    return fields.is('ClickHouseError') ? lookUp(CLICKHOUSE, fields.get('type'), 'type') : undefined;
  }
  // ldapts and ldapjs.
  if (/ Code: 0x[0-9a-f]+$/i.test(fields.message) || fields.get('lde_message') !== undefined)
    return lookUp(LDAP, code, 'code');
  return fields.is('ResponseError') && fields.get('coordinator') !== undefined
    ? lookUp(CASSANDRA, fields.number('code'), 'code')
    : undefined;
}
