import { formatDuration } from '../duration.ts';
import type { ExecutionEntry } from '../store/store.ts';
import { reasoning } from './task-text.ts';

/** What was decided for an execution: its next state, or when it is tried again and why then. */
export function decisionOf(entry: ExecutionEntry): string {
  if (entry.late) return 'too late: it changed nothing';
  if (entry.next !== 'scheduled') return entry.next;
  const why = entry.because ? reasoning(entry.because) : '';
  const after = entry.after ? formatDuration(entry.after) : 'at once';
  if (entry.because?.step === 'awaits_verdict') {
    return entry.charge === 'refunded' ? 'counted and given back' : `ends in ${after} unless its source is down`;
  }
  return `${after}${CHARGES[entry.charge]}${why === '' ? '' : ` (${why})`}`;
}

const CHARGES: Readonly<Record<ExecutionEntry['charge'], string>> = {
  task: '',
  recoveries: '',
  refunded: ', counted and given back',
  deferrals: ', not counted',
  source: ', not counted',
  nobody: ', not counted',
};
