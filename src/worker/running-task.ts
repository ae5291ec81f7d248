import { type Logger, withFields } from '../log.ts';
import type { Claimed } from '../store/store.ts';
import type { Json } from '../task.ts';
import type { Writable } from '../writable.ts';
import type { RunningTask } from './define-task.ts';
import type { Group } from './group.ts';

/** What a handler may call on its execution. */
interface Behind {
  readonly signal: AbortSignal;
  readonly checkpoint: Json | undefined;
  saveCheckpoint(value: unknown): Promise<void>;
  reportProgress(value: unknown): void;
  group(): Promise<Group>;
  heartbeat(): void;
  rateLimit: RunningTask['rateLimit'];
}

/** The second argument of a handler. Most handlers use neither signal nor log, so these are made at their first use. */
export function runningTask(claimed: Claimed, maxAttempts: number, behind: Behind, log: Logger): RunningTask {
  const { lease, facts, type, key, deadline, lastFailure } = claimed;
  const { task: id, execution } = lease;
  const task: Writable<RunningTask> = {
    id,
    type,
    queue: claimed.queue,
    source: claimed.source,
    attempt: facts.charged.reduce((sum, { count }) => sum + count, 0) + 1,
    execution,
    maxAttempts,
    recovered: facts.lostInARow > 0,
    submittedAt: new Date(claimed.submittedAt),
    get idempotencyKey() {
      return idempotencyKeyOf(claimed);
    },
    get signal() {
      return behind.signal;
    },
    get log() {
      return withFields(log, { task: id, type, execution });
    },
    get checkpoint() {
      return behind.checkpoint;
    },
    saveCheckpoint: (value) => behind.saveCheckpoint(value),
    progress: (value) => behind.reportProgress(value),
    group: () => behind.group(),
    heartbeat: () => behind.heartbeat(),
    rateLimit: (limit) => behind.rateLimit(limit),
  };
  if (key !== undefined) task.key = key;
  if (deadline !== undefined) task.deadline = new Date(deadline);
  if (lastFailure) {
    task.lastFailure = lastFailure;
    task.lastError = lastFailure.message;
  }
  return task;
}

/** The same in each execution of a round, unless a person asks for a new one, or the input is merged with another one. Ids are not used twice in a store, and the time tells stores apart. */
export function idempotencyKeyOf({ lease, facts, submittedAt, keyFrom = 0 }: Claimed): string {
  const executionsBefore = Math.max(lease.execution - facts.executions, keyFrom);
  return `${lease.task}-${submittedAt.toString(36)}-${executionsBefore}`;
}
