import { spanOf } from './duration.ts';
import { InvalidInputError } from './errors.ts';
import { likeName } from './nearest.ts';
import { show } from './show.ts';

/** Whether the value is an object with named members, and no list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Refuses unknown options, because a misspelt one would silently have no effect. `instead` maps names that other queues use to
 * ours.
 */
export function refuseUnknown(
  options: unknown,
  known: readonly string[],
  what: string,
  instead: Readonly<Record<string, string>> = {},
  code: 'invalid_input' | 'invalid_policy' = 'invalid_input',
): void {
  if (!isRecord(options)) {
    const has = known.length === 0 ? '' : ` It has: ${known.join(', ')}.`;
    throw new InvalidInputError(`${what} takes an object of options, got ${shown(options)}.${has}`, code);
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const like = Object.hasOwn(instead, key) ? undefined : likeName(key, known);
    const hint = like === undefined ? (instead[key] ?? '') : `Did you mean '${like}'?`;
    throw new InvalidInputError(
      `${what} has no option ${show(key)}. It has: ${known.join(', ')}.${hint === '' ? '' : ` ${hint}`}`,
      code,
    );
  }
}

/** Refuses what is no object with named members. Any names are accepted, because they are the caller's. */
export function refuseNoRecord(given: unknown, what: string): void {
  refuseUnknown(given, isRecord(given) ? Object.keys(given) : [], what);
}

/** Reads a member of an input, and names it in what is thrown. The innermost name counts. */
export function readMember<T>(member: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InvalidInputError) || error.member !== undefined) throw error;
    throw new InvalidInputError(error.message, error.code, { cause: error.cause, member });
  }
}

/** A whole number within bounds. */
export function wholeNumber(value: unknown, what: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `between ${least} and ${most}`;
  throw new InvalidInputError(`${what} must be a whole number ${range}, got ${shown(value)}.`);
}

/** A name of up to 255 characters: of a type, queue, source, category, key or worker. */
export function name(value: unknown, what: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  if (typeof value === 'string' && value !== '' && value.length <= 255 && !/[\u0000-\u001f\u007f]/.test(value)) {
    if (value.isWellFormed()) return value;
  }
  const type = isRecord(value) && typeof value.type === 'string' ? ` Write its type: ${show(value.type)}.` : '';
  throw new InvalidInputError(
    `${what} must be a text of 1 to 255 characters without control characters, got ${shown(value)}.${type}`,
  );
}

/** A text of a person, up to a length, that every database accepts. */
export function text(value: unknown, what: string, longest: number): string {
  if (typeof value === 'string' && value.length <= longest && !value.includes('\u0000') && value.isWellFormed()) {
    return value;
  }
  throw new InvalidInputError(
    `${what} must be a text of at most ${longest} characters, without NUL, got ${shown(value)}.`,
  );
}

/** A list whose members are all read by the same function. */
export function list<T>(value: unknown, what: string, member: (value: unknown, what: string) => T): readonly T[] {
  if (!Array.isArray(value)) {
    const listed = typeof value === 'string' ? ` Write [${show(value)}].` : '';
    throw new InvalidInputError(`${what} must be a list, got ${shown(value)}.${listed}`);
  }
  return Array.from(value, (one, i) => member(one, `${what}[${i}]`));
}

/** One of a list. */
export function oneOf<T>(value: unknown, allowed: readonly T[], what: string): T {
  if ((allowed as readonly unknown[]).includes(value)) return value as T;
  throw new InvalidInputError(`${what} must be one of ${allowed.join(', ')}, got ${shown(value)}.`);
}

/** A valid Date. */
export function moment(value: unknown, what: string): Date {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return value;
  const written = typeof value === 'string' ? `'${value}'` : value;
  const isTime = (typeof value === 'string' || typeof value === 'number') && !Number.isNaN(new Date(value).getTime());
  const got = value instanceof Date ? 'an invalid Date' : shown(value);
  const span = isTime ? undefined : spanOf(value);
  const instead = isTime ? written : span && `Date.now() + ${span}`;
  throw new InvalidInputError(
    `${what} must be a valid Date, got ${got}.${instead === undefined ? '' : ` Write new Date(${instead}).`}`,
  );
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object';
  return show(value);
}
