import type { FailureKind, Fault } from '../outcome.ts';
import type { ErrorFields, Sort } from './error-fields.ts';
import { REASONS, type Reason } from './reasons.ts';

/**
 * What a table says about a code. One of: a reason, whose kind is in `reasons.ts`; a reason and another kind, as in
 * `'quota.exhausted transient'`; a whole meaning.
 */
export type Answer = Reason | `${Reason} ${FailureKind}` | Meaning;

export interface Meaning {
  readonly reason: Reason;
  readonly kind?: FailureKind;
  readonly ambiguous?: boolean;
  /** Who is at fault, if not who the reason says. */
  readonly fault?: Fault;
  /** The answer instead of this one if the other side asks for a wait. */
  readonly ifWait?: Answer;
}

/** The disk of a server is full. The reason says the worker's. */
export const SERVER_IS_FULL: Meaning = { reason: 'fs.no_space', fault: 'source' };

/** Codes or names, and what they mean. */
export type Table = Readonly<Record<string, Answer>>;

/** A meaning, and where its evidence was read. */
export interface Finding {
  readonly meaning: Meaning;
  /** The field that was read, such as `response.status`. */
  readonly field: string;
  /** How strong the evidence is. Default `code`. */
  readonly strength?: Strength;
}

/**
 * The strengths of evidence, the weakest first. They decide when an error and its cause disagree. `class`: only a class such as
 * TypeError is known. `hint`: a general word that a wrapper may use for any failure. `message`: text. `code`: a code or name of a
 * library or system. `status`: the response to the request itself. `said`: the error says explicitly whether to retry.
 */
export const STRENGTHS = ['class', 'hint', 'message', 'code', 'status', 'said'] as const;
export type Strength = (typeof STRENGTHS)[number];

/** A family of errors: tables of what its codes and names mean, and a function for what a table cannot express. */
export interface Family {
  readonly name: string;
  /** Values of `code` that nothing else uses. They outrank an HTTP status: AWS answers 400 to throttling. */
  readonly vendorCodes?: Table;
  /** Names and classes that nothing else uses. They outrank an HTTP status. */
  readonly vendorNames?: Table;
  /** Codes in the body of a response, if they are strings. They outrank its status. */
  readonly bodyCodes?: Table;
  /** Values of `code` that an HTTP status outranks. */
  readonly codes?: Table;
  /** Values of `code` that say little. The message and a cause outrank them. */
  readonly vagueCodes?: Table;
  /** Names and classes that say little. The message and a cause that says more outrank them. */
  readonly names?: Table;
  /** For which sorts of errors `recognise` is called. Default: all but `answered` and `system`. */
  readonly sorts?: readonly Sort[];
  /** Recognises one error by its fields, before any table is looked up. */
  readonly recognise?: (fields: ErrorFields) => Finding | undefined;
}

export function meaningOf(answer: Answer): Meaning {
  if (typeof answer !== 'string') return answer;
  const known = PARSED.get(answer);
  if (known) return known;
  const [reason, kind] = answer.split(' ') as [Reason, FailureKind?];
  const meaning: Meaning = kind === undefined ? { reason } : { reason, kind };
  PARSED.set(answer, meaning);
  return meaning;
}

const PARSED = new Map<string, Meaning>();

/** Looks up a code in a table. `field` is the field that has the code. */
export function lookUp(table: Table, code: unknown, field: string, strength?: Strength): Finding | undefined {
  if ((typeof code !== 'string' && typeof code !== 'number') || !Object.hasOwn(table, code)) return undefined;
  return found(table[code] as Answer, field, strength);
}

export function found(answer: Answer, field: string, strength?: Strength): Finding {
  return { meaning: meaningOf(answer), field, ...(strength !== undefined && { strength }) };
}

/** The kind of a meaning: its own, else that of its reason. */
export function kindOf(meaning: Meaning): FailureKind {
  return meaning.kind ?? REASONS[meaning.reason].kind;
}
