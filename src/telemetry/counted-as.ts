import type { Charge, Decision, Facts } from '../failure/decide.ts';
import type { FailureKind, Outcome } from '../failure/outcome.ts';
import { FrequentNames } from '../frequent-names.ts';
import type { Claimed } from '../store/store.ts';

/** What a settlement is counted by. A store knows only its key, a JSON array that begins with type, source, outcome and next state. */
export interface Counted {
  readonly type: string;
  /** `_other` for a source that is not among the busiest. */
  readonly source: string;
  /** `hand_back`: it was handed back before its handler began. */
  readonly outcome: Outcome['kind'] | 'hand_back';
  readonly next: Decision['next'];
  readonly charge: Charge['to'];
  /** The kind of the failure; absent if it did not fail. */
  readonly kind?: FailureKind | undefined;
  /** Absent for a success. */
  readonly reason?: string | undefined;
  /** The failure after which it was a retry: absent if nothing failed before in its round. */
  readonly after?: FailureKind | undefined;
  /** Failures that were charged before, plus one if it ran. At most 100, which means 100 or more. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Only of a retry whose policy adapts delays. */
  readonly retried?: Retried | undefined;
}

/** A retry after failures for this reason, and the class of the waits before it. */
export interface Retried {
  readonly reason: string;
  readonly waitClass: number;
}

const MOST_ATTEMPTS = 100;

/** How many sources and reasons a process counts by name. */
const MOST_NAMES = 200;

export function readCountedAs(key: string): Counted {
  const [type, source, outcome, next, charge, kind, reason, after, attempt, maxAttempts, retried, waitClass] =
    JSON.parse(key);
  // Each has the same members in the same order: a store may have a hundred thousand, and objects of one shape are read faster.
  return {
    type,
    source,
    outcome,
    next,
    charge,
    kind: kind === '' ? undefined : kind,
    reason: reason === '' ? undefined : reason,
    after: after === '' ? undefined : after,
    attempt,
    maxAttempts,
    retried: retried === undefined ? undefined : { reason: retried, waitClass },
  };
}

/** Makes the keys under which a process counts its settlements. */
export class CountedAs {
  readonly #sources = new FrequentNames(MOST_NAMES);
  readonly #reasons = new FrequentNames(MOST_NAMES);
  /** Most settlements are first successes of the same type and source as the one before. */
  #firstSuccess = { type: '', source: '', maxAttempts: 0, key: '' };
  #last: { readonly members: readonly unknown[]; readonly key: string } = { members: [], key: '' };

  keyOf(
    claimed: Claimed,
    { charged }: Facts,
    maxAttempts: number,
    outcome: Outcome,
    decision: Decision,
    retried: Retried | undefined,
  ): string {
    const { type, lastFailure } = claimed;
    const source = this.#sources.nameOf(claimed.source);
    const isFirstSuccess = outcome.kind === 'success' && charged.length === 0 && !lastFailure;
    if (isFirstSuccess) return this.#keyOfFirstSuccess(type, source, maxAttempts);
    const ran = outcome.kind === 'interruption' ? outcome.started : RAN[outcome.kind];
    const before = charged.reduce((sum, { count }) => sum + count, 0);
    const members: unknown[] = [
      type,
      source,
      ran || outcome.kind !== 'interruption' ? outcome.kind : 'hand_back',
      decision.next,
      'charge' in decision ? decision.charge.to : 'nobody',
      outcome.kind === 'failure' ? outcome.failure.kind : '',
      decision.next === 'succeeded' ? '' : this.#reasons.nameOf(decision.reason),
      lastFailure?.kind ?? '',
      Math.min(before + (ran ? 1 : 0), MOST_ATTEMPTS),
      maxAttempts,
    ];
    if (retried) members.push(this.#reasons.nameOf(retried.reason), retried.waitClass);
    // Most executions that fail end like the one before. To compare is faster than to make the JSON.
    if (isSame(members, this.#last.members)) return this.#last.key;
    const key = JSON.stringify(members);
    this.#last = { members, key };
    return key;
  }

  #keyOfFirstSuccess(type: string, source: string, maxAttempts: number): string {
    const last = this.#firstSuccess;
    if (last.type === type && last.source === source && last.maxAttempts === maxAttempts) return last.key;
    const key = JSON.stringify([type, source, 'success', 'succeeded', 'nobody', '', '', '', 1, maxAttempts]);
    this.#firstSuccess = { type, source, maxAttempts, key };
    return key;
  }
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((member, i) => member === b[i]);
}

/** Whether a handler ran before such an outcome. */
const RAN = { success: true, failure: true, deferral: true, loss: true, expiry: false, verdict: false } as const;
