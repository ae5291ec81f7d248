import type { FailureKind } from '../outcome.ts';
import { REASONS, type Reason } from './reasons.ts';
import type { Seen, Sort } from './seen.ts';

/**
 * What a table says of a code: a reason, which has its kind in `reasons.ts`; or a reason and another kind, as in
 * `'quota.exhausted transient'`; or the same with a word about ambiguity.
 */
export type Answer = Reason | `${Reason} ${FailureKind}` | Verdict;

export interface Verdict {
  readonly reason: Reason;
  readonly kind?: FailureKind;
  readonly ambiguous?: boolean;
  /** What it is instead if the other side asks for a wait. */
  readonly ifWait?: Answer;
}

/** Codes or names, and what they mean. */
export type Table = Readonly<Record<string, Answer>>;

/** An answer, and where it was read. */
export interface Finding {
  readonly verdict: Verdict;
  /** The field that was read, such as `response.status`. */
  readonly field: string;
  /** How sure: see `STRENGTHS`. Default `code`. */
  readonly strength?: Strength;
}

/**
 * How much evidence weighs when an error and its cause say different things. A `status` is the answer of another side to the
 * very thing that was tried; a `code` is what a library or system calls it; a `message` is text that a program wrote; a `hint`
 * may be the wrapper's word for whatever happened; a `class` (TypeError) is all that is left.
 */
export const STRENGTHS = ['class', 'hint', 'message', 'code', 'status', 'said'] as const;
export type Strength = (typeof STRENGTHS)[number];

/** A family of errors: tables of what its codes and names mean, and where a table will not do, a way to read its shape. */
export interface Family {
  readonly name: string;
  /** Values of `code` that nothing else uses. They outrank an HTTP status: AWS answers 400 to throttling. */
  readonly vendorCodes?: Table;
  /** Names and classes that nothing else uses. They outrank an HTTP status. */
  readonly vendorNames?: Table;
  /** Codes inside an answer's body, where they are strings. They outrank the answer's status. */
  readonly bodyCodes?: Table;
  /** Values of `code` that an HTTP status outranks: an error that has both came with an answer. */
  readonly codes?: Table;
  /** Values of `code` that tell little: whatever the message or a cause says in their stead is better. */
  readonly vagueCodes?: Table;
  /** Names and classes that tell little: a cause that tells more outranks them. */
  readonly names?: Table;
  /** Which sorts of errors its sense is asked about. Default: all but `answered` and `system`. */
  readonly asked?: readonly Sort[];
  /** Reads one error by its shape, before any table is asked. */
  readonly sense?: (seen: Seen) => Finding | undefined;
}

export function verdictOf(answer: Answer): Verdict {
  if (typeof answer !== 'string') return answer;
  const known = PARSED.get(answer);
  if (known) return known;
  const [reason, kind] = answer.split(' ') as [Reason, FailureKind?];
  const verdict: Verdict = kind === undefined ? { reason } : { reason, kind };
  PARSED.set(answer, verdict);
  return verdict;
}

const PARSED = new Map<string, Verdict>();

/** What a table says of a code, as a finding in the field where the code stood. */
export function lookUp(table: Table, code: unknown, field: string, strength?: Strength): Finding | undefined {
  if ((typeof code !== 'string' && typeof code !== 'number') || !Object.hasOwn(table, code)) return undefined;
  return found(table[code] as Answer, field, strength);
}

export function found(answer: Answer, field: string, strength?: Strength): Finding {
  return { verdict: verdictOf(answer), field, ...(strength !== undefined && { strength }) };
}

/** The kind of a verdict: its own word, else its reason's. */
export function kindOf(verdict: Verdict): FailureKind {
  return verdict.kind ?? REASONS[verdict.reason].kind;
}
