import { type NameFilter, NUMBERS, type NumberRange, type TaskFilter, type Traits } from '../filter.ts';

/** What a filter compares. */
export type FilterColumn = 'type' | 'queue' | 'source' | 'reason' | 'fingerprint' | 'error' | (typeof NUMBERS)[number];

/**
 * A column has one of these values, is like one of these patterns, contains one of these texts or is in one of these ranges; with `not`,
 * none of them.
 */
export interface FilterCondition {
  readonly column: FilterColumn;
  readonly exactly: readonly string[];
  /** `*` stands for any text. */
  readonly like: readonly string[];
  /** Of the column `error` only. Capital and small ASCII letters are the same. */
  readonly contains: readonly string[];
  /** Of the columns with numbers only. */
  readonly ranges: readonly NumberRange[];
  readonly not: boolean;
}

const NAMES = [
  ['type', 'types'],
  ['queue', 'queues'],
  ['source', 'sources'],
  ['reason', 'reasons'],
] as const satisfies readonly (readonly [FilterColumn, keyof NameFilter])[];

/** The conditions of a filter besides states and times. All of them must be true. */
export function conditionsOf({ not = {}, ...traits }: TaskFilter): FilterCondition[] {
  return [...ofTraits(traits, false), ...ofTraits(not, true)];
}

/** What a filter is compared with: a column without a value has none, and one with several values fits if one of them does. */
export type Compared = Readonly<Partial<Record<FilterColumn, string | number | readonly string[] | undefined>>>;

/** Whether something fits a filter, besides states and times. As a store compares its tasks. */
export function fits(filter: TaskFilter, compared: Compared): boolean {
  return conditionsOf(filter).every(({ column, exactly, like, contains, ranges, not }) => {
    const values = [compared[column] ?? (not ? '' : [])].flat();
    const found = values.some(
      (value) =>
        exactly.includes(String(value)) ||
        like.some((pattern) => isLike(String(value), pattern)) ||
        contains.some((part) => inSmallLetters(String(value)).includes(inSmallLetters(part))) ||
        ranges.some(({ from = 0, to = Number.MAX_SAFE_INTEGER }) => Number(value) >= from && Number(value) <= to),
    );
    return found !== not;
  });
}

function isLike(value: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`).test(value);
}

/** Only ASCII letters. */
function inSmallLetters(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function ofTraits(traits: Traits, not: boolean): FilterCondition[] {
  const none = { exactly: [], like: [], contains: [], ranges: [], not };
  const names = NAMES.flatMap(([column, member]) => {
    const families = (column === 'reason' && traits.families) || undefined;
    const [exactly, like] = [traits[member], traits.like?.[member]];
    if (!exactly && !like && !families) return [];
    return [
      {
        ...none,
        column,
        exactly: [...(exactly ?? []), ...(families ?? [])],
        like: [...(like ?? []), ...(families ?? []).map((family) => `${family}.*`)],
      },
    ];
  });
  const { fingerprints, errors } = traits;
  const numbers = NUMBERS.flatMap((column) => {
    const ranges = traits[column];
    return ranges ? [{ ...none, column, ranges }] : [];
  });
  return [
    ...names,
    ...(fingerprints ? [{ ...none, column: 'fingerprint' as const, exactly: fingerprints }] : []),
    ...(errors ? [{ ...none, column: 'error' as const, contains: errors }] : []),
    ...numbers,
  ];
}
