import type { Task, TaskState } from '../../src/index.ts';
import type { ExecutionEntry, Scene, StoreKind } from './scene.ts';

/** Who is charged for what happened. */
export type Payer =
  /** The task, with an attempt under this reason. */
  | { readonly attempt: string }
  /** The task, with so many recoveries: it was lost while it ran alone, again and again. */
  | { readonly recoveries: number }
  /** The task is put off; none of its attempts is spent. */
  | 'a deferral'
  /** The task, until its source turned out to be down. */
  | 'a charge that was refunded'
  /** The source alone: it is known to be at fault. */
  | 'the source'
  | 'nobody';

/** One row of the table: what happens, who is charged, and what people are told of it. */
export interface Situation {
  readonly name: string;
  /** The only kind of store on which it can happen. */
  readonly only?: StoreKind;
  readonly payer: Payer;
  /** Where the task is then. */
  readonly state: TaskState;
  /** How often it has been started by then; absent where that depends on which process is faster. */
  readonly executions?: number;
  /** What `explain` says. */
  readonly explains: string | RegExp;
  /** What `holdfast show` prints. */
  readonly shows?: string | RegExp;
  /** Makes it happen with real processes, and answers the task that is asked about. */
  readonly happen: (scene: Scene) => Promise<number>;
}

/** What is counted of a task, and what each of its executions was charged as, in the words of the table. */
export function chargedOf(task: Task, executions: readonly ExecutionEntry[]) {
  const { attempts, attemptsByReason, deferrals, recoveries } = task;
  return {
    attempts,
    byReason: Object.fromEntries(attemptsByReason.map(({ reason, count }) => [reason, count])),
    deferrals,
    recoveries,
    charges: executions.filter(({ late }) => !late).flatMap(({ charge }) => (charge === 'nobody' ? [] : [charge])),
  };
}

/** What must be counted where this one pays. */
export function chargeOf(payer: Payer): ReturnType<typeof chargedOf> {
  const none: ReturnType<typeof chargedOf> = { attempts: 0, byReason: {}, deferrals: 0, recoveries: 0, charges: [] };
  if (payer === 'nobody') return none;
  if (payer === 'a charge that was refunded') return { ...none, charges: ['refunded'] };
  if (payer === 'the source') return { ...none, charges: ['source'] };
  if (payer === 'a deferral') return { ...none, deferrals: 1, charges: ['deferrals'] };
  if ('recoveries' in payer) {
    const { recoveries } = payer;
    return { ...none, recoveries, charges: Array.from({ length: recoveries }, () => 'recoveries' as const) };
  }
  return { ...none, attempts: 1, byReason: { [payer.attempt]: 1 }, charges: ['task'] };
}
