import { PayloadError } from './errors.ts';
import { show } from './show.ts';
import type { Json } from './task.ts';

/** How large a payload or result may be, in bytes of UTF-8 JSON, unless the opener says otherwise: 1 MiB. */
export const DEFAULT_SIZE_LIMIT = 1_048_576;

const DEEPEST = 1_000;

/**
 * Writes a value as JSON, refusing by name and path what JSON would silently lose or change: BigInt, cycles, NaN and
 * infinities, functions, symbols, invalid dates, promises, errors, Maps, Sets and binary data, lone surrogates, NUL
 * characters, and more than 1,000 levels. `undefined` goes the way JSON sends it: members are dropped, in a list it is
 * null. An own `__proto__` stays data.
 * @throws PayloadError with the path of the culprit, or both sizes if it is too large.
 */
export function encodeJson(value: unknown, what: string, limit: number = DEFAULT_SIZE_LIMIT): string {
  const text = written(value, what, limit);
  // A character is at most three bytes of UTF-8, so short texts need no counting.
  const bytes = text.length * 3 <= limit ? 0 : Buffer.byteLength(text);
  if (bytes > limit) {
    throw new PayloadError(
      'payload_too_large',
      `The ${what} is ${bytes} bytes of JSON, and the limit is ${limit}. Keep large data elsewhere and put its address in the ${what}, or raise the limit.`,
      '$',
    );
  }
  return text;
}

function written(value: unknown, what: string, limit: number): string {
  let objection: Objection | undefined;
  try {
    objection = objectionTo(value, { objects: [], left: limit });
    if (!objection) return JSON.stringify(value) ?? 'null';
  } catch (cause) {
    if (cause instanceof TooManyError) {
      const message = `The ${what} holds more values than its limit of ${limit} bytes of JSON has room for. Keep large data elsewhere and put its address in the ${what}, or raise the limit.`;
      throw new PayloadError('payload_too_large', message, '$');
    }
    const message = `The ${what} could not be read: a getter, a toJSON or a Proxy in it threw.`;
    throw new PayloadError('payload_rejected', message, '$', { cause });
  }
  const path = `$${objection.path}`;
  const message = `The ${what} holds ${objection.problem} at ${path}, which JSON cannot carry.`;
  throw new PayloadError('payload_rejected', message, path);
}

/** Ends the walk over a value that was made to be endless: shared parts count each time, as JSON would write them. */
class TooManyError extends Error {}

/** Reads what `encodeJson` wrote. */
export function decodeJson(text: string): Json {
  return JSON.parse(text) as Json;
}

interface Objection {
  readonly problem: string;
  /** Below the value that was looked at: `.items[3]`. */
  readonly path: string;
}

/** The objects that hold a value, and how many more values there may be: each is at least one byte of JSON. */
interface Above {
  readonly objects: object[];
  left: number;
}

/** What JSON cannot carry in this value, or that it holds more values than its size allows bytes. */
function objectionTo(value: unknown, above: Above): Objection | undefined {
  above.left -= 1;
  if (above.left < 0) throw new TooManyError();
  switch (typeof value) {
    case 'undefined':
    case 'boolean':
      return undefined;
    case 'string':
      return objectionToText(value);
    case 'number':
      return Number.isFinite(value) ? undefined : here(String(value));
    case 'bigint':
      return here('a BigInt (write it as a string)');
    case 'symbol':
      return here('a symbol');
    case 'function':
      return here('a function');
    case 'object':
      return value === null ? undefined : objectionToObject(value, above);
  }
}

function objectionToObject(value: object, above: Above): Objection | undefined {
  const plain = Object.getPrototypeOf(value) === Object.prototype;
  if (!plain && isBoxed(value)) return objectionTo(value.valueOf(), above);
  const { objects } = above;
  const problem =
    (plain ? undefined : foreign(value)) ?? (objects.length >= DEEPEST ? `more than ${DEEPEST} levels` : undefined);
  if (problem !== undefined) return here(problem);
  if (objects.includes(value)) return here('a cycle');

  objects.push(value);
  const objection = objectionToContent(value, above);
  objects.pop();
  return objection;
}

function isBoxed(value: object): boolean {
  return value instanceof Number || value instanceof String || value instanceof BigInt || value instanceof Symbol;
}

/** The result of `toJSON` is written as it is: JSON does not call `toJSON` on it again. */
function objectionToContent(value: object, above: Above): Objection | undefined {
  if (!('toJSON' in value) || typeof value.toJSON !== 'function') return objectionToMembers(value, above);
  const answer: unknown = value.toJSON();
  return typeof answer === 'object' && answer !== null && 'toJSON' in answer
    ? objectionToMembers(answer, above)
    : objectionTo(answer, above);
}

function objectionToMembers(value: object, above: Above): Objection | undefined {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const objection = objectionTo(value[i], above);
      if (objection) return { ...objection, path: `[${i}]${objection.path}` };
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    const ofName = objectionToText(key);
    if (ofName) return ofName;
    const ofMember = objectionTo((value as Record<string, unknown>)[key], above);
    if (ofMember) return within(key, ofMember);
  }
  return undefined;
}

/** Values that JSON would write as `{}`, as null, or in a form that cannot be read back. */
function foreign(value: object): string | undefined {
  if (value instanceof Map) return 'a Map (use Object.fromEntries)';
  if (value instanceof Set) return 'a Set (use an array)';
  if (value instanceof Promise) return 'a promise (await it first)';
  if (value instanceof Error && !('toJSON' in value)) return 'an error (take the fields that matter)';
  if (value instanceof Date && Number.isNaN(value.getTime())) return 'an invalid date';
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) {
    return 'binary data (encode it as base64, or keep it elsewhere)';
  }
  return undefined;
}

function objectionToText(text: string): Objection | undefined {
  if (text.includes('\u0000')) return here('a NUL character');
  return text.isWellFormed() ? undefined : here('a lone surrogate');
}

function here(problem: string): Objection {
  return { problem, path: '' };
}

function within(key: string, objection: Objection): Objection {
  const member = /^[A-Za-z_$][\w$]{0,63}$/.test(key) ? `.${key}` : `[${show(key)}]`;
  return { ...objection, path: `${member}${objection.path}` };
}
