/// <reference lib="esnext.disposable" preserve="true" />
import { isDeepStrictEqual } from 'node:util';
import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { ClosedError, InvalidInputError } from '../errors.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import { type LimitOptions, limitsGiven } from '../limits.ts';
import type { Logger } from '../log.ts';
import { oneOf, refuseUnknown } from '../options.ts';
import type { RedriveRecord } from '../store/redrives.ts';
import type {
  Counts,
  HistoryEntry,
  QueueRecord,
  Receipt,
  Store,
  StoreDescription,
  WorkerRecord,
  World,
} from '../store/store.ts';
import { QUEUE_ORDERS, type QueueOrder } from '../task.ts';
import type { Explanation } from '../views/explain.ts';
import type { ExplainedFailure } from '../views/explain-failure.ts';
import type { Configuration } from '../worker/configuration.ts';
import type { AnyTask, TaskDefinition } from '../worker/define-task.ts';
import { KnownSources } from '../worker/known-sources.ts';
import { OwnHandlers } from '../worker/own-handlers.ts';
import { publications } from '../worker/policy-for.ts';
import { parseRetention, type RetentionOptions, refuseRetention } from '../worker/retention-options.ts';
import type { Stopped } from '../worker/stopped.ts';
import { Suspects } from '../worker/suspects.ts';
import { Worker, type WorkerOptions } from '../worker/worker.ts';
import { Administration } from './administration.ts';
import type { ClaimOptions, ManualClaim } from './claim.ts';
import { Claims } from './claims.ts';
import type { EnqueueOptions } from './enqueue.ts';
import type { TaskToImport } from './import.ts';
import { Inspector, type ListOptions, type PolicyQuestion } from './inspect.ts';
import { type ActionOptions, Operator, type ResolveOptions } from './operate.ts';
import { removeOld } from './pruning.ts';
import { NO_OPTIONS, Recorder } from './record.ts';
import { type RedriveOptions, Redrives } from './redrives.ts';
import { limitByConfig, Sources } from './sources.ts';
import type { Task } from './task-view.ts';
import type { PostgresHandle, SqliteHandle, Within } from './within.ts';

/** What `openHoldfast` makes of its options. */
export interface HoldfastParts {
  readonly store: Store;
  readonly world: World;
  /** By type. */
  readonly tasks: ReadonlyMap<string, AnyTask>;
  readonly configuration: Configuration;
  readonly sizeLimit: number;
  readonly log: Logger;
  readonly workerName: string;
}

const GRACE_WITHOUT_WORKERS: Milliseconds = 30_000;

/** After the grace, and the last writes of the workers, a closed store gives up. */
const LAST_CALLS: Milliseconds = 900;

/** An open store, and everything that one does with it. */
export class Holdfast implements AsyncDisposable {
  /** The seam to the database. Programs rarely need it. */
  readonly store: Store;
  /** What a person does to sources: list, hold and release them. */
  readonly sources: Sources;
  /** What a person does with redrives: list, preview, pause, resume and cancel them. `redrive` starts one. */
  readonly redrives: Redrives;
  readonly #parts: HoldfastParts;
  readonly #recorder: Recorder;
  readonly #inspector: Inspector;
  readonly #operator: Operator;
  readonly #claims: Claims;
  readonly #suspects: Suspects;
  readonly #workers = new Set<Worker>();
  readonly #ownHandlers = new OwnHandlers();
  readonly #knownSources: KnownSources;
  /** The longest grace of all workers that it ever had; undefined if it had none. */
  #longestGrace: Milliseconds | undefined;
  readonly #endListening: () => void;
  /** The settings of queues and the limits of sources that the store has from the configuration. */
  #queues: Configuration['queues'];
  #limits: Configuration['limits'];
  #closing: Promise<Stopped> | undefined;
  #closed = false;

  /** Made by `openHoldfast`. */
  constructor(parts: HoldfastParts) {
    const { store, world, tasks, configuration, sizeLimit, log, workerName } = parts;
    this.store = store;
    this.sources = new Sources(store);
    this.redrives = new Redrives(store, () => {
      for (const worker of this.#workers) worker.lookForChores();
    });
    this.#parts = parts;
    this.#queues = configuration.queues;
    this.#limits = configuration.limits;
    this.#endListening = configuration.onChange(() => void this.#applyConfiguration());
    this.#recorder = new Recorder(store, tasks, sizeLimit);
    this.#inspector = new Inspector(store, tasks, configuration);
    this.#operator = new Operator(store, sizeLimit);
    this.#suspects = new Suspects(world.clock);
    this.#knownSources = new KnownSources(world.clock);
    this.#claims = new Claims({
      store,
      world,
      definitions: tasks,
      configuration,
      defaultName: workerName,
      sizeLimit,
      log,
      ownHandlers: this.#ownHandlers,
      suspects: this.#suspects,
      knownSources: this.#knownSources,
    });
  }

  /**
   * Records a task. When this resolves the task is durable: no crash of any process or of the machine loses it.
   * A type that has no definition here may be named by text; its input is then not checked.
   * @throws InvalidInputError or PayloadError for what it refuses, before anything is written; UniqueConflictError where its
   * unique key is taken and it says `onConflict: 'reject'`.
   */
  async enqueue<Input>(
    task: TaskDefinition<Input, unknown> | string,
    input: Input,
    options: EnqueueOptions = NO_OPTIONS,
  ): Promise<Receipt> {
    this.#refuseClosed();
    return this.#recorder.enqueue(task, input, options);
  }

  /**
   * Records many tasks of a type in one transaction, all or none, and answers a receipt for each, in their order. Durable as by
   * `enqueue`, and faster than as many calls of it. At most 10,000 at a time, for others wait to write meanwhile.
   *
   * `options` are the same for all, or a function of the input and its place where each has its own. A `key` and a `unique`
   * name one task, so they take the function; of inputs with the same key the first is recorded.
   * @throws InvalidInputError or PayloadError for the first input that it refuses, with its `index`, before anything is written;
   * UniqueConflictError where a unique key with `onConflict: 'reject'` is taken, and nothing is written.
   */
  async enqueueAll<Input>(
    task: TaskDefinition<Input, unknown> | string,
    inputs: readonly Input[],
    options: Omit<EnqueueOptions, 'key' | 'unique'> | ((input: Input, index: number) => EnqueueOptions) = {},
  ): Promise<readonly Receipt[]> {
    this.#refuseClosed();
    return this.#recorder.enqueueAll(task, inputs, options);
  }

  /**
   * Records tasks of another queue as they stood there: those that wait go on where they were, and those that ended or need a
   * person do so here. What was counted is kept, and `imported` stands in their history, with the actor and a note. At most 10,000
   * at a time; a thousand are recorded in one transaction, so that others can write in between. Inputs are checked as by `enqueue`.
   * Give each its `key`, so that importing them again, after a failure in between, answers those that are there and leaves them as
   * they are.
   * @throws InvalidInputError or PayloadError for the first task that it refuses, with its `index`, before anything is written.
   */
  async importTasks(tasks: readonly TaskToImport[], options: ActionOptions = {}): Promise<readonly Receipt[]> {
    this.#refuseClosed();
    return this.#recorder.importTasks(tasks, options);
  }

  /**
   * Enqueues inside a transaction of yours, so that your rows and the task exist together or not at all:
   * `db.transaction(() => { …; holdfast.within(db).enqueue(task, input); }).immediate()`. The handle is a Database of the very
   * better-sqlite3 that Holdfast uses, open on the store's file, with `synchronous = FULL` unless the store's durability is less.
   * On PostgreSQL it is a client of pg, or a transaction of Drizzle, Kysely, Knex, Prisma or postgres.js, and what is answered
   * is to be awaited before the commit.
   * @throws InvalidInputError for any other handle, with what to do about it; StoreError where the store has no such thing.
   */
  within(handle: SqliteHandle): Within<Receipt>;
  within(handle: PostgresHandle): Within<Promise<Receipt>>;
  within(handle: SqliteHandle | PostgresHandle): Within<Receipt | Promise<Receipt>> {
    this.#refuseClosed();
    return this.#recorder.within(handle, () => this.#refuseClosed());
  }

  /** Starts a worker for the types that this was opened with. */
  work(options: WorkerOptions = {}): Worker {
    return this.worker(options).start();
  }

  /** A worker that does nothing by itself: for `runOne()`, `drain()`, or a later `start()`. */
  worker(options: WorkerOptions = {}): Worker {
    if (this.#closing) throw new ClosedError('Holdfast');
    if (this.#parts.tasks.size === 0) {
      throw new InvalidInputError(
        'There is nothing to work: open Holdfast with the `tasks` that this process runs.',
        'unknown_type',
      );
    }
    const { store, world, tasks, configuration, sizeLimit, log, workerName } = this.#parts;
    const worker = new Worker(
      {
        store,
        world,
        tasks: [...tasks.values()],
        defaultName: workerName,
        sizeLimit,
        log,
        configuration,
        onEnd: (ended) => this.#workers.delete(ended),
        ownHandlers: this.#ownHandlers,
        suspects: this.#suspects,
        knownSources: this.#knownSources,
      },
      options,
    );
    this.#workers.add(worker);
    this.#longestGrace = Math.max(this.#longestGrace ?? 0, worker.grace);
    return worker;
  }

  /**
   * Claims the next ready task, or the one with this `id`, for whoever wants the steps themselves: do the work, `renew()` while it
   * lasts, then `complete`, `fail` or `release`. Undefined where nothing that it may take is ready; this does not wait. Needs no
   * definition of the type. Several claims may be open at once, but of tasks that went down with a worker only one.
   * @throws InvalidInputError; StoreError where the store cannot be asked.
   */
  async claim(options: ClaimOptions = {}): Promise<ManualClaim | undefined> {
    this.#refuseClosed();
    return this.#claims.claim(options);
  }

  /** The task with this id or key, or undefined. */
  find(idOrKey: number | string): Promise<Task | undefined> {
    return this.#inspector.find(idOrKey);
  }

  /** @throws TaskNotFoundError where there is no task with this id or key. */
  get(idOrKey: number | string): Promise<Task> {
    return this.#inspector.get(idOrKey);
  }

  /** The newest tasks first; `before` an id for the next page. */
  list(options: ListOptions = {}): Promise<readonly Task[]> {
    return this.#inspector.list(options);
  }

  /** What happened to a task, oldest first. A task that succeeded at its first execution has no history. */
  history(id: number): Promise<readonly HistoryEntry[]> {
    return this.#inspector.history(id);
  }

  /** How many tasks are in which state, and what needs a person. */
  counts(): Promise<Counts> {
    return this.store.records.counts();
  }

  /**
   * The policy that would answer the next failure of a task, each of its values, and who said it. The task is one that `get`
   * returned, or what it would be called: without a queue and source, those of its type's definition or the default.
   */
  policyFor(task: PolicyQuestion): Promise<ExplainedPolicy> {
    return this.#inspector.policyFor(task);
  }

  /**
   * Why a task is where it is, what happens next, and what would follow from its next failure: as data, and as one text that is
   * the same wherever it is shown. By the policy of today.
   * @throws TaskNotFoundError.
   */
  explain(idOrKey: number | string): Promise<Explanation> {
    return this.#inspector.explain(idOrKey);
  }

  /**
   * What would happen if a task failed with this error: what it would be recognised as, the rule that answers, the count, the
   * delay and its jitter, and what ends it. Asks the same `classify` and `decide` as a worker. The task is one of this store,
   * or what it would be called, at its first execution.
   * @throws TaskNotFoundError.
   */
  explainError(thrown: unknown, subject: number | string | PolicyQuestion): Promise<ExplainedFailure> {
    return this.#inspector.explainError(thrown, subject);
  }

  /** The workers that share this store. */
  workers(): Promise<readonly WorkerRecord[]> {
    return this.store.records.workers();
  }

  /**
   * Ends the leases of a worker, by its `id` in `workers()`: for one that lives but is stuck, which nobody else may rob before
   * its time. What it holds can be taken over at once, as if its process had died. If it lives, it hears of that within
   * two renewals, aborts what it runs and joins anew; what it settles before anybody took over counts.
   * @throws WorkerNotFoundError where there is no such worker, or no more.
   */
  endWorker(id: number): Promise<void> {
    return this.#operator.endWorker(id);
  }

  /**
   * Pauses a queue: no worker claims anything of it until it is resumed. What was claimed by then, ahead too, goes on. Tasks may
   * still be enqueued.
   */
  pauseQueue(queue: string, options: ActionOptions = {}): Promise<void> {
    return this.#operator.pauseQueue(queue, options);
  }

  /** Lets a paused queue go on. */
  resumeQueue(queue: string): Promise<void> {
    return this.#operator.resumeQueue(queue);
  }

  /**
   * Sets a queue's order for good, and puts its waiting tasks into it. `fifo` unless set. Claims follow it exactly: each takes
   * the very next tasks, whichever process makes it. What one claim took starts together, so a task can start before an
   * earlier one by at most the tasks that workers have claimed and not begun: a batch for each of them.
   */
  async setQueueOrder(queue: string, order: QueueOrder): Promise<void> {
    await this.#operator.setUpQueue(queue, { order: oneOf(order, QUEUE_ORDERS, 'The order of a queue') });
  }

  /**
   * Serves the sources of a queue in turn from now on, or, with false, its tasks in their exact order again, as unless set.
   * In a fair queue no source waits behind the many tasks of another: the one served longest ago comes first, and gives one
   * task, or up to four where more than a thousand sources wait. The queue's order then holds inside each source.
   */
  async setQueueFair(queue: string, fair: boolean): Promise<void> {
    await this.#operator.setUpQueue(queue, { fair: oneOf(fair, [true, false], 'Whether a queue is fair') });
  }

  /**
   * Limits a queue for all workers: how often its tasks may start (`pace`), and how many may run at the same time (`concurrency`). What
   * is left out stays; null removes a limit.
   */
  async limitQueue(queue: string, limits: LimitOptions): Promise<void> {
    await this.#operator.setUpQueue(queue, limitsGiven(limits, 'limitQueue'));
  }

  /** The queues that were ever used, and how they are set up. */
  queues(): Promise<readonly QueueRecord[]> {
    return this.store.records.queues();
  }

  /**
   * Removes now all tasks whose time is up, with everything that belongs to them, and answers how many. Workers do so by
   * themselves; this is for programs whose workers end too soon to get far. Nobody else waits for it longer than 50 ms.
   * Without a retention it is the configured one, else 30 days, and `needs_manual` never. What has not ended is never touched.
   * @throws InvalidInputError naming what it cannot use of a retention, before anything is removed.
   */
  async prune(retention?: RetentionOptions): Promise<number> {
    this.#refuseClosed();
    refuseRetention(retention);
    return removeOld(this.store.upkeep, parseRetention(retention ?? this.#parts.configuration.worker.retention));
  }

  /** The time of the store's clock, in milliseconds of the epoch. */
  now(): number {
    return this.store.upkeep.now();
  }

  /** Where the store is, and how durable it is. */
  describe(): StoreDescription {
    this.#refuseClosed();
    return this.store.upkeep.describe();
  }

  /**
   * Makes a waiting task due now. One that has ended or needs a person starts a new round: its counts begin at zero, its
   * history is kept, and a deadline that has passed no longer counts.
   * @throws StateConflictError for a task that runs, is held, or is due already, or whose unique key another task has by now;
   * TaskNotFoundError.
   */
  async retry(id: number, options: ActionOptions = {}): Promise<void> {
    this.#refuseClosed();
    await this.#operator.act(id, 'retry', options);
  }

  /**
   * Puts ended tasks back by a filter, each in a new round as by `retry`. Its tasks are those that have ended by now; what ends later does
   * not join. Workers put back 1, then 5, then 25, and see how each went before the next ones; the rest follows at `rate`. It stops itself
   * when half of a stage fails again with the same reason and fingerprint, and leaves the rest as it is. Resolves when its tasks are
   * selected; from then on it goes on whichever process dies. `redrives.preview` says before what it would do.
   * @throws InvalidInputError without a note, or for a filter or rate that it cannot use.
   */
  async redrive(options: RedriveOptions): Promise<RedriveRecord> {
    this.#refuseClosed();
    return this.redrives.start(options);
  }

  /**
   * Cancels a task. One that runs is asked to stop, within a second on one host, else at its worker's next renewal; if it still succeeds, it has succeeded.
   * @throws StateConflictError for a task that has ended; TaskNotFoundError.
   */
  async cancel(id: number, options: ActionOptions = {}): Promise<void> {
    this.#refuseClosed();
    await this.#operator.act(id, 'cancel', options);
  }

  /** Puts a waiting task aside until it is released. @throws StateConflictError; TaskNotFoundError. */
  async hold(id: number, options: ActionOptions = {}): Promise<void> {
    this.#refuseClosed();
    await this.#operator.act(id, 'hold', options);
  }

  /** Lets a held task wait its turn again. @throws StateConflictError; TaskNotFoundError. */
  async release(id: number, options: ActionOptions = {}): Promise<void> {
    this.#refuseClosed();
    await this.#operator.act(id, 'release', options);
  }

  /** Answers a task that needs a person. @throws StateConflictError for any other; TaskNotFoundError. */
  async resolve(id: number, options: ResolveOptions): Promise<void> {
    this.#refuseClosed();
    await this.#operator.resolve(id, options);
  }

  /**
   * Stops the workers with their grace, releases the claims that are still open, lets what was called be written, and lets go of
   * the store. Until the last handler has ended it may still read, enqueue and settle claims; from then on every call is refused.
   * `grace` takes the place of theirs, as for `worker.stop`; a second call with a shorter one hurries, and 0 stops at once. Ends a
   * second after the grace (the longest that any of its workers had, or 30 s) at the latest: what the store has not taken by then
   * is refused, and nobody was told that it is recorded; the executions whose end it has not taken are named in the answer. Where the store could not be told that the workers have ended, the process
   * goes on to tell it in the background, and keeps its connection for that.
   */
  async close(options: { readonly grace?: DurationInput } = {}): Promise<Stopped> {
    refuseUnknown(options, ['grace'], 'close');
    const otherwise = this.#longestGrace ?? GRACE_WITHOUT_WORKERS;
    const grace = options.grace === undefined ? otherwise : duration(options.grace, 'grace');
    const stopped = [...this.#workers].map((worker) => worker.stop(options));
    const over = this.store.upkeep.giveUpAfter(grace + LAST_CALLS);
    this.#closing ??= this.#close(stopped, over);
    return this.#closing;
  }

  async #close(stopped: readonly Promise<Stopped>[], over: Promise<void>): Promise<Stopped> {
    this.#endListening();
    const ofWorkers = await Promise.all(stopped);
    this.#closed = true;
    // What is recorded may wait for a check of the caller's.
    await Promise.race([Promise.allSettled([this.#recorder.allRecorded(), this.#claims.close()]), over]);
    const unwritten = [...ofWorkers.flatMap((worker) => worker.unwritten), ...this.#claims.unwritten];
    this.#claims.leaveLater();
    await this.store.upkeep.close();
    return { unwritten };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal For the command line and a dashboard. */
  get administration(): Administration {
    return new Administration(this.store);
  }

  /** @internal For the testing kit: the workers of this process. */
  get ownWorkers(): ReadonlySet<Worker> {
    return this.#workers;
  }

  /** Tells the store what the changed configuration says of queues and types. Policies need no telling: they are asked at each failure. */
  async #applyConfiguration(): Promise<void> {
    const { configuration, tasks, log } = this.#parts;
    const queues = changed(this.#queues, configuration.queues);
    const limits = changed(this.#limits, configuration.limits);
    this.#queues = configuration.queues;
    this.#limits = configuration.limits;
    try {
      for (const [queue, settings] of queues) await this.store.sources.setUp(queue, settings);
      for (const [source, said] of limits) await limitByConfig(this.store, source, said);
      if (this.#workers.size > 0 || this.#claims.joined) {
        await this.store.tasks.publish(publications(tasks.values(), configuration));
      }
    } catch (error) {
      log.error(
        { err: error },
        'The store could not be told of the changed configuration; the next change tells it again',
      );
    }
  }

  #refuseClosed(): void {
    if (this.#closed) throw new ClosedError('Holdfast');
  }
}

/** What is said otherwise than before. */
function changed<Value>(
  before: ReadonlyMap<string, Value>,
  now: ReadonlyMap<string, Value>,
): readonly [string, Value][] {
  return [...now].filter(([name, value]) => !isDeepStrictEqual(before.get(name), value));
}
