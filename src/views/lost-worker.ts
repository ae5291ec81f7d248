import { foresee } from '../failure/foresee.ts';
import type { WorkerRecord } from '../store/store.ts';
import type { Known } from './readiness.ts';

/** What happens to a running task whose worker can no longer report. */
export interface LostWorker {
  readonly next: string;
  /** Whether a worker must be started first; one of any types records the loss. */
  readonly needsWorker: boolean;
}

/** Undefined if the task does not run, or its worker keeps it. */
export function lostWorkerOf({ now, task, facts, policy, workers }: Known): LostWorker | undefined {
  if (!task.running) return undefined;
  const { worker } = task.running;
  const rows = workers.filter(({ name }) => name === worker);
  if (rows.some(({ keepsTasks }) => keepsTasks)) return undefined;
  const needsWorker = !workers.some(recordsLosses);
  const { decision } = foresee(facts, { kind: 'loss', worker, how: 'beside_others' }, policy.policy);
  const then = {
    scheduled: 'it is ready again',
    cancelled: 'it is cancelled',
    dead: `it is dead. ${decision.because.text}`,
    succeeded: 'it has succeeded',
    needs_manual:
      decision.because.step === 'ambiguous'
        ? 'a person is asked, because the task must not run twice'
        : `a person is asked. ${decision.because.text}`,
  }[decision.next];
  const who = needsWorker ? 'When a worker starts, it records the loss' : 'A running worker records the loss';
  const next = `${whatIsKnown(rows[0], now)} ${who}. Then ${then}`.replace(/\.?$/, '.');
  return { next, needsWorker };
}

/** A worker under a lease that still runs is given up only if its process has provably ended. */
function whatIsKnown(row: WorkerRecord | undefined, now: number): string {
  if (!row) return 'Its worker is gone.';
  if (row.leaseUntil > now) return 'Its process has ended.';
  return 'Its worker is silent, and its lease has ended. If it succeeds before the task is started again, that counts.';
}

/** Not a worker with `only`: it may end before it checks again. */
function recordsLosses({ takes, keepsTasks }: WorkerRecord): boolean {
  return keepsTasks && takes.types?.length !== 0;
}
