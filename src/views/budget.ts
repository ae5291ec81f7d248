import type { Milliseconds } from '../duration.ts';
import type { FailureKind } from '../failure/outcome.ts';
import type { ExecutionEntry, HistoryEntry } from '../store/store.ts';
import { roundOf } from './new-round.ts';
import { rfc3339 } from './times.ts';

/** What the retries of a task used up in its present round. A new round begins with none. */
export interface RoundBudget {
  /** Charged failures, and how many its policy allows. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** Of the last failure. */
  readonly failureKind?: FailureKind;
  readonly firstAttemptAt: number;
  readonly lastAttemptAt: number;
  /** All waits together that were decided. */
  readonly totalDelay: Milliseconds;
}

/** Undefined if nothing was decided in this round yet. */
export function budgetOf(
  { attempts }: { readonly attempts: number },
  { maxAttempts }: { readonly maxAttempts: number },
  history: readonly HistoryEntry[],
): RoundBudget | undefined {
  const executions = roundOf(history).filter(
    (entry): entry is ExecutionEntry => entry.kind === 'execution' && !entry.late,
  );
  const [first] = executions;
  const last = executions.at(-1);
  if (!first || !last) return undefined;
  const failureKind = executions.findLast(({ failure }) => failure)?.failure?.kind;
  return {
    attempts,
    maxAttempts,
    ...(failureKind && { failureKind }),
    firstAttemptAt: first.startedAt,
    lastAttemptAt: last.startedAt,
    totalDelay: executions.reduce((sum, { after = 0 }) => sum + after, 0),
  };
}

export function budgetJson(budget: RoundBudget | undefined): object | null {
  if (!budget) return null;
  return {
    attempts: budget.attempts,
    max_attempts: budget.maxAttempts,
    failure_type: budget.failureKind ?? null,
    first_attempt_at: rfc3339(budget.firstAttemptAt),
    last_attempt_at: rfc3339(budget.lastAttemptAt),
    total_delay_ms: budget.totalDelay,
  };
}
