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
