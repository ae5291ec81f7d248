import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** DNS errors of getaddrinfo and c-ares. ETIMEOUT (not ETIMEDOUT) is from c-ares. */
const DNS: Table = {
  ENOTFOUND: 'net.dns',
  EAI_AGAIN: 'net.dns',
  EAI_FAIL: 'net.dns',
  EAI_NODATA: 'net.dns',
  EAI_NONAME: 'net.dns',
  EAI_MEMORY: 'net.dns',
  EAI_SYSTEM: 'net.dns',
  EAI_FAMILY: 'net.dns',
  EAI_ADDRFAMILY: 'net.dns',
  EAI_SERVICE: 'net.dns',
  ENODATA: 'net.dns',
  ESERVFAIL: 'net.dns',
  EFORMERR: 'net.dns',
  ENOTIMP: 'net.dns',
  EREFUSED: 'net.dns',
  EBADRESP: 'net.dns',
  EBADNAME: 'net.dns',
  ETIMEOUT: 'net.dns',
  ENONAME: 'net.dns',
  EDNS: 'net.dns',
  ENOTINITIALIZED: 'net.dns',
  ECANCELLED: 'abort',
};

/** Codes of OpenSSL and Node about certificates. */
const CERTIFICATES: Table = {
  CERT_HAS_EXPIRED: 'tls.certificate',
  CERT_NOT_YET_VALID: 'tls.certificate',
  CERT_REVOKED: 'tls.certificate',
  CERT_UNTRUSTED: 'tls.certificate',
  CERT_REJECTED: 'tls.certificate',
  CERT_CHAIN_TOO_LONG: 'tls.certificate',
  CERT_SIGNATURE_FAILURE: 'tls.certificate',
  CRL_HAS_EXPIRED: 'tls.certificate',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls.certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls.certificate',
  UNABLE_TO_GET_ISSUER_CERT: 'tls.certificate',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls.certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls.certificate',
  UNABLE_TO_GET_CRL: 'tls.certificate',
  INVALID_CA: 'tls.certificate',
  INVALID_PURPOSE: 'tls.certificate',
  HOSTNAME_MISMATCH: 'tls.certificate',
  PATH_LENGTH_EXCEEDED: 'tls.certificate',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls.certificate',
  ERR_TLS_CERT_ALTNAME_FORMAT: 'tls.certificate',
  ERR_SSL_CERTIFICATE_VERIFY_FAILED: 'tls.certificate',
  ERR_TLS_HANDSHAKE_TIMEOUT: { reason: 'net.timeout', ambiguous: false },
  ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR: 'tls.handshake transient',
  ERR_SSL_SSLV3_ALERT_INTERNAL_ERROR: 'tls.handshake transient',
  ERR_TLS_REQUIRED_SERVER_NAME: 'code.bug',
  ERR_TLS_INVALID_PROTOCOL_VERSION: 'code.bug',
};

const HTTP: Table = {
  ERR_STREAM_PREMATURE_CLOSE: 'net.reset',
  ERR_STREAM_WRITE_AFTER_END: 'net.reset unknown',
  ERR_STREAM_DESTROYED: 'net.reset unknown',
  ERR_STREAM_ALREADY_FINISHED: 'net.reset unknown',
  ERR_STREAM_UNABLE_TO_PIPE: 'net.reset unknown',
  ERR_SOCKET_CLOSED: 'net.reset',
  ERR_SOCKET_CLOSED_BEFORE_CONNECTION: { reason: 'net.reset', ambiguous: false },
  ERR_SOCKET_CONNECTION_TIMEOUT: { reason: 'net.timeout', ambiguous: false },
  ERR_HTTP_REQUEST_TIMEOUT: 'net.timeout',
  ERR_HTTP_CONTENT_LENGTH_MISMATCH: 'code.bug',
  // The session was closed before the request was sent.
  ERR_HTTP2_GOAWAY_SESSION: { reason: 'net.reset', ambiguous: false },
  ERR_HTTP2_SESSION_ERROR: 'net.reset',
  ERR_HTTP2_INVALID_SESSION: 'net.reset',
  ERR_HTTP2_STREAM_ERROR: 'net.reset',
  ERR_HTTP2_ERROR: { reason: 'net.protocol', ambiguous: true },
  ERR_HTTP2_MAX_PENDING_SETTINGS_ACK: 'net.protocol',
  ERR_QUIC_CONNECTION_FAILED: 'net.failed',
  ERR_INVALID_URL: 'validation',
  ERR_INVALID_PROTOCOL: 'validation',
  ERR_UNESCAPED_CHARACTERS: 'validation',
  ERR_INVALID_DOMAIN_NAME: 'validation',
  ERR_INVALID_URL_SCHEME: 'validation',
};

/** Why the peer closed an HTTP/2 stream. Node gives the code only in the message. */
const HTTP2: Table = {
  NGHTTP2_ENHANCE_YOUR_CALM: 'throttled',
  NGHTTP2_REFUSED_STREAM: { reason: 'net.reset', ambiguous: false },
  NGHTTP2_CANCEL: 'net.reset',
  NGHTTP2_INADEQUATE_SECURITY: 'tls.handshake',
  NGHTTP2_PROTOCOL_ERROR: { reason: 'net.protocol', ambiguous: true },
  NGHTTP2_FRAME_SIZE_ERROR: { reason: 'net.protocol', ambiguous: true },
  NGHTTP2_FLOW_CONTROL_ERROR: { reason: 'net.protocol', ambiguous: true },
  NGHTTP2_COMPRESSION_ERROR: { reason: 'net.protocol', ambiguous: true },
};

export const network: Family = {
  name: 'network',
  sorts: ['system', 'coded'],
  codes: { ...DNS, ...CERTIFICATES, ...HTTP },
  // The session ended while the request was pending. The cause says why.
  vagueCodes: { ERR_HTTP2_STREAM_CANCEL: 'abort' },
  recognise: byPrefix,
};

function byPrefix({ code, message }: ErrorFields): Finding | undefined {
  if (typeof code !== 'string' || code.length < 5) return undefined;
  // The response cannot be read, so the server had the request.
  if (code.startsWith('HPE_'))
    return found({ reason: code === 'HPE_HEADER_OVERFLOW' ? 'too_large' : 'net.protocol', ambiguous: true }, 'code');
  if (code.startsWith('ERR_HTTP2_')) {
    const why = /\bNGHTTP2_[A-Z_]+/.exec(message)?.[0];
    return lookUp(HTTP2, why, 'message');
  }
  if (!code.startsWith('ERR_SSL_') || Object.hasOwn(CERTIFICATES, code)) return undefined;
  // Alerts about our certificate: it is expired, revoked, unknown or missing.
  if (!code.endsWith('_CERTIFICATE_REQUIRED') && /_ALERT_(?:BAD_|UNKNOWN_CA|.*CERTIFICATE)/.test(code))
    return found('tls.certificate', 'code');
  return found('tls.handshake', 'code');
}
