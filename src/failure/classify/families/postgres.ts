import type { ErrorFields } from '../error-fields.ts';
import { type Answer, type Family, type Finding, found, SERVER_IS_FULL, type Table } from '../meaning.ts';

/** SQLSTATEs whose meaning differs from that of their class. */
const SQLSTATES: Table = {
  '08P01': 'net.protocol',
  '08001': { reason: 'db.connection', ambiguous: false },
  '08004': { reason: 'db.connection', ambiguous: false },
  '08007': 'db.connection',
  '0A000': 'db.schema unknown',
  '21000': 'db.data',
  '23001': 'db.constraint',
  '23505': 'db.unique',
  '25006': 'db.unavailable',
  '25P02': 'db.transaction',
  '25P03': 'db.connection',
  '28P01': 'auth.invalid',
  '28000': 'auth.invalid',
  '2F003': 'auth.forbidden',
  '2BP01': 'db.constraint',
  '34000': 'db.schema',
  '3D000': 'db.schema',
  '3F000': 'db.schema',
  '40001': 'db.serialization',
  '40002': 'db.constraint',
  '40003': { reason: 'db.serialization', ambiguous: true },
  '40P01': 'db.serialization',
  '42501': 'auth.forbidden',
  '42P04': 'conflict',
  '42P06': 'conflict',
  '42P07': 'conflict',
  '42710': 'conflict',
  '42804': 'db.data',
  '44000': 'db.constraint',
  '53100': SERVER_IS_FULL,
  '53200': 'db.resources',
  '53300': { reason: 'db.connection', ambiguous: false },
  '53400': 'db.resources',
  '54000': 'too_large',
  '54001': 'db.schema',
  '55000': 'db.schema unknown',
  '55006': 'db.locked',
  '55P03': 'db.locked',
  '57014': 'db.timeout',
  '57P01': 'db.connection',
  '57P02': 'db.connection',
  '57P03': 'db.unavailable',
  '57P04': 'db.schema',
  '57P05': 'db.connection',
  '58030': 'db.resources',
  '72000': 'db.serialization',
  P0001: 'db.data unknown',
  P0002: 'not_found',
  P0003: 'db.data',
  P0004: 'code.bug',
  XX000: 'db.internal',
  XX001: 'db.corrupt',
  XX002: 'db.corrupt',
  HYT00: 'db.timeout',
  HYT01: 'db.timeout',
  IM002: 'validation',
};

/** Classes of SQLSTATEs, by their first two characters (PostgreSQL's appendix A, and the SQL standard for other databases). */
const CLASSES: Table = {
  '08': 'db.connection',
  '0A': 'not_implemented',
  '22': 'db.data',
  '23': 'db.constraint',
  '24': 'db.transaction',
  '25': 'db.transaction',
  '26': 'db.schema',
  '27': 'db.constraint',
  '28': 'auth.invalid',
  '2D': 'db.transaction',
  '38': 'db.schema unknown',
  '39': 'db.schema unknown',
  '40': 'db.serialization',
  '42': 'db.schema',
  '53': 'db.resources',
  '54': 'too_large',
  '55': 'db.schema unknown',
  '57': 'db.unavailable',
  '58': 'db.internal',
  F0: 'db.schema',
  HV: 'db.connection unknown',
  P0: 'db.data unknown',
  XX: 'db.internal',
};

/** Fields that show that a code is a SQLSTATE. Five digits alone may mean anything. */
const SIGNS = [
  'severity',
  'routine',
  'severity_local',
  'detail',
  'hint',
  'internalQuery',
  'sqlState',
  'sqlstate',
  'where',
];

export const postgres: Family = {
  name: 'postgres',
  // Codes of postgres.js and node-postgres themselves.
  vendorCodes: {
    CONNECTION_CLOSED: 'db.connection',
    CONNECTION_ENDED: 'net.closed_client',
    CONNECTION_DESTROYED: 'db.connection',
    CONNECT_TIMEOUT: { reason: 'db.connection', ambiguous: false },
    SASL_SIGNATURE_MISMATCH: 'auth.invalid',
    AUTH_TYPE_NOT_IMPLEMENTED: 'auth.invalid',
    // PostgREST: its database or its pool.
    PGRST000: { reason: 'db.connection', ambiguous: false },
    PGRST001: { reason: 'db.connection', ambiguous: false },
    PGRST002: { reason: 'db.connection', ambiguous: false },
    PGRST003: 'db.unavailable',
    UNDEFINED_VALUE: 'code.bug',
    MAX_PARAMETERS_EXCEEDED: 'too_large',
    NOT_TAGGED_CALL: 'code.bug',
  },
  recognise: bySqlState,
};

/** SQLSTATEs that poolers use for other failures, so that only the message says what happened. */
const VAGUE_STATES = /^(?:08P01|08000|08006|XX000|58\d{3}|57000)$/;

/**
 * Messages of PgBouncer, Supavisor, Odyssey, PgCat, Pgpool and Neon. First those before the statement reached a server, then those
 * after they lost the server, when the statement may have had its effect.
 */
const POOLERS: readonly (readonly [RegExp, Answer])[] = [
  [
    /\bmax(?:imum)? client(?: connection)?s? (?:connections )?reached\b|\bmax clients reached\b|\bno more connections allowed\b|\bsorry, too many clients\b|\bfailed to acquire permit\b|\btoo many (?:tcp |database )?connection/i,
    'db.unavailable',
  ],
  [
    /\bquery_wait_timeout\b|\b(?:could not|unable to|failed to|timed-? ?out waiting to) (?:get|check ?out|acquire|obtain)\b|\bwaiting for a connection from the pool\b/i,
    'db.unavailable',
  ],
  [
    /\bserver_login_retry\b|\bserver login (?:has been )?fail|\bcannot connect to server\b|\b(?:could ?n[o']t|can't|failed to) connect to\b|\ball (?:backend nodes|servers) are down\b|\bdatabase system is (?:shutting down|starting up)|\bdatabase .{1,80} is (?:paused|disabled)|\bcontrol plane request failed\b/i,
    'db.unavailable',
  ],
  [/\bexceeded the .{1,40}quota\b/i, 'quota.exhausted'],
  [/^(?:query|transaction)[ _]timeout\b/i, 'db.timeout'],
  [
    /\bserver conn(?:ection)? crashed\b|\blost connection to\b|\b(?:server|backend|database|connection|client|node)\b.{0,40}\b(?:closed|lost|terminated|reset|crashed|exited|died|gone)\b|\bunable to (?:read|flush|write) data\b|\bread\/write error\b|\bfailed to read (?:kind|data)\b|\b(?:server|client)[ _](?:idle|lifetime|idle_transaction)[ _]timeout\b|\bidle_transaction_timeout\b/i,
    'db.connection',
  ],
];

export function byPoolerWords(message: string): Answer | undefined {
  return POOLERS.find(([text]) => text.test(message))?.[1];
}

function bySqlState(fields: ErrorFields): Finding | undefined {
  const { code } = fields;
  if (typeof code === 'string' && isSqlState(code) && isFromDatabase(fields, code)) {
    const byText = VAGUE_STATES.test(code) ? byPoolerWords(fields.message) : undefined;
    if (byText !== undefined) return found(byText, 'message', 'code');
    const answer = answerFor(code);
    if (answer !== undefined) return found(answer, 'code');
  }
  const state = fields.get('sqlState') ?? fields.get('sqlstate') ?? fields.get('SQLSTATE');
  if (typeof state !== 'string' || typeof fields.code === 'string' || fields.get('errno') !== undefined)
    return undefined;
  const answer = answerFor(state);
  return answer && found(answer, 'sqlState');
}

/** What a SQLSTATE means, or else its class. */
export function answerFor(state: string): Answer | undefined {
  if (!isSqlState(state)) return undefined;
  return SQLSTATES[state] ?? CLASSES[state.slice(0, 2)];
}

function isSqlState(code: string): boolean {
  return code.length === 5 && /^(?=.*\d|XX)[0-9A-Z]{5}$/.test(code) && !/^P[1-9]\d{3}$/.test(code) && code !== 'E2BIG';
}

function isFromDatabase(fields: ErrorFields, code: string): boolean {
  if (fields.is('PostgresError', 'DatabaseError', 'PostgrestError', 'error')) return true;
  if (SIGNS.some((sign) => fields.get(sign) !== undefined)) return true;
  return /\d/.test(code) && /[A-Z]/.test(code) && Object.hasOwn(SQLSTATES, code);
}
