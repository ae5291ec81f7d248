import type { Failure } from '../failure/outcome.ts';
import type { ExecutionEntry, HistoryEntry } from '../store/store.ts';

/** The last decision about a task. A late report decided nothing. */
export function lastDecision(history: readonly HistoryEntry[]): ExecutionEntry | undefined {
  return history.findLast((entry): entry is ExecutionEntry => entry.kind === 'execution' && !entry.late);
}

/** An execution that failed. */
export type FailedExecution = ExecutionEntry & { readonly failure: Failure };

/** The last failure that was decided about. */
export function lastFailureIn(history: readonly HistoryEntry[]): FailedExecution | undefined {
  return history.findLast(
    (entry): entry is FailedExecution => entry.kind === 'execution' && !entry.late && entry.failure !== undefined,
  );
}
