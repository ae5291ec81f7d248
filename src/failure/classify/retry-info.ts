import type { Milliseconds } from '../../duration.ts';
import type { ErrorFields } from './error-fields.ts';
import { read } from './inspect.ts';
import { bounded, spokenSpan } from './times.ts';

/** Google's RetryInfo: JSON in a body, decoded by google-gax, or in the trailers of a gRPC call. */
export function retryInfo(fields: ErrorFields): Milliseconds | undefined {
  const lists = [
    read(read(fields.body, 'error'), 'details'),
    fields.body,
    fields.get('statusDetails'),
    fields.get('errorDetails'),
    fields.get('details'),
    fields.in('error', 'details'),
  ];
  for (const list of lists) {
    if (!Array.isArray(list)) continue;
    for (let i = 0; i < 16; i++) {
      const ms = delayOf(read(read(list, i), 'retryDelay') ?? read(read(read(list, i), 'debug'), 'retryDelay'));
      if (ms !== undefined) return bounded(ms);
    }
  }
  return inTrailers(fields.get('metadata'));
}

/** Reads `"34.07s"`, or `{ seconds, nanos }` with numbers or strings. */
function delayOf(delay: unknown): number | undefined {
  if (typeof delay === 'string') return spokenSpan(delay);
  const seconds = Number(read(delay, 'seconds') ?? 0);
  const nanos = Number(read(delay, 'nanos') ?? 0);
  if (delay === undefined || delay === null || !Number.isFinite(seconds + nanos) || seconds < 0) return undefined;
  return seconds * 1_000 + nanos / 1e6;
}

const TRAILER = 'grpc-status-details-bin';

function inTrailers(metadata: unknown): Milliseconds | undefined {
  const get = read(metadata, 'get');
  if (typeof get !== 'function' || metadata instanceof Headers) return undefined;
  try {
    const bytes = read(get.call(metadata, TRAILER), 0);
    return bytes instanceof Uint8Array && bytes.length < 65_536 ? fromStatus(bytes) : undefined;
  } catch {
    // The object threw when it was read, or the bytes are not a protobuf message.
    return undefined;
  }
}

/** google.rpc.Status: field 3 holds `Any`s, of which RetryInfo has a Duration as its field 1. */
function fromStatus(bytes: Uint8Array): Milliseconds | undefined {
  for (const any of fieldsOf(bytes, 3)) {
    const [type] = fieldsOf(any, 1);
    const [value] = fieldsOf(any, 2);
    if (!type || !value || !new TextDecoder().decode(type).endsWith('google.rpc.RetryInfo')) continue;
    const [duration] = fieldsOf(value, 1);
    if (!duration) return 0;
    return bounded((numberOf(duration, 1) ?? 0) * 1_000 + (numberOf(duration, 2) ?? 0) / 1e6);
  }
  return undefined;
}

/** The length-delimited fields of this number in a protobuf message. */
function fieldsOf(bytes: Uint8Array, wanted: number): Uint8Array[] {
  return [...parts(bytes)].flatMap(({ field, value }) =>
    field === wanted && value instanceof Uint8Array ? [value] : [],
  );
}

function numberOf(bytes: Uint8Array, wanted: number): number | undefined {
  for (const { field, value } of parts(bytes)) if (field === wanted && typeof value === 'number') return value;
  return undefined;
}

function* parts(bytes: Uint8Array): Generator<{ field: number; value: number | Uint8Array }> {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; at < bytes.length; shift *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 127) * shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        yield { field, value: varint() };
        break;
      case 1:
        at += 8;
        break;
      case 2: {
        const length = varint();
        yield { field, value: bytes.subarray(at, at + length) };
        at += length;
        break;
      }
      case 5:
        at += 4;
        break;
      default:
        return;
    }
  }
}
