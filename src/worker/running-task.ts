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
  new BehindTask(task, behind);
  defineGetter.call(task, 'idempotencyKey', idempotencyKey);
  defineGetter.call(task, 'signal', signal);
  defineGetter.call(task, 'log', log);
  defineGetter.call(task, 'checkpoint', checkpoint);
  if (key !== undefined) task.key = key;
  if (deadline !== undefined) task.deadline = new Date(deadline);
  if (lastFailure) {
    task.lastFailure = lastFailure;
    task.lastError = lastFailure.message;
  }
  return task;
}

/** Returns what it is given, so that a class that extends it adds its private field to that. */
class Given {
  constructor(given: object) {
    // biome-ignore lint/correctness/noConstructorReturn: that is what it is for.
    return given;
  }
}

/** What is behind the task, in a private field of it, which no copy and no list of its members shows. To define a property would take four times as long. */
class BehindTask extends Given {
  readonly #behind: Behind;

  constructor(task: object, behind: Behind) {
    super(task);
    this.#behind = behind;
  }

  /** Also of an object whose prototype is the task. */
  static of(task: object): Behind {
    let one = task;
    while (!(#behind in one)) one = Object.getPrototypeOf(one);
    return one.#behind;
  }
}

/** Defines an own member that a copy of the task gets too. `Object.defineProperty` does the same in twice the time. */
const defineGetter = (Object.prototype as unknown as { __defineGetter__(name: string, get: () => unknown): void })
  .__defineGetter__;

// Most handlers use none of these members, so their values are made at the first use. All tasks share the functions: with functions of
// its own, V8 would store each task as a dictionary, which takes three times as long and 2 kB.
function idempotencyKey(this: object): string {
  return idempotencyKeyOf(BehindTask.of(this).claimed);
}

function signal(this: object): AbortSignal {
  return BehindTask.of(this).signal;
}

function checkpoint(this: object): Json | undefined {
  return BehindTask.of(this).checkpoint;
}

function log(this: object): Logger {
  const { claimed, log: ofWorker } = BehindTask.of(this);
  const { lease, type } = claimed;
  return withFields(ofWorker, { task: lease.task, type, execution: lease.execution });
}

/** The same in each execution of a round, unless a person asks for a new one, or the input is merged with another one. Ids are not used twice in a store, and the time tells stores apart. */
export function idempotencyKeyOf({ lease, facts, submittedAt, keyFrom = 0 }: Claimed): string {
  const executionsBefore = Math.max(lease.execution - facts.executions, keyFrom);
  return `${lease.task}-${submittedAt.toString(36)}-${executionsBefore}`;
}
