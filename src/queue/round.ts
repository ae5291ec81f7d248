import type { Facts } from '../failure/decide.ts';
import type { HistoryEntry } from '../store/store.ts';
import { hasEnded } from '../task.ts';
import type { Task } from './task-view.ts';

type Execution = Extract<HistoryEntry, { kind: 'execution' }>;

/** What is known of a task's present execution, or of its next one: the facts that its end would be decided by. */
export function factsOf(task: Task, history: readonly HistoryEntry[], now: number): Facts {
  const { before, present } = roundOf(history);
  const mine = present.filter((entry): entry is Execution => entry.kind === 'execution' && !entry.late);
  const recoveries = mine.filter(({ charge }) => charge === 'recoveries');
  const row = deferralsInARow(mine);
  const [first] = mine;
  const firstStart = first?.startedAt ?? task.running?.since.getTime();
  return {
    executions: Math.max(1, task.executions - before + (task.running ? 0 : 1)),
    charged: task.attemptsByReason,
    deferralsInARow: row.length,
    deferredForMs: row[0] ? now - row[0].endedAt : 0,
    recoveriesAgoMs: recoveries.map(({ endedAt }) => now - endedAt),
    lostInARow: task.lostInARow,
    idempotent: task.idempotent,
    cancelRequested: task.running?.cancelRequested ?? false,
    sinceFirstStartMs: firstStart === undefined ? 0 : now - firstStart,
    ...(task.deadline && { untilDeadlineMs: task.deadline.getTime() - now }),
  };
}

/** What was put off since anything was charged. */
function deferralsInARow(executions: readonly Execution[]): readonly Execution[] {
  const charged = executions.findLastIndex(({ charge }) => charge === 'task');
  return executions.slice(charged + 1).filter(({ charge }) => charge === 'deferrals');
}

/** A round begins with a person's retry of what had ended or needed them. What was executed before it counts no more. */
function roundOf(history: readonly HistoryEntry[]): {
  readonly before: number;
  readonly present: readonly HistoryEntry[];
} {
  const begun = history.findLastIndex(beginsRound);
  if (begun < 0) return { before: 0, present: history };
  const earlier = history.slice(0, begun).map((entry) => (entry.kind === 'execution' ? entry.execution : 0));
  return { before: Math.max(0, ...earlier), present: history.slice(begun + 1) };
}

function beginsRound(entry: HistoryEntry): boolean {
  if (entry.kind !== 'act' || entry.from === 'elsewhere') return false;
  return entry.to === 'ready' && (hasEnded(entry.from) || entry.from === 'needs_manual');
}
