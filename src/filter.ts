import { InvalidInputError } from './errors.ts';
import { nearest } from './nearest.ts';
import { PAST_FORMS, pastMoment } from './past-moment.ts';
import { show } from './show.ts';
import { TASK_STATES, type TaskState } from './task.ts';

/** Tasks of these types, of these queues, and so on. What is left out excludes nothing. */
export interface NameFilter {
  /** Only tasks of these types. */
  readonly types?: readonly string[];
  /** Only tasks of these queues. */
  readonly queues?: readonly string[];
  /** Only tasks of these sources. */
  readonly sources?: readonly string[];
  /** Reasons of their last decisions. */
  readonly reasons?: readonly string[];
}

/** Whole numbers from one to another, both included. What is left out is no limit. */
export interface NumberRange {
  readonly from?: number;
  readonly to?: number;
}

/** What tasks are chosen by: one value of each member must fit. */
export interface Traits extends NameFilter {
  /** Reasons of these families fit too, such as `fs` for `fs.locked`. */
  readonly families?: readonly string[];
  /** Patterns that fit too; `*` stands for any text. A member of it is also a member beside it, if only as an empty list. */
  readonly like?: NameFilter;
  /** The fingerprint of the last failure. */
  readonly fingerprints?: readonly string[];
  /** Texts that the last error contains, whether their ASCII letters are capital or small. */
  readonly errors?: readonly string[];
  /** How many failures of this round were charged to it. */
  readonly attempts?: readonly NumberRange[];
  readonly executions?: readonly NumberRange[];
  readonly priority?: readonly NumberRange[];
}

/** Which tasks are meant. What is left out excludes nothing. */
export interface TaskFilter extends Traits {
  readonly states?: readonly TaskState[];
  /** What none of them has. */
  readonly not?: Traits;
  /** When it ended, was put aside or began to wait for a person, in milliseconds since 1970. `from` is included, `before` is not. */
  readonly endedFrom?: number;
  readonly endedBefore?: number;
}

/** The keys of terms, and the members of a filter that they become. */
const TRAITS = {
  type: 'types',
  queue: 'queues',
  source: 'sources',
  reason: 'reasons',
  fingerprint: 'fingerprints',
  error: 'errors',
} as const satisfies Record<string, keyof Traits>;
/** The keys whose values are numbers are named like their members. */
export const NUMBERS = ['attempts', 'executions', 'priority'] as const satisfies readonly (keyof Traits)[];
const TIMES = { since: 'endedFrom', until: 'endedBefore' } as const satisfies Record<string, keyof TaskFilter>;
const PATTERNS = ['types', 'queues', 'sources', 'reasons'] as const;

/** The keys of terms. */
export const FILTER_KEYS: readonly string[] = ['state', ...Object.keys(TRAITS), ...NUMBERS, ...Object.keys(TIMES)];

/** Other words for keys, whose letters are too different to be suggested otherwise. */
const ALSO_CALLED: Readonly<Record<string, string>> = {
  connector: 'source',
  group: 'fingerprint',
  status: 'state',
  before: 'until',
  after: 'since',
  message: 'error',
  tries: 'attempts',
  runs: 'executions',
};

/** A filter that cannot be read, and where. */
export class InvalidFilterError extends InvalidInputError {
  /** What is wrong, without the place. */
  readonly what: string;
  readonly hint: string;
  readonly text: string;
  /** The first wrong character, counted from 0, and how many. */
  readonly at: number;
  readonly length: number;

  constructor(text: string, at: number, length: number, what: string, hint: string) {
    super(`filter: ${what}, at column ${at + 1} of ${show(text)}: ${hint}`);
    this.what = what;
    this.hint = hint;
    this.text = text;
    this.at = at;
    this.length = length;
  }
}

interface Value {
  readonly text: string;
  readonly at: number;
  /** How many characters of the filter it has. */
  readonly length: number;
  readonly quoted: boolean;
}

interface Term {
  readonly key: string;
  readonly not: boolean;
  readonly values: readonly Value[];
  readonly at: number;
}

type Draft = { -readonly [Key in keyof TaskFilter]: TaskFilter[Key] };

/**
 * Reads `state:dead,needs_manual reason:http.* -type:report since:2h error:"timed out"`. A space joins terms by AND, a comma joins
 * values by OR, a minus before the key excludes. In a name without quotes, `*` stands for any text. Numbers: `attempts:3`, `attempts:>=3`,
 * `attempts:3..5`.
 * @throws InvalidFilterError that names the column.
 */
export function parseFilter(text: string, now: Date): TaskFilter {
  const filter: Draft = {};
  const seen = new Map<string, Term>();
  for (const term of terms(text)) {
    const { key, not, values, at } = term;
    const sign = not ? '-' : '';
    const before = seen.get(sign + key);
    if (before) {
      const all = [...before.values, ...values].map((value) => text.slice(value.at, value.at + value.length));
      const hint = key in TIMES ? 'keep one of them' : `one list instead: ${sign}${key}:${all.join(',')}`;
      throw new InvalidFilterError(text, at, key.length, `"${key}" is given twice`, hint);
    }
    seen.set(sign + key, term);
    if (key === 'state') {
      const named = values.map((value) => stateIn(text, value));
      const most = filter.states ?? TASK_STATES;
      filter.states = not
        ? most.filter((state) => !named.includes(state))
        : named.filter((state) => most.includes(state));
    } else if (key in TIMES) filter[TIMES[key as keyof typeof TIMES]] = timeIn(text, term, now);
    else if (not) filter.not = { ...filter.not, ...traitOf(text, term, filter.not) };
    else Object.assign(filter, traitOf(text, term, filter));
  }
  return filter;
}

/** @throws InvalidFilterError if the filter has other keys than these. */
export function refuseOtherKeys(text: string, keys: readonly string[]): void {
  const other = terms(text).find(({ key }) => !keys.includes(key));
  if (!other) return;
  const hint = `keys: ${keys.join(', ')}`;
  throw new InvalidFilterError(text, other.at, other.key.length, `"${other.key}" cannot be used here`, hint);
}

/** Whether a text of a person can only be meant as a filter. */
export function isFilter(text: string): boolean {
  const key = /^\s*-?([a-z]+):/.exec(text)?.[1];
  return key !== undefined && FILTER_KEYS.includes(key);
}

/** Writes a filter the way `parseFilter` reads it. */
export function printFilter({ states, not, endedFrom, endedBefore, ...traits }: TaskFilter): string {
  return [
    ...(states ? [`state:${states.join(',')}`] : []),
    ...printTraits(traits, ''),
    ...printTraits(not ?? {}, '-'),
    ...(endedFrom === undefined ? [] : [`since:${new Date(endedFrom).toISOString()}`]),
    ...(endedBefore === undefined ? [] : [`until:${new Date(endedBefore).toISOString()}`]),
  ].join(' ');
}

function printTraits(traits: Traits, sign: string): string[] {
  const numbers = NUMBERS.flatMap((key) => {
    const ranges = traits[key] ?? [];
    return ranges.length === 0 ? [] : [`${sign}${key}:${ranges.map(rangeText).join(',')}`];
  });
  const texts = Object.entries(TRAITS).flatMap(([key, member]) => {
    const exact = traits[member] ?? [];
    const families = (member === 'reasons' && traits.families) || [];
    const like = (member !== 'fingerprints' && member !== 'errors' && traits.like?.[member]) || [];
    const values = [...exact.map(quotedIfNeeded), ...families.map((family) => `${family}.*`), ...like];
    return values.length === 0 ? [] : [`${sign}${key}:${values.join(',')}`];
  });
  return [...texts, ...numbers];
}

function rangeText({ from, to }: NumberRange): string {
  return from !== undefined && from === to ? String(from) : `${from ?? ''}..${to ?? ''}`;
}

function quotedIfNeeded(value: string): string {
  if (value !== '' && !/[\s,"\\*]/.test(value)) return value;
  return `"${value.replaceAll(/["\\]/g, (character) => `\\${character}`)}"`;
}

/** The members of a filter that a term becomes, beside those that are there. */
function traitOf(filter: string, { key, values }: Term, { like }: Traits = {}): Traits {
  if ((NUMBERS as readonly string[]).includes(key))
    return { [key]: values.map((value) => rangeIn(filter, key, value)) };
  const member = TRAITS[key as keyof typeof TRAITS];
  const all = values.map(({ text }) => text);
  if (!(PATTERNS as readonly string[]).includes(member)) return { [member]: all };
  const isPattern = ({ text, quoted }: Value) => !quoted && text.includes('*');
  const isFamily = (value: Value) => member === 'reasons' && isPattern(value) && FAMILY.test(value.text);
  const textsOf = (which: (value: Value) => boolean) => values.filter(which).map(({ text }) => text);
  const families = textsOf(isFamily).map((text) => text.slice(0, -2));
  const patterns = textsOf((value) => isPattern(value) && !isFamily(value));
  return {
    [member]: textsOf((value) => !isPattern(value)),
    ...(families.length > 0 && { families }),
    ...(patterns.length > 0 && { like: { ...like, [member]: patterns } }),
  };
}

const FAMILY = /^[^.*]+\.\*$/;

function terms(text: string): Term[] {
  const found: Term[] = [];
  for (let i = 0; i < text.length; ) {
    if (/\s/.test(text[i] as string)) {
      i += 1;
      continue;
    }
    const [head, sign = '', key = ''] = /^(-?)([^\s:"',]*)/.exec(text.slice(i)) ?? [''];
    const at = i + sign.length;
    i += head.length;
    if (text[i] !== ':' || key === '') throw noKey(text, at);
    if (!FILTER_KEYS.includes(key)) throw unknownKey(text, key, at);
    const values: Value[] = [];
    do {
      const value = readValue(text, i + 1, key);
      values.push(value);
      i = value.at + value.length;
    } while (text[i] === ',');
    if (i < text.length && !/\s/.test(text[i] as string)) {
      const what = 'a space is missing after the closing quote';
      throw new InvalidFilterError(text, i, 1, what, 'state:dead source:"a b"');
    }
    found.push({ key, not: sign !== '', values, at });
  }
  return found;
}

function readValue(text: string, at: number, key: string): Value {
  if (text[at] !== '"') {
    const value = /^[^\s,]*/.exec(text.slice(at))?.[0] ?? '';
    if (value !== '') return { text: value, at, length: value.length, quoted: false };
    // A shell takes `>` and `<` outside of quotes for itself.
    const example = (NUMBERS as readonly string[]).includes(key) ? `${key}:3.. or '${key}:>=3'` : 'state:dead,held';
    throw new InvalidFilterError(text, Math.max(0, at - 1), 1, 'a value is missing here', example);
  }
  let value = '';
  for (let i = at + 1; i < text.length; i += 1) {
    if (text[i] === '"') return { text: value, at, length: i + 1 - at, quoted: true };
    if (text[i] === '\\' && i + 1 < text.length) i += 1;
    value += text[i];
  }
  throw new InvalidFilterError(text, at, 1, 'this quote is not closed', 'source:"fs:/mnt/my nas"');
}

function stateIn(text: string, { text: state, at, length }: Value): TaskState {
  const found = TASK_STATES.find((each) => each === state);
  if (found) return found;
  if (state === 'retrying') {
    throw new InvalidFilterError(text, at, length, 'retrying tasks are stored as scheduled', 'state:scheduled');
  }
  const [like] = nearest(state, TASK_STATES);
  const hint = like === undefined ? `states: ${TASK_STATES.join(', ')}` : `did you mean "${like}"?`;
  throw new InvalidFilterError(text, at, length, `unknown state "${state}"`, hint);
}

function rangeIn(filter: string, key: string, { text, at, length }: Value): NumberRange {
  const [, sign, one] = /^(>=?|<=?|=)?(\d{1,15})$/.exec(text) ?? [];
  if (one !== undefined) {
    const number = Number(one);
    if (sign === '>' || sign === '>=') return { from: sign === '>' ? number + 1 : number };
    if (sign === '<' || sign === '<=') return { to: sign === '<' ? number - 1 : number };
    return { from: number, to: number };
  }
  const [, from = '', to = ''] = /^(\d{0,15})\.\.(\d{0,15})$/.exec(text) ?? [];
  if (from !== '' || to !== '')
    return { ...(from !== '' && { from: Number(from) }), ...(to !== '' && { to: Number(to) }) };
  const hint = `${key}:3, ${key}:3..5, ${key}:3.. or '${key}:>=3'`;
  throw new InvalidFilterError(filter, at, length, `"${text}" is not a number`, hint);
}

function timeIn(text: string, { key, not, values, at }: Term, now: Date): number {
  const [value, second] = values as [Value, Value?];
  if (not) {
    const hint = `${key === 'since' ? 'until' : 'since'}:${value.text}`;
    throw new InvalidFilterError(text, at, key.length, `"${key}" cannot be excluded`, hint);
  }
  if (second) throw new InvalidFilterError(text, second.at, second.length, `"${key}" takes one time`, 'since:2h');
  const time = pastMoment(value.text, now);
  if (time) return time.getTime();
  throw new InvalidFilterError(text, value.at, value.length, `"${value.text}" is not a time`, `times: ${PAST_FORMS}`);
}

function unknownKey(text: string, key: string, at: number): InvalidFilterError {
  const [like] = nearest(key, [...FILTER_KEYS, ...Object.keys(ALSO_CALLED)]);
  const hint = like === undefined ? `keys: ${FILTER_KEYS.join(', ')}` : `did you mean "${ALSO_CALLED[like] ?? like}"?`;
  return new InvalidFilterError(text, at, key.length, `unknown filter key "${key}"`, hint);
}

function noKey(text: string, at: number): InvalidFilterError {
  const length = /^\S*/.exec(text.slice(at))?.[0].length ?? 1;
  const hint = `for example state:dead; keys: ${FILTER_KEYS.join(', ')}`;
  return new InvalidFilterError(text, at, length, 'a term is written key:value', hint);
}
