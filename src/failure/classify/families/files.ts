import type { ErrorFields } from '../error-fields.ts';
import { type Answer, type Family, type Finding, found, lookUp, SERVER_IS_FULL, type Table } from '../meaning.ts';

/** FTP replies (RFC 959). 4xx is transient and 5xx is permanent, unlike in HTTP. */
const FTP: Table = {
  // The transfer was interrupted, or the server closes the control connection.
  421: { reason: 'ftp.4xx', ambiguous: true },
  426: { reason: 'ftp.4xx', ambiguous: true },
  450: 'fs.locked',
  452: SERVER_IS_FULL,
  500: 'ftp.5xx',
  501: 'validation',
  502: 'not_implemented',
  504: 'not_implemented',
  530: 'auth.invalid',
  532: 'auth.forbidden',
  534: 'tls.handshake',
  535: 'tls.handshake',
  551: 'ftp.5xx',
  552: 'quota.exhausted',
  553: 'fs.invalid',
};

/** Status codes of SFTP. ssh2-sftp-client gives them as numbers or names. */
const SFTP: Table = {
  2: 'fs.not_found',
  3: 'fs.permission',
  4: 'sftp.failure',
  5: 'net.protocol',
  6: 'net.reset',
  7: 'net.reset',
  8: 'not_implemented',
  10: 'fs.not_found',
  11: 'fs.dest_exists',
  12: 'fs.permission',
  14: SERVER_IS_FULL,
  15: SERVER_IS_FULL,
  17: 'fs.locked',
};

const SFTP_NAMES: Table = {
  ERR_NOT_CONNECTED: 'net.reset',
  ERR_BAD_PATH: 'fs.invalid',
  ERR_BAD_AUTH: 'auth.invalid',
};

/** Messages of ssh2 about a connection, if it gives no code. */
const SSH_LEVELS: Table = {
  'client-authentication': 'auth.invalid',
  'client-timeout': { reason: 'net.timeout', ambiguous: false },
  'client-socket': 'net.reset',
  'client-dns': 'net.dns',
  'client-ssh': 'net.protocol',
  protocol: 'net.protocol',
  handshake: 'tls.handshake',
  agent: 'auth.invalid',
};

export const files: Family = {
  name: 'files',
  codes: SFTP_NAMES,
  vagueCodes: { ERR_GENERIC_CLIENT: 'sftp.failure' },
  recognise: byReply,
};

function byReply(fields: ErrorFields): Finding | undefined {
  if (typeof fields.code === 'number') {
    if (fields.is('FTPError')) return found(byFtp(fields.code, fields.message), 'code');
    // A status of SFTP is below 32 and comes without `errno`.
    if (isSftp(fields)) return lookUp(SFTP, fields.code, 'code');
  }
  const level = fields.get('level');
  return typeof level === 'string' ? bySsh(level, fields) : undefined;
}

function bySsh(level: string, fields: ErrorFields): Finding | undefined {
  if (fields.message.startsWith('Host denied')) return found('tls.certificate', 'message');
  // The connection was lost in the middle. Other time limits are for connecting.
  if (fields.message.startsWith('Keepalive timeout')) return found('net.timeout', 'message', 'code');
  // The code of the socket says more than "client-socket".
  return typeof fields.code === 'string' && /^E[A-Z]+$/.test(fields.code)
    ? undefined
    : lookUp(SSH_LEVELS, level, 'level');
}

function isSftp(fields: ErrorFields): boolean {
  if (fields.code === undefined || (fields.code as number) > 31) return false;
  if (fields.get('custom') === true) return true;
  if (fields.get('metadata') !== undefined || fields.get('details') !== undefined) return false;
  return (
    fields.number('errno') === undefined &&
    /^(?:\w+: )?(?:No such file|Permission denied|Failure|Operation unsupported|No connection|Connection lost)/i.test(
      fields.message,
    )
  );
}

/** What an FTP reply means. Some numbers have several meanings, and the text tells which. */
export function byFtp(reply: number, text: string): Answer {
  if (reply === 550) {
    if (/\b(?:no such|not found|does ?n.t exist|cannot find)/i.test(text)) return 'fs.not_found';
    if (/\b(?:denied|permission|not permitted|not allowed|forbidden|access)/i.test(text)) return 'fs.permission';
    if (/\b(?:exists|not empty)\b/i.test(text)) return 'fs.dest_exists';
    if (/\b(?:in use|locked|busy|being used)\b/i.test(text)) return 'fs.locked';
    if (/\b(?:not a (?:plain|regular) file|is a directory|not a directory)/i.test(text)) return 'fs.invalid';
    return 'ftp.5xx';
  }
  if (reply === 421 && /\btoo many\b|\bmaximum\b.*\b(?:connections|clients|users|sessions)|\blimit\b/i.test(text))
    return 'throttled';
  if (reply === 530 && /\btoo many\b|\bmaximum\b/i.test(text)) return 'throttled';
  const known = FTP[reply];
  if (known !== undefined) return known;
  if (reply >= 400 && reply < 500) return 'ftp.4xx';
  return reply >= 500 && reply < 600 ? 'ftp.5xx' : 'net.protocol';
}
