/**
 * Reads JSON that was stored as text. If a damaged row contains something else, or not a list or object like `otherwise`, the
 * result is `otherwise`, and `name` is added to `unreadable`: one such row must not hide the others.
 */
export function readStored<T>(text: string, name: string, unreadable: string[], otherwise: T): T {
  try {
    const value: unknown = JSON.parse(text);
    if (isAlike(value, otherwise)) return value as T;
  } catch {
    // It is no JSON.
  }
  unreadable.push(name);
  return otherwise;
}

function isAlike(value: unknown, otherwise: unknown): boolean {
  if (typeof otherwise !== 'object' || otherwise === null) return true;
  return typeof value === 'object' && value !== null && Array.isArray(value) === Array.isArray(otherwise);
}

/** The member `unreadable` of a record, which exists only if something cannot be read. */
export function unreadableMember(names: readonly string[]): { readonly unreadable?: readonly string[] } {
  return names.length === 0 ? {} : { unreadable: names };
}
