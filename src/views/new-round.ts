import type { ActionEntry, HistoryEntry } from '../store/store.ts';

/** The retry by a person, or the redrive, that began the present round, if nothing was decided in this round yet. */
export function newRoundOf(history: readonly HistoryEntry[]): ActionEntry | undefined {
  const last = history.findLast(
    (entry) => (entry.kind === 'execution' && !entry.late) || (entry.kind === 'action' && beginsRound(entry)),
  );
  return last?.kind === 'action' ? last : undefined;
}

/** What happened in the present round. */
export function roundOf(history: readonly HistoryEntry[]): readonly HistoryEntry[] {
  return history.slice(history.findLastIndex((entry) => entry.kind === 'action' && beginsRound(entry)) + 1);
}

function beginsRound({ verb, from, to }: ActionEntry): boolean {
  return (verb === 'retry' && from !== 'scheduled') || verb === 'redrive' || (verb === 'resolve' && to === 'ready');
}

/** What somebody did to begin it, in a sentence after the name: `eva retried it`. */
export function beganRound({ verb }: ActionEntry): string {
  return verb === 'redrive' ? 'put it back' : 'retried it';
}
