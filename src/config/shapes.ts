import { type DurationInput, duration, formatDuration, LONGEST, type Milliseconds, respelt } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { meant } from './nearest-name.ts';
import { type Problems, quoted } from './problems.ts';
import { type Entry, KINDS, type MapNode, type Node } from './source.ts';
import { hasVariable } from './store-name.ts';

/** JSON Schema, draft 7, which editors read. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * The possible values of one place in a configuration. Reading and the JSON Schema use this one definition. `read` returns
 * undefined for a value that it refuses, after it has reported the problem.
 */
export interface Shape<T> {
  readonly schema: JsonSchema;
  read(node: Node, problems: Problems): T | undefined;
}

/** A member of a map, as people read of it. */
export interface Field<T> {
  readonly shape: Shape<T>;
  readonly says: string;
  readonly byDefault?: unknown;
  readonly examples?: readonly unknown[];
}

export function field<T>(shape: Shape<T>, says: string, more: Pick<Field<T>, 'byDefault' | 'examples'> = {}): Field<T> {
  return { shape, says, ...more };
}

export function flag(): Shape<boolean> {
  return {
    schema: { type: 'boolean' },
    read(node, problems) {
      if (node.kind === 'scalar' && typeof node.value === 'boolean') return node.value;
      const meantBy = ['yes', 'on'].includes(node.source)
        ? 'true'
        : ['no', 'off'].includes(node.source)
          ? 'false'
          : undefined;
      problems.refuse(node, `It must be true or false, got ${shown(node)}.`, meantBy && `Write ${meantBy}.`);
      return undefined;
    },
  };
}

export function whole(least: number, most = Number.MAX_SAFE_INTEGER): Shape<number> {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return {
    schema: { type: 'integer', minimum: least, ...(most !== Number.MAX_SAFE_INTEGER && { maximum: most }) },
    read(node, problems) {
      const value = node.kind === 'scalar' ? node.value : undefined;
      if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most)
        return value as number;
      const unquoted = typeof value === 'string' && /^\d+$/.test(value) ? 'Write it without quotes.' : undefined;
      problems.refuse(node, `It must be a whole number ${range}, got ${shown(node)}.`, unquoted);
      return undefined;
    },
  };
}

export function decimal(least: number, most = Number.MAX_VALUE): Shape<number> {
  const range = most === Number.MAX_VALUE ? `of at least ${least}` : `from ${least} to ${most}`;
  return {
    schema: { type: 'number', minimum: least, ...(most !== Number.MAX_VALUE && { maximum: most }) },
    read(node, problems) {
      const value = node.kind === 'scalar' ? node.value : undefined;
      if (typeof value === 'number' && value >= least && value <= most) return value;
      problems.refuse(node, `It must be a number ${range}, got ${shown(node)}.`);
      return undefined;
    },
  };
}

export function oneOf<const T extends string>(allowed: readonly T[]): Shape<T> {
  return {
    schema: { enum: allowed },
    read(node, problems) {
      const value = node.kind === 'scalar' ? node.value : undefined;
      if (allowed.includes(value as T)) return value as T;
      const like = typeof value === 'string' ? meant(value, allowed, false) : undefined;
      problems.refuse(node, `It must be one of ${allowed.join(', ')}, got ${shown(node)}.`, like);
      return undefined;
    },
  };
}

const NAME_SCHEMA = { type: 'string', minLength: 1, maxLength: 255 };

/** A name of up to 255 characters, as everywhere in Holdfast. */
export function name(): Shape<string> {
  return {
    schema: NAME_SCHEMA,
    read(node, problems) {
      if (node.kind === 'scalar' && typeof node.value === 'string' && isName(node.value)) {
        if (!hasVariable(node.value)) return node.value;
        problems.refuse(node, ...VARIABLE);
        return undefined;
      }
      const quotes = node.kind === 'scalar' && typeof node.value !== 'string' && node.source !== '';
      problems.refuse(
        node,
        `It must be a text of 1 to 255 characters without control characters, got ${shown(node)}.`,
        quotes ? `Put it in quotes: '${node.source}'.` : undefined,
      );
      return undefined;
    },
  };
}

const VARIABLE = ['Variables are not replaced in a file.', 'Write the value itself.'] as const;

function isName(value: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  return value !== '' && value.length <= 255 && !/[\u0000-\u001f\u007f]/.test(value) && value.isWellFormed();
}

const UNITS = String.raw`(\d+(\.\d+)?(ms|[smhdw]))+`;
const ISO = String.raw`P(?=.)(\d+(\.\d+)?W)?(\d+(\.\d+)?D)?(T(?=.)(\d+(\.\d+)?H)?(\d+(\.\d+)?M)?(\d+(\.\d+)?S)?)?`;

/**
 * A duration with its unit. A bare number could mean milliseconds or seconds, so only 0 needs no unit.
 */
export function span(least: Milliseconds = 0): Shape<Milliseconds> {
  return {
    schema: {
      anyOf: [
        { type: 'string', pattern: `^(${UNITS}|${ISO})$`, examples: ['90s', '10m', '1h30m', '2d', 'PT15M'] },
        { const: 0 },
      ],
    },
    read(node, problems) {
      const value = node.kind === 'scalar' ? node.value : undefined;
      if (typeof value === 'number' && value > 0) {
        problems.refuse(node, `${node.source} has no unit.`, `Write ${node.source}s for seconds, or ${node.source}ms.`);
        return undefined;
      }
      const ms =
        value === 0 || typeof value === 'string'
          ? milliseconds(value as DurationInput)
          : 'be a duration such as 90s, 10m or PT1H';
      if (typeof ms === 'number' && ms >= least) return ms;
      const must = typeof ms === 'string' ? ms : `be at least ${formatDuration(least)}`;
      const written = typeof value === 'string' ? respelt(value) : undefined;
      problems.refuse(node, `It must ${must}, got ${shown(node)}.`, written && `Write ${written}.`);
      return undefined;
    },
  };
}

function milliseconds(value: DurationInput): Milliseconds | string {
  try {
    return duration(value);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    if (typeof value === 'string' && /^[\dPTWDHMS.hmsdw]+$/.test(value) && /\d{3}/.test(value)) {
      return `be a duration of at most ten years (${formatDuration(LONGEST)})`;
    }
    return 'be a duration such as 90s, 10m or PT1H';
  }
}

/** As `span`, in the form of an option in code. */
export function spanOption(least?: Milliseconds): Shape<DurationInput> {
  const { schema, read } = span(least);
  return {
    schema,
    read(node, problems) {
      const ms = read(node, problems);
      return ms === undefined ? undefined : `${ms}ms`;
    },
  };
}

/** What `shape` takes, or the word `none`. */
export function orNone<T>(shape: Shape<T>): Shape<T | 'none'> {
  return {
    schema: { anyOf: [{ const: 'none' }, shape.schema] },
    read(node, problems) {
      if (node.kind === 'scalar' && node.value === 'none') return 'none';
      if (node.kind === 'scalar' && node.value === null) {
        problems.refuse(node, 'A value is missing here.', 'Write none for no limit.');
        return undefined;
      }
      return shape.read(node, problems);
    },
  };
}

export function listOf<T>(shape: Shape<T>, least = 0): Shape<readonly T[]> {
  return {
    schema: { type: 'array', items: shape.schema, ...(least > 0 && { minItems: least }) },
    read(node, problems) {
      if (node.kind !== 'list' || node.items.length < least) {
        const what = least === 0 ? 'a list' : `a list of at least ${least}`;
        problems.refuse(
          node,
          `It must be ${what}, got ${shown(node)}.`,
          node.kind === 'scalar' ? `Write [${node.source}].` : undefined,
        );
        return undefined;
      }
      return all(node.items.map((item) => shape.read(item, problems)));
    },
  };
}

/** One, or a list of at least one. */
export function oneOrMore<T>(shape: Shape<T>): Shape<readonly T[]> {
  const list = listOf(shape, 1);
  return {
    schema: { anyOf: [shape.schema, list.schema] },
    read: (node, problems) => (node.kind === 'list' ? list.read(node, problems) : all([shape.read(node, problems)])),
  };
}

/** Whether no member of a list was refused. */
function all<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  return values.includes(undefined) ? undefined : (values as readonly T[]);
}

/** A map with free names. */
export function record<T>(
  shape: Shape<T>,
  what: string,
  check?: (entry: Entry, problems: Problems) => boolean,
): Shape<ReadonlyMap<string, T>> {
  return {
    schema: { type: 'object', additionalProperties: shape.schema, propertyNames: NAME_SCHEMA },
    read(node, problems) {
      const entries = entriesOf(node, what, problems);
      if (!entries) return undefined;
      const values = new Map<string, T>();
      for (const entry of entries) {
        if (!isName(entry.name)) {
          problems.refuse(entry.at, 'A name must have 1 to 255 characters, and no control characters.');
          continue;
        }
        if (hasVariable(entry.name)) {
          problems.refuse(entry.at, ...VARIABLE);
          continue;
        }
        if (check && !check(entry, problems)) continue;
        const value = shape.read(entry.value, problems);
        if (value !== undefined) values.set(entry.name, value);
      }
      return values;
    },
  };
}

export type Fields<T> = { readonly [Name in keyof T]-?: Field<Exclude<T[Name], undefined>> };

export interface Objections {
  /** Names that are planned but not supported yet, and what is missing. */
  readonly notYet?: Readonly<Record<string, string>>;
  /** Hints for names that people know from other systems. */
  readonly instead?: Readonly<Record<string, string>>;
}

/** A map with fixed names. A missing name is missing in the result too. */
export function fields<T extends object>(
  what: string,
  known: Fields<T>,
  { notYet = {}, instead = {} }: Objections = {},
): Shape<Partial<T>> {
  const names = Object.keys(known);
  return {
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(names.map((each) => [each, schemaOf(known[each as keyof T])])),
    },
    read(node, problems) {
      const entries = entriesOf(node, what, problems);
      if (!entries) return undefined;
      const values: Partial<T> = {};
      for (const { name: given, at, value } of entries) {
        if (Object.hasOwn(notYet, given)) {
          problems.refuse(at, `${what} cannot have ${quoted(given)} yet: ${notYet[given]}`, 'Remove it until then.');
        } else if (!Object.hasOwn(known, given)) {
          const hint = Object.hasOwn(instead, given) ? instead[given] : meant(given, names);
          problems.refuse(at, `${what} has no ${quoted(given)}.`, hint);
        } else {
          const read = known[given as keyof T].shape.read(value, problems);
          if (read !== undefined) values[given as keyof T] = read as T[keyof T];
        }
      }
      return values;
    },
  };
}

function schemaOf({ shape, says, byDefault, examples }: Field<unknown>): JsonSchema {
  return {
    ...shape.schema,
    description: says,
    ...(byDefault !== undefined && { default: byDefault }),
    ...(examples && { examples }),
  };
}

/** The members of a map. An empty value is an empty map. */
export function entriesOf(node: Node, what: string, problems: Problems): MapNode['entries'] | undefined {
  if (node.kind === 'map') return node.entries;
  if (node.kind === 'scalar' && node.value === null) return [];
  const retry = what === 'A type' && node.kind === 'scalar' ? `Write { retry: ${node.value} }.` : undefined;
  problems.refuse(node, `${what} must be a map of names and values, got ${shown(node)}.`, retry);
  return undefined;
}

/** The value that was found, for an error message. */
export function shown(node: Node): string {
  if (node.kind !== 'scalar') return KINDS[node.kind];
  return node.value === null ? 'nothing' : quoted(typeof node.value === 'string' ? node.value : node.source);
}
