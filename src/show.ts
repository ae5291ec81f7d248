const LONGEST_SHOWN = 80;

/** A refused value as an error message shows it: text quoted, objects as JSON, cut at 80 characters. Never throws. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return `'${cut(value)}'`;
    case 'bigint':
      return `${cut(String(value))}n`;
    case 'function':
      return 'a function';
    case 'object':
      return value === null ? 'null' : cut(jsonOf(value));
    default:
      return cut(String(value));
  }
}

function jsonOf(value: object): string {
  try {
    return JSON.stringify(value) ?? 'an object';
  } catch {
    // A cycle, a BigInt, or a getter that throws: the error message must not fail because of it.
    return 'an object';
  }
}

function cut(text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN - 1)}…` : text;
}
