import { PayloadError } from './errors.ts';
import { show } from './show.ts';
import type { Json } from './task.ts';

/** How large a payload or result may be by default, in bytes of UTF-8 JSON: 1 MiB. */
export const DEFAULT_SIZE_LIMIT = 1_048_576;

const DEEPEST = 1_000;

/**
 * Writes a value as JSON, refusing by name and path what JSON would silently lose or change: BigInt, cycles, NaN and
 * infinities, functions, symbols, invalid dates, promises, errors, Maps, Sets and binary data, lone surrogates, NUL
 * characters, and more than 1,000 levels. `undefined` goes the way JSON sends it: members are dropped, in a list it is
 * null. An own `__proto__` stays data. `onChange` hears of the first value that comes back in another form: a Date, or an instance of
 * a class.
 * @throws PayloadError with the path of the culprit, or both sizes if it is too large.
 */
export function encodeJson(
  value: unknown,
  what: string,
  limit: number = DEFAULT_SIZE_LIMIT,
  onChange?: (change: string) => void,
): string {
  const text = written(value, what, limit, onChange);
  // A character is at most three bytes of UTF-8, so short texts need no counting.
  const bytes = text.length * 3 <= limit ? 0 : Buffer.byteLength(text);
  if (bytes > limit) {
    throw new PayloadError(
      'payload_too_large',
      `The ${what} is ${bytes} bytes of JSON, and the limit is ${limit}. ${advice(what)}`,
      '$',
    );
  }
  return text;
}

function written(value: unknown, what: string, limit: number, onChange?: (change: string) => void): string {
  const above: Above = { objects: [], left: limit, nullsForUndefined: what === 'result' };
  let objection: Objection | undefined;
  try {
    objection = objectionTo(value, above);
    if (!objection) {
      if (above.changed && onChange) onChange(changeIn(value, above.changed));
      return JSON.stringify(value) ?? 'null';
    }
  } catch (cause) {
    if (cause instanceof TooManyError) {
      const message = `The ${what} holds more values than its limit of ${limit} bytes of JSON has room for. ${advice(what)}`;
      throw new PayloadError('payload_too_large', message, '$');
    }
    const message = `The ${what} could not be read: a getter, a toJSON or a Proxy in it threw.`;
    throw new PayloadError('payload_rejected', message, '$', { cause });
  }
  const path = `$${objection.path}`;
  const message = `The ${what} holds ${objection.problem} at ${path}, which JSON cannot carry.`;
  throw new PayloadError('payload_rejected', message, path);
}

/** Only the limit of payloads and results can be raised. */
function advice(what: string): string {
  const isFixed = what === 'checkpoint' || what === 'progress';
  return `Keep large data elsewhere and put its address in the ${what}${isFixed ? '' : ', or raise `maxPayloadBytes`'}.`;
}

/** The walk over a value ends at this size: parts that occur several times count each time, as JSON would write them. */
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
  /** A result is kept with null for `undefined` in a list; a payload that would change so is refused. */
  readonly nullsForUndefined: boolean;
  /** The first value that its reader gets in another form. */
  changed?: object;
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
  if (!plain && above.changed === undefined && isChanged(value)) above.changed = value;
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
  return (
    value instanceof Number ||
    value instanceof String ||
    value instanceof Boolean ||
    value instanceof BigInt ||
    value instanceof Symbol
  );
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
      const isUndefined = value[i] === undefined && !above.nullsForUndefined;
      const objection = isUndefined ? here('undefined in a list (use null)') : objectionTo(value[i], above);
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
  if (isInstance(value) && Object.keys(value).length === 0) {
    return `an object of the class ${classOf(value)}, of which JSON keeps nothing`;
  }
  return undefined;
}

/** Whether its reader gets it in another form: a Date as a text, an instance of a class without its methods. */
function isChanged(value: object): boolean {
  return value instanceof Date || isInstance(value);
}

/** An instance of a class that does not say how it becomes JSON. Plain objects of another realm have another `Object`. */
function isInstance(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype !== null && Object.getPrototypeOf(prototype) !== null && !Array.isArray(value) && !('toJSON' in value)
  );
}

/** Says where a value is, and what becomes of it. */
function changeIn(value: unknown, changed: object): string {
  const path = pathTo(value, changed) ?? '';
  return changed instanceof Date
    ? `the Date at $${path} becomes the text '${changed.toISOString()}'`
    : `the instance of ${classOf(changed)} at $${path} becomes a plain object without its methods`;
}

function pathTo(value: unknown, changed: object): string | undefined {
  if (value === changed) return '';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const path = pathTo(member, changed);
    if (path !== undefined) return Array.isArray(value) ? `[${key}]${path}` : within(key, { problem: '', path }).path;
  }
  return undefined;
}

function classOf(value: object): string {
  return show(value.constructor?.name ?? 'a class').slice(1, -1);
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
