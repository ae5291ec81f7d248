import { systemClock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { ClosedError } from '../errors.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import type { PolicyOptions, ReadOptions } from '../failure/policy.ts';
import { DEFAULT_SIZE_LIMIT } from '../json.ts';
import type { AsJson } from '../json-types.ts';
import { type LimitOptions, limitsGiven } from '../limits.ts';
import { oneOf } from '../options.ts';
import type { RedriveRecord } from '../store/redrives.ts';
import type {
  Counts,
  HistoryEntry,
  QueueRecord,
  Store,
  StoreDescription,
  StoreOpener,
  WorkerRecord,
} from '../store/store.ts';
import { QUEUE_ORDERS, type QueueOrder } from '../task.ts';
import type { Explanation } from '../views/explain.ts';
import type { PastExplanation } from '../views/explain-at.ts';
import type { ExplainedFailure } from '../views/explain-failure.ts';
import type { AssumedPolicy } from '../views/explain-if.ts';
import type { AnyTask, DefinitionOf } from '../worker/define-task.ts';
import { type Group, groupFrom } from '../worker/group.ts';
import { Administration } from './administration.ts';
import { Failures } from './failures.ts';
import type { Inspector, PolicyQuestion } from './inspect.ts';
import {
  type ActionOptions,
  idOf,
  Operator,
  type ResolveOptions,
  type RetryOptions,
  type TaskActionOptions,
} from './operate.ts';
import { type RedriveOptions, Redrives } from './redrives.ts';
import { Sources } from './sources.ts';
import type { StatsOptions, StatsReport } from './stats.ts';
import { type ListOptions, TaskReader } from './task-reader.ts';
import type { Task } from './task-view.ts';

export interface OperationsParts {
  readonly store: Store;
  /** How large a result may be, in bytes of JSON. */
  readonly sizeLimit: number;
  /** Makes what answers questions about policies, at the first question. */
  readonly inspector: () => Inspector | Promise<Inspector>;
}

/** How long a closing store without workers waits for its last calls. */
export const GRACE_WITHOUT_WORKERS: Milliseconds = 30_000;

/** How long after the grace and the last writes of the workers a closing store gives up. */
export const LAST_CALLS: Milliseconds = 900;

/** Opens a store. `inspectorOf` is called at the first question about policies. */
export async function openOperations(
  opener: StoreOpener,
  inspectorOf: (store: Store) => Promise<Inspector>,
): Promise<Operations> {
  const store = await opener.open({ clock: systemClock, random: Math.random });
  let inspector: Promise<Inspector> | undefined;
  return new Operations({
    store,
    sizeLimit: DEFAULT_SIZE_LIMIT,
    inspector: () => {
      inspector ??= inspectorOf(store);
      return inspector;
    },
  });
}

/**
 * What can be read and done in a store without recording or working tasks. `Holdfast` has all of it. The command line opens only this
 * where it needs no more, because it loads in half the time.
 */
export class Operations {
  /** The store itself. Programs rarely need it. */
  readonly store: Store;
  /** Operations on sources: list, hold, release, probe and limit them. */
  readonly sources: Sources;
  /** Operations on redrives: list, preview, pause, resume and cancel them. `redrive` starts one. */
  readonly redrives: Redrives;
  /** Groups of alike failures: list them, and say what is known of them. */
  readonly failures: Failures;
  readonly #reader: TaskReader;
  readonly #operator: Operator;
  readonly #inspector: OperationsParts['inspector'];
  /** @internal Whether calls are refused. */
  closed = false;

  /** Made by `openHoldfast`. */
  constructor({ store, sizeLimit, inspector }: OperationsParts) {
    this.store = store;
    this.sources = new Sources(store);
    this.failures = new Failures(store);
    this.redrives = new Redrives(store, () => this.lookForChores());
    this.#reader = new TaskReader(store);
    this.#operator = new Operator(store, sizeLimit);
    this.#inspector = inspector;
  }

  /** The task with this id or key, or undefined. With its definition, its result has the type that its handler returns. */
  find(idOrKey: number | string): Promise<Task | undefined>;
  find<Result>(
    idOrKey: number | string,
    task: DefinitionOf<unknown, Result>,
  ): Promise<Task<AsJson<Result>> | undefined>;
  find(idOrKey: number | string, task?: AnyTask): Promise<Task | undefined> {
    return this.#reader.find(idOrKey, task);
  }

  /**
   * As `find`.
   * @throws TaskNotFoundError if there is no task with this id or key; InvalidInputError if it is not of the definition's type.
   */
  get(idOrKey: number | string): Promise<Task>;
  get<Result>(idOrKey: number | string, task: DefinitionOf<unknown, Result>): Promise<Task<AsJson<Result>>>;
  get(idOrKey: number | string, task?: AnyTask): Promise<Task> {
    return this.#reader.get(idOrKey, task);
  }

  /** The newest tasks first; `before` an id for the next page. */
  list(options: ListOptions = {}): Promise<readonly Task[]> {
    return this.#reader.list(options);
  }

  /** What happened to a task, oldest first. A task that succeeded at its first execution has no history. */
  history(id: number): Promise<readonly HistoryEntry[]> {
    return this.#reader.history(id);
  }

  /** The tasks of the group whose follow-up has this id, and how they ended. Empty if it is no follow-up. */
  async group(followUp: number): Promise<Group> {
    return groupFrom(await this.store.records.groupOf(idOf(followUp)));
  }

  /** How many tasks are in each state, and which need a person. */
  counts(): Promise<Counts> {
    return this.store.records.counts();
  }

  /**
   * How executions went: successes, failures, retries and how they ended, by type, source, reason and attempt. Each settlement is
   * counted in the transaction that writes it, so the numbers are exact, and stay when tasks are removed.
   * @throws InvalidInputError for an invalid option.
   */
  async stats(options: StatsOptions = {}): Promise<StatsReport> {
    this.refuseClosed();
    const { statsFrom } = await import('./stats.ts');
    return statsFrom(this.store.records, options, this.store.upkeep.now());
  }

  /**
   * The state of the store and what was counted, in the text format of Prometheus, for an endpoint of yours. Labels are bounded: type,
   * state, outcome, reason, queue, and the source of those that are held. `holdfast worker --metrics PORT` serves the same.
   */
  async metrics(): Promise<string> {
    this.refuseClosed();
    const { metricsText } = await import('./metrics.ts');
    return metricsText(this.store);
  }

  /**
   * The policy that would decide the next failure of a task, each of its values, and where it was set. The task is one that `get`
   * returned, or its type, queue and source; if these are left out, those of its type's definition or the defaults.
   */
  async policyFor(task: PolicyQuestion): Promise<ExplainedPolicy> {
    return (await this.#inspector()).policyFor(task);
  }

  /**
   * Why a task is in its state, what happens next, and what its next failure would lead to: as data, and as a text that is the
   * same wherever it is shown. It uses the present policy.
   * @throws TaskNotFoundError.
   */
  async explain(idOrKey: number | string): Promise<Explanation> {
    return (await this.#inspector()).explain(idOrKey);
  }

  /**
   * What would happen if a task failed with this error: its classification, the rule that applies, the count, the delay and its
   * jitter, and what would end the task. It uses the same `classify` and `decide` as a worker. The task is one of this store, or
   * a type, queue and source, at its first execution.
   * @throws TaskNotFoundError.
   */
  async explainError(thrown: unknown, subject: number | string | PolicyQuestion): Promise<ExplainedFailure> {
    return (await this.#inspector()).explainError(thrown, subject);
  }

  /**
   * What would have been decided for the last failure of a task if these options were set over its policy, and what would follow from
   * its next failure. Nothing is changed.
   * @throws TaskNotFoundError; InvalidInputError for an invalid option.
   */
  async explainIf(idOrKey: number | string, assumed: PolicyOptions | ReadOptions): Promise<AssumedPolicy> {
    return (await this.#inspector()).explainIf(idOrKey, assumed);
  }

  /**
   * The state of a task at a time in the past, why it was in it, and what happened then. It is told from the history, which does not
   * keep what held a ready task.
   * @throws TaskNotFoundError.
   */
  async explainAt(idOrKey: number | string, at: Date): Promise<PastExplanation> {
    return (await this.#inspector()).explainAt(idOrKey, at);
  }

  /** The workers that share this store. */
  workers(): Promise<readonly WorkerRecord[]> {
    return this.store.records.workers();
  }

  /**
   * Ends the leases of a worker, by its `id` in `workers()`. Use it for a worker that is alive but stuck: other workers do not
   * take over its tasks while it is alive. Its tasks can then be taken over at once, as if its process had died. A living worker
   * notices this within two renewals, aborts its handlers and joins anew; outcomes that it wrote before its tasks were taken over
   * count.
   * @throws WorkerNotFoundError if there is no such worker any more.
   */
  endWorker(id: number): Promise<void> {
    return this.#operator.endWorker(id);
  }

  /**
   * Pauses a queue: no task of it is claimed until it is resumed. Running tasks go on; tasks that were claimed ahead are handed
   * back. Tasks can still be enqueued.
   */
  pauseQueue(queue: string, options: ActionOptions = {}): Promise<void> {
    return this.#operator.pauseQueue(queue, options);
  }

  /** Resumes a paused queue. */
  resumeQueue(queue: string, options: ActionOptions = {}): Promise<void> {
    return this.#operator.resumeQueue(queue, options);
  }

  /**
   * Sets the order of a queue, and puts its waiting tasks into this order. The default is `fifo`. Each claim, in any process,
   * takes exactly the next tasks. A claim may take several tasks, which start together. So a task can start before an earlier one
   * only if the earlier one is claimed already but has not begun.
   */
  async setQueueOrder(queue: string, order: QueueOrder): Promise<void> {
    await this.#operator.setUpQueue(queue, { order: oneOf(order, QUEUE_ORDERS, 'The order of a queue') });
  }

  /**
   * Makes a queue fair: its sources take turns. With false, its tasks are claimed in their exact order again, which is the
   * default. In a fair queue, no source waits behind the many tasks of another one: the source whose last turn is longest ago
   * comes first, with one task, or with up to four if more than a thousand sources wait. The order of the queue then applies
   * within each source.
   */
  async setQueueFair(queue: string, fair: boolean): Promise<void> {
    await this.#operator.setUpQueue(queue, { fair: oneOf(fair, [true, false], 'Whether a queue is fair') });
  }

  /**
   * Limits a queue for all workers: how often its tasks may start (`pace`), and how many may run at the same time
   * (`concurrency`). A limit that is left out stays; null removes it.
   */
  async limitQueue(queue: string, limits: LimitOptions): Promise<void> {
    await this.#operator.setUpQueue(queue, limitsGiven(limits, 'limitQueue'));
  }

  /** All queues that were ever used, with their settings. */
  queues(): Promise<readonly QueueRecord[]> {
    return this.store.records.queues();
  }

  /** The time of the store's clock, in milliseconds since 1970. */
  now(): number {
    return this.store.upkeep.now();
  }

  /** Where the store is, and how durable it is. */
  describe(): StoreDescription {
    this.refuseClosed();
    return this.store.upkeep.describe();
  }

  /**
   * Makes a scheduled task due now. A task that has ended or needs a person starts a new round: its counts begin at zero, its
   * history is kept, and a deadline that has passed no longer counts.
   * @throws StateConflictError if the task runs, is held, or is already due, or if another task has its unique key;
   * TaskNotFoundError.
   */
  async retry(id: number, options: RetryOptions = {}): Promise<void> {
    this.refuseClosed();
    await this.#operator.retry(id, options);
  }

  /**
   * Puts back the ended tasks that match a filter, each in a new round as with `retry`. Tasks that end later are not included.
   * Workers put back 1 task, then 5, then 25, and wait for the outcomes of each stage before the next; the rest follows at
   * `rate`. It stops itself if half of a stage fails again with the same reason and fingerprint, and then leaves the other tasks
   * as they are. Resolves when its tasks are selected; after that it continues even if processes die. `redrives.preview` shows
   * what it would do.
   * @throws InvalidInputError if the note is missing, or the filter or rate is invalid.
   */
  async redrive(options: RedriveOptions): Promise<RedriveRecord> {
    this.refuseClosed();
    return this.redrives.start(options);
  }

  /**
   * Cancels a task. If it runs, its handler is aborted: within a second on the same host, otherwise at the next renewal of its
   * worker. If the handler still succeeds, the task succeeds.
   * Cancelling a cancelled task changes nothing.
   * @throws StateConflictError if the task has ended otherwise; TaskNotFoundError.
   */
  async cancel(id: number, options: TaskActionOptions = {}): Promise<void> {
    this.refuseClosed();
    await this.#operator.act(id, 'cancel', options);
  }

  /** Puts a waiting task aside until it is released. @throws StateConflictError; TaskNotFoundError. */
  async hold(id: number, options: TaskActionOptions = {}): Promise<void> {
    this.refuseClosed();
    await this.#operator.act(id, 'hold', options);
  }

  /** Releases a held task: it waits in its queue again. @throws StateConflictError; TaskNotFoundError. */
  async release(id: number, options: TaskActionOptions = {}): Promise<void> {
    this.refuseClosed();
    await this.#operator.act(id, 'release', options);
  }

  /** Answers a task that needs a person. @throws StateConflictError if it does not need one; TaskNotFoundError. */
  async resolve(id: number, options: ResolveOptions): Promise<void> {
    this.refuseClosed();
    await this.#operator.resolve(id, options);
  }

  /** @internal For the command line and a dashboard. */
  get administration(): Administration {
    return new Administration(this.store);
  }

  /** Waits for pending writes, and closes the store. After that every call is refused. */
  async close(): Promise<unknown> {
    this.closed = true;
    void this.store.upkeep.giveUpAfter(GRACE_WITHOUT_WORKERS + LAST_CALLS);
    return this.store.upkeep.close();
  }

  /** @internal There may be work for workers of this process besides tasks. */
  lookForChores(): void {}

  /** @internal @throws ClosedError after it was closed. */
  refuseClosed(): void {
    if (this.closed) throw new ClosedError('Holdfast');
  }
}
