/** Deeper causes stay as they are; the classifier does not look at them. */
const DEEPEST = 10;

/**
 * The error that JSON tells of: every member is put onto an `Error`, as libraries do; `cause` and the members of `errors` are
 * made in the same way, and `class` is the name of its constructor. What is no object was thrown itself.
 */
export function thrownFrom(json: unknown, level = 1): unknown {
  if (typeof json !== 'object' || json === null || level > DEEPEST) return json;
  if (Array.isArray(json)) return json.map((each) => thrownFrom(each, level + 1));
  const error = new Error();
  delete error.stack;
  for (const [name, value] of Object.entries(json)) {
    if (name === 'class') put(error, 'constructor', { name: value });
    else put(error, name, name === 'cause' || name === 'errors' ? thrownFrom(value, level + 1) : value);
  }
  return error;
}

/** Not by assignment, to which `__proto__` means something else. */
function put(error: Error, name: string, value: unknown): void {
  Object.defineProperty(error, name, { value, configurable: true, writable: true, enumerable: name !== 'constructor' });
}
