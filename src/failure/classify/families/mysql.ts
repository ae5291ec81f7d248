import type { ErrorFields } from '../error-fields.ts';
import { type Answer, type Family, type Finding, found, lookUp, SERVER_IS_FULL, type Table } from '../meaning.ts';
import { byGrpcMessage } from './grpc.ts';
import { answerFor, byPoolerWords } from './postgres.ts';

/** Error numbers of MySQL and MariaDB. */
const NUMBERS: Table = {
  1005: 'db.schema',
  1007: 'conflict',
  1020: 'db.serialization',
  1021: SERVER_IS_FULL,
  1022: 'db.unique',
  1023: { reason: 'fs.io', fault: 'source' },
  1025: 'db.internal',
  1026: { reason: 'fs.io', fault: 'source' },
  1030: 'db.internal',
  1036: 'db.unavailable',
  1037: 'db.resources',
  1038: 'db.resources',
  1040: { reason: 'db.connection', ambiguous: false },
  1041: 'db.resources',
  1044: 'auth.forbidden',
  1045: 'auth.invalid',
  1046: 'db.schema',
  1048: 'db.constraint',
  1049: 'db.schema',
  1050: 'conflict',
  1051: 'db.schema',
  1052: 'db.schema',
  // While the server shuts down, a statement that has begun may have its effect.
  1053: { reason: 'db.unavailable', ambiguous: true },
  1054: 'db.schema',
  1062: 'db.unique',
  1064: 'db.schema',
  1069: 'db.schema',
  1114: SERVER_IS_FULL,
  1129: 'auth.forbidden',
  1130: 'auth.forbidden',
  1136: 'db.schema',
  1142: 'auth.forbidden',
  1143: 'auth.forbidden',
  1146: 'db.schema',
  1153: 'too_large',
  1158: 'db.connection',
  1159: 'db.connection',
  1160: 'db.connection',
  1161: 'db.connection',
  1169: 'db.unique',
  1194: 'db.corrupt',
  1195: 'db.corrupt',
  1203: { reason: 'db.connection', ambiguous: false },
  1205: 'db.locked',
  1206: 'db.resources',
  1213: 'db.serialization',
  1216: 'db.constraint',
  1217: 'db.constraint',
  1226: 'quota.exhausted rate_limited',
  1227: 'auth.forbidden',
  1231: 'db.schema',
  1251: 'auth.invalid',
  1264: 'db.data',
  1265: 'db.data',
  1290: 'db.unavailable',
  1292: 'db.data',
  1305: 'db.schema',
  1317: 'db.timeout',
  1364: 'db.constraint',
  1366: 'db.data',
  1370: 'auth.forbidden',
  1390: 'too_large',
  1406: 'db.data',
  1451: 'db.constraint',
  1452: 'db.constraint',
  1557: 'db.constraint',
  1586: 'db.unique',
  1613: 'db.timeout',
  1614: 'db.serialization',
  1637: 'db.resources',
  1690: 'db.data',
  1698: 'auth.invalid',
  1792: 'db.unavailable',
  1820: 'auth.expired',
  1836: 'db.unavailable',
  1859: 'db.unique',
  1862: 'auth.expired',
  1927: 'db.connection',
  1969: 'db.timeout',
  2002: { reason: 'db.connection', ambiguous: false },
  2003: { reason: 'db.connection', ambiguous: false },
  2005: { reason: 'db.connection', ambiguous: false },
  2006: 'db.connection',
  2013: 'db.connection',
  3024: 'db.timeout',
  3058: 'db.serialization',
  3101: 'db.serialization',
  3169: 'db.connection',
  3572: 'db.locked',
  3819: 'db.constraint',
  4025: 'db.constraint',
  4031: 'db.connection',
  8002: 'db.serialization',
  // ProxySQL: no server became available in time.
  9001: 'db.unavailable',
  9007: 'db.serialization',
};

/** Codes of the drivers, and codes of the server that come without a number. */
const CODES: Table = {
  PROTOCOL_CONNECTION_LOST: 'db.connection',
  PROTOCOL_SEQUENCE_TIMEOUT: 'db.timeout',
  PROTOCOL_ENQUEUE_AFTER_QUIT: 'net.closed_client',
  PROTOCOL_ENQUEUE_AFTER_DESTROY: 'net.closed_client',
  PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR: 'db.connection',
  PROTOCOL_PACKETS_OUT_OF_ORDER: { reason: 'net.protocol', ambiguous: true },
  POOL_CLOSED: 'net.closed_client',
  POOL_NOEXIST: 'code.bug',
  POOL_ENQUEUELIMIT: 'db.pool_timeout',
  POOL_NONEONLINE: 'db.connection',
  HANDSHAKE_NO_SSL_SUPPORT: 'tls.handshake',
  ER_DUP_ENTRY: 'db.unique',
  ER_LOCK_DEADLOCK: 'db.serialization',
  ER_LOCK_WAIT_TIMEOUT: 'db.locked',
  ER_CON_COUNT_ERROR: { reason: 'db.connection', ambiguous: false },
  ER_GET_CONNECTION_TIMEOUT: 'db.pool_timeout',
  ER_CONNECTION_TIMEOUT: 'db.connection',
  ER_SOCKET_TIMEOUT: 'db.timeout',
  ER_SOCKET_UNEXPECTED_CLOSE: 'db.connection',
  ER_POOL_ALREADY_CLOSED: 'net.closed_client',
  ER_CMD_CONNECTION_CLOSED: 'db.connection',
  ER_CONNECTION_ALREADY_CLOSED: 'net.closed_client',
  ER_PARSE_ERROR: 'db.schema',
  ER_NO_SUCH_TABLE: 'db.schema',
  ER_ACCESS_DENIED_ERROR: 'auth.invalid',
};

export const mysql: Family = { name: 'mysql', vendorCodes: CODES, recognise: byNumber };

function byNumber(fields: ErrorFields): Finding | undefined {
  const state = fields.get('sqlState');
  const coded = typeof fields.code === 'string' && fields.code.startsWith('ER_');
  if (typeof state !== 'string' && !coded) return undefined;
  const errno = fields.number('errno');
  const byText = errno !== undefined && isVague(errno) ? byProxyWords(fields.message) : undefined;
  if (byText !== undefined) return found(byText, 'message', 'code');
  const byErrno = lookUp(NUMBERS, errno, 'errno');
  if (byErrno) return byErrno;
  if (coded && Object.hasOwn(CODES, fields.code as string)) return undefined;
  const answer = typeof state === 'string' ? answerFor(state.replace('#', '')) : undefined;
  return answer === undefined ? undefined : found(answer, 'sqlState');
}

/** Numbers that proxies (Vitess, ProxySQL, MaxScale, RDS Proxy) use for several failures, so that only the message says what happened. */
function isVague(errno: number): boolean {
  return errno === 1105 || errno === 1815 || errno === 2003 || errno >= 9_000;
}

function byProxyWords(message: string): Answer | undefined {
  return byGrpcMessage(message) ?? byPoolerWords(message);
}
