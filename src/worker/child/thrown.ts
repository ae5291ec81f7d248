import { inheritedNames, isList, isReadable, read, readNumber, readText } from '../../failure/classify/inspect.ts';
import { parseSignal, SIGNAL, type Signal } from '../../failure/signals.ts';

/** A thrown value as data that can be sent to another process: messages between processes lose the fields of errors. */
export interface PackedError {
  readonly root: Part;
  readonly objects: readonly PackedObject[];
}

/** A value, or the place of an object in the list. */
type Part = { readonly value: unknown } | { readonly at: number };

interface PackedObject {
  readonly form: 'error' | 'list' | 'object';
  readonly className: string | undefined;
  readonly signal: Signal | undefined;
  readonly fields: readonly (readonly [name: string, part: Part])[];
}

const MOST_OBJECTS = 300;
const MOST_FIELDS = 100;
const LONGEST_TEXT = 65_536;

/**
 * Copies what `classify` can read of a thrown value: fields, getters and causes, the outermost objects first. Functions are left
 * out, and so is what exceeds the limits. Never throws.
 */
export function packError(thrown: unknown): PackedError {
  const objects: PackedObject[] = [];
  const found: object[] = [];
  const places = new Map<object, number>();
  const partOf = (value: unknown): Part | undefined => {
    if (typeof value === 'string') return { value: value.slice(0, LONGEST_TEXT) };
    if (typeof value === 'function' || typeof value === 'symbol') return undefined;
    if (!isReadable(value)) return { value };
    const copy = copyOf(value);
    if (copy !== undefined) return { value: copy };
    const known = places.get(value);
    if (known !== undefined) return { at: known };
    if (found.length >= MOST_OBJECTS) return undefined;
    places.set(value, found.length);
    return { at: found.push(value) - 1 };
  };
  const root = partOf(thrown) ?? { value: String(thrown) };
  // Packing an object adds the objects in its fields to the end of the list.
  for (let at = 0; at < found.length; at++) objects.push(packed(found[at] as object, partOf));
  return { root, objects };
}

function packed(value: object, partOf: (value: unknown) => Part | undefined): PackedObject {
  const fields = namesOf(value).flatMap((name): (readonly [string, Part])[] => {
    const part = partOf(read(value, name));
    return part === undefined ? [] : [[name, part]];
  });
  const form = isList(value) ? 'list' : isError(value) ? 'error' : 'object';
  return { form, className: readText(read(value, 'constructor'), 'name'), signal: parseSignal(value), fields };
}

function namesOf(value: object): string[] {
  if (isList(value))
    return Array.from({ length: Math.min(readNumber(value, 'length') ?? 0, MOST_FIELDS) }, (_, i) => `${i}`);
  try {
    const names = new Set([...Reflect.ownKeys(value), ...(inheritedNames(value) ?? [])]);
    const texts = [...names].filter((name) => typeof name === 'string');
    return texts.filter((name) => name !== 'constructor').slice(0, MOST_FIELDS);
  } catch {
    // A trap of a Proxy threw.
    return [];
  }
}

function isError(value: object): boolean {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

/** Objects that a message carries as they are, and headers. Undefined for all others. */
function copyOf(value: object): unknown {
  try {
    if (value instanceof Headers) return new Map(value);
    if (value instanceof Date) return new Date(value);
    if (value instanceof Uint8Array) return new Uint8Array(value.subarray(0, LONGEST_TEXT));
    if (value instanceof Map) return new Map([...value].filter((pair) => pair.every(isPlain)));
    if (value instanceof Set) return new Set([...value].filter(isPlain));
  } catch {
    // A trap of a Proxy threw.
  }
  return undefined;
}

function isPlain(value: unknown): boolean {
  return !isReadable(value) && typeof value !== 'symbol';
}

/** The error again, with the name of its class, and as the signal that it was. */
export function unpackError({ root, objects }: PackedError): unknown {
  const made = objects.map(({ form, className, signal }): object => {
    if (form === 'list') return [];
    const parent = form === 'error' ? Error.prototype : Object.prototype;
    const prototype: object = Object.create(parent, { constructor: { value: { name: className } } });
    return Object.assign(Object.create(prototype), signal && { [SIGNAL]: signal });
  });
  const readPart = (part: Part) => ('at' in part ? made[part.at] : part.value);
  objects.forEach(({ fields }, at) => {
    for (const [name, part] of fields) {
      const field = { value: readPart(part), enumerable: true, writable: true, configurable: true };
      Object.defineProperty(made[at], name, field);
    }
  });
  return readPart(root);
}
