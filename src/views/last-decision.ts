import type { ExecutionEntry, HistoryEntry } from '../store/store.ts';

/** What was decided last about a task. What a worker reported too late decided nothing. */
export function lastDecision(history: readonly HistoryEntry[]): ExecutionEntry | undefined {
  return history.findLast((entry): entry is ExecutionEntry => entry.kind === 'execution' && !entry.late);
}
