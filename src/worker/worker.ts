/// <reference lib="esnext.disposable" preserve="true" />
import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { ClosedError, InvalidInputError } from '../errors.ts';
import { aged } from '../failure/aged.ts';
import { describe } from '../failure/classify/describe.ts';
import { type Decision, decide } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { encodeJson } from '../json.ts';
import { harmless, type Logger, silent } from '../log.ts';
import { list, name, refuseUnknown, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import type { Claimed, Lease, Report, Settled, Settlement, Store, TaskStore, World } from '../store/store.ts';
import type { Needs, TaskState } from '../task.ts';
import { Countdown } from './countdown.ts';
import { type AnyTask, checkNeeds } from './define-task.ts';
import { Execution } from './execution.ts';
import { Heartbeat } from './heartbeat.ts';
import { policyFor, policyForRecovered, publication } from './policy-for.ts';
import { Wakeup } from './wakeup.ts';

export interface WorkerOptions {
  /** Shown to people. Default: host name and pid, given by the opener. */
  readonly name?: string;
  /** How many executions at a time. Default 10. */
  readonly concurrency?: number;
  /** Only tasks of these queues, types or categories. Default: all queues and categories, and the types that have a definition. */
  readonly queues?: readonly string[];
  readonly types?: readonly string[];
  readonly categories?: readonly string[];
  /** What it offers to tasks with needs. */
  readonly capabilities?: Needs;
  /** How long a silent worker keeps its tasks; it renews three times in that time. Default 30 s, at least 1 s. */
  readonly leaseFor?: DurationInput;
  /** How often it looks for work that nothing told it of. Default 1 s. */
  readonly pollInterval?: DurationInput;
  /** How long a handler has to end when its execution or the worker is stopped. Default 30 s. */
  readonly grace?: DurationInput;
  /** Starts this many executions, then finishes. Default: no end. */
  readonly maxTasks?: number;
  /** Only these tasks, by id. */
  readonly only?: readonly number[];
  /** Told of what happens, in order. What it throws is logged and goes no further. */
  readonly onEvent?: (event: WorkerEvent) => void;
}

export type WorkerEvent =
  | { readonly kind: 'started'; readonly task: Claimed; readonly policy: Policy }
  | {
      readonly kind: 'settled';
      readonly task: Claimed;
      readonly outcome: Outcome;
      readonly decision: Decision;
      readonly state: TaskState;
      readonly ranFor: Milliseconds;
    }
  /** The lease had ended: what was reported is kept as evidence, and changed nothing. */
  | { readonly kind: 'stale'; readonly task: Claimed; readonly outcome: Outcome };

/** What one execution came to. */
export type Finished = Extract<WorkerEvent, { kind: 'settled' | 'stale' }>;

const OPTIONS = [
  'name',
  'concurrency',
  'queues',
  'types',
  'categories',
  'capabilities',
  'leaseFor',
  'pollInterval',
  'grace',
  'maxTasks',
  'only',
  'onEvent',
];

const RENEWALS_PER_LEASE = 3;
const MOST_RECOVERED = 50;
/** A write of the worker's own that failed is tried again after 100 ms, doubling up to this. */
const LONGEST_PAUSE: Milliseconds = 5_000;

export interface WorkerContext {
  readonly store: Store;
  readonly world: World;
  readonly tasks: readonly AnyTask[];
  readonly defaultName: string;
  readonly sizeLimit: number;
  readonly log?: Logger;
  /** Called when the worker has ended for good. */
  readonly onEnd?: (worker: Worker) => void;
}

/** What a claim came to. */
interface Claims {
  /** How many slots it was made for. */
  readonly asked: number;
  /** What comes of each task that it was given. */
  readonly begun: readonly Promise<Finished>[];
  readonly nextDueIn?: Milliseconds;
  readonly expired: boolean;
}

/** Who waits for the worker to be idle. */
interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Claims tasks, runs their handlers, and settles what they end with. One loop claims up to the free slots and sleeps; every
 * execution settles on its own and wakes the loop in the same turn, so that settling and claiming share a transaction.
 */
export class Worker implements AsyncDisposable {
  readonly name: string;
  /** Resolves when the worker has ended: stopped, or done with its `maxTasks`. Never rejects. */
  readonly finished: Promise<void>;
  readonly #context: WorkerContext;
  readonly #log: Logger;
  readonly #options: WorkerOptions;
  readonly #definitions: ReadonlyMap<string, AnyTask>;
  readonly #types: readonly string[] | undefined;
  readonly #concurrency: number;
  readonly #leaseFor: Milliseconds;
  readonly #pollInterval: Milliseconds;
  readonly #grace: Milliseconds;
  readonly #wakeup: Wakeup;
  readonly #heartbeat: Heartbeat;
  /** Those whose handler has not ended, by task: they keep their slots, and their tasks do not start beside them. */
  readonly #running = new Map<number, Execution>();
  /** Those whose lease is this worker's, until what they ended with is written. */
  readonly #unsettled = new Map<Execution, Promise<Finished>>();
  /** Those that ended and could not be written at once: they keep their slots, so that no more is begun than can be written. */
  readonly #stuck = new Set<Execution>();
  /** What else is under way and will ask the store for something. */
  readonly #background = new Set<Promise<unknown>>();
  #calls = 0;
  #id: number | undefined;
  #joining: Promise<number> | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #claiming: Promise<unknown> = Promise.resolve();
  #recovering: Promise<void> | undefined;
  #begun = 0;
  #started = false;
  #looping = false;
  #loop: Promise<void> | undefined;
  readonly #waiters: Waiter[] = [];
  #countdown: Countdown | undefined;
  #stopping: Promise<void> | undefined;
  #gaveUp = false;
  readonly #pauses = new Set<() => void>();
  #finish: () => void = () => {};

  /** Made by `holdfast.work()` and `holdfast.worker()`. */
  constructor(context: WorkerContext, options: WorkerOptions = {}) {
    refuseUnknown(options, OPTIONS, 'A worker');
    const { concurrency = 10, leaseFor = '30s', pollInterval = '1s', grace = '30s' } = options;
    this.#context = context;
    this.#options = checkedFilters(options);
    this.#log = harmless(context.log ?? silent);
    this.name = options.name === undefined ? context.defaultName : name(options.name, 'name');
    this.#definitions = new Map(context.tasks.map((task) => [task.type, task]));
    this.#types = this.#typesToClaim(options.types);
    this.#concurrency = wholeNumber(concurrency, 'concurrency', 1, 10_000);
    this.#leaseFor = duration(leaseFor, 'leaseFor');
    if (this.#leaseFor < 1_000) throw new InvalidInputError(`leaseFor must be at least 1 s, got ${this.#leaseFor} ms.`);
    this.#pollInterval = duration(pollInterval, 'pollInterval');
    if (this.#pollInterval < 1) throw new InvalidInputError('pollInterval must be at least 1 ms, got 0.');
    this.#grace = duration(grace, 'grace');
    const { clock } = context.world;
    this.#wakeup = new Wakeup(clock);
    this.#heartbeat = new Heartbeat(clock, this.#renewInterval, () => this.#inBackground(this.#beat()));
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
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
   * and so are handlers that ignored their abort.
   * @throws StoreError if the store cannot be read; a worker that was started goes on instead.
   */
  async drain(): Promise<void> {
    this.#refuseEnded();
    const idle = new Promise<void>((resolve, reject) => this.#waiters.push({ resolve, reject }));
    this.#wake();
    await idle;
  }

  /**
   * Runs the next task, if one is ready, and answers what came of it.
   * @throws InvalidInputError if the worker was started, or runs as many as its concurrency allows.
   */
  async runOne(): Promise<Finished | undefined> {
    this.#refuseEnded();
    if (this.#started)
      throw new InvalidInputError('runOne is for a worker that was not started: this one takes tasks by itself.');
    const { asked, begun } = await this.#inBackground(this.#takeOne());
    if (asked === 0 && !this.#stopping && !this.#isSpent()) {
      throw new InvalidInputError(
        `${this.name} runs ${this.#concurrency} executions already, as many as its concurrency allows.`,
      );
    }
    return begun[0];
  }

  /**
   * Claims no more, lets what runs finish for the grace, aborts it shortly before the end, and hands back what is left,
   * uncharged. A second call with a shorter grace hurries. Resolves when all is settled and the worker's row is gone.
   */
  async stop(options: { readonly grace?: DurationInput } = {}): Promise<void> {
    refuseUnknown(options, ['grace'], 'stop');
    const grace = options.grace === undefined ? undefined : duration(options.grace, 'grace');
    if (grace !== undefined) this.#countdown?.shorten(grace);
    this.#stopping ??= this.#end(grace ?? this.#grace);
    await this.#stopping;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** @internal For the testing kit: whether it waits for nothing but its handlers, the clock and news. */
  get resting(): boolean {
    return this.#calls === 0 && (!this.#looping || this.#wakeup.asleep);
  }

  /** @internal How many handlers run whose executions are not settled. */
  get handlers(): number {
    return [...this.#unsettled.keys()].filter(({ ended }) => !ended).length;
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
    const stopListening = this.#context.store.upkeep.onWork(() => this.#wakeup.call());
    this.#heartbeat.start();
    let pause: Milliseconds = 100;
    let failed: { readonly error: unknown } | undefined;
    for (let done = false; !done && !failed && !this.#stopping; ) {
      try {
        done = await this.#round();
        pause = 100;
      } catch (error) {
        if (!this.#started || error instanceof ClosedError) {
          failed = { error };
          continue;
        }
        this.#log.error({ err: error, worker: this.name }, 'The store could not be asked for work; trying again');
        await this.#wakeup.sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
    }
    // Nothing is awaited from the last look at what is wanted to here, so whoever wants more starts a new loop.
    this.#looping = false;
    stopListening();
    if (this.#stopping) return;
    this.#restIfIdle();
    for (const { resolve, reject } of this.#waiters.splice(0)) failed ? reject(failed.error) : resolve();
    if (this.#started) void this.stop();
  }

  /** Claims what fits, then sleeps until something may have changed. True when there is nothing left to do for good. */
  async #round(): Promise<boolean> {
    if (this.#id === undefined) {
      await this.#join();
      await this.#recover();
    }
    const { asked, begun, nextDueIn, expired } = await this.#claim(this.#concurrency);
    if (expired) await this.#recover();
    if (this.#isSpent() && this.#unsettled.size === 0) return true;
    // More fell due than one claim makes ready.
    if (nextDueIn === 0) return false;
    if (asked > 0 && begun.length === 0 && this.#isIdle()) {
      for (const { resolve } of this.#waiters.splice(0)) resolve();
      if (!this.#started) return true;
    }
    if (begun.length === asked && asked > 0 && this.#freeSlots() > 0) return false;
    const poll = Math.min(this.#pollInterval, nextDueIn ?? Number.POSITIVE_INFINITY);
    await this.#wakeup.sleep(this.#freeSlots() > 0 ? poll : undefined);
    return false;
  }

  #isIdle(): boolean {
    return this.#unsettled.size === 0 && this.#background.size === 0 && !this.#wakeup.pending;
  }

  #freeSlots(): number {
    const stuck = [...this.#stuck].filter(({ ended }) => ended).length;
    const left = (this.#options.maxTasks ?? Number.POSITIVE_INFINITY) - this.#begun;
    return Math.max(0, Math.min(this.#concurrency - this.#running.size - stuck, left));
  }

  #isSpent(): boolean {
    return this.#options.maxTasks !== undefined && this.#begun >= this.#options.maxTasks;
  }

  async #takeOne(): Promise<Claims> {
    await this.#join();
    await this.#recover();
    return this.#claim(1);
  }

  /** One claim at a time: two at once would fill the same slots, and each bring a suspect. */
  #claim(most: number): Promise<Claims> {
    const claim = this.#claiming.then(() => this.#claimNow(most));
    this.#claiming = claim.catch(() => {});
    return claim;
  }

  async #claimNow(most: number): Promise<Claims> {
    const asked = this.#stopping ? 0 : Math.min(most, this.#freeSlots());
    if (asked === 0) return { asked, begun: [], expired: false };
    const worker = await this.#join();
    const { queues, categories, only } = this.#options;
    const { known, tasks, nextDueIn, expired } = await this.#ask((store) =>
      store.claim({
        worker,
        limit: asked,
        capabilities: this.#options.capabilities ?? {},
        suspect: ![...this.#unsettled.keys()].some(({ claimed }) => claimed.facts.suspect),
        except: [...this.#running.values()]
          .filter((one) => this.#isAstray(one))
          .map(({ claimed }) => claimed.lease.task),
        ...(this.#types && { types: this.#types }),
        ...(queues && { queues }),
        ...(categories && { categories }),
        ...(only && { only }),
      }),
    );
    if (!known) {
      this.#forget(worker);
      return this.#claimNow(most);
    }
    const begun = tasks.map((claimed) => this.#begin(claimed));
    return { asked, begun, expired, ...(nextDueIn !== undefined && { nextDueIn }) };
  }

  /** Its handler runs on without the lease: it was judged without it, or somebody else holds it. */
  #isAstray(execution: Execution): boolean {
    return execution.lost || !this.#unsettled.has(execution);
  }

  // ── One execution ──

  /** Runs the handler of what was claimed, unless there is no sense in that any more. */
  #begin(claimed: Claimed): Promise<Finished> {
    const policy = policyFor(claimed, this.#definitionOf(claimed.type));
    const earlier = this.#running.get(claimed.lease.task);
    const { untilDeadlineMs = Number.POSITIVE_INFINITY } = claimed.facts;
    if (this.#stopping) return this.#handBack(claimed, policy, 'Its worker shut down before it began.');
    if (earlier) {
      // The store gives nobody what is leased, so the lease of the earlier execution was lost; its handler has not heard yet.
      earlier.abort('lost');
      return this.#handBack(claimed, policy, 'Its handler still runs here, in an execution whose lease was lost.');
    }
    if (untilDeadlineMs <= 0) return this.#inBackground(this.#settle(claimed, policy, { kind: 'expiry' }, 0));
    return this.#run(claimed, policy);
  }

  #handBack(claimed: Claimed, policy: Policy, message: string): Promise<Finished> {
    return this.#inBackground(this.#settle(claimed, policy, { kind: 'interruption', started: false, message }, 0));
  }

  #run(claimed: Claimed, policy: Policy): Promise<Finished> {
    const id = claimed.lease.task;
    this.#begun += 1;
    this.#heartbeat.start();
    this.#emit({ kind: 'started', task: claimed, policy });
    const execution = new Execution({
      claimed,
      definition: this.#definitionOf(claimed.type) as AnyTask,
      policy,
      clock: this.#context.world.clock,
      log: this.#log,
      grace: this.#grace,
    });
    this.#running.set(id, execution);
    void execution.over.then(() => {
      this.#running.delete(id);
      this.#wakeup.call();
    });
    const finished = this.#finishExecution(execution);
    this.#unsettled.set(execution, finished);
    // Whoever waits for it hears of a failure; where nobody does, the worker is at its end and the lease will be taken over.
    finished.catch(() => {});
    return finished;
  }

  async #finishExecution(execution: Execution): Promise<Finished> {
    const { claimed, policy } = execution;
    const { returned, ...outcome } = await execution.outcome;
    if (execution.ended) this.#running.delete(claimed.lease.task);
    const result = this.#resultOf(outcome, returned);
    const settling = this.#settle(claimed, policy, outcome, execution.elapsed, result, () =>
      this.#stuck.add(execution),
    );
    // In the same turn as the settlement, so that the claim it leads to shares its transaction.
    this.#wakeup.call();
    try {
      return await settling;
    } finally {
      this.#stuck.delete(execution);
      this.#unsettled.delete(execution);
      this.#restIfIdle();
      this.#wakeup.call();
    }
  }

  /** Decides, and writes the decision; decides again where the facts changed meanwhile. Tries until it is written or refused. */
  async #settle(
    claimed: Claimed,
    policy: Policy,
    outcome: Outcome,
    ranFor: Milliseconds,
    result: { result?: string; note?: string } = {},
    onTrouble = () => {},
  ): Promise<Finished> {
    let { facts, revision } = claimed;
    let elapsed = ranFor;
    for (;;) {
      const decision = decide(aged(facts, elapsed), outcome, policy, this.#context.world.random());
      const settled = await this.#persist(
        {
          lease: claimed.lease,
          revision,
          decision,
          report: reportOf(outcome, ranFor, result.note),
          ...(result.result !== undefined && { result: result.result }),
        },
        onTrouble,
      );
      if (settled.answer === 'changed') {
        ({ facts, revision } = settled);
        elapsed = 0;
        continue;
      }
      const finished: Finished =
        settled.answer === 'stale'
          ? { kind: 'stale', task: claimed, outcome }
          : { kind: 'settled', task: claimed, outcome, decision, state: stateAfter(settled, decision), ranFor };
      this.#emit(finished);
      return finished;
    }
  }

  /** Our own writes are retried: finished work is never judged by a write that failed. */
  async #persist(settlement: Settlement, onTrouble: () => void): Promise<Settled> {
    for (let pause = 100; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        const [answer] = await this.#ask((store) => store.settle([settlement]));
        return answer as Settled;
      } catch (error) {
        if (this.#gaveUp || error instanceof ClosedError) throw error;
        onTrouble();
        const { task } = settlement.lease;
        this.#log.error({ err: error, task, worker: this.name }, 'The outcome could not be written; trying again');
        await this.#pause(pause);
      }
    }
  }

  /** Waits, but not longer than until the worker gives up. */
  async #pause(ms: Milliseconds): Promise<void> {
    await new Promise<void>((resolve) => {
      const stop = this.#context.world.clock.after(ms, () => over());
      const over = () => {
        stop();
        this.#pauses.delete(over);
        resolve();
      };
      this.#pauses.add(over);
    });
  }

  #resultOf(outcome: Outcome, returned: unknown): { result?: string; note?: string } {
    if (outcome.kind !== 'success' || returned === undefined) return {};
    try {
      return { result: encodeJson(returned, 'result', this.#context.sizeLimit) };
    } catch (error) {
      // The work is done; that its result cannot be kept is no reason to do it again.
      return { note: `Its result was not kept. ${describe(error).message}` };
    }
  }

  // ── Leases ──

  get #renewInterval(): Milliseconds {
    return this.#leaseFor / RENEWALS_PER_LEASE;
  }

  /** The worker's id, under a lease that has not begun to run out. */
  async #join(): Promise<number> {
    const sinceRenewal = this.#context.world.clock.monotonic() - this.#renewedAt;
    if (this.#id !== undefined && !this.#heartbeat.going && sinceRenewal >= this.#renewInterval) await this.#renew();
    if (this.#id !== undefined) return this.#id;
    this.#joining ??= this.#announce().finally(() => {
      this.#joining = undefined;
    });
    return this.#joining;
  }

  async #announce(): Promise<number> {
    const publishes = Object.fromEntries(this.#context.tasks.map((task) => [task.type, publication(task)]));
    const id = await this.#ask((store) => store.join({ name: this.name, leaseFor: this.#leaseFor, publishes }));
    this.#id = id;
    this.#renewedAt = this.#context.world.clock.monotonic();
    return id;
  }

  /** The store has forgotten this worker. Meanwhile it may have joined anew. */
  #forget(worker: number): void {
    if (this.#id === worker) this.#id = undefined;
  }

  /** Renews, and looks for what others lost. */
  async #beat(): Promise<void> {
    try {
      await this.#renew();
      // Under a new id the store tells which of the old one's leases are gone.
      if (this.#id === undefined && !this.#stopping) await this.#join();
    } catch (error) {
      this.#log.error({ err: error, worker: this.name }, 'The lease could not be renewed; trying again');
    }
    if (this.#stopping) return;
    // Not awaited: it may take long, and must not put off the next renewal.
    this.#recover().catch((error: unknown) => {
      this.#log.error({ err: error, worker: this.name }, 'What others lost could not be recovered; trying again');
    });
  }

  async #renew(): Promise<void> {
    const id = this.#id;
    if (id === undefined) return;
    const executions = [...this.#unsettled.keys()];
    const leases = executions.map(({ claimed }) => claimed.lease);
    const renewal = await this.#ask((store) => store.renew(id, leases));
    if (renewal.known) this.#renewedAt = this.#context.world.clock.monotonic();
    else this.#forget(id);
    const among = (leases: readonly Lease[]) => {
      const tokens = new Set(leases.map(idOf));
      return executions.filter(({ claimed }) => tokens.has(idOf(claimed.lease)));
    };
    for (const execution of among(renewal.lost)) execution.abort('lost');
    for (const execution of among(renewal.cancelled)) execution.abort('cancel');
  }

  /** Decides about tasks that others lost, and about those whose deadline passed while they waited. */
  #recover(): Promise<void> {
    this.#recovering ??= this.#inBackground(this.#recoverAll()).finally(() => {
      this.#recovering = undefined;
    });
    return this.#recovering;
  }

  async #recoverAll(): Promise<void> {
    for (;;) {
      const id = this.#id;
      if (id === undefined) return;
      const recovered = await this.#ask((store) => store.recover(id, MOST_RECOVERED));
      await Promise.all(
        recovered.map((task) => {
          const outcome: Outcome =
            task.why === 'expiry' ? { kind: 'expiry' } : { kind: 'loss', worker: task.lostBy ?? 'unknown' };
          return this.#settle(task, policyForRecovered(task, this.#definitions), outcome, 0);
        }),
      );
      if (recovered.length < MOST_RECOVERED || this.#stopping) return;
    }
  }

  /** The heart of a worker that nobody started, and that holds nothing, does not keep its process alive. */
  #restIfIdle(): void {
    if (!this.#looping && this.#unsettled.size === 0) this.#heartbeat.stop();
  }

  async #ask<T>(call: (store: TaskStore) => Promise<T>): Promise<T> {
    this.#calls += 1;
    try {
      return await call(this.#context.store.tasks);
    } finally {
      this.#calls -= 1;
    }
  }

  /** What a stop and a drain wait for. */
  #inBackground<T>(work: Promise<T>): Promise<T> {
    this.#background.add(work);
    const forget = () => {
      this.#background.delete(work);
      if (this.#waiters.length > 0) this.#wakeup.call();
    };
    work.then(forget, forget);
    return work;
  }

  // ── The end ──

  async #end(grace: Milliseconds): Promise<void> {
    const countdown = new Countdown(this.#context.world.clock, grace);
    this.#countdown = countdown;
    this.#wakeup.call();
    await Promise.race([this.#allQuiet(), countdown.warned]);
    for (const execution of this.#unsettled.keys()) execution.abort('shutdown');
    await Promise.race([this.#allQuiet(), countdown.over]);
    for (const execution of this.#unsettled.keys()) execution.abandon();
    this.#gaveUp = true;
    for (const over of [...this.#pauses]) over();
    await this.#allQuiet();
    countdown.cancel();
    this.#heartbeat.stop();
    for (const { resolve } of this.#waiters.splice(0)) resolve();
    await this.#leave();
    this.#context.onEnd?.(this);
    this.#finish();
  }

  /** Resolves when nothing runs and nothing is on its way to the store. */
  async #allQuiet(): Promise<void> {
    await this.#loop;
    await this.#claiming;
    while (this.#unsettled.size + this.#background.size > 0) {
      await Promise.allSettled([...this.#unsettled.values(), ...this.#background]);
    }
  }

  async #leave(): Promise<void> {
    const id = this.#id;
    if (id === undefined) return;
    try {
      await this.#ask((store) => store.leave(id));
    } catch (error) {
      // Its lease runs out by itself.
      this.#log.warn({ err: error, worker: this.name }, 'The worker could not sign off');
    }
    this.#id = undefined;
  }

  #refuseEnded(): void {
    if (this.#stopping) throw new ClosedError(`The worker ${this.name}`);
  }

  #definitionOf(type: string): AnyTask | undefined {
    return this.#definitions.get(type) ?? this.#definitions.get('*');
  }

  #typesToClaim(types: readonly string[] | undefined): readonly string[] | undefined {
    const missing = types?.find((type) => !this.#definitions.has(type) && !this.#definitions.has('*'));
    if (missing !== undefined) {
      throw new InvalidInputError(`The worker has no definition of the type '${missing}'.`, 'unknown_type');
    }
    return types ?? (this.#definitions.has('*') ? undefined : [...this.#definitions.keys()]);
  }

  #emit(event: WorkerEvent): void {
    this.#logEvent(event);
    const report = (error: unknown) => this.#log.error({ err: error, worker: this.name }, 'onEvent threw');
    try {
      // Its type says that it answers nothing, which an async function satisfies; its rejection would end the process.
      const answer: unknown = this.#options.onEvent?.(event);
      if (answer instanceof Promise) answer.catch(report);
    } catch (error) {
      report(error);
    }
  }

  #logEvent(event: WorkerEvent): void {
    const { lease, type } = event.task;
    const fields = { task: lease.task, type, execution: lease.execution, worker: this.name };
    switch (event.kind) {
      case 'started':
        this.#log.debug(fields, 'started');
        return;
      case 'stale':
        this.#log.warn(fields, 'The lease had ended; the outcome was kept as evidence');
        return;
      case 'settled': {
        const { decision, state, ranFor } = event;
        this.#log.info({ ...fields, state, ranFor, because: decision.because }, decision.because.text);
      }
    }
  }
}

function checkedFilters(options: WorkerOptions): WorkerOptions {
  const { queues, types, categories, capabilities, maxTasks, only, onEvent } = options;
  for (const [what, names] of Object.entries({ queues, types, categories })) {
    if (names !== undefined) list(names, what, name);
  }
  if (capabilities !== undefined) checkNeeds(capabilities, 'capabilities');
  if (maxTasks !== undefined) wholeNumber(maxTasks, 'maxTasks', 1);
  if (only !== undefined) list(only, 'only', (id, what) => wholeNumber(id, what, 1));
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw new InvalidInputError(`onEvent must be a function, got ${show(onEvent)}.`);
  }
  return options;
}

function idOf({ task, execution, token }: Lease): string {
  return `${task} ${execution} ${token}`;
}

function reportOf(outcome: Outcome, ranFor: Milliseconds, note: string | undefined): Report {
  const base = { ranFor: Math.round(ranFor), outcome: outcome.kind };
  switch (outcome.kind) {
    case 'failure':
      return { ...base, failure: outcome.failure };
    case 'deferral':
    case 'interruption':
      return { ...base, message: outcome.message };
    default:
      return { ...base, ...(note !== undefined && { message: note }) };
  }
}

function stateAfter(settled: Settled, decision: Decision): TaskState {
  return settled.answer === 'settled' ? settled.state : decision.next;
}
