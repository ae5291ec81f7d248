import type { ErrorFields } from '../error-fields.ts';
import { read, readText } from '../inspect.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** The first word of an error reply of Redis, Valkey and their clusters. */
const WORDS: Table = {
  LOADING: 'db.unavailable',
  BUSY: 'db.unavailable',
  BUSYKEY: 'conflict',
  BUSYGROUP: 'conflict',
  CLUSTERDOWN: 'db.unavailable',
  MASTERDOWN: 'db.unavailable',
  TRYAGAIN: 'db.unavailable',
  READONLY: 'db.unavailable',
  MISCONF: 'db.unavailable',
  NOREPLICAS: 'db.unavailable',
  NOGOODSLAVE: 'db.unavailable',
  INPROG: 'db.unavailable',
  UNBLOCKED: 'db.unavailable',
  NOQUORUM: 'db.unavailable',
  ASK: 'db.unavailable',
  MOVED: 'db.schema',
  CROSSSLOT: 'db.schema',
  OOM: 'db.resources',
  NOAUTH: 'auth.invalid',
  WRONGPASS: 'auth.invalid',
  NOPERM: 'auth.forbidden',
  DENIED: 'auth.forbidden',
  NOPROTO: 'db.schema',
  NOSCRIPT: 'db.noscript',
  EXECABORT: 'db.schema',
  WRONGTYPE: 'db.data',
  NOGROUP: 'not_found',
  UNKILLABLE: 'db.internal',
  NOTBUSY: 'db.schema',
};

const NAMES: Table = {
  MaxRetriesPerRequestError: 'db.connection',
  ClusterAllFailedError: 'db.connection',
  SocketClosedUnexpectedlyError: 'db.connection',
  ConnectionTimeoutError: 'db.connection',
  ClientClosedError: 'net.closed_client',
  ClientOfflineError: 'db.connection',
  DisconnectsClientError: 'net.closed_client',
  CommandTimeoutDuringMaintenanceError: 'db.timeout',
  SocketTimeoutError: 'db.connection',
  SocketTimeoutDuringMaintenanceError: 'db.connection',
  RootNodesUnavailableError: 'db.connection',
  ReconnectStrategyError: 'db.connection',
  WatchError: 'db.serialization',
  MultiErrorReply: 'db.schema unknown',
  ResourceLockedError: 'db.locked',
  ExecutionError: 'db.locked',
};

/** Texts after the word ERR, which Redis uses for many failures. */
const ERRORS: readonly (readonly [RegExp, Parameters<typeof found>[0]])[] = [
  [/^ERR max number of clients/, { reason: 'db.connection', ambiguous: false }],
  [/^ERR (?:max daily request limit|max requests limit)/, 'quota.exhausted rate_limited'],
  [/^ERR max (?:concurrent|commands per second|request rate)/, 'throttled'],
  [/^ERR (?:invalid password|AUTH|operation not permitted)/, 'auth.invalid'],
  [
    /^ERR (?:unknown command|wrong number of arguments|syntax error|Unknown subcommand|DB index|unknown subcommand)/i,
    'db.schema',
  ],
  [
    /^ERR (?:value is not|hash value is not|bit is not|increment or decrement|index out of range|invalid|no such key|min or max|timeout is)/i,
    'db.data',
  ],
  [/^ERR (?:Error running script|Error compiling script|user_script)/i, 'db.schema'],
];

export const redis: Family = { name: 'redis', sorts: ['coded', 'bare'], names: NAMES, recognise: byFirstWord };

function byFirstWord(fields: ErrorFields): Finding | undefined {
  if (!isReply(fields)) return undefined;
  const word = /^-?([A-Z]{3,20})(?=[ :]|$)/.exec(fields.message)?.[1];
  if (word === undefined) return undefined;
  const inner = word === 'EXECABORT' || word === 'ERR' ? innerWord(fields) : undefined;
  if (inner !== undefined) return lookUp(WORDS, inner, 'message');
  if (word !== 'ERR') return lookUp(WORDS, word, 'message');
  const answer = ERRORS.find(([text]) => text.test(fields.message))?.[1];
  return answer === undefined ? found('db.schema unknown', 'message', 'hint') : found(answer, 'message');
}

/** Why a transaction was discarded or a script failed, if a retry may help. ioredis keeps the errors of a transaction's commands. */
function innerWord(fields: ErrorFields): string | undefined {
  const earlier = readText(read(fields.get('previousErrors'), 0), 'message') ?? '';
  return /(?:^|[:\n] |-)(OOM|READONLY|LOADING|BUSY|CLUSTERDOWN|MASTERDOWN|MISCONF|NOREPLICAS|TRYAGAIN) /.exec(
    `${earlier.slice(0, 256)}\n ${fields.message}`,
  )?.[1];
}

function isReply(fields: ErrorFields): boolean {
  return fields.is('ReplyError', 'ErrorReply', 'SimpleError', 'BlobError', 'AbortError')
    ? fields.name !== 'AbortError' || fields.get('command') !== undefined
    : fields.get('command') !== undefined && /^[A-Z]{3,20} /.test(fields.message);
}
