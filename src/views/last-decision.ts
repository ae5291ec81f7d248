import type { ExecutionEntry, HistoryEntry } from '../store/store.ts';

/** The last decision about a task. A late report decided nothing. */
export function lastDecision(history: readonly HistoryEntry[]): ExecutionEntry | undefined {
  return history.findLast((entry): entry is ExecutionEntry => entry.kind === 'execution' && !entry.late);
}
