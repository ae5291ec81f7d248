/**
 * Reading a thrown value that may be anything: a Proxy that throws, an object whose getters throw, a cyclic chain. Nothing
 * in here throws, and nothing runs without bound.
 */

const MOST_ERRORS = 32;
const DEEPEST_CAUSE = 10;

/** The property's value, or undefined where it cannot be read. What a value only has from `Object.prototype` is no evidence. */
export function read(value: unknown, key: PropertyKey): unknown {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  try {
    const found = (value as Record<PropertyKey, unknown>)[key];
    const everyones = key in Object.prototype && found === (Object.prototype as Record<PropertyKey, unknown>)[key];
    return everyones && !Object.hasOwn(value, key) ? undefined : found;
  } catch {
    // A getter or trap of somebody else's refused; what cannot be read is no evidence.
    return undefined;
  }
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

/**
 * The thrown value, then what it wraps, then what that wraps: `cause` and the `errors` of an AggregateError, each object
 * once, at most ten levels and 32 errors in all.
 */
export function levels(thrown: unknown): readonly (readonly unknown[])[] {
  const seen = new Set<unknown>([thrown]);
  const found: unknown[][] = [];
  for (let level = [thrown]; level.length > 0 && found.length < DEEPEST_CAUSE; ) {
    found.push(level);
    const inner = level.flatMap(wrapped).filter((value) => !seen.has(value));
    level = [...new Set(inner)].slice(0, MOST_ERRORS - seen.size);
    for (const value of level) seen.add(value);
  }
  return found;
}

function wrapped(value: unknown): unknown[] {
  const cause = read(value, 'cause');
  return [...(cause === undefined ? [] : [cause]), ...listed(read(value, 'errors'))];
}

/** The first members of a list, one by one: a Proxy of one, or one with an iterator of its own, may be endless. */
function listed(list: unknown): unknown[] {
  const length = isList(list) ? readNumber(list, 'length') : undefined;
  const members: unknown[] = [];
  for (let i = 0; i < Math.min(length ?? 0, MOST_ERRORS); i++) members.push(read(list, i));
  return members;
}

function isList(value: unknown): boolean {
  try {
    return Array.isArray(value);
  } catch {
    // A revoked Proxy refuses even that question.
    return false;
  }
}
