import type { ErrorFields } from '../error-fields.ts';
import { read } from '../inspect.ts';
import { type Answer, type Family, type Finding, found, type Table } from '../meaning.ts';

/** Status codes of gRPC. */
const GRPC_ANSWERS: readonly Answer[] = [
  'unknown',
  'abort',
  'grpc.unknown',
  'validation',
  'timeout',
  'not_found',
  'conflict',
  'auth.forbidden',
  'throttled',
  'grpc.failed_precondition',
  'grpc.aborted',
  'validation',
  'not_implemented',
  'grpc.internal',
  'grpc.unavailable',
  'grpc.data_loss',
  'auth.invalid',
];

const GRPC_NAMES: readonly string[] = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
];

/** nice-grpc and Connect give the names of codes, in upper or lower case. */
const BY_NAME: Table = Object.fromEntries(GRPC_NAMES.map((name, code) => [name, GRPC_ANSWERS[code] as Answer]));

export const grpc: Family = { name: 'grpc', sorts: ['coded', 'numbered'], recognise: byCode };

function byCode(fields: ErrorFields): Finding | undefined {
  const { code } = fields;
  if (typeof code === 'number') {
    if (code < 1 || code > 16 || !isCall(fields, code)) return undefined;
    return found(more(fields.message, code) ?? (GRPC_ANSWERS[code] as Answer), 'code');
  }
  // google.rpc.Status in REST, Firestore's web client, Twirp.
  if (
    typeof code !== 'string' ||
    !fields.is(
      'ConnectError',
      'ClientError',
      'TwirpError',
      'TwirpErrorResponse',
      'FirestoreError',
      'FirebaseError',
      'RpcError',
    )
  )
    return undefined;
  const name = code
    .slice(code.lastIndexOf('/') + 1)
    .toUpperCase()
    .replaceAll('-', '_');
  return Object.hasOwn(BY_NAME, name) ? found(BY_NAME[name] as Answer, 'code') : undefined;
}

/** Whether the error is from a gRPC call. The number alone may also be an exit code or a code of SFTP, Kafka or MongoDB. */
function isCall(fields: ErrorFields, code: number): boolean {
  const { message } = fields;
  if (message.startsWith(`${code} ${GRPC_NAMES[code]}:`)) return true;
  const metadata = fields.get('metadata');
  if (metadata !== undefined && metadata !== null && typeof read(metadata, 'get') === 'function') return true;
  if (Array.isArray(fields.get('statusDetails'))) return true;
  return (
    fields.is('ConnectError', 'GoogleError', 'RpcError') ||
    (typeof fields.get('details') === 'string' && fields.get('path') !== undefined)
  );
}

/**
 * gRPC reports a message that is too large as RESOURCE_EXHAUSTED. If it was received, it is the response, so the effect may have
 * happened.
 */
function tooLarge(message: string): Answer | undefined {
  const [, way] = /\b(received|send|sent)\b.*\blarger than\b/i.exec(message) ?? [];
  return way === undefined ? undefined : { reason: 'too_large', ambiguous: /received/i.test(way) };
}

/** The answer for a message of gRPC: it begins with `14 UNAVAILABLE: …`, or Go's `rpc error: code = Unavailable desc = …` is in it. */
export function byGrpcMessage(message: string): Answer | undefined {
  const [, number, name] = /^(\d{1,2}) ([A-Z_]{5,20}): /.exec(message) ?? [];
  const inGo = message.includes('rpc error: ')
    ? /\brpc error: code = ([A-Za-z]{5,20}) desc = /.exec(message)?.[1]
    : undefined;
  const code = GRPC_NAMES.indexOf(name ?? inGo?.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase() ?? '');
  if (code < 1 || (number !== undefined && Number(number) !== code)) return undefined;
  return more(message, code) ?? GRPC_ANSWERS[code];
}

/** The answer if the text says more than the code. */
function more(message: string, code: number): Answer | undefined {
  if (code === 8) return tooLarge(message);
  if (code === 13 && /\bRST_STREAM\b/.test(message)) return 'net.reset';
  if (code === 14 && /\bNo connection established\b|\bName resolution failed\b/.test(message)) {
    return 'grpc.unavailable';
  }
  // The connection was lost after the call was sent.
  if (
    code === 14 &&
    /\b(?:dropped|reset|EPIPE|ECONNRESET|GOAWAY|RST_STREAM|closed|closing|removed|keepalive|error reading)\b/i.test(
      message,
    )
  )
    return { reason: 'grpc.unavailable', ambiguous: true };
  if (code === 9 && /\bsession\b.*\bexpired\b/i.test(message)) return 'auth.expired transient';
  return undefined;
}
