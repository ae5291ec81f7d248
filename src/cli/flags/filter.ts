import type { ListFilter } from '../../store/store.ts';
import { TASK_STATES } from '../../task.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';
import { nearest } from '../suggest.ts';

/** A filter of a list: its terms are joined by AND, the values of a term by OR. */
export type Filter = Omit<ListFilter, 'before' | 'limit'>;

/** The keys of terms, and the members of a filter that they become. */
export const FILTER_KEYS = {
  state: 'states',
  type: 'types',
  queue: 'queues',
  source: 'sources',
  reason: 'reasons',
} as const satisfies Record<string, keyof Filter>;

type Keys = Readonly<Record<string, string>>;

/** The values of each key. */
type Terms<Of extends Keys> = { readonly [name in Exclude<Of[keyof Of], 'states'>]?: readonly string[] } & Pick<
  Filter,
  'states'
>;

interface Term {
  readonly key: string;
  readonly values: readonly Value[];
  readonly at: number;
}

interface Value {
  readonly text: string;
  readonly at: number;
}

/**
 * Reads `state:dead,needs_manual source:"fs:/mnt/my nas"`. A comma separates values, quotes keep spaces and commas.
 * @throws Problem that points at the column, for an unknown key or state, a term without a key or value, or a repeated key.
 */
export function parseFilter(text: string): Filter {
  return parseTerms(text, FILTER_KEYS);
}

/** The same with other keys. */
export function parseTerms<Of extends Keys>(text: string, keys: Of): Terms<Of> {
  const filter: Record<string, readonly string[]> = {};
  for (const { key, values, at } of terms(text, keys)) {
    const name = Object.hasOwn(keys, key) ? keys[key] : undefined;
    if (name === undefined) throw unknownKey(text, key, at, keys);
    if (filter[name]) {
      const hint = `one list instead: ${key}:${[...filter[name], ...values.map((value) => value.text)].join(',')}`;
      throw pointing(text, at, key.length, `"${key}" is given twice`, hint);
    }
    if (key === 'state') for (const value of values) refuseUnknownState(text, value);
    filter[name] = values.map((value) => value.text);
  }
  return filter as Terms<Of>;
}

/** Writes terms the way `parseTerms` reads them. */
export function printTerms<Of extends Keys>(filter: Terms<Of>, keys: Of): string {
  const values = filter as Readonly<Record<string, readonly string[] | undefined>>;
  return Object.entries(keys)
    .flatMap(([key, name]) => (values[name] ? [`${key}:${values[name].map(printValue).join(',')}`] : []))
    .join(' ');
}

function printValue(value: string): string {
  if (value !== '' && !/[\s,"\\]/.test(value)) return value;
  return `"${value.replaceAll(/["\\]/g, (character) => `\\${character}`)}"`;
}

function terms(text: string, keys: Keys): Term[] {
  const found: Term[] = [];
  for (let i = 0; i < text.length; ) {
    if (/\s/.test(text[i] as string)) {
      i += 1;
      continue;
    }
    const at = i;
    const key = /^[^\s:"',]*/.exec(text.slice(i))?.[0] ?? '';
    i += key.length;
    if (text[i] !== ':' || key === '') throw noKey(text, at, keys);
    const values: Value[] = [];
    do {
      const value = readValue(text, i + 1);
      values.push({ text: value.text, at: i + 1 });
      i = value.end;
    } while (text[i] === ',');
    if (i < text.length && !/\s/.test(text[i] as string)) {
      throw pointing(text, i, 1, 'a space is missing after the closing quote', 'state:dead source:"a b"');
    }
    found.push({ key, values, at });
  }
  return found;
}

function readValue(text: string, start: number): { readonly text: string; readonly end: number } {
  if (text[start] !== '"') {
    const value = /^[^\s,]*/.exec(text.slice(start))?.[0] ?? '';
    if (value === '') throw pointing(text, Math.max(0, start - 1), 1, 'a value is missing here', 'state:dead,held');
    return { text: value, end: start + value.length };
  }
  let value = '';
  for (let i = start + 1; i < text.length; i += 1) {
    if (text[i] === '"') return { text: value, end: i + 1 };
    if (text[i] === '\\' && i + 1 < text.length) i += 1;
    value += text[i];
  }
  throw pointing(text, start, 1, 'this quote is not closed', 'source:"fs:/mnt/my nas"');
}

function refuseUnknownState(text: string, { text: state, at }: Value): void {
  if ((TASK_STATES as readonly string[]).includes(state)) return;
  if (state === 'retrying') {
    throw pointing(text, at, state.length, 'retrying tasks are stored as scheduled', 'state:scheduled');
  }
  const [like] = nearest(state, TASK_STATES);
  const hint = like === undefined ? `states: ${TASK_STATES.join(', ')}` : `did you mean "${like}"?`;
  throw pointing(text, at, state.length, `unknown state "${visible(state)}"`, hint);
}

/** Other words for keys, whose letters are too different to be suggested otherwise. */
const ALSO_CALLED: Readonly<Record<string, string>> = { connector: 'source' };

function unknownKey(text: string, key: string, at: number, keys: Keys) {
  const [like] = nearest(key, [...Object.keys(keys), ...Object.keys(ALSO_CALLED)]);
  const hint =
    like === undefined ? `keys: ${Object.keys(keys).join(', ')}` : `did you mean "${ALSO_CALLED[like] ?? like}"?`;
  return pointing(text, at, key.length, `unknown filter key "${visible(key)}"`, hint);
}

function noKey(text: string, at: number, keys: Keys) {
  const length = /^\S*/.exec(text.slice(at))?.[0].length ?? 1;
  return pointing(
    text,
    at,
    length,
    'a term is written key:value',
    `for example state:dead; keys: ${Object.keys(keys).join(', ')}`,
  );
}

/** The text with carets under what is wrong with it. */
function pointing(text: string, at: number, length: number, what: string, hint: string) {
  const before = visible(text.slice(0, at));
  return usage(`${what}, at column ${at + 1}`, {
    why: [visible(text), `${' '.repeat(before.length)}${'^'.repeat(Math.max(1, length))} ${hint}`],
  });
}
