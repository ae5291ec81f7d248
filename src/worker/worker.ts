import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { ClosedError, InvalidInputError } from '../errors.ts';
import { type Outcome, saysSomething } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { harmless, type Logger, silent } from '../log.ts';
import { refuseUnknown } from '../options.ts';
import type { Claimed, News, PrunedTask, Recovered, Store, Takes, World } from '../store/store.ts';
import { isWaiting } from '../task.ts';
import type { Finished } from '../telemetry/events.ts';
import { Ahead } from './ahead.ts';
import { Announcer } from './announcer.ts';
import { Asking } from './asking.ts';
import { Chores } from './chores.ts';
import { ClaimPause } from './claim-pause.ts';
import { cleanUp } from './clean-up.ts';
import { type Configuration, outcomeBy, UNCONFIGURED } from './configuration.ts';
import { Countdown } from './countdown.ts';
import type { AnyTask } from './define-task.ts';
import { Execution, type Host } from './execution.ts';
import { Executions } from './executions.ts';
import { Foresight } from './foresight.ts';
import { Membership } from './membership.ts';
import { Neighbours } from './neighbours.ts';
import { longestTimeout, policyFor, publications } from './policy-for.ts';
import { Pulse } from './pulse.ts';
import { Recall } from './recall.ts';
import { recover, settleRecovered } from './recovery.ts';
import { endingOf } from './result.ts';
import { parseRetention } from './retention-options.ts';
import { claimedUnder, storeIdempotence } from './second-run.ts';
import { FIRST_PAUSE, LONGEST_PAUSE, Settler } from './settler.ts';
import { type Stopped, type Unwritten, unwrittenOf } from './stopped.ts';
import { StrayRecorder } from './stray-recorder.ts';
import { listenForStrays, stopListeningForStrays } from './strays.ts';
import { AWAITS_EMPTY, Suspects } from './suspects.ts';
import { Takeover } from './takeover.ts';
import { TimeLimits } from './time-limits.ts';
import { Wakeup } from './wakeup.ts';
import { parseWorkerOptions, type WorkerOptions, type WorkerSettings } from './worker-options.ts';

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
  /** Called when the worker has ended for good. */
  readonly onEnd?: (worker: Worker) => void;
  /** The tasks that still run, without a lease, in any worker of this process. Default: in this one. */
  readonly astray?: () => readonly number[];
  /** Which suspects this process may run. Default: as if this worker were its only one. */
  readonly suspects?: Suspects;
}

/** What a claim came to. */
interface Claims {
  /** How many slots it was made for. */
  readonly asked: number;
  /** What it was given for them. */
  readonly given: readonly Claimed[];
  readonly nextDueIn?: Milliseconds;
}

/** Who waits to be told of something. */
interface Waiter<T = void> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

const SHUT_DOWN = 'Its worker shut down before it began.';

const NOBODY: Waiter<Finished> = { resolve() {}, reject() {} };

/**
 * Claims tasks, runs their handlers, and settles what they end with. One loop claims up to the free slots and sleeps; every
 * execution settles on its own and wakes the loop in the same turn, so that settling and claiming share a transaction.
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
  /** The types whose definitions say that they must not run twice, whatever their input. */
  readonly #notIdempotent: readonly string[];
  /** Of the tasks that it is there for, those that have not ended under its eyes. */
  readonly #only: Set<number> | undefined;
  readonly #wakeup: Wakeup;
  readonly #asking: Asking;
  readonly #announcer: Announcer;
  readonly #settler: Settler;
  readonly #membership: Membership;
  readonly #pulse: Pulse;
  readonly #pause: ClaimPause;
  readonly #limits: TimeLimits;
  readonly #foresight: Foresight;
  readonly #ahead: Ahead;
  readonly #chores: Chores;
  readonly #takeover: Takeover;
  readonly #suspects: Suspects;
  readonly #recall: Recall;
  readonly #neighbours = new Neighbours();
  #stopListening: (() => void) | undefined;
  readonly #executions = new Executions();
  /** Who hears what comes of an execution. */
  readonly #told = new WeakMap<Execution, Waiter<Finished>>();
  readonly #host: Host;
  /** Those that ended and could not be written at once: they keep their slots, so that no more is begun than can be written. */
  readonly #stuck = new Set<Execution>();
  /** Claims that are given back, until that is written. */
  readonly #handingBack = new Set<Claimed>();
  /** What else is under way that a stop and a drain wait for. */
  readonly #background = new Set<Promise<unknown>>();
  /** Called when nothing runs and nothing is on its way to the store. */
  #onQuiet: (() => void) | undefined;
  #claiming: Promise<unknown> = Promise.resolve();
  #recovering: Promise<void> | undefined;
  #begun = 0;
  #started = false;
  #looping = false;
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
    this.#notIdempotent = tasks.filter(({ idempotent }) => idempotent === false).map(({ type }) => type);
    this.#only = this.#settings.only && new Set(this.#settings.only);
    this.#wakeup = new Wakeup(world.clock);
    this.#asking = new Asking(store.tasks);
    this.#announcer = new Announcer(this.name, this.#log, this.#settings.onEvent);
    this.#settler = new Settler({ asking: this.#asking, world, log: this.#log, announcer: this.#announcer });
    this.#membership = new Membership({
      asking: this.#asking,
      clock: world.clock,
      log: this.#log,
      name: this.name,
      leaseFor: this.#settings.leaseFor,
      // A worker that is there for certain tasks takes nothing of its own accord.
      takes: this.#settings.only ? { ...this.#takes, types: [] } : this.#takes,
      mayRunFor: () => this.#mayRunFor(),
      publishes: () => publications(tasks, this.#configuration),
      held: () => [...this.#leased(), ...this.#ahead.held],
      mayBeCutOff: !store.upkeep.isLocal,
      inBackground: (beat) => this.#inBackground(beat),
      afterBeat: () => {
        this.#recoverUnasked();
        this.#lookForChores();
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
    this.#host = {
      clock: world.clock,
      log: this.#log,
      outcomeOf: outcomeBy(this.#configuration),
      grace: this.#settings.grace,
      saveCheckpoint: (lease, text) => this.#asking.ask((tasks) => tasks.saveCheckpoint(lease, text)),
      onJudged: (execution, outcome, returned) => this.#settle(execution, outcome, returned),
      onStray: (owner, thrown) => void this.#inBackground(strays.record(owner, thrown)),
      onOver: (execution) => {
        this.#executions.end(execution);
        this.#suspects.end(execution.claimed, false);
        this.#wakeup.call();
      },
    };
    this.#pause = new ClaimPause({
      clock: world.clock,
      announcer: this.#announcer,
      report: (trouble) => {
        if (trouble) this.#ahead.handBackAll('Its worker claims no tasks at present.');
        void this.#inBackground(this.#membership.reportTrouble(trouble));
      },
    });
    this.#suspects = context.suspects ?? new Suspects(world.clock);
    this.#pulse = new Pulse(world.clock);
    this.#pulse.listen({
      isNeeded: () => this.#executions.running > 0 || this.#neighbours.any,
      onPulse: (freeze) => {
        if (this.#neighbours.hasLost()) this.#recoverUnasked();
        if (freeze) for (const execution of this.#executions.all) execution.discount(freeze);
      },
    });
    this.#limits = new TimeLimits({
      clock: world.clock,
      running: () => this.#executions.all,
      onTimer: (dueAt) => this.#pulse.noticeLate(dueAt),
    });
    this.#takeover = new Takeover(world.clock, () => this.#recoverUnasked());
    this.#foresight = new Foresight(this.#settings.concurrency, (type) => this.#mayClaimAhead(type));
    this.#ahead = new Ahead({
      clock: world.clock,
      handBack: (claimed, why) => this.#handBack(claimed, why),
      onStuck: () => this.#foresight.doubt(),
    });
    this.#recall = new Recall({
      clock: world.clock,
      ask: (waiting) => {
        const { id } = this.#membership;
        return id === undefined ? undefined : this.#asking.ask((tasks) => tasks.recalls(id, waiting));
      },
      running: () => this.#leased(),
      waiting: () => this.#ahead.held,
      handBack: (held) => this.#ahead.handBack(held, 'Its source was held, or its queue paused, before it began.'),
    });
    this.#chores = new Chores({
      upkeep: store.upkeep,
      clock: world.clock,
      log: this.#log,
      announcer: this.#announcer,
      worker: this.name,
      retention: () => parseRetention(options.retention ?? this.#configuration.worker.retention),
      onRemoved: (tasks) => this.#tellRemoved(tasks),
    });
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** The tasks whose earlier execution still runs here without its lease. */
  get astray(): readonly number[] {
    return this.#executions.all
      .filter(({ ended, isAstray }) => !ended && isAstray)
      .map(({ claimed }) => claimed.lease.task);
  }

  /** How long a stop lets handlers finish, unless it is told otherwise. */
  get grace(): Milliseconds {
    return this.#settings.grace;
  }

  /** Begins to work, until it is stopped or its `maxTasks` are done. */
  start(): this {
    this.#refuseEnded();
    this.#started = true;
    this.#wake();
    return this;
  }

  /**
   * Works until nothing that it may take is ready and nothing of it is running. Tasks that wait for their time are left,
   * and so are handlers that ignored their abort; while such handlers hold every slot, it waits for one of them to end.
   * @throws StoreError if the store cannot be read; a worker that was started goes on instead.
   */
  async drain(): Promise<void> {
    this.#refuseEnded();
    const idle = new Promise<void>((resolve, reject) => this.#waiters.push({ resolve, reject }));
    this.#wake();
    await idle;
  }

  /**
   * Runs the next task, if one is ready, and answers what came of it. Undefined where none is, or its `maxTasks` are done.
   * @throws InvalidInputError if the worker was started, or runs as many as its concurrency allows.
   */
  async runOne(): Promise<Finished | undefined> {
    this.#refuseEnded();
    if (this.#started)
      throw new InvalidInputError('runOne is for a worker that was not started: this one takes tasks by itself.');
    const { asked, finished } = await this.#inBackground(this.#takeOne());
    if (asked === 0 && !this.#stopping && !this.#isSpent()) {
      const { concurrency } = this.#settings;
      throw new InvalidInputError(
        `The worker ${this.name} runs ${concurrency} tasks already, as many as its concurrency allows.`,
      );
    }
    return finished;
  }

  /**
   * Claims no more, lets what runs finish for the grace, aborts it shortly before the end, and hands back what is left,
   * uncharged. A second call with a shorter grace hurries. Resolves when all is settled and the worker's row is gone, and at most
   * a second after the grace: what the store has not taken by then is named in the answer and in the log. The process then goes on to tell the store
   * that the worker has ended, also after a `close()`; others take the tasks over from then on, or when the process has ended.
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

  /** @internal For the testing kit: whether it waits for nothing but its handlers, the clock and news. */
  get resting(): boolean {
    return !this.#asking.underWay && this.#chores.resting && (!this.#looping || this.#wakeup.asleep);
  }

  /** @internal How many handlers run whose executions are not settled. */
  get handlers(): number {
    return this.#leased().filter(({ ended }) => !ended).length;
  }

  /** @internal Looks for work that nothing told it of, if it works by itself. */
  look(): void {
    if (this.#looping) this.#wakeup.call();
  }

  // ── The loop ──

  /** Sees to it that the one loop runs, and that it looks again. */
  #wake(): void {
    this.#wakeup.call();
    if (this.#looping) return;
    this.#looping = true;
    this.#loop = this.#work();
  }

  /** A worker that was started goes on until it is told to stop or its `maxTasks` are done; any other until it is idle. */
  async #work(): Promise<void> {
    this.#stopListening ??= this.#context.store.upkeep.onNews((news) => this.#hear(news));
    this.#membership.keep();
    let failed: { readonly error: unknown } | undefined;
    do {
      failed = await this.#rounds();
      // Whoever called since the last round wants another one; whoever calls from here on starts a new loop.
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
    if (news === 'workers') this.#recoverUnasked();
  }

  /** Listens no more, and leaves no timer for what it would hear of. */
  #listenNoMore(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
    this.#recall.rest();
    this.#neighbours.set([]);
    this.#takeover.expectIn(undefined);
  }

  /** Rounds until there is no more to do, or the store cannot be asked and somebody waits to hear of that. */
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
        this.#log.error({ err: error, worker: this.name }, 'The store could not be asked for work; trying again');
        await this.#wakeup.sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
    }
    return undefined;
  }

  /** Claims what fits, then sleeps until something may have changed. True when there is nothing left to do for good. */
  async #round(): Promise<boolean> {
    const { concurrency, pollInterval } = this.#settings;
    const { asked, given, nextDueIn } = await this.#claim(Math.min(concurrency, this.#pause.limit));
    for (const claimed of given) this.#begin(claimed);
    this.#beginAhead();
    if (this.#isSpent() && this.#executions.unsettled === 0) return true;
    // More fell due than one claim makes ready.
    if (nextDueIn === 0) return false;
    // One that is there for certain tasks does not wait for what others lost.
    const awaitsTakeover = this.#takeover.awaited && !this.#only;
    if (given.length === 0 && this.#isIdle() && !awaitsTakeover && this.#suspects.allowed) {
      for (const { resolve } of this.#waiters.splice(0)) resolve();
      if (!this.#started) return true;
    }
    if (given.length === asked && asked > 0 && this.#freeSlots() > 0) return false;
    const poll = Math.min(pollInterval, nextDueIn ?? Number.POSITIVE_INFINITY, this.#pause.waitsFor || pollInterval);
    await this.#wakeup.sleep(this.#freeSlots() > 0 ? poll : undefined);
    return false;
  }

  #isIdle(): boolean {
    return this.#isQuiet && !this.#wakeup.pending && this.#pause.waitsFor === 0;
  }

  get #isQuiet(): boolean {
    return this.#executions.unsettled === 0 && this.#background.size === 0;
  }

  #freeSlots(): number {
    const { concurrency, maxTasks } = this.#settings;
    let stuck = 0;
    for (const { ended } of this.#stuck) if (ended) stuck += 1;
    return Math.max(0, Math.min(concurrency - this.#executions.running - stuck, maxTasks - this.#begun));
  }

  #isSpent(): boolean {
    return this.#begun >= this.#settings.maxTasks;
  }

  async #takeOne(): Promise<{ readonly asked: number; readonly finished?: Promise<Finished> }> {
    await this.#joinAndRecover();
    const { asked, given } = await this.#claim(1);
    const [claimed] = given;
    if (!claimed) return { asked };
    const finished = new Promise<Finished>((resolve, reject) => this.#begin(claimed, { resolve, reject }));
    return { asked, finished };
  }

  /** Whether a type's tasks may wait here with a lease: each of them must be one that may run twice, for the worker may die. */
  #mayClaimAhead(type: string): boolean {
    const { idempotent = true } = this.#definitionOf(type) ?? {};
    return idempotent === true;
  }

  /** How many to claim before there is room for them, if any; only where the worker takes what comes, without end. */
  #foreseen(most: number): { readonly limit: number; readonly types: readonly string[] } | undefined {
    const { claimAhead, maxTasks, concurrency } = this.#settings;
    if (!claimAhead || this.#only || this.#stopping || maxTasks !== Number.POSITIVE_INFINITY || most < concurrency) {
      return undefined;
    }
    const request = this.#foresight.request(this.#ahead.size);
    // What waits behind a long one would wait long.
    const slow =
      request && this.#executions.all.some(({ ended, claimed }) => !ended && !request.types.includes(claimed.type));
    return slow ? undefined : request;
  }

  /** Whether there is anything to claim for. */
  get #hasRoom(): boolean {
    return this.#freeSlots() > 0 || this.#foreseen(this.#settings.concurrency) !== undefined;
  }

  async #joinAndRecover(): Promise<void> {
    await this.#membership.join();
    await this.#recover();
  }

  /** One claim at a time: two at once would fill the same slots, and each bring a suspect. */
  #claim(most: number): Promise<Claims> {
    const claim = this.#claiming.then(() => this.#claimNow(most));
    this.#claiming = claim.catch(() => {});
    return claim;
  }

  async #claimNow(most: number): Promise<Claims> {
    for (;;) {
      const asked = this.#stopping ? 0 : Math.min(most, this.#freeSlots());
      const ahead = this.#foreseen(most);
      const allowed = this.#suspects.allowed;
      if ((asked === 0 && !ahead) || !allowed) return { asked, given: [] };
      const worker = await this.#membership.join();
      // What was claimed ahead begins first. A claim without a free slot is given no such task, and claims nothing ahead behind one.
      const alone = allowed.alone && (asked === 0 || this.#ahead.size === 0);
      if (alone && asked > 0) this.#suspects.noteAsked();
      const {
        known,
        tasks: taken,
        nextDueIn,
        expired,
      } = await this.#asking.ask((store) =>
        store.claim({
          ...this.#takes,
          ...(this.#only && { only: [...this.#only] }),
          ...(ahead && { ahead }),
          worker,
          limit: asked,
          suspects: allowed.suspects,
          alone,
          ...(this.#notIdempotent.length > 0 && { notIdempotent: this.#notIdempotent }),
          except: this.#context.astray?.() ?? this.astray,
        }),
      );
      if (!known) this.#membership.forget(worker);
      if (expired.length > 0) this.#endExpired(expired);
      if (!known) continue;
      const tasks = taken.some(({ idempotenceUnsaid }) => idempotenceUnsaid) ? await this.#seen(taken) : taken;
      const [apart] = tasks;
      if (apart && !this.#suspects.mayBegin(apart, this.#policyFor(apart))) {
        this.#handBack(apart, AWAITS_EMPTY.message);
        return { asked, given: [] };
      }
      const beyond = tasks.slice(asked);
      if (this.#stopping) for (const claimed of beyond) this.#handBack(claimed, SHUT_DOWN);
      else this.#ahead.add(beyond);
      return { asked, given: tasks.slice(0, asked), ...(nextDueIn !== undefined && { nextDueIn }) };
    }
  }

  /** What was claimed, as its definitions see it; what only they say is stored before anything begins. */
  async #seen(taken: readonly Claimed[]): Promise<readonly Claimed[]> {
    const tasks = taken.map((claimed) => claimedUnder(this.#definitionOf(claimed.type), claimed));
    try {
      await storeIdempotence(this.#asking, tasks);
      return tasks;
    } catch (error) {
      for (const claimed of tasks) this.#handBack(claimed, 'It could not be stored that it must not run twice.');
      throw error;
    }
  }

  /** Those whose lease is this worker's, until what they ended with is written. */
  #leased(): readonly Execution[] {
    return this.#executions.all.filter(({ left }) => !left);
  }

  // ── One execution ──

  /** Runs the handler of what was claimed, unless there is no sense in that any more. `told` hears what comes of it. */
  #begin(claimed: Claimed, told = NOBODY): void {
    const definition = this.#definitionOf(claimed.type);
    // A task that runs here was claimed before.
    const earlier = claimed.lease.execution > 1 ? this.#executions.find(claimed.lease.task) : undefined;
    if (this.#stopping || earlier) {
      // The store gives nobody what is leased, so the lease of the earlier execution was lost; its handler has not heard yet.
      earlier?.abort('lost');
      const stillRuns = 'Its handler still runs here, in an execution whose lease was lost.';
      this.#handBack(claimed, earlier ? stillRuns : SHUT_DOWN, told);
      return;
    }
    const policy = this.#policyFor(claimed);
    this.#begun += 1;
    this.#membership.keep();
    this.#pulse.begin();
    listenForStrays(this);
    this.#announcer.tell({ kind: 'started', task: claimed, policy });
    const execution = new Execution(claimed, definition as AnyTask, policy, this.#host);
    if (told !== NOBODY) this.#told.set(execution, told);
    this.#executions.add(execution);
    this.#pause.begun(execution);
    this.#suspects.begin(claimed);
    this.#limits.watch(execution);
    execution.start();
  }

  /** Fills the free slots with what was claimed ahead, unless its leases may have run out while this process was asleep. */
  #beginAhead(): void {
    if (this.#ahead.size > 0 && this.#membership.mayHaveLapsed) {
      void this.#inBackground(this.#membership.refresh()).then(() => this.#wakeup.call());
      return;
    }
    while (this.#ahead.size > 0 && this.#freeSlots() > 0) this.#begin(this.#ahead.take() as Claimed);
  }

  #handBack(claimed: Claimed, message: string, told = NOBODY): void {
    const outcome: Outcome = { kind: 'interruption', started: false, message };
    const policy = this.#policyFor(claimed);
    this.#handingBack.add(claimed);
    const handedBack = this.#settler
      .settle(claimed, policy, { outcome, ranFor: 0 })
      .finally(() => this.#handingBack.delete(claimed));
    // Whoever waits for it hears of a failure; where nobody does, the worker is at its end and the lease will be taken over.
    this.#inBackground(handedBack).then(told.resolve, told.reject);
  }

  #settle(execution: Execution, outcome: Outcome, returned: unknown): void {
    const { claimed, elapsed, frozenFor } = execution;
    // A failure is answered by the policy of this moment, which may have changed while it ran.
    const policy = outcome.kind === 'success' ? execution.policy : this.#policyFor(claimed);
    const told = this.#told.get(execution) ?? NOBODY;
    if (execution.ended) {
      this.#executions.end(execution);
      this.#suspects.end(claimed, saysSomething(outcome));
    }
    this.#measure(claimed.type, elapsed - frozenFor);
    this.#pause.ended(execution, outcome);
    const ended = endingOf(outcome, elapsed, returned, this.#context.sizeLimit);
    const ending = frozenFor > 0 ? { ...ended, frozenFor } : ended;
    this.#settler
      .settle(claimed, policy, ending, () => this.#stuck.add(execution))
      .then(
        (finished) => {
          if (finished.kind === 'settled' && !isWaiting(finished.state)) this.#only?.delete(claimed.lease.task);
          this.#leave(execution);
          told.resolve(finished);
        },
        (error: unknown) => {
          this.#leave(execution);
          told.reject(error);
        },
      );
    this.#beginAhead();
    // In the same turn as the settlement, so that the claim it leads to shares its transaction.
    if (this.#hasRoom) this.#wakeup.call();
  }

  /** What takes longer than it was thought to is not left to wait here. */
  #measure(type: string, elapsed: Milliseconds): void {
    this.#foresight.note(type, elapsed);
    if (this.#ahead.size === 0 || !this.#foresight.isLong(type) || !this.#ahead.holds(type)) return;
    this.#ahead.handBackAll('It was claimed ahead, and those before it take longer than they did.');
  }

  /** The execution is settled, or never will be from here. */
  #leave(execution: Execution): void {
    const held = this.#stuck.delete(execution);
    this.#executions.leave(execution);
    if (this.#executions.unsettled > 0 && !held) return;
    this.#wakeup.call();
    this.#restIfIdle();
    if (this.#isQuiet) this.#onQuiet?.();
  }

  // ── Recovery ──

  /** Decides about tasks that others lost, and about those whose deadline passed while they waited. */
  #recover(): Promise<void> {
    this.#recovering ??= this.#inBackground(this.#recoverAll()).finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  async #recoverAll(): Promise<void> {
    const worker = this.#membership.id;
    if (worker === undefined) return;
    const [asking, settler, definitions] = [this.#asking, this.#settler, this.#definitions];
    const [configuration, suspects] = [this.#configuration, this.#suspects];
    const isOver = () => this.#stopping !== undefined;
    const { nextIn, neighbours } = await recover(worker, {
      asking,
      settler,
      definitions,
      configuration,
      suspects,
      onEnded: this.#cleanUp,
      isOver,
    });
    if (isOver() || !this.#looping) return;
    this.#takeover.expectIn(nextIn);
    this.#neighbours.set(neighbours);
    if (this.#neighbours.any) this.#pulse.begin();
  }

  readonly #cleanUp = (definition: AnyTask, lost: Recovered): void => {
    void this.#inBackground(cleanUp(definition, lost, this.#log));
  };

  /** How long a handler may go on while the worker cannot renew, as when it blocks the event loop. */
  #mayRunFor(): Milliseconds | 'none' {
    const timeout = longestTimeout(this.#context.tasks, this.#configuration);
    return timeout === 'none' ? timeout : timeout + this.#settings.grace;
  }

  /** Nobody waits for it: what has not expired is worked meanwhile. */
  #endExpired(expired: readonly Recovered[]): void {
    const [settler, definitions, configuration] = [this.#settler, this.#definitions, this.#configuration];
    const options = { settler, definitions, configuration, suspects: this.#suspects, onEnded: this.#cleanUp };
    this.#inBackground(settleRecovered(expired, options)).catch((error: unknown) => {
      this.#log.error(
        { err: error, worker: this.name },
        'Tasks whose deadline has passed could not be ended; trying again',
      );
    });
  }

  /** At each beat. Nobody waits for it: it may take long, and must not put off the next renewal. */
  #recoverUnasked(): void {
    if (this.#stopping) return;
    this.#recover().catch((error: unknown) => {
      this.#log.error({ err: error, worker: this.name }, 'What others lost could not be recovered; trying again');
    });
  }

  /** One that is there for certain tasks leaves to others what is done for all. */
  #lookForChores(): void {
    if (!this.#only && !this.#stopping) this.#chores.look();
  }

  #tellRemoved(tasks: readonly PrunedTask[]): void {
    const report = (error: unknown) => this.#log.error({ err: error, worker: this.name }, 'onRemoved threw');
    try {
      // It may be asynchronous, whatever its type says.
      const answer: unknown = this.#settings.onRemoved(tasks);
      if (answer instanceof Promise) answer.catch(report);
    } catch (error) {
      report(error);
    }
  }

  /** A worker that nobody started, and that holds nothing, does not keep its process alive. */
  #restIfIdle(): void {
    if (this.#looping || this.#executions.unsettled > 0) return;
    this.#membership.rest();
    this.#listenNoMore();
    this.#limits.rest();
    this.#ahead.rest();
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
    this.#ahead.handBackAll(SHUT_DOWN);
    await Promise.race([this.#allQuiet(), countdown.warned]);
    for (const execution of this.#leased()) execution.abort('shutdown');
    await Promise.race([this.#allQuiet(), countdown.over]);
    for (const execution of this.#leased()) execution.abandon();
    this.#settler.giveUp();
    await Promise.race([this.#signOff(), countdown.final]);
    countdown.cancel();
    this.#restAll();
    stopListeningForStrays(this);
    this.#membership.leaveLater();
    const unwritten = [...this.#leased().map(({ claimed }) => claimed), ...this.#handingBack].map(unwrittenOf);
    for (const execution of unwritten) this.#sayUnwritten(execution);
    for (const { resolve } of this.#waiters.splice(0)) resolve();
    this.#context.onEnd?.(this);
    this.#finish({ unwritten });
    return { unwritten };
  }

  /** Where the store does not answer, this goes on after the worker has ended. */
  async #signOff(): Promise<void> {
    await this.#allQuiet();
    this.#restAll();
    await this.#chores.rest();
    await this.#membership.leave();
  }

  /** Leaves no timer. */
  #restAll(): void {
    this.#membership.rest();
    this.#pulse.rest();
    this.#listenNoMore();
    this.#limits.rest();
    this.#ahead.rest();
  }

  #sayUnwritten(execution: Unwritten): void {
    this.#announcer.log({ kind: 'unwritten', execution });
  }

  /** Whoever kills the process from here on is to blame for what is lost with it, not its tasks. */
  async #sayStopping(): Promise<void> {
    const worker = this.#membership.id;
    if (worker === undefined || this.#executions.unsettled === 0) return;
    try {
      await this.#asking.ask((tasks) => tasks.stopping(worker));
    } catch (error) {
      this.#log.warn({ err: error, worker: this.name }, 'The store could not be told that the worker is stopping');
    }
  }

  /** Resolves when nothing runs and nothing is on its way to the store. */
  async #allQuiet(): Promise<void> {
    await this.#loop;
    await this.#claiming;
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

  /** Without a list of types it takes those that it has a definition of, or with a catch-all any. */
  #takesOf(takes: Takes): Takes {
    const { types } = takes;
    const missing = types?.find((type) => !this.#definitionOf(type));
    if (missing !== undefined) {
      throw new InvalidInputError(`The worker has no definition of the type '${missing}'.`, 'unknown_type');
    }
    return types || this.#definitions.has('*') ? takes : { ...takes, types: [...this.#definitions.keys()] };
  }
}
