/// <reference lib="esnext.disposable" preserve="true" />
import { systemClock } from '../clock.ts';
import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import {
  ClosedError,
  InvalidInputError,
  StateConflictError,
  StoreError,
  TaskNotFoundError,
  WorkerNotFoundError,
} from '../errors.ts';
import type { Facts } from '../failure/decide.ts';
import { UNTRIED } from '../failure/foresee.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import type { PolicyOptions } from '../failure/policy.ts';
import { DEFAULT_SIZE_LIMIT, encodeJson } from '../json.ts';
import { type Logger, silent } from '../log.ts';
import { list, name, oneOf, refuseUnknown, text, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import type {
  Counts,
  HistoryEntry,
  ListFilter,
  Move,
  Moved,
  NewTask,
  QueueRecord,
  QueueSettings,
  Receipt,
  SourceRecord,
  Store,
  StoreDescription,
  StoreOpener,
  WorkerRecord,
  World,
} from '../store/store.ts';
import { QUEUE_ORDERS, type QueueOrder, TASK_STATES } from '../task.ts';
import { type Explanation, explain } from '../views/explain.ts';
import { type ExplainedFailure, explainFailure } from '../views/explain-failure.ts';
import { type Configuration, outcomeBy, UNCONFIGURED } from '../worker/configuration.ts';
import { type AnyTask, checkTask, type TaskDefinition } from '../worker/define-task.ts';
import { explainedPolicyFor, publications } from '../worker/policy-for.ts';
import { parseRetention, type RetentionOptions, refuseRetention } from '../worker/retention-options.ts';
import type { Stopped } from '../worker/stopped.ts';
import { Suspects } from '../worker/suspects.ts';
import { Worker, type WorkerOptions } from '../worker/worker.ts';
import type { ClaimOptions, ManualClaim } from './claim.ts';
import { Claims } from './claims.ts';
import { type EnqueueOptions, makerOfEach, newTasks, type TaskMaker, taskMaker, unworked } from './enqueue.ts';
import { importedTasks, LONGEST_NOTE, type TaskToImport } from './import.ts';
import { removeOld } from './pruning.ts';
import { type Task, taskFrom } from './task-view.ts';
import { type PostgresHandle, recordWithin, type SqliteHandle, type Within } from './within.ts';

export interface HoldfastOptions {
  /** `sqlite('tasks.db')`, or another store. */
  readonly store: StoreOpener;
  /** The types that this process enqueues by definition or works. */
  readonly tasks?: readonly AnyTask[];
  /**
   * How queues are set up, for good: `{ mail: { order: 'priority', fair: true } }`. What is left out stays as it was: `fifo`,
   * and not fair, unless it was ever set.
   */
  readonly queues?: Readonly<Record<string, Partial<QueueSettings>>>;
  /** What an operator says over the code, and may change while this runs: a `Registry` of `holdfast/config`. */
  readonly config?: Configuration;
  /** How large a payload or result may be, in bytes of JSON. Default 1 MiB. */
  readonly maxPayloadBytes?: number;
  /** Any logger with pino's four methods. Default: nothing is logged. */
  readonly log?: Logger;
  /** How workers are called that were given no name. Default `worker-PID`. */
  readonly workerName?: string;
}

/** Who takes an action, and a note about why; both are kept in the history of the task. */
export interface ActionOptions {
  /** Default `api`. */
  readonly actor?: string;
  readonly note?: string;
}

export interface ResolveOptions extends ActionOptions {
  /** What a person found: it happened (`succeeded`), it did not and should be tried again (`retry`), or it is given up (`dead`). */
  readonly as: 'succeeded' | 'retry' | 'dead';
  /** The result, if it succeeded. */
  readonly result?: unknown;
}

/** A task, or what it would be called, whose policy is asked for. */
export interface PolicyQuestion {
  readonly type: string;
  readonly queue?: string;
  readonly source?: string;
  /** Its own layer. */
  readonly retry?: PolicyOptions;
}

export interface ListOptions extends Partial<Omit<ListFilter, 'limit'>> {
  /** Default 100, at most 1,000. */
  readonly limit?: number;
}

const NO_OPTIONS: EnqueueOptions = {};

/** How many tasks one transaction takes: others wait to write for as long as it lasts. */
const MOST_AT_ONCE = 10_000;

const GRACE_WITHOUT_WORKERS: Milliseconds = 30_000;

/** After the grace, and the last writes of the workers, a closed store gives up. */
const LAST_CALLS: Milliseconds = 900;

const OPTIONS = ['store', 'tasks', 'queues', 'config', 'maxPayloadBytes', 'log', 'workerName'];

/**
 * Opens a store and what stands on it. Until this is called nothing touches the disk; what it returns must be closed.
 * @throws InvalidInputError for options that it does not know or cannot use; StoreError if the store cannot be opened.
 */
export function openHoldfast(options: HoldfastOptions): Promise<Holdfast> {
  return openWith(options, { clock: systemClock, random: Math.random });
}

/** `openHoldfast` in a world of one's own: the testing kit brings its clock and dice. */
export async function openWith(options: HoldfastOptions, world: World): Promise<Holdfast> {
  refuseUnknown(options, OPTIONS, 'openHoldfast');
  if (typeof options.store?.open !== 'function') {
    throw new InvalidInputError("openHoldfast needs a store, such as { store: sqlite('tasks.db') }.");
  }
  const {
    maxPayloadBytes,
    workerName,
    log,
    config = UNCONFIGURED,
    queues: settings = {},
    tasks: definitions = [],
  } = options;
  if (maxPayloadBytes !== undefined) wholeNumber(maxPayloadBytes, 'maxPayloadBytes', 1);
  if (workerName !== undefined) name(workerName, 'workerName');
  if (log !== undefined) checkLog(log);
  checkConfig(config);
  refuseUnknown(settings, Object.keys(Object(settings)), 'queues');
  const queues = Object.entries(settings).map(([queue, itsSettings]) => {
    refuseUnknown(itsSettings, ['order', 'fair'], `The queue '${queue}'`);
    const { order, fair } = itsSettings;
    if (order === undefined && fair === undefined) {
      throw new InvalidInputError(`The queue '${queue}' needs an \`order\`, or to be told whether it is \`fair\`.`);
    }
    return {
      queue: name(queue, 'queue'),
      ...(order !== undefined && { order: oneOf(order, QUEUE_ORDERS, `The order of '${queue}'`) }),
      ...(fair !== undefined && { fair: oneOf(fair, [true, false], `Whether '${queue}' is fair`) }),
    };
  });
  const tasks = byType(list(definitions, 'tasks', checkTask));
  const store = await options.store.open(world);
  try {
    for (const { queue, ...settings } of queues) await store.sources.setUp(queue, settings);
    for (const [queue, settings] of config.queues) await store.sources.setUp(queue, settings);
  } catch (error) {
    await store.upkeep.close();
    throw error;
  }
  return new Holdfast(store, world, tasks, options);
}

/** An open store, and everything that one does with it. */
export class Holdfast implements AsyncDisposable {
  /** The seam to the database. Programs rarely need it. */
  readonly store: Store;
  readonly #world: World;
  readonly #tasks: ReadonlyMap<string, AnyTask>;
  readonly #sizeLimit: number;
  readonly #log: Logger;
  readonly #workerName: string;
  readonly #workers = new Set<Worker>();
  /** Of all workers that it ever had; undefined where it had none. */
  #longestGrace: Milliseconds | undefined;
  /** Enqueued before the end, and perhaps still being checked. */
  readonly #recording = new Set<Promise<unknown>>();
  readonly #claims: Claims;
  readonly #suspects: Suspects;
  readonly #configuration: Configuration;
  readonly #stopHearing: () => void;
  /** How it sets up queues, as the store was told. */
  #queues: Configuration['queues'];
  /** What makes tasks of those definitions that were enqueued without options. */
  readonly #plainMakers = new WeakMap<AnyTask, TaskMaker>();
  #closing: Promise<Stopped> | undefined;
  #closed = false;

  /** Made by `openHoldfast`. */
  constructor(store: Store, world: World, tasks: ReadonlyMap<string, AnyTask>, options: HoldfastOptions) {
    this.store = store;
    this.#world = world;
    this.#tasks = tasks;
    this.#sizeLimit = options.maxPayloadBytes ?? DEFAULT_SIZE_LIMIT;
    this.#log = options.log ?? silent;
    this.#workerName = options.workerName ?? `worker-${process.pid}`;
    this.#configuration = options.config ?? UNCONFIGURED;
    this.#queues = this.#configuration.queues;
    this.#stopHearing = this.#configuration.onChange(() => void this.#heed());
    this.#suspects = new Suspects(world.clock);
    this.#claims = new Claims({
      store,
      world,
      definitions: tasks,
      configuration: this.#configuration,
      defaultName: this.#workerName,
      sizeLimit: this.#sizeLimit,
      log: this.#log,
      astray: () => this.#astray(),
      suspects: this.#suspects,
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
    const made = this.#makerFor(task, 'enqueue')(options)(input);
    const [receipt] = await this.#enqueueAll(made instanceof Promise ? made.then((one) => [one]) : [made]);
    return receipt as Receipt;
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
    const makerWith = this.#makerFor(task, 'enqueueAll');
    atOnce(inputs, 'inputs', 'enqueueAll');
    return this.#enqueueAll(newTasks(inputs, makerOfEach(options, makerWith)));
  }

  #enqueueAll(made: readonly NewTask[] | Promise<readonly NewTask[]>): Promise<readonly Receipt[]> {
    return this.#record(made, (tasks) => this.store.tasks.enqueue(tasks));
  }

  /**
   * Records tasks of another queue as they stood there: those that wait go on where they were, and those that ended or need a
   * person do so here. What was counted is kept, and `imported` stands in their history, with the actor and a note. One
   * transaction, all or none; at most 10,000 at a time. Inputs are checked as by `enqueue`. Give each its `key`, so that
   * importing them again, after a crash in between, answers those that are there and leaves them as they are.
   * @throws InvalidInputError or PayloadError for the first task that it refuses, with its `index`, before anything is written.
   */
  async importTasks(tasks: readonly TaskToImport[], act: ActionOptions = {}): Promise<readonly Receipt[]> {
    this.#refuseClosed();
    atOnce(tasks, 'tasks', 'importTasks');
    const made = importedTasks(tasks, {
      now: this.store.upkeep.now(),
      by: by(act, 'importTasks'),
      sizeLimit: this.#sizeLimit,
      makerFor: (type) => this.#makerFor(type, 'importTasks'),
    });
    return this.#record(made, (imported) => this.store.tasks.import(imported));
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
    if (!this.store.within) {
      throw new StoreError(
        'store_unsupported',
        'This store cannot enqueue inside a transaction of yours: call `enqueue`.',
      );
    }
    const enqueuer = this.store.within(handle);
    return {
      enqueue: (task, input, options = {}) => {
        this.#refuseClosed();
        const made = this.#makerFor(task, 'enqueue')(options)(input);
        return recordWithin(enqueuer, made, typeof task === 'string' ? task : task.type);
      },
    };
  }

  #makerFor(task: unknown, verb: string): (options: EnqueueOptions) => TaskMaker {
    const known = typeof task === 'string' ? this.#definitionOf(task) : checkTask(task, verb);
    const definition = known ?? unworked(task as string);
    return (options) => {
      const plain = options === NO_OPTIONS ? this.#plainMakers.get(definition) : undefined;
      if (plain) return plain;
      const maker = taskMaker(definition, options, this.#sizeLimit, known === undefined);
      if (options === NO_OPTIONS) this.#plainMakers.set(definition, maker);
      return maker;
    };
  }

  /** What is not checked yet is waited for at the end; what is checked goes to the store in this turn. */
  #record<Made>(
    made: readonly Made[] | Promise<readonly Made[]>,
    write: (made: readonly Made[]) => Promise<readonly Receipt[]>,
  ): Promise<readonly Receipt[]> {
    if (!(made instanceof Promise)) return write(made);
    const recorded = made.then(write);
    this.#recording.add(recorded);
    const forget = () => this.#recording.delete(recorded);
    recorded.then(forget, forget);
    return recorded;
  }

  /** Starts a worker for the types that this was opened with. */
  work(options: WorkerOptions = {}): Worker {
    return this.worker(options).start();
  }

  /** A worker that does nothing by itself: for `runOne()`, `drain()`, or a later `start()`. */
  worker(options: WorkerOptions = {}): Worker {
    if (this.#closing) throw new ClosedError('Holdfast');
    if (this.#tasks.size === 0) {
      throw new InvalidInputError(
        'There is nothing to work: open Holdfast with the `tasks` that this process runs.',
        'unknown_type',
      );
    }
    const worker = new Worker(
      {
        store: this.store,
        world: this.#world,
        tasks: [...this.#tasks.values()],
        defaultName: this.#workerName,
        sizeLimit: this.#sizeLimit,
        log: this.#log,
        configuration: this.#configuration,
        onEnd: (ended) => this.#workers.delete(ended),
        astray: () => this.#astray(),
        suspects: this.#suspects,
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
  async find(idOrKey: number | string): Promise<Task | undefined> {
    const { records } = this.store;
    const record =
      typeof idOrKey === 'string'
        ? await records.findByKey(name(idOrKey, 'The key of a task'))
        : await records.find(idOf(idOrKey));
    return record && taskFrom(record);
  }

  /** @throws TaskNotFoundError where there is no task with this id or key. */
  async get(idOrKey: number | string): Promise<Task> {
    const task = await this.find(idOrKey);
    if (!task) throw new TaskNotFoundError(idOrKey);
    return task;
  }

  /** The newest tasks first; `before` an id for the next page. */
  async list(options: ListOptions = {}): Promise<readonly Task[]> {
    refuseUnknown(options, [...FILTERS, 'states', 'before', 'limit'], 'list');
    const { states, before, limit = 100 } = options;
    if (states !== undefined) list(states, 'states', (state, what) => oneOf(state, TASK_STATES, what));
    for (const filter of FILTERS) if (options[filter] !== undefined) list(options[filter], filter, name);
    if (before !== undefined) wholeNumber(before, 'before', 1);
    const filter = { ...options, limit: wholeNumber(limit, 'limit', 1, 1_000) };
    return (await this.store.records.list(filter)).map(taskFrom);
  }

  /** What happened to a task, oldest first. A task that succeeded at its first execution has no history. */
  async history(id: number): Promise<readonly HistoryEntry[]> {
    return this.store.records.history(idOf(id));
  }

  /** How many tasks are in which state, and what needs a person. */
  counts(): Promise<Counts> {
    return this.store.records.counts();
  }

  /**
   * The policy that would answer the next failure of a task, each of its values, and who said it. The task is one that `get`
   * returned, or what it would be called: without a queue and source, those of its type's definition or the default.
   */
  async policyFor(task: PolicyQuestion): Promise<ExplainedPolicy> {
    const { type, retry } = task;
    name(type, 'type');
    const known = this.#tasks.get(type);
    const published = known ? undefined : await this.store.records.published(type);
    const definition = known ?? (published === undefined ? this.#tasks.get('*') : undefined);
    const itsSource = typeof definition?.source === 'string' ? definition.source : type;
    const { queue = definition?.queue ?? 'default', source = itsSource } = task;
    const asked = { type, queue, source, ...(retry && { retry }) };
    return explainedPolicyFor(asked, definition, this.#configuration, published);
  }

  /**
   * Why a task is where it is, what happens next, and what would follow from its next failure: as data, and as one text that is
   * the same wherever it is shown. By the policy of today.
   * @throws TaskNotFoundError.
   */
  async explain(idOrKey: number | string): Promise<Explanation> {
    const task = await this.get(idOrKey);
    const history = await this.history(task.id);
    const { source, queue } = task;
    const shut = (await this.sources()).find(({ name }) => name === source);
    const itsQueue = (await this.queues()).find(({ name }) => name === queue);
    const now = this.store.upkeep.now();
    return explain({
      now,
      task,
      history,
      facts: await this.#factsOf(task),
      policy: await this.policyFor(task),
      workers: await this.workers(),
      ...(shut && { shut }),
      ...(itsQueue && { queue: itsQueue }),
    });
  }

  /**
   * What would happen if a task failed with this error: what it would be recognised as, the rule that answers, the count, the
   * delay and its jitter, and what ends it. Asks the same `classify` and `decide` as a worker. The task is one of this store,
   * or what it would be called, at its first execution.
   * @throws TaskNotFoundError.
   */
  async explainError(thrown: unknown, subject: number | string | PolicyQuestion): Promise<ExplainedFailure> {
    const now = this.store.upkeep.now();
    const task = typeof subject === 'object' ? undefined : await this.get(subject);
    const question = task ?? (subject as PolicyQuestion);
    const facts = task ? await this.#factsOf(task) : UNTRIED;
    const outcome = outcomeBy(this.#configuration)(thrown, { now, type: question.type });
    return explainFailure(facts, outcome, await this.policyFor(question));
  }

  /** By which its next failure would be decided; a task that was removed meanwhile counts as one that was never tried. */
  async #factsOf({ id }: Task): Promise<Facts> {
    return (await this.store.records.facts(id)) ?? UNTRIED;
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
  async endWorker(id: number): Promise<void> {
    const worker = wholeNumber(id, 'The id of a worker', 1);
    if (!(await this.workers()).some((one) => one.id === worker)) throw new WorkerNotFoundError(worker);
    await this.store.tasks.leave(worker);
  }

  /**
   * Shuts a source by hand: none of its tasks is claimed until it is released, however many there are. What runs goes on, and so
   * does what a worker had claimed ahead by then: see `WorkerOptions.claimAhead`. Holding one that is held changes nothing.
   */
  async holdSource(source: string, act: ActionOptions = {}): Promise<void> {
    await this.store.sources.hold(name(source, 'source'), by(act, 'holdSource'));
  }

  /** Opens a source that was shut by hand. Its tasks go on in their queues' order. */
  async releaseSource(source: string): Promise<void> {
    await this.store.sources.release(name(source, 'source'));
  }

  /**
   * Pauses a queue: no worker claims anything of it until it is resumed. What was claimed by then, ahead too, goes on. Tasks may
   * still be enqueued.
   */
  async pauseQueue(queue: string, act: ActionOptions = {}): Promise<void> {
    await this.store.sources.pause(name(queue, 'queue'), by(act, 'pauseQueue'));
  }

  /** Lets a paused queue go on. */
  async resumeQueue(queue: string): Promise<void> {
    await this.store.sources.resume(name(queue, 'queue'));
  }

  /** The sources that are shut. */
  sources(): Promise<readonly SourceRecord[]> {
    return this.store.records.sources();
  }

  /**
   * Sets a queue's order for good, and puts its waiting tasks into it. `fifo` unless set. Claims follow it exactly: each takes
   * the very next tasks, whichever process makes it. What one claim took starts together, so a task can start before an
   * earlier one by at most the tasks that workers have claimed and not begun: a batch for each of them.
   */
  async setQueueOrder(queue: string, order: QueueOrder): Promise<void> {
    const settings = { order: oneOf(order, QUEUE_ORDERS, 'The order of a queue') };
    await this.store.sources.setUp(name(queue, 'queue'), settings);
  }

  /**
   * Serves the sources of a queue in turn from now on, or, with false, its tasks in their exact order again, as unless set.
   * In a fair queue no source waits behind the many tasks of another: the one served longest ago comes first, and gives one
   * task, or up to four where more than a thousand sources wait. The queue's order then holds inside each source.
   */
  async setQueueFair(queue: string, fair: boolean): Promise<void> {
    const settings = { fair: oneOf(fair, [true, false], 'Whether a queue is fair') };
    await this.store.sources.setUp(name(queue, 'queue'), settings);
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
    return removeOld(this.store.upkeep, parseRetention(retention ?? this.#configuration.worker.retention));
  }

  /** Where the store is and how it keeps its word. */
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
  async retry(id: number, act: ActionOptions = {}): Promise<void> {
    await this.#move(id, { verb: 'retry', ...by(act, 'retry') });
  }

  /**
   * Cancels a task. One that runs is asked to stop, within a second on one host, else at its worker's next renewal; if it still succeeds, it has succeeded.
   * @throws StateConflictError for a task that has ended; TaskNotFoundError.
   */
  async cancel(id: number, act: ActionOptions = {}): Promise<void> {
    await this.#move(id, { verb: 'cancel', ...by(act, 'cancel') });
  }

  /** Puts a waiting task aside until it is released. @throws StateConflictError; TaskNotFoundError. */
  async hold(id: number, act: ActionOptions = {}): Promise<void> {
    await this.#move(id, { verb: 'hold', ...by(act, 'hold') });
  }

  /** Lets a held task wait its turn again. @throws StateConflictError; TaskNotFoundError. */
  async release(id: number, act: ActionOptions = {}): Promise<void> {
    await this.#move(id, { verb: 'release', ...by(act, 'release') });
  }

  /** Answers a task that needs a person. @throws StateConflictError for any other; TaskNotFoundError. */
  async resolve(id: number, options: ResolveOptions): Promise<void> {
    refuseUnknown(options, ['as', 'result', 'actor', 'note'], 'resolve');
    const as = oneOf(options.as, ['succeeded', 'retry', 'dead'] as const, 'as');
    const { as: _, result, ...act } = options;
    if (result !== undefined && as !== 'succeeded') {
      throw new InvalidInputError(`Only what succeeded has a result: resolve takes no \`result\` with as: '${as}'.`);
    }
    const kept = result === undefined ? {} : { result: encodeJson(result, 'result', this.#sizeLimit) };
    return this.#move(id, { verb: 'resolve', as, ...kept, ...by(act, 'resolve') });
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
    this.#stopHearing();
    const ofWorkers = await Promise.all(stopped);
    this.#closed = true;
    // What is recorded may wait for a check of the caller's.
    await Promise.race([Promise.allSettled([...this.#recording, this.#claims.close()]), over]);
    const unwritten = [...ofWorkers.flatMap((worker) => worker.unwritten), ...this.#claims.unwritten];
    this.#claims.leaveLater();
    await this.store.upkeep.close();
    return { unwritten };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal For the testing kit: the workers of this process. */
  get ownWorkers(): ReadonlySet<Worker> {
    return this.#workers;
  }

  /** The definition of a type, or the catch-all under its name. */
  #definitionOf(type: string): AnyTask | undefined {
    const catchAll = this.#tasks.get('*');
    return this.#tasks.get(type) ?? (catchAll && { ...catchAll, type });
  }

  #astray(): readonly number[] {
    return [...this.#workers].flatMap((worker) => worker.astray);
  }

  /** The configuration has changed. Policies are asked for at each failure; what stands in the store must be told. */
  async #heed(): Promise<void> {
    const changed = [...this.#configuration.queues].filter(([queue, { order, fair }]) => {
      const before = this.#queues.get(queue);
      return before?.order !== order || before?.fair !== fair;
    });
    this.#queues = this.#configuration.queues;
    try {
      for (const [queue, settings] of changed) await this.store.sources.setUp(queue, settings);
      if (this.#workers.size > 0 || this.#claims.joined) {
        await this.store.tasks.publish(publications(this.#tasks.values(), this.#configuration));
      }
    } catch (error) {
      this.#log.error(
        { err: error },
        'The store could not be told of the changed configuration; the next change tells it again',
      );
    }
  }

  async #move(id: number, move: Move): Promise<void> {
    this.#refuseClosed();
    const [moved] = (await this.store.tasks.move([idOf(id)], move)) as [Moved];
    if (moved.moved || moved.why === 'requested') return;
    if (moved.why === 'missing') throw new TaskNotFoundError(id);
    throw conflict(move.verb, moved);
  }

  #refuseClosed(): void {
    if (this.#closed) throw new ClosedError('Holdfast');
  }
}

/** @throws InvalidInputError for more than one transaction should take. */
function atOnce(items: unknown, what: string, verb: string): void {
  const { length } = list(items, what, (item) => item);
  if (length <= MOST_AT_ONCE) return;
  throw new InvalidInputError(
    `${verb} takes at most ${MOST_AT_ONCE} ${what}, which it records in one transaction, got ${length}. Call it several times.`,
  );
}

/** What `list` filters by that is called by a name. */
const FILTERS = ['types', 'queues', 'sources', 'reasons'] as const;

function idOf(id: unknown): number {
  return wholeNumber(id, 'The id of a task', 1);
}

function checkConfig(config: Configuration): void {
  if (typeof Object(config).said === 'function' && typeof Object(config).onChange === 'function') return;
  const how = "what loadConfig('holdfast.yaml') of holdfast/config resolves to";
  throw new InvalidInputError(`config takes ${how}, got ${show(config)}.`);
}

function checkLog(log: unknown): void {
  const missing = ['debug', 'info', 'warn', 'error'].find((method) => typeof Object(log)[method] !== 'function');
  if (missing !== undefined)
    throw new InvalidInputError(`log needs the methods of pino; it has no function \`${missing}\`.`);
}

function byType(tasks: readonly AnyTask[]): ReadonlyMap<string, AnyTask> {
  const known = new Map<string, AnyTask>();
  for (const task of tasks) {
    if (known.has(task.type)) throw new InvalidInputError(`The type '${task.type}' is defined twice.`);
    known.set(task.type, task);
  }
  return known;
}

function by(act: ActionOptions, verb: string): { actor: string; note?: string } {
  refuseUnknown(act, ['actor', 'note'], verb);
  const { actor = 'api', note } = act;
  return { actor: name(actor, 'actor'), ...(note !== undefined && { note: text(note, 'note', LONGEST_NOTE) }) };
}

type Conflict = Extract<Moved, { why: 'conflict' }>;

function conflict(verb: string, { id, from: state, occupiedBy }: Conflict): StateConflictError {
  if (occupiedBy !== undefined) {
    const text =
      `Task #${id} cannot take the step '${verb}': task #${occupiedBy} has its unique key by now, and only one of a type may. ` +
      `Leave it to that one; or cancel #${occupiedBy}, or wait until it has ended, and try again.`;
    return new StateConflictError(id, state, text, { occupiedBy });
  }
  const next: Readonly<Record<string, string>> = {
    running: 'It runs just now: wait for its end, or cancel it.',
    held: 'It is held: release it first.',
    ready: 'It is due already, and waits for a worker.',
    scheduled: 'It waits for its time: retry makes it due now.',
    needs_manual: 'It needs an answer: resolve it.',
    succeeded: 'It has succeeded.',
    dead: 'It is dead: retry starts a new round.',
    cancelled: 'It is cancelled: retry starts a new round.',
  };
  return new StateConflictError(
    id,
    state,
    `Task #${id} is ${state}, so it cannot take the step '${verb}'. ${next[state] ?? ''}`,
  );
}
