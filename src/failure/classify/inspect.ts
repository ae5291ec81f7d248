/**
 * Reading a thrown value that may be anything: a Proxy that throws, an object whose getters throw, a cyclic chain. Nothing
 * in here throws, and nothing runs without bound.
 */

/** One error whose properties can be asked for by name. */
export interface Readable {
  readonly code: unknown;
  readonly message: string;
  /** The answer that a client attached, wherever it is kept. */
  readonly response: unknown;
  get(key: PropertyKey): unknown;
}

/** The property's value, or undefined where it cannot be read. What a value only has from `Object.prototype` is no evidence. */
export function read(value: unknown, key: PropertyKey): unknown {
  return isReadable(value) ? readOf(value, key, inheritedNames(value)) : undefined;
}

/** As `read`, for an object of which it is known what it inherits. */
export function readOf(value: object, key: PropertyKey, inherited: Names): unknown {
  try {
    // Asked before it is read: a lookup that finds nothing is dear where every error has another class.
    if (!Object.hasOwn(value, key) && !inherited?.has(key)) return undefined;
    return (value as Record<PropertyKey, unknown>)[key];
  } catch {
    // A getter or trap of somebody else's refused; what cannot be read is no evidence.
    return undefined;
  }
}

export function isReadable(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** The names that an object has from its classes, without those that everything has; undefined for none. */
export type Names = ReadonlySet<PropertyKey> | undefined;

const NAMES = new WeakMap<object, Names>();
const MOST_CLASSES = 16;

export function inheritedNames(value: object): Names {
  try {
    const prototype = Object.getPrototypeOf(value) as object | null;
    if (prototype === null || prototype === Object.prototype) return undefined;
    const known = NAMES.get(prototype);
    if (known) return known;
    const names = namesOf(prototype);
    NAMES.set(prototype, names);
    return names;
  } catch {
    return undefined;
  }
}

function namesOf(prototype: object): Names {
  const names = new Set<PropertyKey>();
  let at: object | null = prototype;
  for (let i = 0; i < MOST_CLASSES && at !== null && at !== Object.prototype; i++) {
    for (const name of Reflect.ownKeys(at)) names.add(name);
    at = Object.getPrototypeOf(at) as object | null;
  }
  return names;
}

/** The property if it is a string. */
export function readText(value: unknown, key: PropertyKey): string | undefined {
  const found = read(value, key);
  return typeof found === 'string' ? found : undefined;
}

/** The property if it is a finite number. */
export function readNumber(value: unknown, key: PropertyKey): number | undefined {
  const found = read(value, key);
  return typeof found === 'number' && Number.isFinite(found) ? found : undefined;
}

/** Whether it is a list; a revoked Proxy refuses even that question. */
export function isList(value: unknown): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}
