import type { Milliseconds } from '../duration.ts';
import type { NewCondition, RecordedCondition } from '../source/condition.ts';
import type { By } from './new-task.ts';

/** What has a record of its changes. The history of a task is its own. */
export type ChangedKind = 'source' | 'queue';

/** `condition`: the outcome of a task changed the condition of a source. The others are actions of people. */
const CHANGES = ['condition', 'hold', 'release', 'probe', 'limit', 'pause', 'resume'] as const;

/** What is known of a change, as it is stored. */
export interface ChangeFacts {
  readonly change: (typeof CHANGES)[number];
  /** The new condition of a source. Absent: it stays. */
  readonly to?: RecordedCondition;
  /** Of an outage or a pause: the reason and the message of the failure that caused it. */
  readonly reason?: string;
  readonly message?: string;
  /** How many attempts were given back. */
  readonly refunded?: number;
  /** How long the source is held at first. */
  readonly heldForMs?: Milliseconds;
  /** Of an action: who did it, and why. */
  readonly by?: By;
  /** New limits; null removes one. */
  readonly limits?: {
    readonly pace?: { readonly perSecond: number; readonly burst: number } | null;
    readonly concurrency?: number | null;
  };
}

/** The facts of a new condition as JSON, for the change of the source. `by`: a person caused it with this action. */
export function factsOfCondition(
  { to, last, heldForMs, refunded }: NewCondition,
  action?: { readonly change: 'release' | 'probe'; readonly by: By },
): string {
  const facts: ChangeFacts = {
    ...(action ?? { change: 'condition' }),
    to,
    ...(last && { reason: last.reason, message: last.message }),
    ...(refunded > 0 && { refunded }),
    ...(heldForMs !== undefined && { heldForMs }),
  };
  return JSON.stringify(facts);
}

/** One change of a source or a queue. */
export interface ChangeRecord extends ChangeFacts {
  readonly id: number;
  readonly at: number;
  readonly kind: ChangedKind;
  readonly name: string;
}

export interface ChangeFilter {
  readonly kind?: ChangedKind;
  readonly name?: string;
  /** Only changes at this time or later. */
  readonly since?: number;
  /** Only changes with smaller ids, for the next page. */
  readonly before?: number;
  /** Only actions of people. */
  readonly actions?: true;
  readonly limit: number;
}

/** Changes are kept for this long. */
export const CHANGES_KEPT_FOR_MS: Milliseconds = 30 * 24 * 3_600_000;

/** And at most so many of them. */
export const MOST_CHANGES = 50_000;

/** A change as a row of the table of changes. */
export interface ChangeRow {
  readonly id: number;
  readonly at: number;
  readonly kind: ChangedKind;
  readonly name: string;
  /** `ChangeFacts` as JSON. */
  readonly facts: string;
}

export function changeRecord({ facts, ...row }: ChangeRow): ChangeRecord {
  return { ...row, ...(JSON.parse(facts) as ChangeFacts) };
}
