import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, lookUp, SERVER_IS_FULL, type Table } from '../meaning.ts';

/** Error numbers of SQL Server and Azure SQL. 1205 is a deadlock here and a lock wait in MySQL. */
const NUMBERS: Table = {
  102: 'db.schema',
  156: 'db.schema',
  201: 'db.schema',
  207: 'db.schema',
  208: 'db.schema',
  213: 'db.schema',
  229: 'auth.forbidden',
  230: 'auth.forbidden',
  245: 'db.data',
  262: 'auth.forbidden',
  515: 'db.constraint',
  547: 'db.constraint',
  701: 'db.resources',
  802: 'db.resources',
  823: 'db.corrupt',
  824: 'db.corrupt',
  825: 'db.corrupt',
  911: 'db.schema',
  916: 'auth.forbidden',
  926: 'db.unavailable',
  976: 'db.unavailable',
  978: 'db.unavailable',
  983: 'db.unavailable',
  1105: SERVER_IS_FULL,
  1204: 'db.resources',
  1205: 'db.serialization',
  1222: 'db.locked',
  1785: 'db.schema',
  2601: 'db.unique',
  2627: 'db.unique',
  2628: 'db.data',
  2714: 'conflict',
  2812: 'db.schema',
  3906: 'db.unavailable',
  3930: 'db.transaction',
  3935: 'db.serialization',
  3960: 'db.serialization',
  3966: 'db.serialization',
  4060: 'auth.forbidden',
  4064: 'auth.forbidden',
  4221: 'db.unavailable',
  4815: 'db.data',
  5701: 'unknown',
  8114: 'db.data',
  8115: 'db.data',
  8134: 'db.data',
  8152: 'db.data',
  8628: 'db.timeout',
  8645: 'db.resources',
  8651: 'db.resources',
  9002: SERVER_IS_FULL,
  10053: 'db.connection',
  10054: 'db.connection',
  10060: 'db.connection',
  10928: 'db.resources',
  10929: 'db.resources',
  10936: 'db.resources',
  11001: 'net.dns',
  14355: 'db.unavailable',
  17142: 'db.unavailable',
  18452: 'auth.invalid',
  18456: 'auth.invalid',
  18486: 'auth.invalid',
  18487: 'auth.expired',
  18488: 'auth.expired',
  20041: 'db.transaction',
  40143: 'db.unavailable',
  40197: 'db.unavailable',
  40501: 'throttled',
  40532: 'auth.invalid',
  40540: 'db.unavailable',
  40544: 'quota.exhausted',
  40549: 'db.resources',
  40550: 'db.resources',
  40551: 'db.resources',
  40552: 'db.resources',
  40553: 'db.resources',
  40613: 'db.unavailable',
  40615: 'auth.forbidden',
  40627: 'db.unavailable',
  41301: 'db.serialization',
  41302: 'db.serialization',
  41305: 'db.serialization',
  41325: 'db.serialization',
  41839: 'db.serialization',
  49918: 'db.resources',
  49919: 'throttled',
  49920: 'throttled',
};

/** Codes of tedious and mssql, if the server gave no number. */
const CODES: Table = {
  ELOGIN: 'auth.invalid',
  EINSTLOOKUP: 'net.dns',
  ECONNCLOSED: { reason: 'db.connection', ambiguous: false },
  ENOTOPEN: { reason: 'db.connection', ambiguous: false },
  EALREADYCONNECTED: 'code.bug',
  EALREADYCONNECTING: 'code.bug',
  EDRIVER: 'code.bug',
  EARGS: 'code.bug',
  EINJECT: 'code.bug',
  EABORT: 'db.transaction',
  ENOTBEGUN: 'code.bug',
  EALREADYBEGUN: 'code.bug',
  EREQINPROG: 'code.bug',
  ENOCONN: { reason: 'db.connection', ambiguous: false },
  ECANCEL: 'abort',
};

const CLASSES = ['RequestError', 'ConnectionError', 'TransactionError', 'PreparedStatementError'];

export const mssql: Family = { name: 'mssql', codes: CODES, recognise: byNumber };

function byNumber(fields: ErrorFields): Finding | undefined {
  const number = fields.number('number');
  const fromServer =
    number !== undefined &&
    (fields.get('state') !== undefined || fields.get('class') !== undefined || fields.get('serverName') !== undefined);
  if (fromServer) return lookUp(NUMBERS, number, 'number');
  // The time limit of a request. c-ares uses the same code for a name that was not resolved in time.
  if (fields.code !== 'ETIMEOUT' || fields.syscall !== '' || !fields.is(...CLASSES)) return undefined;
  return lookUp(
    { ETIMEOUT: fields.is('ConnectionError') ? { reason: 'db.connection', ambiguous: false } : 'db.timeout' },
    fields.code,
    'code',
  );
}
