import { duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { isRecord, list, name, oneOf, readMember, refuseUnknown, text, wholeNumber } from '../options.ts';
import { nameInPath } from '../path-segment.ts';

/** A parameter of a path or a query, or a member of a body: what it means, its JSON Schema, and how it is read. */
export interface Field<T> {
  readonly about: string;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly required: boolean;
  /** @throws InvalidInputError. */
  readonly read: (value: unknown, what: string) => T;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;

/** What is read from fields. */
export type Values<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** A text of a person. */
export function textField(about: string, longest: number): Field<string> {
  return {
    about,
    schema: { type: 'string', maxLength: longest },
    required: true,
    read: (value, what) => text(value, what, longest),
  };
}

/** The name of a type, queue, source and so on. */
export function nameField(about: string): Field<string> {
  return { about, schema: { type: 'string', minLength: 1, maxLength: 255 }, required: true, read: name };
}

export function numberField(about: string, least: number, most?: number): Field<number> {
  return {
    about,
    schema: { type: 'integer', minimum: least, ...(most !== undefined && { maximum: most }) },
    required: true,
    read: (value, what) => wholeNumber(value, what, least, most),
  };
}

export function flagField(about: string): Field<boolean> {
  return {
    about,
    schema: { type: 'boolean' },
    required: true,
    read: (value, what) => oneOf(value, [true, false], what),
  };
}

export function choiceField<const T extends string>(about: string, choices: readonly T[]): Field<T> {
  return {
    about,
    schema: { type: 'string', enum: choices },
    required: true,
    read: (value, what) => oneOf(value, choices, what),
  };
}

/** Numbers of tasks. */
export function idsField(about: string, most: number): Field<readonly number[]> {
  return {
    about,
    schema: { type: 'array', items: { type: 'integer', minimum: 1 }, maxItems: most },
    required: true,
    read: (value, what) => {
      const ids = list(value, what, (id, member) => wholeNumber(id, member, 1));
      if (ids.length > most) throw new InvalidInputError(`${what} has at most ${most} ids, got ${ids.length}.`);
      return ids;
    },
  };
}

/** Any JSON. */
export function jsonField(about: string): Field<unknown> {
  return { about, schema: {}, required: true, read: (value) => value };
}

/** A length of time such as `2h`, in milliseconds. */
export function durationField(about: string): Field<Milliseconds> {
  return {
    about,
    schema: { type: 'string', maxLength: 100, examples: ['5m', '1h'] },
    required: true,
    read: (value, what) => duration(text(value, what, 100), what),
  };
}

/** A time in RFC 3339. */
export function timeField(about: string): Field<Date> {
  return {
    about,
    schema: { type: 'string', format: 'date-time' },
    required: true,
    read: (value, what) => {
      const time = new Date(text(value, what, 64));
      if (!Number.isNaN(time.getTime())) return time;
      throw new InvalidInputError(`${what} must be a time such as 2026-01-31T09:00:00Z.`);
    },
  };
}

/** The field may be left out. */
export function optional<T>(field: Field<T>): Field<T | undefined> {
  return {
    ...field,
    required: false,
    read: (value, what) => (value === undefined ? undefined : field.read(value, what)),
  };
}

/** Reads the parameters of a query: all of them are texts. @throws InvalidInputError also for an unknown or repeated one. */
export function readQuery<F extends Fields>(fields: F, given: URLSearchParams): Values<F> {
  const values = [...new Set(given.keys())].map((key) => {
    const [value, ...more] = given.getAll(key) as [string, ...string[]];
    if (more.length > 0) throw new InvalidInputError(`The parameter ${key} is given ${more.length + 1} times.`);
    // Every object has a member such as `constructor`.
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
    return [key, field && writtenValue(field, value)];
  });
  return readFields(fields, Object.fromEntries(values), 'The query');
}

/** Reads parameters of a path. */
export function readPath<F extends Fields>(fields: F, given: Readonly<Record<string, string>>): Values<F> {
  const entries = Object.entries(fields).map(([key, field]) => [
    key,
    field.read(writtenValue(field, nameInPath(given[key] ?? '')), key),
  ]);
  return Object.fromEntries(entries) as Values<F>;
}

/** Reads the members of a body. @throws InvalidInputError also for an unknown one. */
export function readFields<F extends Fields>(fields: F, given: unknown, what: string): Values<F> {
  refuseUnknown(given, Object.keys(fields), what);
  const members = given as Readonly<Record<string, unknown>>;
  const entries = Object.entries(fields).map(([key, field]) => {
    if (field.required && members[key] === undefined) throw missing(key, field, what);
    return [key, readMember(key, () => field.read(members[key], key))];
  });
  return Object.fromEntries(entries) as Values<F>;
}

function missing(key: string, { about }: Field<unknown>, what: string): InvalidInputError {
  return new InvalidInputError(`${what} has no ${key}: ${about}.`, 'invalid_input', { member: key });
}

/** Numbers, flags and lists are written as text in an address. A text that is none is refused by the field. */
function writtenValue({ schema }: Field<unknown>, written: string): unknown {
  if (schema.type === 'integer' && /^\d{1,15}$/.test(written)) return Number(written);
  if (schema.type === 'boolean' && (written === 'true' || written === 'false')) return written === 'true';
  return written;
}

/** The JSON Schema of an object with these fields. */
export function schemaOf(fields: Fields): object {
  const required = Object.entries(fields).filter(([, field]) => field.required);
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(
      Object.entries(fields).map(([key, { schema, about }]) => [key, { ...schema, description: about }]),
    ),
    ...(required.length > 0 && { required: required.map(([key]) => key) }),
  };
}

/** A body without members may be left out. */
export function bodyOf(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    const body: unknown = JSON.parse(text);
    if (isRecord(body)) return body;
  } catch (error) {
    throw new InvalidInputError(`The body is not JSON: ${(error as Error).message}.`);
  }
  throw new InvalidInputError('The body must be a JSON object.');
}

/** A value that may be null. */
export function nullable<T>(field: Field<T>): Field<T | null> {
  return {
    ...field,
    schema: { ...field.schema, type: [field.schema.type, 'null'] },
    read: (value, what) => (value === null ? null : field.read(value, what)),
  };
}
