import type { ErrorFields } from '../error-fields.ts';
import { type Answer, type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** Enhanced codes (RFC 3463) that say more than the reply code. */
const ENHANCED: Table = {
  '4.2.2': 'quota.exhausted transient',
  '5.2.2': 'quota.exhausted',
  '5.3.4': 'too_large',
  '5.2.3': 'too_large',
  '5.1.1': 'smtp.recipient',
  '5.1.2': 'smtp.recipient',
  '5.1.3': 'smtp.recipient',
  '5.1.6': 'smtp.recipient',
  '5.1.10': 'smtp.recipient',
  '5.2.1': 'smtp.recipient',
  '5.4.5': 'quota.exhausted rate_limited',
  '5.7.3': 'auth.invalid',
  '5.7.8': 'auth.invalid',
  '5.7.9': 'auth.invalid',
  '5.7.14': 'auth.invalid',
  // Gmail and Outlook: mail is sent too fast, or there are too many connections.
  '4.7.28': 'throttled',
  '4.7.32': 'throttled',
  '4.7.650': 'throttled',
  '4.7.651': 'throttled',
  '4.7.652': 'throttled',
  '4.7.500': 'throttled',
  '4.3.10': 'throttled',
  '4.4.5': 'throttled',
};

/** Reply codes. 4xx is transient and 5xx is permanent, unlike in HTTP. */
const REPLIES: Table = {
  530: 'auth.invalid',
  534: 'auth.invalid',
  535: 'auth.invalid',
  538: 'tls.handshake',
  523: 'too_large',
  552: 'quota.exhausted',
};

/** Codes of nodemailer itself, if the server gave no reply. */
const CODES: Table = {
  ETLS: 'tls.handshake',
  EAUTH: 'auth.invalid',
  ENOAUTH: 'auth.invalid',
  EOAUTH2: 'auth.invalid',
  EREQUIRETLS: 'tls.handshake',
  EENVELOPE: 'validation',
  EMAXLIMIT: 'too_large',
  ECONFIG: 'validation',
  ESENDMAIL: 'process.exit',
};

/** Codes of nodemailer that only say which step failed. */
const VAGUE: Table = {
  EPROTOCOL: 'net.protocol',
  EMESSAGE: 'smtp.5xx unknown',
  ESTREAM: 'net.reset',
  ESOCKET: 'net.failed',
  EPROXY: 'net.failed',
  EFETCH: 'net.failed',
};

const TOO_FAST =
  /\b(?:too many|rate limit|ratelimit|throttl\w*|too (?:fast|quickly)|sending too|exceeded the (?:maximum|rate)|try again later.*rate)\b/i;

/** What there may be too many of that a wait does not change. */
const OTHER_LIMIT = /\b(?:recipients|hops|commands|errors|spam)\b/i;
/** Limits of a sender, which some servers report as permanent: "Daily user sending quota exceeded". */
const SENDING_LIMIT =
  /^(?=.*\b(?:daily|hourly|sending|outgoing|outbound|connections?)\b)(?!.*\b(?:mailbox|storage|size|recipients)\b).*(?:\b(?:limit|quota)\b.{0,60}\bexceeded\b|\bexceeded\b.{0,60}\b(?:limit|quota)\b)/i;

export const smtp: Family = {
  name: 'smtp',
  sorts: ['system', 'coded', 'numbered', 'bare'],
  codes: CODES,
  vagueCodes: VAGUE,
  recognise: byReply,
};

function byReply(fields: ErrorFields): Finding | undefined {
  const reply = fields.number('responseCode');
  if (reply === undefined) return byTimeLimit(fields) ?? byEmailJs(fields);
  // STARTTLS was refused.
  if (fields.code === 'ETLS' && reply >= 500) return found('tls.handshake', 'code');
  const response = (fields.text('response') ?? fields.message).slice(0, 1_024);
  return { ...found(byNumbers(reply, response), 'responseCode') };
}

/** What an SMTP reply means. The enhanced code wins over the reply code. */
function byNumbers(reply: number, response: string): Answer {
  const enhanced = /(?:^|[\s-])([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1];
  if (enhanced !== undefined && Object.hasOwn(ENHANCED, enhanced)) return ENHANCED[enhanced] as Answer;
  if (SENDING_LIMIT.test(response) || (TOO_FAST.test(response) && !OTHER_LIMIT.test(response))) return 'throttled';
  if (reply >= 400 && reply < 500) {
    if (reply === 452 && /quota|mailbox (?:is )?full/i.test(response)) return 'quota.exhausted transient';
    return 'smtp.4xx';
  }
  if (reply === 552 && /\bmessage\b.{0,40}\bsize\b|\bsize\b.{0,40}\bmessage\b/i.test(response)) return 'too_large';
  if (Object.hasOwn(REPLIES, reply)) return REPLIES[reply] as Answer;
  if (
    reply === 550 &&
    /\b(?:no such|unknown|does not exist|not found|disabled|inactive)\b.{0,40}\b(?:user|recipient|mailbox|address)|\b(?:user|recipient|mailbox|address)\b.{0,40}\b(?:unknown|not found|does not exist|unavailable|disabled)/i.test(
      response,
    )
  ) {
    return enhanced === undefined || enhanced.startsWith('5.1.') ? 'smtp.recipient' : 'smtp.5xx';
  }
  if (reply < 500) return 'net.protocol';
  return /\btry (?:again )?(?:later|after)\b|\btemporar/i.test(response) ? 'smtp.5xx unknown' : 'smtp.5xx';
}

/** Codes of emailjs. It also keeps the reply of the server. */
const EMAILJS: Table = {
  1: { reason: 'net.refused', ambiguous: false },
  3: 'auth.invalid',
  4: { reason: 'net.timeout', ambiguous: false },
  6: 'net.reset',
  10: 'not_implemented',
  11: 'auth.invalid',
};

function byEmailJs(fields: ErrorFields): Finding | undefined {
  if (!fields.is('SMTPError')) return undefined;
  const said = /^(\d{3})[ -](.*)/.exec((fields.text('smtp') ?? '').slice(0, 1_024));
  if (said) return found(byNumbers(Number(said[1]), said[2] as string), 'smtp');
  // The login failed for another reason, which is in the previous error.
  if (fields.code === 3 && fields.in('previous', 'smtp') !== undefined) return undefined;
  return lookUp(EMAILJS, fields.code, 'code');
}

/** nodemailer says whether its time limit for connecting was reached. */
function byTimeLimit(fields: ErrorFields): Finding | undefined {
  const field = fields.get('timeoutType') === undefined ? 'command' : 'timeoutType';
  const connecting = fields.get('command') === 'CONN' && fields.message === 'Connection timeout';
  return field === 'timeoutType' || connecting ? found({ reason: 'net.timeout', ambiguous: false }, field) : undefined;
}
