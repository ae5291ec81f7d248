import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** Chromium's network errors, without `net::ERR_`. */
const CHROMIUM: Table = {
  CONNECTION_REFUSED: 'net.refused',
  NAME_NOT_RESOLVED: 'net.dns',
  NAME_RESOLUTION_FAILED: 'net.dns',
  DNS_TIMED_OUT: 'net.dns',
  DNS_SERVER_FAILED: 'net.dns',
  ICANN_NAME_COLLISION: 'net.dns',
  CONNECTION_TIMED_OUT: { reason: 'net.timeout', ambiguous: false },
  TIMED_OUT: 'net.timeout',
  CONNECTION_RESET: 'net.reset',
  CONNECTION_CLOSED: 'net.reset',
  CONNECTION_ABORTED: 'net.reset',
  EMPTY_RESPONSE: 'net.reset',
  SOCKET_NOT_CONNECTED: 'net.reset',
  CONTENT_LENGTH_MISMATCH: 'net.reset',
  INCOMPLETE_CHUNKED_ENCODING: 'net.reset',
  HTTP2_SERVER_REFUSED_STREAM: 'net.reset',
  HTTP2_PING_FAILED: 'net.reset',
  HTTP2_PROTOCOL_ERROR: 'net.protocol',
  QUIC_PROTOCOL_ERROR: 'net.protocol',
  INVALID_HTTP_RESPONSE: 'net.protocol',
  RESPONSE_HEADERS_TRUNCATED: 'net.protocol',
  INTERNET_DISCONNECTED: 'net.unreachable',
  ADDRESS_UNREACHABLE: 'net.unreachable',
  ADDRESS_INVALID: 'net.unreachable',
  NETWORK_CHANGED: 'net.failed',
  NETWORK_IO_SUSPENDED: 'net.failed',
  NETWORK_ACCESS_DENIED: 'net.permission',
  CONNECTION_FAILED: 'net.failed',
  TUNNEL_CONNECTION_FAILED: 'net.failed',
  PROXY_CONNECTION_FAILED: 'net.refused',
  PROXY_AUTH_REQUESTED: 'auth.invalid',
  SOCKS_CONNECTION_FAILED: 'net.failed',
  FAILED: 'net.failed',
  ABORTED: 'abort',
  TOO_MANY_REDIRECTS: 'http.redirect',
  UNSAFE_PORT: 'validation',
  UNSAFE_REDIRECT: 'http.redirect',
  UNKNOWN_URL_SCHEME: 'validation',
  DISALLOWED_URL_SCHEME: 'validation',
  INVALID_URL: 'validation',
  FILE_NOT_FOUND: 'fs.not_found',
  ACCESS_DENIED: 'fs.permission',
  INVALID_AUTH_CREDENTIALS: 'auth.invalid',
  UNEXPECTED_PROXY_AUTH: 'auth.invalid',
  BLOCKED_BY_CLIENT: 'net.permission',
  BLOCKED_BY_ADMINISTRATOR: 'net.permission',
  BLOCKED_BY_RESPONSE: 'http.4xx',
  INSUFFICIENT_RESOURCES: 'resource.limit',
  OUT_OF_MEMORY: 'resource.memory',
  HTTP_RESPONSE_CODE_FAILURE: 'http.4xx unknown',
  SSL_PROTOCOL_ERROR: 'tls.handshake',
  SSL_VERSION_OR_CIPHER_MISMATCH: 'tls.handshake',
  SSL_CLIENT_AUTH_CERT_NEEDED: 'tls.handshake',
  BAD_SSL_CLIENT_AUTH_CERT: 'tls.handshake',
};

const CALL =
  /^(?:(?:page|frame|locator|browser|browserType|browserContext|context|elementHandle|jsHandle|worker|apiRequestContext|request|electron|android|keyboard|mouse|download|route|response|expect)\.?\w*(?:\.\w+)?: )+/;

/** What Playwright and Puppeteer say, after the name of the call. */
const TEXTS: readonly (readonly [RegExp, Parameters<typeof found>[0]])[] = [
  [
    /^(?:Target (?:page, context or browser has been )?closed|Target closed|Session closed|Page crashed|Target crashed|Page closed|Browser (?:has been )?closed|Browser has disconnected|Navigation failed because (?:page|browser) (?:crashed|was closed|has disconnected)|.*browser has been closed|Protocol error .*(?:Target closed|Session closed)|Connection closed\b|Attempted to use detached Frame|Execution context (?:was destroyed|is not available))/,
    'browser.closed',
  ],
  [/^(?:Error: )?strict mode violation\b/, 'code.bug'],
  [
    /^(?:Error: )?Unexpected token .* while parsing (?:css )?selector|^(?:Error: )?Malformed selector|is not a valid selector/,
    'code.bug',
  ],
  [/^(?:Protocol error \([\w.]+\): )?Cannot navigate to invalid URL|^Invalid url\b/i, 'validation'],
  [
    /^(?:Failed to launch .*|.*)?[Ee]xecutable doesn't exist at|^Could not find (?:Chrome|Chromium|browser)|^Tried to find the browser at/,
    'process.not_found',
  ],
  [/^(?:Failed to launch|Browser was not found|Timed out .* waiting for the WS endpoint)/, 'process.exit'],
  [/^(?:Navigation timeout|Timeout|Waiting (?:for .*|failed: )|TimeoutError: ).*?(?:exceeded|\d+ ?ms)/i, 'timeout'],
  [/^Download failed|^Request context disposed/, 'net.failed'],
];

export const browsers: Family = { name: 'browsers', sorts: ['bare'], recognise: byText };

function byText(fields: ErrorFields): Finding | undefined {
  const { message } = fields;
  const network = /(?:^|: )net::ERR_([A-Z0-9_]+)/.exec(message)?.[1];
  if (network !== undefined) {
    return network.startsWith('CERT_')
      ? found('tls.certificate', 'message')
      : (lookUp(CHROMIUM, network, 'message') ?? found('net.failed', 'message'));
  }
  const firefox = /(?:^|: )NS_ERROR_([A-Z_]+)/.exec(message)?.[1];
  if (firefox !== undefined) return lookUp(FIREFOX, firefox, 'message') ?? found('net.failed', 'message');
  if (!isBrowser(fields)) return undefined;
  const said = message.replace(CALL, '');
  const answer = TEXTS.find(([text]) => text.test(said))?.[1];
  // The page itself threw it, so it is not a bug in this code.
  if (answer === undefined && /^(?:\w*Error: )/.test(said)) return found('unknown', 'message');
  return answer && found(answer, 'message');
}

const FIREFOX: Table = {
  CONNECTION_REFUSED: 'net.refused',
  UNKNOWN_HOST: 'net.dns',
  NET_TIMEOUT: 'net.timeout',
  NET_RESET: 'net.reset',
  NET_INTERRUPT: 'net.reset',
  NET_PARTIAL_TRANSFER: 'net.reset',
  OFFLINE: 'net.unreachable',
  NET_EMPTY_RESPONSE: 'net.reset',
  REDIRECT_LOOP: 'http.redirect',
  ABORT: 'abort',
  MALFORMED_URI: 'validation',
};

function isBrowser(fields: ErrorFields): boolean {
  return (
    /^(?:Playwright|TargetClose|Puppeteer|ProtocolError)/.test(fields.class) ||
    fields.is('ProtocolError', 'TargetCloseError') ||
    CALL.test(fields.message) ||
    /^(?:Protocol error|Navigation |Session closed|Target closed|Page crashed)/.test(fields.message)
  );
}
