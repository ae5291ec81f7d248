import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** Codes of HTTP clients: undici, axios, got, follow-redirects, Bun. */
const CODES: Table = {
  UND_ERR_CONNECT_TIMEOUT: { reason: 'net.timeout', ambiguous: false },
  UND_ERR_HEADERS_TIMEOUT: 'net.timeout',
  UND_ERR_BODY_TIMEOUT: 'net.timeout',
  UND_ERR_SOCKET: 'net.reset',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'net.reset',
  // The response is too large, so the server had the request.
  UND_ERR_RES_EXCEEDED_MAX_SIZE: { reason: 'too_large', ambiguous: true },
  UND_ERR_HEADERS_OVERFLOW: { reason: 'too_large', ambiguous: true },
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'code.bug',
  UND_ERR_INVALID_ARG: 'code.bug',
  UND_ERR_INVALID_RETURN_VALUE: 'code.bug',
  UND_ERR_NOT_SUPPORTED: 'not_implemented',
  // Requests that were already sent fail with it too.
  UND_ERR_DESTROYED: { reason: 'net.closed_client', ambiguous: true },
  UND_ERR_CLOSED: 'net.closed_client',
  UND_ERR_BPL_MISSING_UPSTREAM: 'net.failed',
  UND_ERR_PRX_TLS: 'tls.handshake',
  ERR_FR_TOO_MANY_REDIRECTS: 'http.redirect',
  ERR_FR_REDIRECTION_FAILURE: 'http.redirect',
  ERR_FR_MAX_BODY_LENGTH_EXCEEDED: 'too_large',
  ERR_TOO_MANY_REDIRECTS: 'http.redirect',
  ERR_BODY_PARSE_FAILURE: 'data.parse',
  ERR_UNSUPPORTED_PROTOCOL: 'validation',
  ERR_BAD_OPTION: 'code.bug',
  ERR_BAD_OPTION_VALUE: 'code.bug',
  ERR_NOT_SUPPORT: 'not_implemented',
  ERR_CACHE_ACCESS: 'fs.io',
  ETOOLARGE: 'too_large',
  EPARSE: 'data.parse',
  // Bun and Deno have words as codes of network errors.
  ConnectionRefused: 'net.refused',
  ConnectionClosed: 'net.reset',
  ConnectionReset: 'net.reset',
  ConnectionAborted: 'net.reset',
  ConnectionTimeout: 'net.timeout',
  FailedToOpenSocket: 'net.refused',
  TooManyRedirects: 'http.redirect',
  ECONNCLOSED: 'net.reset',
  ECONNECTION: 'net.reset',
  ESEMLOCKED: 'resource.limit',
  EOPENBREAKER: { reason: 'api.unavailable', ambiguous: false },
};

/** Codes that do not say why the request ended. */
const VAGUE: Table = {
  ERR_CANCELED: 'abort',
  ERR_ABORTED: 'abort',
  ABORT_ERR: 'abort',
  UND_ERR_ABORTED: 'abort',
  UND_ERR_ABORT: 'abort',
  UND_ERR_INFO: 'net.failed',
  ERR_NETWORK: 'net.failed',
  ERR_READING_RESPONSE_STREAM: 'net.reset',
};

/** Classes that say what happened. */
const VENDOR_NAMES: Table = {
  APIConnectionTimeoutError: 'net.timeout',
  APIUserAbortError: 'abort',
  StripeRateLimitError: 'http.429',
};

const NAMES: Table = {
  APIConnectionError: 'net.failed',
  ConnectTimeoutError: { reason: 'net.timeout', ambiguous: false },
  HeadersTimeoutError: 'net.timeout',
  BodyTimeoutError: 'net.timeout',
  CancelError: 'abort',
  CanceledError: 'abort',
  CancelledError: 'abort',
  StripeConnectionError: 'net.failed',
  FetchError: 'net.failed',
  NetworkError: 'net.failed',
  ConnectionError: 'net.failed',
  NoLivingConnectionsError: 'net.failed',
  MaxRedirectsError: 'http.redirect',
  ParseError: 'data.parse',
  HTTPParserError: { reason: 'net.protocol', ambiguous: true },
  ProtocolError: 'net.protocol',
};

/** Why a web socket was closed (RFC 6455). Some clients throw the event or copy its code. */
const CLOSED: Table = {
  1001: 'net.reset',
  1002: 'net.protocol',
  1005: 'net.reset',
  1006: 'net.reset',
  1007: 'data.parse permanent',
  1008: 'auth.forbidden',
  1009: 'too_large',
  1011: 'api.unavailable',
  1012: 'api.unavailable',
  1013: 'api.unavailable',
  1014: 'api.unavailable',
  1015: 'tls.handshake',
};

export const clients: Family = {
  name: 'clients',
  sorts: ['answered', 'coded', 'numbered', 'bare'],
  vendorNames: VENDOR_NAMES,
  codes: CODES,
  vagueCodes: VAGUE,
  names: NAMES,
  recognise: byShape,
};

const BEFORE_SENDING = ['lookup', 'connect', 'secureConnect'];

function byShape(fields: ErrorFields): Finding | undefined {
  if (fields.get('isAxiosError') === true) return byAxios(fields);
  if (typeof fields.code === 'string' && fields.code.startsWith('WS_ERR_')) return byWebSocket(fields.code);
  if (fields.get('wasClean') !== undefined) return lookUp(CLOSED, fields.code, 'code');
  // got says which phase took too long.
  if (fields.is('TimeoutError') && BEFORE_SENDING.includes(fields.text('event') ?? ''))
    return found({ reason: 'net.timeout', ambiguous: false }, 'event');
  switch (fields.get('type')) {
    case 'request-timeout':
    case 'body-timeout':
      return found('net.timeout', 'type');
    case 'max-redirect':
    case 'no-redirect':
      return found('http.redirect', 'type');
    case 'max-size':
      return found({ reason: 'too_large', ambiguous: true }, 'type');
    case 'invalid-json':
      return found('data.parse', 'type');
    case 'aborted':
      return found('abort', 'type');
    case 'entity.too.large':
      return found('too_large', 'type');
    case 'entity.parse.failed':
      return found('data.parse permanent', 'type');
    default:
      break;
  }
  // superagent and needle: the client's time limit, with a code that the system uses for something else.
  if (fields.code === 'ECONNABORTED' && (fields.get('timeout') !== undefined || fields.get('errno') === 'ETIME')) {
    return found('net.timeout', 'code');
  }
  return undefined;
}

/** ws throws RangeErrors for invalid data from the other side. */
function byWebSocket(code: string): Finding {
  if (code.endsWith('_LENGTH') && code.startsWith('WS_ERR_UNSUPPORTED_')) return found('too_large', 'code');
  if (code === 'WS_ERR_TOO_MANY_BUFFERED_PARTS') return found('too_large', 'code');
  return found(code === 'WS_ERR_INVALID_UTF8' ? 'data.parse permanent' : 'net.protocol', 'code');
}

/** axios uses ERR_BAD_RESPONSE for several failures, and for its time limit ECONNABORTED, which the system uses for resets. */
function byAxios(fields: ErrorFields): Finding | undefined {
  const { code, message } = fields;
  if (code === 'ECONNABORTED' && fields.get('errno') === undefined) {
    return found(message === 'Request aborted' ? 'abort' : 'net.timeout', 'code');
  }
  if (code !== 'ERR_BAD_RESPONSE' && code !== 'ERR_BAD_REQUEST') return undefined;
  // `Content` is the size of the response. `Body` is the size of the request, which was then not sent.
  const [, which] = /^max(Content|Body)Length size of \d+ exceeded/.exec(message) ?? [];
  if (which !== undefined) return found({ reason: 'too_large', ambiguous: which === 'Content' }, 'message');
  if (message === 'stream has been aborted') return found('net.reset', 'message');
  if (message.startsWith('Unsupported protocol')) return found('validation', 'message');
  return undefined;
}
