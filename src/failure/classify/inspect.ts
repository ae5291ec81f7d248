/**
 * Reads thrown values of any kind: Proxies and getters that throw, cyclic chains. No function here throws or runs without
 * bound.
 */

/** One error whose properties can be read by name. */
export interface Readable {
  readonly code: unknown;
  readonly message: string;
  /** The HTTP response that a client attached. */
  readonly response: unknown;
  get(key: PropertyKey): unknown;
}

/** The value of a property, or undefined if it cannot be read or comes only from `Object.prototype`. */
export function read(value: unknown, key: PropertyKey): unknown {
  return isReadable(value) ? readOf(value, key, inheritedNames(value)) : undefined;
}

/** As `read`, for an object whose inherited names are known. */
export function readOf(value: object, key: PropertyKey, inherited: Names): unknown {
  try {
    // Checked before the read, because reading an absent property is slow if each error has another class.
    if (!Object.hasOwn(value, key) && !inherited?.has(key)) return undefined;
    return (value as Record<PropertyKey, unknown>)[key];
  } catch {
    // A getter or a trap of a Proxy threw. A property that cannot be read is no evidence.
    return undefined;
  }
}

export function isReadable(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}

/** The names that an object inherits from its classes, without those of `Object.prototype`. Undefined if there are none. */
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

/** Whether it is an array. `Array.isArray` throws for a revoked Proxy. */
export function isList(value: unknown): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}
