/**
 * Reads JSON that was stored as text. Where a damaged row holds something else, or where `otherwise` is a list or an object and
 * this is none, the answer is `otherwise`, and `name` is added to `unreadable`: one such row must not hide the others.
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

/** As a member of a record, which has it only where something cannot be read. */
export function unreadableMember(names: readonly string[]): { readonly unreadable?: readonly string[] } {
  return names.length === 0 ? {} : { unreadable: names };
}
