import type { ErrorFields } from '../error-fields.ts';
import { read } from '../inspect.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** Response codes of IMAP servers (RFC 5530 and extensions). */
const RESPONSE_CODES: Table = {
  UNAVAILABLE: 'imap.unavailable',
  SERVERBUG: 'imap.unavailable',
  INUSE: 'imap.in_use',
  THROTTLED: 'throttled',
  AUTHENTICATIONFAILED: 'auth.invalid',
  AUTHORIZATIONFAILED: 'auth.forbidden',
  EXPIRED: 'auth.expired',
  WEBALERT: 'auth.invalid',
  PRIVACYREQUIRED: 'tls.handshake',
  CONTACTADMIN: 'auth.forbidden',
  NOPERM: 'auth.forbidden',
  NONEXISTENT: 'not_found',
  TRYCREATE: 'not_found',
  ALREADYEXISTS: 'conflict',
  EXPUNGEISSUED: 'imap.in_use',
  CORRUPTION: 'imap.no',
  CLIENTBUG: 'code.bug',
  CANNOT: 'validation',
  LIMIT: 'quota.exhausted',
  OVERQUOTA: 'quota.exhausted',
  TOOBIG: 'too_large',
  MAXCONVERTMESSAGES: 'too_large',
  'UNKNOWN-CTE': 'not_implemented',
  BADCHARSET: 'validation',
  HASCHILDREN: 'conflict',
  NOTSAVED: 'imap.no',
  REFERRAL: 'imap.no',
};

/** Codes of imapflow and node-imap themselves. */
const CODES: Table = {
  NoConnection: 'net.reset',
  ClosedAfterConnectText: 'net.reset',
  ClosedAfterConnectTLS: 'net.reset',
  EConnectionClosed: 'net.reset',
  GREETING_TIMEOUT: { reason: 'net.timeout', ambiguous: false },
  CONNECT_TIMEOUT: { reason: 'net.timeout', ambiguous: false },
  UPGRADE_TIMEOUT: { reason: 'net.timeout', ambiguous: false },
  LockTimeout: 'imap.in_use',
  ETHROTTLE: 'throttled',
  InvalidResponse: 'net.protocol',
  MissingServerExtension: 'not_implemented',
};

/** Response codes of POP3 (RFC 2449 and 3206). The text follows them. */
const POP3: Table = {
  'IN-USE': 'imap.in_use',
  'LOGIN-DELAY': 'throttled',
  'SYS/TEMP': 'imap.unavailable',
  'SYS/PERM': 'imap.no',
  AUTH: 'auth.invalid',
};

const TOO_MANY =
  /\btoo many (?:simultaneous )?(?:connections|requests|commands|login)|\b(?:bandwidth|command|rate) limits?\b|\bthrottl|\bback[- ]?off\b|\bslow down\b|\btoo much traffic\b|\brate exceeded\b|\bmaximum number of connections\b/i;
/** Texts with which a server asks to retry later. The protocol has only NO for that. */
const LATER =
  /\b(?:try|retry|come back)(?: again)? (?:later|in|after)\b|\btemporar|\bserver (?:is )?busy\b|\b(?:system|internal|server) error\b|\bnot connected\b|\b(?:service|server|mailbox|system) (?:is )?(?:currently )?unavailable\b/i;
const LOCKED = /\b(?:unable to|failed to|cannot|could not) lock\b|\blocked by\b|\bin use\b/i;
const BAD_LOGIN =
  /\b(?:authentication failed|invalid credentials|login failed|bad (?:username|user name|credentials)|invalid (?:login|user|password))\b/i;

export const imap: Family = { name: 'imap', sorts: ['coded', 'bare'], codes: CODES, recognise: byResponse };

function byResponse(fields: ErrorFields): Finding | undefined {
  const code = fields.text('serverResponseCode');
  const status = fields.text('responseStatus');
  if (code === undefined && status === undefined && fields.get('authenticationFailed') !== true)
    return bySource(fields) ?? byPop3(fields);
  const text = (fields.text('responseText') ?? fields.message).slice(0, 1_024);
  // A text about a limit wins over the code.
  if (TOO_MANY.test(text)) return found('throttled', 'responseText');
  // ALERT is not in the table, because its text has the meaning.
  const known = lookUp(RESPONSE_CODES, code?.toUpperCase(), 'serverResponseCode');
  if (known) return known;
  if (fields.get('authenticationFailed') === true || BAD_LOGIN.test(text))
    return found('auth.invalid', 'authenticationFailed');
  if (fields.get('mailboxMissing') === true) return found('not_found', 'mailboxMissing');
  if (status !== undefined && LOCKED.test(text)) return found('imap.in_use', 'responseText');
  if (status !== undefined && LATER.test(text)) return found('imap.unavailable', 'responseText');
  if (status === 'BAD') return found('code.bug', 'responseStatus');
  return status === 'NO' ? found('imap.no', 'responseStatus') : undefined;
}

/** In node-imap, `source` says whether the socket, the login or a time limit failed. The text may contain a code. */
function bySource(fields: ErrorFields): Finding | undefined {
  const source = fields.get('source');
  const code = fields.get('textCode');
  const known = source === undefined ? undefined : lookUp(RESPONSE_CODES, read(code, 'key') ?? code, 'textCode');
  if (known) return known;
  switch (source) {
    case 'authentication':
      return TOO_MANY.test(fields.message) ? found('throttled', 'message') : found('auth.invalid', 'source');
    case 'timeout':
    case 'timeout-auth':
      return found('net.timeout', 'source');
    case 'protocol':
      if (TOO_MANY.test(fields.message)) return found('throttled', 'message');
      return LATER.test(fields.message) ? found('imap.unavailable', 'message') : found('imap.no', 'source');
    default:
      return undefined;
  }
}

function byPop3({ message }: ErrorFields): Finding | undefined {
  const code = /^(?:-ERR )?\[([A-Z]+(?:[-/][A-Z]+)?)\] /.exec(message)?.[1];
  return lookUp(POP3, code, 'message', 'message');
}
