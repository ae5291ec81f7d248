import { type Logger, withFields } from '../log.ts';
import type { Claimed } from '../store/store.ts';
import type { Json } from '../task.ts';
import type { Writable } from '../writable.ts';
import type { RunningTask } from './define-task.ts';
import type { Group } from './group.ts';

/** What a handler may call on its execution. */
interface Behind {
  readonly claimed: Claimed;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly checkpoint: Json | undefined;
  saveCheckpoint(value: unknown): Promise<void>;
  reportProgress(value: unknown): void;
  group(): Promise<Group>;
  heartbeat(): void;
  rateLimit: RunningTask['rateLimit'];
}

/** The second argument of a handler. */
export function runningTask(behind: Behind, maxAttempts: number): RunningTask {
  const { lease, facts, type, key, deadline, lastFailure, queue, source, submittedAt } = behind.claimed;
  const task = {
    id: lease.task,
    type,
    queue,
    source,
    attempt: facts.charged.reduce((sum, { count }) => sum + count, 0) + 1,
    execution: lease.execution,
    maxAttempts,
    recovered: facts.lostInARow > 0,
    submittedAt: new Date(submittedAt),
    saveCheckpoint: (value) => behind.saveCheckpoint(value),
    progress: (value) => behind.reportProgress(value),
    group: () => behind.group(),
    heartbeat: () => behind.heartbeat(),
    rateLimit: (limit) => behind.rateLimit(limit),
  } as Writable<RunningTask>;
  Object.defineProperty(task, BEHIND, { value: behind });
  Object.defineProperty(task, 'idempotencyKey', IDEMPOTENCY_KEY);
  Object.defineProperty(task, 'signal', SIGNAL);
  Object.defineProperty(task, 'log', LOG);
  Object.defineProperty(task, 'checkpoint', CHECKPOINT);
  if (key !== undefined) task.key = key;
  if (deadline !== undefined) task.deadline = new Date(deadline);
  if (lastFailure) {
    task.lastFailure = lastFailure;
    task.lastError = lastFailure.message;
  }
  return task;
}

/** What a task is of. The members below find it here, also in an object whose prototype is the task. */
const BEHIND = Symbol('execution');

// Most handlers use none of these members, so their values are made at the first use. All tasks share the functions: with functions of
// its own, V8 would store each task as a dictionary, which takes three times as long and 2 kB.
const IDEMPOTENCY_KEY = madeWhenUsed(({ claimed }) => idempotencyKeyOf(claimed));
const SIGNAL = madeWhenUsed(({ signal }) => signal);
const CHECKPOINT = madeWhenUsed(({ checkpoint }) => checkpoint);
const LOG = madeWhenUsed(({ claimed: { lease, type }, log }) =>
  withFields(log, { task: lease.task, type, execution: lease.execution }),
);

/** An own member that a copy of the task gets too. */
function madeWhenUsed(make: (behind: Behind) => unknown): PropertyDescriptor {
  function get(this: { readonly [BEHIND]: Behind }): unknown {
    return make(this[BEHIND]);
  }
  return { get, enumerable: true, configurable: true };
}

/** The same in each execution of a round, unless a person asks for a new one, or the input is merged with another one. Ids are not used twice in a store, and the time tells stores apart. */
export function idempotencyKeyOf({ lease, facts, submittedAt, keyFrom = 0 }: Claimed): string {
  const executionsBefore = Math.max(lease.execution - facts.executions, keyFrom);
  return `${lease.task}-${submittedAt.toString(36)}-${executionsBefore}`;
}
