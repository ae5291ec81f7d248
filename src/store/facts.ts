import type { Milliseconds } from '../duration.ts';
import type { Charged, Facts } from '../failure/decide.ts';

/** What a store has stored about the present round of a task, in times of the store's clock. */
export interface Remembered {
  /** How many executions the rounds before this one had. */
  readonly round_base: number;
  readonly first_started_at: number | null;
  readonly charged: readonly Charged[] | null;
  readonly in_a_row: number;
  readonly deferred_since: number | null;
  /** The times of its charged recoveries. */
  readonly recoveries: readonly number[] | null;
  /** How many times in a row it was lost. */
  readonly lost: number;
  /** While it waits to see whether its source is down: the reason with which it ends otherwise. */
  readonly verdict?: string | null;
}

/** The values of a task without stored facts. */
export const NOTHING_REMEMBERED: Remembered = {
  round_base: 0,
  first_started_at: null,
  charged: null,
  in_a_row: 0,
  deferred_since: null,
  recoveries: null,
  lost: 0,
};

/** The execution that the facts are for: the present one, or the next one of a task that waits. */
export interface FactsFor {
  readonly execution: number;
  /** Null if it has not started: it is the next execution, or the deadline passed while the task waited. */
  readonly startedAt: number | null;
  readonly deadline: number | null;
  readonly idempotent: boolean;
  readonly cancelRequested: boolean;
}

const NONE: readonly never[] = [];

/** The facts with which the outcome of an execution is decided. Times become durations, because only the store has the clock. */
export function factsAt(now: number, past: Remembered, of: FactsFor): Facts {
  const facts = {
    executions: of.execution - past.round_base,
    charged: past.charged ?? NONE,
    deferralsInARow: past.in_a_row,
    deferredForMs: since(past.deferred_since, now),
    recoveriesAgoMs: past.recoveries?.map((at) => now - at) ?? NONE,
    lostInARow: past.lost,
    idempotent: of.idempotent,
    cancelRequested: of.cancelRequested,
    sinceFirstStartMs: since(past.first_started_at ?? of.startedAt, now),
  };
  const { verdict } = past;
  if (of.deadline === null && verdict == null) return facts;
  return {
    ...facts,
    ...(of.deadline !== null && { untilDeadlineMs: of.deadline - now }),
    ...(verdict != null && { verdict }),
  };
}

function since(at: number | null, now: number): Milliseconds {
  return at === null ? 0 : now - at;
}
