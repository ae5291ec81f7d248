import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { ClosedError, InvalidInputError } from '../errors.ts';
import type { Policy } from '../failure/policy.ts';
import { harmless, type Logger, silent } from '../log.ts';
import { Mistakes } from '../mistakes.ts';
import { refuseUnknown } from '../options.ts';
import type { Claimed, News, PrunedTask, Store, Takes, World } from '../store/store.ts';
import { isWaiting } from '../task.ts';
import type { Finished } from '../telemetry/events.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import { Announcer } from './announcer.ts';
import { Asking } from './asking.ts';
import { Batches } from './batches.ts';
import { refuseWorkerInChild } from './child/in-child.ts';
import { Chores } from './chores.ts';
import { ClaimPause } from './claim-pause.ts';
import { Claimer, PAUSED } from './claimer.ts';
import { type Configuration, UNCONFIGURED } from './configuration.ts';
import { Countdown } from './countdown.ts';
import type { AnyTask } from './define-task.ts';
import { KnownRetries } from './known-retries.ts';
import { KnownSources } from './known-sources.ts';
import { Membership } from './membership.ts';
import { outcomeBy } from './outcome-by.ts';
import { OwnHandlers } from './own-handlers.ts';
import { Pipeline, SHUT_DOWN } from './pipeline.ts';
import { warnOfOtherPolicies } from './policy-differences.ts';
import { longestTimeout, policyFor, publications } from './policy-for.ts';
import { Pulse } from './pulse.ts';
import { Recall } from './recall.ts';
import { Recoveries } from './recoveries.ts';
import { RedriveDriver } from './redrive-driver.ts';
import { parseRetention } from './retention-options.ts';
import { ScheduleTicker } from './schedule-ticker.ts';
import { type Ended, FIRST_PAUSE, LONGEST_PAUSE, Settler } from './settler.ts';
import { type Stopped, type Unwritten, unwrittenOf } from './stopped.ts';
import { StrayRecorder } from './stray-recorder.ts';
import { Suspects } from './suspects.ts';
import { tellTelemetry } from './traces.ts';
import { Wakeup } from './wakeup.ts';
import { parseWorkerOptions, type WorkerOptions, type WorkerSettings } from './worker-options.ts';

/** How often a worker polls that was given no interval. */
const POLL_INTERVAL: Milliseconds = 1_000;

/** So long a worker was given no task before it counts as idle. */
const IDLE_AFTER: Milliseconds = 30_000;

export type { Finished, WorkerEvent } from '../telemetry/events.ts';
export type { WorkerOptions } from './worker-options.ts';

export interface WorkerContext {
  readonly store: Store;
  readonly world: World;
  readonly tasks: readonly AnyTask[];
  readonly defaultName: string;
  readonly sizeLimit: number;
  readonly log?: Logger;
  readonly configuration?: Configuration;
  /** Called when the worker has ended. */
  readonly onEnd?: (worker: Worker) => void;
  /** Called with each task of which an execution was settled. */
  readonly onSettled?: (task: number) => void;
  /** Default: it tells of them by itself. */
  readonly mistakes?: Mistakes;
  /** The handlers of this process. Default: those of this worker. */
  readonly ownHandlers?: OwnHandlers;
  readonly telemetry?: Telemetry | undefined;
  /** Which suspects this process may run. Default: as if this worker were its only one. */
  readonly suspects?: Suspects;
  /** The states of sources that this process knows. Default: those that this worker knows. */
  readonly knownSources?: KnownSources;
}

/** Why tasks that were claimed ahead are handed back. */
const HELD = 'Its source was held, or its queue paused, before it began.';

/** The callers that wait until the worker is idle. */
interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Claims tasks, runs their handlers, and settles the outcomes. One loop claims tasks for the free slots and sleeps. Each
 * execution settles by itself and wakes the loop in the same turn of the event loop, so that settling and claiming share a
 * transaction.
 */
export class Worker implements AsyncDisposable {
  readonly name: string;
  /** Resolves when the worker has ended: stopped, or done with its `maxTasks`. Never rejects. */
  readonly finished: Promise<Stopped>;
  readonly #context: WorkerContext;
  readonly #settings: WorkerSettings;
  readonly #log: Logger;
  readonly #definitions: ReadonlyMap<string, AnyTask>;
  readonly #configuration: Configuration;
  readonly #takes: Takes;
  /** The ids of `only` that have not ended yet. */
  readonly #only: Set<number> | undefined;
  readonly #wakeup: Wakeup;
  readonly #asking: Asking;
  readonly #announcer: Announcer;
  readonly #settler: Settler;
  readonly #membership: Membership;
  readonly #pulse: Pulse;
  readonly #pause: ClaimPause;
  readonly #pipeline: Pipeline;
  readonly #claimer: Claimer;
  readonly #recoveries: Recoveries;
  readonly #chores: Chores;
  readonly #suspects: Suspects;
  readonly #recall: Recall;
  #stopListening: (() => void) | undefined;
  /** Stops listening for sources that outcomes of this process restrict. */
  readonly #stopObeying: () => void;
  /** Other work in the background that a stop and a drain wait for. */
  readonly #background = new Set<Promise<unknown>>();
  /** Called when nothing runs and no write is pending. */
  #onQuiet: (() => void) | undefined;
  #started = false;
  #looping = false;
  /** When it was last given a task, or began to work. */
  #gaveAt = Number.NEGATIVE_INFINITY;
  #loop: Promise<void> | undefined;
  readonly #waiters: Waiter[] = [];
  #countdown: Countdown | undefined;
  #stopping: Promise<Stopped> | undefined;
  #finish: (stopped: Stopped) => void = () => {};

  /** Made by `holdfast.work()` and `holdfast.worker()`. */
  constructor(context: WorkerContext, options: WorkerOptions = {}) {
    const { store, world, tasks, defaultName } = context;
    this.#context = context;
    this.#configuration = context.configuration ?? UNCONFIGURED;
    this.#settings = parseWorkerOptions(options, this.#configuration.worker);
    this.name = this.#settings.name ?? defaultName;
    this.#log = harmless(context.log ?? silent);
    this.#definitions = new Map(tasks.map((task) => [task.type, task]));
    this.#takes = this.#takesOf(this.#settings.takes);
    this.#only = this.#settings.only && new Set(this.#settings.only);
    this.#wakeup = new Wakeup(world.clock);
    this.#asking = new Asking(store.tasks, {
      onNoAnswer: () =>
        this.#log.warn({ worker: this.name }, 'The store has not answered for 5 s; the worker goes on trying'),
      onAnswer: (after) =>
        this.#log.info({ worker: this.name, noAnswerForMs: Math.round(after) }, 'The store answers again'),
    });
    this.#announcer = new Announcer(this.name, this.#log, (event) => {
      if (event.kind === 'settled') context.onSettled?.(event.task.lease.task);
      if (context.telemetry) tellTelemetry(context.telemetry, event, this.name);
      return this.#settings.onEvent?.(event);
    });
    const { knownSources = new KnownSources(world.clock), mistakes = new Mistakes(context.log) } = context;
    this.#settler = new Settler({
      asking: this.#asking,
      world,
      log: this.#log,
      announcer: this.#announcer,
      sources: knownSources,
      retries: new KnownRetries(store, world.clock),
      isForOneTask: () => this.#only?.size === 1,
    });
    this.#stopObeying = knownSources.onRestricted((source) => this.#claimer.handBackOf(source, HELD));
    this.#membership = new Membership({
      asking: this.#asking,
      clock: world.clock,
      log: this.#log,
      name: this.name,
      leaseFor: this.#settings.leaseFor,
      // A worker with `only` takes no other tasks.
      takes: this.#settings.only ? { ...this.#takes, types: [] } : this.#takes,
      mayRunFor: () => this.#mayRunFor(),
      publishes: () => publications(tasks, this.#configuration),
      held: () => [...this.#pipeline.leased, ...this.#claimer.held, ...this.#pipeline.unbegun],
      claimingFor: () => this.#claimer.claimingFor,
      mayBeCutOff: !store.upkeep.isLocal,
      inBackground: (beat) => this.#inBackground(beat),
      isIdle: () => this.#isIdleForLong,
      onJoined: () => void this.#inBackground(warnOfOtherPolicies(store, this.#log, this.id)),
      afterBeat: ({ work = false, recovery = true, chores = true }) => {
        if (recovery) this.#recoveries.begin();
        this.#lookForChores(chores);
        if (work) this.#wakeup.call();
      },
    });
    const strays = new StrayRecorder({
      asking: this.#asking,
      clock: world.clock,
      log: this.#log,
      announcer: this.#announcer,
      worker: this.name,
      rule: this.#settings.unhandledRejections,
      classifier: () => this.#configuration.classifier,
    });
    const definitionOf = (type: string) => this.#definitionOf(type);
    const policyFor = (claimed: Claimed) => this.#policyFor(claimed);
    const isStopping = () => this.#stopping !== undefined;
    const inBackground = <T>(work: Promise<T>) => this.#inBackground(work);
    this.#pause = new ClaimPause({
      clock: world.clock,
      announcer: this.#announcer,
      report: (trouble) => {
        if (trouble) this.#claimer.handBackAll(PAUSED);
        void this.#inBackground(this.#membership.reportTrouble(trouble));
      },
    });
    this.#suspects = context.suspects ?? new Suspects(world.clock);
    this.#pulse = new Pulse(world.clock);
    this.#pulse.listen({
      isNeeded: () => this.#pipeline.isRunning || this.#recoveries.hasNeighbours,
      onPulse: (freeze) => {
        this.#recoveries.lookAtNeighbours();
        if (freeze) for (const execution of this.#pipeline.all) execution.discount(freeze);
      },
    });
    const { ownHandlers = new OwnHandlers() } = context;
    this.#pipeline = new Pipeline({
      onResultLost: ({ lease, type }, why) =>
        mistakes.tell(`result ${type}`, `Task #${lease.task} of the type '${type}' succeeded. ${why}`),
      clock: world.clock,
      settler: this.#settler,
      announcer: this.#announcer,
      suspects: this.#suspects,
      pause: this.#pause,
      pulse: this.#pulse,
      ownHandlers,
      sizeLimit: context.sizeLimit,
      host: {
        log: this.#log,
        outcomeOf: outcomeBy(this.#configuration, mistakes),
        grace: this.#settings.grace,
        telemetry: context.telemetry,
        batches: new Batches(world.clock, () => this.#claimer.freeSlots > 0),
        save: (lease, saved) => this.#asking.ask((tasks) => tasks.save(lease, saved)),
        groupOf: (task) => store.records.groupOf(task),
        onStray: (owner, thrown) => void this.#inBackground(strays.record(owner, thrown)),
      },
      definitionOf,
      policyFor,
      isStopping,
      onStart: () => this.#membership.keep(),
      onRan: (claimed, time) => this.#claimer.measure(claimed, time),
      onRoom: () => this.#fillSlots(),
      onOver: () => this.#wakeup.call(),
      onLeft: (claimed, ended, heldSlot) => this.#left(claimed, ended, heldSlot),
      inBackground,
    });
    this.#claimer = new Claimer({
      clock: world.clock,
      asking: this.#asking,
      membership: this.#membership,
      pipeline: this.#pipeline,
      suspects: this.#suspects,
      settings: this.#settings,
      takes: this.#takes,
      only: this.#only,
      notIdempotent: tasks.filter(({ idempotent }) => idempotent === false).map(({ type }) => type),
      definitionOf,
      policyFor,
      isStopping,
      ownHandlers,
      knownSources,
      onExpired: (expired) => this.#recoveries.endExpired(expired),
      onRefreshed: () => this.#wakeup.call(),
      isLocal: store.upkeep.isLocal,
      inBackground,
    });
    this.#recoveries = new Recoveries({
      clock: world.clock,
      log: this.#log,
      worker: this.name,
      id: () => this.#membership.id,
      asking: this.#asking,
      settler: this.#settler,
      definitions: this.#definitions,
      configuration: this.#configuration,
      suspects: this.#suspects,
      pulse: this.#pulse,
      isStopping,
      isLooping: () => this.#looping,
      inBackground,
    });
    this.#recall = new Recall({
      clock: world.clock,
      ask: (waiting) => {
        const { id } = this.#membership;
        return id === undefined ? undefined : this.#asking.ask((tasks) => tasks.recalls(id, waiting));
      },
      running: () => this.#pipeline.leased,
      waiting: () => this.#claimer.held,
      handBack: (held) => this.#claimer.handBack(held, HELD),
    });
    this.#chores = new Chores({
      store,
      clock: world.clock,
      log: this.#log,
      announcer: this.#announcer,
      worker: this.name,
      retention: () => parseRetention(options.retention ?? this.#configuration.worker.retention),
      onRemoved: (tasks) => this.#tellRemoved(tasks),
      redrives: new RedriveDriver({
        store: store.redrives,
        onEnd: (end) => this.#announcer.log({ kind: 'redrive_ended', ...end }),
      }),
      schedules: new ScheduleTicker({
        store: store.schedules,
        clock: world.clock,
        now: () => store.upkeep.now(),
        telemetry: context.telemetry,
        keyOf: async (task) => (await store.records.find(task))?.key,
        onTurn: (turned) => this.#announcer.log({ kind: 'schedule', ...turned }),
        onError: (schedule, error) =>
          this.#log.error({ err: error, worker: this.name, schedule }, 'A schedule could not enqueue; trying again'),
        onDue: () => this.#lookForChores(),
      }),
    });
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** How long a stop lets handlers finish by default. */
  get grace(): Milliseconds {
    return this.#settings.grace;
  }

  /** Starts the worker. It works until it is stopped or its `maxTasks` are done. */
  start(): this {
    this.#refuseEnded();
    refuseWorkerInChild();
    this.#started = true;
    this.#wake();
    return this;
  }

  /**
   * Works until no task that it may take is ready and none of its tasks is running. It does not wait for scheduled tasks, nor for
   * handlers that ignored their abort; but if such handlers hold all slots, it waits for one of them to end.
   * @throws StoreError if the store cannot be read. (A worker that was started tries again instead.)
   */
  async drain(): Promise<void> {
    this.#refuseEnded();
    const idle = new Promise<void>((resolve, reject) => this.#waiters.push({ resolve, reject }));
    this.#wake();
    await idle;
  }

  /**
   * Runs the next task, if one is ready, and returns how it ended. Undefined if none is ready, or its `maxTasks` are done.
   * @throws InvalidInputError if the worker was started, or already runs as many tasks as its concurrency allows.
   */
  async runOne(): Promise<Finished | undefined> {
    this.#refuseEnded();
    if (this.#started)
      throw new InvalidInputError('runOne is for a worker that was not started: this one takes tasks by itself.');
    const { asked, ending } = await this.#inBackground(this.#takeOne());
    if (asked === 0 && !this.#stopping && !this.#isSpent()) {
      const { concurrency } = this.#settings;
      throw new InvalidInputError(
        `The worker ${this.name} runs ${concurrency} tasks already, as many as its concurrency allows.`,
      );
    }
    const ended = await ending;
    if (ended && 'error' in ended) throw ended.error;
    return ended?.finished;
  }

  /**
   * Stops claiming, lets running handlers finish during the grace, aborts them shortly before its end, and hands back the
   * remaining tasks without a charge. A second call with a shorter grace shortens it. Resolves when all is settled and the
   * worker's row is removed, at most a second after the grace. Outcomes that are not written by then are listed in the result and
   * in the log. The process then continues to tell the store that the worker has ended, even after a `close()`. Other workers
   * take the tasks over after that, or when the process has ended.
   */
  async stop(options: { readonly grace?: DurationInput } = {}): Promise<Stopped> {
    refuseUnknown(options, ['grace'], 'stop');
    const grace = options.grace === undefined ? undefined : duration(options.grace, 'grace');
    if (grace !== undefined) this.#countdown?.shorten(grace);
    this.#stopping ??= this.#end(grace ?? this.#settings.grace);
    return this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** @internal The id of its row, if it has one now. */
  get id(): number | undefined {
    return this.#membership.id;
  }

  /** @internal For the testing kit: whether it waits only for its handlers, the clock and messages. */
  get resting(): boolean {
    if (this.#asking.underWay || this.#claimer.awaitsTurn || !this.#chores.resting) return false;
    return !this.#looping || this.#wakeup.asleep;
  }

  /** @internal How many handlers run whose executions are not settled. */
  get handlers(): number {
    return this.#pipeline.leased.filter(({ ended }) => !ended).length;
  }

  /** @internal If it was started, does its chores now, such as a redrive that was just started. */
  lookForChores(): void {
    if (this.#looping) this.#lookForChores();
  }

  /** @internal If it was started, looks for work now. */
  look(): void {
    if (this.#looping) this.#wakeup.call();
  }

  // ── The loop ──

  /** Starts the loop if it does not run, and makes it look for work. */
  #wake(): void {
    this.#wakeup.call();
    if (this.#looping) return;
    this.#looping = true;
    this.#gaveAt = this.#context.world.clock.monotonic();
    this.#loop = this.#work();
  }

  /** A started worker works until it is stopped or its `maxTasks` are done; any other one until it is idle. */
  async #work(): Promise<void> {
    this.#stopListening ??= this.#context.store.upkeep.onNews((news) => this.#hear(news));
    this.#membership.keep();
    let failed: { readonly error: unknown } | undefined;
    do {
      failed = await this.#rounds();
      // A call since the last round needs another round. A call from here on starts a new loop.
    } while (this.#wakeup.pending && !failed && !this.#isSpent() && !this.#stopping);
    this.#looping = false;
    if (this.#stopping) return;
    this.#restIfIdle();
    for (const { resolve, reject } of this.#waiters.splice(0)) failed ? reject(failed.error) : resolve();
    if (this.#started) void this.stop();
  }

  #hear(news: News): void {
    if (news === 'work' || news === 'any') this.#wakeup.call();
    if (news === 'recall' || news === 'any') this.#recall.hint();
    if (news === 'workers') this.#recoveries.begin();
    if (news === 'schedules') this.#lookForChores();
  }

  /** Stops listening, and clears the timers. */
  #listenNoMore(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
    this.#recall.rest();
    this.#recoveries.rest();
  }

  /** Repeats rounds until there is nothing to do, or the store cannot be reached and a caller waits for this error. */
  async #rounds(): Promise<{ readonly error: unknown } | undefined> {
    let pause = FIRST_PAUSE;
    let recovered = false;
    while (!this.#stopping) {
      try {
        if (!recovered) {
          await this.#joinAndRecover();
          this.#lookForChores();
        }
        recovered = true;
        if (await this.#round()) return undefined;
        pause = FIRST_PAUSE;
      } catch (error) {
        if (!this.#started || error instanceof ClosedError) return { error };
        this.#log.error({ err: error, worker: this.name }, 'The worker could not claim tasks; trying again');
        await this.#wakeup.sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
    }
    return undefined;
  }

  /** Claims tasks for the free slots, then sleeps until something may have changed. True if the worker is done. */
  async #round(): Promise<boolean> {
    const askedAt = this.#context.world.clock.monotonic();
    const { asked, given, nextDueIn } = await this.#claimer.claim(() => this.#pause.limit);
    if (given.length > 0) this.#noteWork(askedAt);
    for (const claimed of given) this.#pipeline.execute(claimed);
    this.#claimer.beginAhead();
    if (this.#isSpent() && this.#pipeline.unsettled === 0) return true;
    // More tasks are due than one claim makes ready.
    if (nextDueIn === 0) return false;
    // A worker with `only` does not wait for tasks that others lost.
    const awaitsTakeover = this.#recoveries.awaitsTakeover && !this.#only;
    if (given.length === 0 && this.#isIdle() && !awaitsTakeover && this.#suspects.allowed) {
      for (const { resolve } of this.#waiters.splice(0)) resolve();
      if (!this.#started) return true;
    }
    if (given.length === asked && asked > 0 && this.#claimer.freeSlots > 0) return false;
    const poll = this.#membership.needsNoPolls ? undefined : (this.#settings.pollInterval ?? POLL_INTERVAL);
    const waits = [poll, nextDueIn, this.#pause.waitsFor || undefined].filter((wait) => wait !== undefined);
    await this.#wakeup.sleep(this.#claimer.freeSlots > 0 && waits.length > 0 ? Math.min(...waits) : undefined);
    return false;
  }

  #noteWork(askedAt: Milliseconds): void {
    this.#gaveAt = askedAt;
    this.#membership.noteClaim(askedAt);
  }

  /** Whether it is told of work where the store does that, and polls no more. One that was given an interval keeps to it. */
  get #isIdleForLong(): boolean {
    if (this.#settings.pollInterval !== undefined || !this.#started || !this.#looping || this.#only) return false;
    if (this.#pipeline.unsettled > 0 || this.#claimer.held.length > 0 || this.#pause.waitsFor > 0) return false;
    return !this.#recoveries.awaitsTakeover && this.#context.world.clock.monotonic() - this.#gaveAt >= IDLE_AFTER;
  }

  #isIdle(): boolean {
    return this.#isQuiet && !this.#wakeup.pending && this.#pause.waitsFor === 0;
  }

  get #isQuiet(): boolean {
    return this.#pipeline.unsettled === 0 && this.#background.size === 0;
  }

  #isSpent(): boolean {
    return this.#pipeline.begun >= this.#settings.maxTasks;
  }

  async #takeOne(): Promise<{ readonly asked: number; readonly ending?: Promise<Ended> }> {
    await this.#joinAndRecover();
    const { asked, given } = await this.#claimer.claim(() => 1);
    const [claimed] = given;
    if (!claimed) return { asked };
    const ending = new Promise<Ended>((resolve) => this.#pipeline.execute(claimed, resolve));
    return { asked, ending };
  }

  async #joinAndRecover(): Promise<void> {
    await this.#membership.join();
    await this.#recoveries.run();
  }

  /** A slot may be free: fills it with a task claimed ahead, or makes a claim. */
  #fillSlots(): void {
    this.#claimer.beginAhead();
    if (!this.#wakeup.pending && this.#claimer.hasRoom) this.#wakeup.call();
  }

  /** An execution is settled, or this process will not settle it. */
  #left({ lease }: Claimed, ended: Ended, heldSlot: boolean): void {
    if ('finished' in ended && ended.finished.kind === 'settled' && !isWaiting(ended.finished.state)) {
      this.#only?.delete(lease.task);
    }
    if (this.#pipeline.unsettled > 0 && !heldSlot) return;
    this.#wakeup.call();
    this.#restIfIdle();
    if (this.#isQuiet) this.#onQuiet?.();
  }

  /** How long a handler may go on while the worker cannot renew, for example because it blocks the event loop. */
  #mayRunFor(): Milliseconds | 'none' {
    const timeout = longestTimeout(this.#context.tasks, this.#configuration);
    return timeout === 'none' ? timeout : timeout + this.#settings.grace;
  }

  /** A worker with `only` leaves the chores to others. */
  #lookForChores(areNeeded?: boolean): void {
    if (!this.#only && !this.#stopping) this.#chores.look(areNeeded);
  }

  #tellRemoved(tasks: readonly PrunedTask[]): void {
    const report = (error: unknown) => this.#log.error({ err: error, worker: this.name }, 'onRemoved threw');
    try {
      // It may be asynchronous, even if its type does not say so.
      const answer: unknown = this.#settings.onRemoved(tasks);
      if (answer instanceof Promise) answer.catch(report);
    } catch (error) {
      report(error);
    }
  }

  /** A worker that was not started, and has no tasks, does not keep its process alive. */
  #restIfIdle(): void {
    if (this.#looping || this.#pipeline.unsettled > 0) return;
    this.#membership.rest();
    this.#listenNoMore();
    this.#pipeline.rest();
    this.#claimer.rest();
    void this.#chores.rest();
  }

  #inBackground<T>(work: Promise<T>): Promise<T> {
    this.#background.add(work);
    const forget = () => {
      this.#background.delete(work);
      if (this.#waiters.length > 0) this.#wakeup.call();
      if (this.#isQuiet) this.#onQuiet?.();
    };
    work.then(forget, forget);
    return work;
  }

  // ── The end ──

  async #end(grace: Milliseconds): Promise<Stopped> {
    const countdown = new Countdown(this.#context.world.clock, grace);
    this.#countdown = countdown;
    this.#wakeup.call();
    void this.#inBackground(this.#sayStopping());
    this.#claimer.handBackAll(SHUT_DOWN);
    await Promise.race([this.#allQuiet(), countdown.warned]);
    for (const execution of this.#pipeline.leased) execution.abort('shutdown');
    await Promise.race([this.#allQuiet(), countdown.over]);
    for (const execution of this.#pipeline.leased) execution.abandon();
    this.#settler.giveUp();
    await Promise.race([this.#signOff(), countdown.final]);
    countdown.cancel();
    this.#restAll();
    this.#stopObeying();
    this.#pipeline.stop();
    this.#membership.leaveLater();
    const unwritten = this.#pipeline.unsaved.map(unwrittenOf);
    for (const execution of unwritten) this.#sayUnwritten(execution);
    for (const { resolve } of this.#waiters.splice(0)) resolve();
    this.#context.onEnd?.(this);
    this.#finish({ unwritten });
    return { unwritten };
  }

  /** If the store does not answer, this continues after the worker has ended. */
  async #signOff(): Promise<void> {
    await this.#allQuiet();
    this.#restAll();
    await this.#chores.rest();
    await this.#membership.leave();
  }

  /** Clears the timers. */
  #restAll(): void {
    this.#membership.rest();
    this.#pulse.rest();
    this.#listenNoMore();
    this.#pipeline.rest();
    this.#claimer.rest();
  }

  #sayUnwritten(execution: Unwritten): void {
    this.#announcer.log({ kind: 'unwritten', execution });
  }

  /** If the process is killed from here on, the kill is at fault for lost tasks, not the tasks. */
  async #sayStopping(): Promise<void> {
    const worker = this.#membership.id;
    if (worker === undefined || this.#pipeline.unsettled === 0) return;
    try {
      await this.#asking.ask((tasks) => tasks.stopping(worker));
    } catch (error) {
      this.#log.warn({ err: error, worker: this.name }, 'The store could not record that the worker is stopping');
    }
  }

  /** Resolves when nothing runs and no write is pending. */
  async #allQuiet(): Promise<void> {
    await this.#loop;
    await this.#claimer.settled();
    while (!this.#isQuiet) {
      await new Promise<void>((resolve) => {
        this.#onQuiet = resolve;
      });
    }
  }

  #refuseEnded(): void {
    if (this.#stopping) throw new ClosedError(`The worker ${this.name}`);
  }

  #policyFor(claimed: Claimed): Policy {
    return policyFor(claimed, this.#definitionOf(claimed.type), this.#configuration);
  }

  #definitionOf(type: string): AnyTask | undefined {
    return this.#definitions.get(type) ?? this.#definitions.get('*');
  }

  /** Without a list of types it takes the types that it has a definition of, or any if it has a definition for `'*'`. */
  #takesOf(takes: Takes): Takes {
    const { types } = takes;
    const missing = types?.find((type) => !this.#definitionOf(type));
    if (missing !== undefined) {
      throw new InvalidInputError(
        `The worker has no definition of the type '${missing}'. Pass it in \`tasks\`.`,
        'unknown_type',
      );
    }
    return types || this.#definitions.has('*') ? takes : { ...takes, types: [...this.#definitions.keys()] };
  }
}
