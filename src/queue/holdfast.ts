/// <reference lib="esnext.disposable" preserve="true" />
import { isDeepStrictEqual } from 'node:util';
import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { ClosedError, InvalidInputError } from '../errors.ts';
import type { AsJson } from '../json-types.ts';
import type { Logger } from '../log.ts';
import { Mistakes } from '../mistakes.ts';
import { refuseUnknown } from '../options.ts';
import type { Limits } from '../pace.ts';
import type { Receipt, Store, World } from '../store/store.ts';
import type { Json } from '../task.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import type { Configuration } from '../worker/configuration.ts';
import type { AnyTask, DefinitionOf } from '../worker/define-task.ts';
import { KnownSources } from '../worker/known-sources.ts';
import { OwnHandlers } from '../worker/own-handlers.ts';
import { publications } from '../worker/policy-for.ts';
import { parseRetention, type RetentionOptions, refuseRetention } from '../worker/retention-options.ts';
import type { Stopped } from '../worker/stopped.ts';
import { Suspects } from '../worker/suspects.ts';
import { Worker, type WorkerOptions } from '../worker/worker.ts';
import type { ClaimOptions, ManualClaim } from './claim.ts';
import { Claims } from './claims.ts';
import type { EnqueueOptions, FollowUp, GroupOptions, GroupReceipts, GroupTasks, OptionsOfEach } from './enqueue.ts';
import type { TaskToImport } from './import.ts';
import { Inspector } from './inspect.ts';
import { warnOfMisspeltTypes } from './misspelt-types.ts';
import type { ActionOptions } from './operate.ts';
import { GRACE_WITHOUT_WORKERS, LAST_CALLS, Operations } from './operations.ts';
import { removeOld } from './pruning.ts';
import { NO_OPTIONS, Recorder } from './record.ts';
import { type ResultOptions, Results } from './results.ts';
import { Schedules } from './schedules.ts';
import { limitByConfig } from './sources.ts';
import { TaskReader } from './task-reader.ts';
import type { PostgresHandle, SqliteHandle, Within } from './within.ts';

/** The parts that `openHoldfast` makes from its options. */
export interface HoldfastParts {
  readonly store: Store;
  readonly world: World;
  /** By type. */
  readonly tasks: ReadonlyMap<string, AnyTask>;
  readonly configuration: Configuration;
  readonly sizeLimit: number;
  readonly log: Logger;
  readonly telemetry?: Telemetry | undefined;
  readonly workerName: string;
}

/** An open store, with all operations. */
export class Holdfast extends Operations implements AsyncDisposable {
  /** Schedules: set, list, pause, resume, run and remove them. */
  readonly schedules: Schedules;
  readonly #parts: HoldfastParts;
  readonly #mistakes: Mistakes;
  readonly #recorder: Recorder;
  readonly #refuse = () => this.refuseClosed();
  readonly #results: Results;
  readonly #claims: Claims;
  readonly #suspects: Suspects;
  readonly #workers = new Set<Worker>();
  readonly #ownHandlers = new OwnHandlers();
  readonly #knownSources: KnownSources;
  /** The longest grace of all its workers so far; undefined if it had none. */
  #longestGrace: Milliseconds | undefined;
  readonly #endListening: () => void;
  /** The settings of queues and the limits of sources that were last written to the store from the configuration. */
  #queues: Configuration['queues'];
  #limits: Configuration['limits'];
  #schedulesSet: Promise<void> = Promise.resolve();
  #closing: Promise<Stopped> | undefined;

  /** Made by `openHoldfast`. */
  constructor(parts: HoldfastParts) {
    const { store, world, tasks, configuration, sizeLimit, log, workerName } = parts;
    const inspector = new Inspector(store, tasks, configuration);
    super({ store, sizeLimit, inspector: () => inspector });
    const mistakes = new Mistakes(log);
    this.#mistakes = mistakes;
    this.#parts = parts;
    this.#queues = configuration.queues;
    this.#limits = configuration.limits;
    warnOfMisspeltTypes(configuration, tasks, mistakes);
    this.#endListening = configuration.onChange(() => void this.#applyConfiguration());
    this.#recorder = new Recorder(store, tasks, sizeLimit, mistakes, parts.telemetry);
    this.schedules = new Schedules({
      store,
      taskFor: (task, input, options) => this.#recorder.taskFor(task, input, options, 'schedules.set'),
      telemetry: parts.telemetry,
      onSet: () => this.lookForChores(),
    });
    this.#results = new Results(new TaskReader(store), world.clock);
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
      mistakes,
      telemetry: parts.telemetry,
      ownHandlers: this.#ownHandlers,
      suspects: this.#suspects,
      knownSources: this.#knownSources,
    });
  }

  /**
   * Records a task. When this resolves the task is durable: no crash of any process or of the machine loses it. A type without a
   * definition here can be given by its name. Then its input is not checked.
   * @throws InvalidInputError or PayloadError if it refuses the input or an option; then nothing is written. UniqueConflictError
   * if its unique key is taken and `onConflict` is `'reject'`.
   */
  enqueue<Given>(
    task: DefinitionOf<Given> | string,
    input: NoInfer<Given>,
    options: EnqueueOptions<NoInfer<Given>> = NO_OPTIONS,
  ): Promise<Receipt> {
    return this.#recorder.enqueue(task, input, options, this.#refuse);
  }

  /**
   * Records many tasks of a type in one transaction, all or none, and returns a receipt for each, in their order. They are as
   * durable as with `enqueue`, and this is faster than many calls of it. At most 10,000 at a time, because other writers wait
   * meanwhile.
   *
   * `options` are the same for all tasks, or a function of the input and its index that returns the options of each task. `key`
   * and `unique` belong to one task, so they need the function. If several inputs have the same key, the first one is recorded.
   * @throws InvalidInputError or PayloadError for the first input that it refuses, with its `index`; then nothing is written;
   * UniqueConflictError if a unique key with `onConflict: 'reject'` is taken; then nothing is written.
   */
  enqueueAll<Given>(
    task: DefinitionOf<Given>,
    inputs: readonly NoInfer<Given>[],
    options?: OptionsOfEach<Given>,
  ): Promise<readonly Receipt[]>;
  enqueueAll<Given>(
    task: string,
    inputs: readonly Given[],
    options?: OptionsOfEach<Given>,
  ): Promise<readonly Receipt[]>;
  async enqueueAll<Given>(
    task: DefinitionOf<Given> | string,
    inputs: readonly Given[],
    options: OptionsOfEach<Given> = {},
  ): Promise<readonly Receipt[]> {
    this.refuseClosed();
    return this.#recorder.enqueueAll(task, inputs, options);
  }

  /**
   * Records tasks as a group, with a follow-up: `enqueueGroup(resize, images, { followUp: [report, { album: 7 }] })`, or tasks of
   * several types, each with its own options: `enqueueGroup([[resize, image], [scan, file, { priority: 5 }]], { followUp })`. The
   * follow-up runs once, when each task of the group has succeeded, died or been cancelled; its handler reads `task.group()`. All are
   * recorded in one transaction. At most 10,000 tasks at a time; a group without tasks has ended at once.
   * @throws what `enqueueAll` throws; then nothing is written.
   */
  enqueueGroup<Given, Next>(
    task: DefinitionOf<Given> | string,
    inputs: readonly NoInfer<Given>[],
    group: GroupOptions<NoInfer<Given>, Next>,
  ): Promise<GroupReceipts>;
  enqueueGroup<Inputs extends readonly unknown[], Next>(
    tasks: GroupTasks<Inputs>,
    group: FollowUp<Next>,
  ): Promise<GroupReceipts>;
  async enqueueGroup(task: unknown, inputs: unknown, group?: unknown): Promise<GroupReceipts> {
    this.refuseClosed();
    return this.#recorder.enqueueGroup(task, inputs, group);
  }

  /**
   * Imports tasks of another queue with their states and counts. Their history begins with `imported`, the actor and the note. At
   * most 10,000 at a time; a thousand are recorded in one transaction, so that others can write in between. Inputs are checked as
   * in `enqueue`. Give each task a `key`. Then, after a failure, you can import them again: tasks that are already there are left
   * as they are.
   * @throws InvalidInputError or PayloadError for the first task that it refuses, with its `index`. Then nothing is written.
   */
  async importTasks(tasks: readonly TaskToImport[], options: ActionOptions = {}): Promise<readonly Receipt[]> {
    this.refuseClosed();
    return this.#recorder.importTasks(tasks, options);
  }

  /**
   * Enqueues inside a transaction of yours, so that your rows and the task exist together or not at all: `db.transaction(() => {
   * …; holdfast.within(db).enqueue(task, input); }).immediate()`. The handle is a Database of the same copy of better-sqlite3
   * that Holdfast uses (or a DatabaseSync, if it uses node:sqlite), open on the store's file, with `synchronous = FULL` unless the store is less durable. On PostgreSQL it is
   * a client of pg, or a transaction of Drizzle, Kysely, Knex, Prisma or postgres.js; await the returned promise before the
   * commit.
   * @throws InvalidInputError for any other handle, saying what to do; StoreError if the store has no transactions of callers.
   */
  within(handle: SqliteHandle): Within<Receipt, readonly Receipt[], GroupReceipts>;
  within(handle: PostgresHandle): Within<Promise<Receipt>, Promise<readonly Receipt[]>, Promise<GroupReceipts>>;
  within(handle: SqliteHandle | PostgresHandle): ReturnType<Recorder['within']> {
    this.refuseClosed();
    return this.#recorder.within(handle, () => this.refuseClosed());
  }

  /** Starts a worker for the types with which this was opened. */
  work(options: WorkerOptions = {}): Worker {
    return this.worker(options).start();
  }

  /** A worker that is not started: for `runOne()`, `drain()`, or a later `start()`. */
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
        onSettled: (task) => this.#results.settled(task),
        mistakes: this.#mistakes,
        telemetry: this.#parts.telemetry,
        ownHandlers: this.#ownHandlers,
        suspects: this.#suspects,
        knownSources: this.#knownSources,
      },
      options,
    );
    if (this.#workers.size === 0) this.#schedulesSet = this.#applySchedules();
    this.#workers.add(worker);
    this.#longestGrace = Math.max(this.#longestGrace ?? 0, worker.grace);
    return worker;
  }

  /**
   * Claims the next ready task, or the one with this `id`, for a program with its own loop: do the work, call `renew()`
   * meanwhile, then `complete`, `fail` or `release`. Undefined if no task that it may take is ready; this does not wait. Needs no
   * definition of the type. Several claims may be open at the same time, but only one of a task that was lost with its worker.
   * @throws InvalidInputError; StoreError if the store cannot be reached.
   */
  async claim(options: ClaimOptions = {}): Promise<ManualClaim | undefined> {
    this.refuseClosed();
    return this.#claims.claim(options);
  }

  /**
   * Waits until a task has succeeded, and returns its result. The end of a task that a worker of this process runs is known at once;
   * others are looked for at growing intervals, at most once a second.
   * @throws TaskFailedError if the task died, was cancelled or needs a person; ResultTimeoutError if it has not ended in time; and what
   * `get` throws.
   */
  async result<Result = Json>(idOrKey: number | string, options: ResultOptions<Result> = {}): Promise<AsJson<Result>> {
    this.refuseClosed();
    return (await this.#results.of(idOrKey, options)) as AsJson<Result>;
  }

  /**
   * Removes now all tasks whose retention is over, with everything that belongs to them, and returns how many. Workers do this
   * automatically; call it if your workers end too soon for that. It works in small batches with pauses, so that others do not
   * wait long. The default retention is the configured one, else 30 days, and `needs_manual` never. Tasks that have not ended are
   * never removed.
   * @throws InvalidInputError if the retention is invalid. Then nothing is removed.
   */
  async prune(retention?: RetentionOptions): Promise<number> {
    this.refuseClosed();
    refuseRetention(retention);
    return removeOld(this.store.upkeep, parseRetention(retention ?? this.#parts.configuration.worker.retention));
  }

  /**
   * Stops the workers with their grace, releases open claims, waits for pending writes, and closes the store. Until the last
   * handler has ended, calls still work; after that every call is refused. `grace` replaces the grace of the workers, as for
   * `worker.stop`; a second call with a shorter one shortens it, and 0 stops at once. It ends at the latest a second after the
   * grace (the longest of its workers, or 30 s). Calls that are not written by then reject, and the executions whose outcomes are
   * not written are listed in the result. If the store could not record that the workers have ended, the process continues to try
   * in the background, and keeps its connection for that.
   */
  override async close(options: { readonly grace?: DurationInput } = {}): Promise<Stopped> {
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
    this.closed = true;
    // A task may wait for an asynchronous check of the caller.
    await Promise.race([Promise.allSettled([this.#recorder.allRecorded(), this.#claims.close()]), over]);
    const unwritten = [...ofWorkers.flatMap((worker) => worker.unwritten), ...this.#claims.unwritten];
    this.#claims.leaveLater();
    await this.store.upkeep.close();
    return { unwritten };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  override lookForChores(): void {
    for (const worker of this.#workers) worker.lookForChores();
  }

  /** @internal For the testing kit: the workers of this process. */
  get ownWorkers(): ReadonlySet<Worker> {
    return this.#workers;
  }

  /** Writes changed settings of queues, sources and types to the store. Policies need no write: they are read at each failure. */
  async #applyConfiguration(): Promise<void> {
    const { configuration, tasks, log } = this.#parts;
    warnOfMisspeltTypes(configuration, tasks, this.#mistakes);
    const queues = changed(this.#queues, configuration.queues);
    const limits = changed(this.#limits, configuration.limits);
    try {
      for (const [queue, settings] of queues) await this.store.sources.setUp(queue, settings);
      for (const [source, said] of limits) await limitByConfig(this.store, source, said);
      this.#queues = configuration.queues;
      this.#limits = configuration.limits;
      if (this.#workers.size > 0 || this.#claims.joined) {
        const ids = [...this.#workers].flatMap(({ id }) => (id === undefined ? [] : [id]));
        await this.store.tasks.publish(publications(tasks.values(), configuration), ids);
      }
      if (this.#workers.size > 0) await this.#applySchedules();
    } catch (error) {
      log.error(
        { err: error },
        'The changed configuration could not be written to the store; it is written with the next change',
      );
    }
  }

  /** @internal For a dashboard. */
  get configuration(): Configuration {
    return this.#parts.configuration;
  }

  /** @internal Resolves when the schedules of the configuration are set: the testing kit moves no clock before. */
  get schedulesSet(): Promise<void> {
    return this.#schedulesSet;
  }

  /** Sets the schedules of the configuration, once this process has workers. */
  async #applySchedules(): Promise<void> {
    const { configuration, log } = this.#parts;
    if (!configuration.schedules) return;
    try {
      await this.schedules.apply(configuration.schedules, (schedule, error) =>
        log.error(
          { err: error, schedule },
          `The schedule '${schedule}' of the configuration is refused; it is not set`,
        ),
      );
    } catch (error) {
      if (this.closed) return;
      log.error(
        { err: error },
        'The schedules of the configuration could not be set; they are set with its next change',
      );
    }
  }
}

/** The settings that differ from before. A limit that is gone is null. */
function changed<Value extends Limits>(
  before: ReadonlyMap<string, Value>,
  now: ReadonlyMap<string, Value>,
): readonly [string, Value | Limits][] {
  const names = new Set([...before.keys(), ...now.keys()]);
  return [...names].flatMap((name) => {
    const [was, is] = [before.get(name), now.get(name)];
    if (isDeepStrictEqual(was, is)) return [];
    return [[name, { ...(was?.pace && { pace: null }), ...(was?.concurrency && { concurrency: null }), ...is }]];
  });
}
