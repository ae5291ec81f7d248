/** Deeper causes stay plain JSON, because the classifier does not read them. */
const DEEPEST = 10;

/**
 * Makes the error that JSON describes: an `Error` with all its members. `cause` and the elements of `errors` become errors in the
 * same way, and `class` is the name of the constructor. A value that is not an object stays as it is.
 */
export function thrownFrom(json: unknown, level = 1): unknown {
  if (typeof json !== 'object' || json === null || level > DEEPEST) return json;
  if (Array.isArray(json)) return json.map((each) => thrownFrom(each, level + 1));
  const error = new Error();
  delete error.stack;
  for (const [name, value] of Object.entries(json)) {
    if (name === 'class') define(error, 'constructor', { name: value });
    else define(error, name, name === 'cause' || name === 'errors' ? thrownFrom(value, level + 1) : value);
  }
  return error;
}

/** Defines the member. An assignment to `__proto__` would change the prototype. */
function define(error: Error, name: string, value: unknown): void {
  Object.defineProperty(error, name, { value, configurable: true, writable: true, enumerable: name !== 'constructor' });
}
