import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { type Outcome, saysSomething } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import type { Claimed } from '../store/store.ts';
import type { Finished } from '../telemetry/events.ts';
import type { Writable } from '../writable.ts';
import type { Announcer } from './announcer.ts';
import type { ClaimPause } from './claim-pause.ts';
import type { AnyTask } from './define-task.ts';
import { Execution, type Host, type Judged } from './execution.ts';
import { Executions } from './executions.ts';
import type { Held } from './membership.ts';
import { type OwnHandlers, STILL_RUNS, type WorkerHandlers } from './own-handlers.ts';
import type { Pulse } from './pulse.ts';
import { endingOf } from './result.ts';
import type { Ending, Settler } from './settler.ts';
import { listenForStrays, stopListeningForStrays } from './strays.ts';
import type { Suspects } from './suspects.ts';
import { TimeLimits } from './time-limits.ts';

/** What a claim came to; an error where its worker gave up before the store took it: then the lease is left to be taken over. */
export type Ended = { readonly finished: Finished } | { readonly error: unknown };

export interface PipelineOptions {
  readonly clock: Clock;
  readonly settler: Settler;
  readonly announcer: Announcer;
  readonly suspects: Suspects;
  readonly pause: ClaimPause;
  readonly pulse: Pulse;
  readonly ownHandlers: OwnHandlers;
  /** The largest result that is kept, in bytes. */
  readonly sizeLimit: number;
  readonly host: Omit<Host, 'clock' | 'onOver'>;
  readonly definitionOf: (type: string) => AnyTask | undefined;
  /** By the configuration of this moment. */
  readonly policyFor: (claimed: Claimed) => Policy;
  /** Whether the worker was told to stop, so that nothing begins any more. */
  readonly isStopping: () => boolean;
  /** Called when a handler is about to be called. */
  readonly onStart: () => void;
  /** Called with how long a handler ran, while its process was not frozen. */
  readonly onRan: (type: string, time: Milliseconds) => void;
  /** Called when a slot may be free, in the same turn as the settlement: the claim that follows shares its transaction. */
  readonly onRoom: () => void;
  /** Called when the handler of an execution that was judged without it has ended after all. */
  readonly onOver: () => void;
  /** Called when an execution is settled, or never will be from here. `heldSlot`: it kept its slot because it could not be written. */
  readonly onLeft: (claimed: Claimed, ended: Ended, heldSlot: boolean) => void;
  /** Has a stop and a drain wait for this. */
  readonly inBackground: <T>(work: Promise<T>) => Promise<T>;
}

export const SHUT_DOWN = 'Its worker shut down before it began.';

/** Every execution of a worker, from its claim to its settlement: `execute` reads straight down. */
export class Pipeline implements WorkerHandlers {
  readonly #options: PipelineOptions;
  readonly #host: Host;
  readonly #executions = new Executions();
  readonly #limits: TimeLimits;
  /** Those that ended and could not be written at once: they keep their slots, so that no more is begun than can be written. */
  readonly #unwritten = new Set<Execution>();
  /** Claims that are settled without a start, until that is written. */
  readonly #unbegun = new Set<Claimed>();
  #begun = 0;

  constructor(options: PipelineOptions) {
    const { clock, pulse, host } = options;
    this.#options = options;
    this.#host = { ...host, clock, onOver: (execution) => this.#endAbandoned(execution) };
    this.#limits = new TimeLimits({
      clock,
      running: () => this.#executions.all,
      onTimer: (dueAt) => pulse.noticeLate(dueAt),
    });
    options.ownHandlers.add(this);
  }

  /**
   * Runs the handler of what was claimed, unless it is to end without a start or be handed back, and settles what it ends with. With callbacks and
   * not with promises: where handlers are told apart by `AsyncLocalStorage`, each promise of an execution costs about a microsecond.
   */
  execute(claimed: Claimed, onEnded: (ended: Ended) => void = () => {}): void {
    const { verdict } = claimed.facts;
    if (verdict !== undefined) {
      void this.#settleUnbegun(claimed, { kind: 'verdict', reason: verdict }).then((ended) => {
        this.#options.onLeft(claimed, ended, false);
        onEnded(ended);
      });
      return;
    }
    const refusal = this.#refusal(claimed);
    if (refusal !== undefined) {
      void this.handBack(claimed, refusal).then(onEnded);
      return;
    }
    const execution = this.#start(claimed);
    execution.run((judged) => {
      if (execution.ended) this.#freeSlot(execution, saysSomething(judged.outcome));
      this.#settle(execution, judged, (ended) => {
        this.#leave(execution, ended);
        onEnded(ended);
      });
      // What failed may shut its source, and the settler finds that out at the end of this turn: nothing begins before that.
      if (judged.outcome.kind === 'success') this.#options.onRoom();
      else queueMicrotask(() => this.#options.onRoom());
    });
  }

  /** Settles a claim whose handler was not called: uncharged, to be run again. Never rejects. */
  handBack(claimed: Claimed, message: string): Promise<Ended> {
    return this.#settleUnbegun(claimed, { kind: 'interruption', started: false, message });
  }

  /** How many have begun. */
  get begun(): number {
    return this.#begun;
  }

  /** How many slots are taken: by handlers that have not ended, and by what could not be written. */
  get slotsTaken(): number {
    let unwritten = 0;
    for (const { ended } of this.#unwritten) if (ended) unwritten += 1;
    return this.#executions.running + unwritten;
  }

  /** Whether any handler has not ended. */
  get isRunning(): boolean {
    return this.#executions.running > 0;
  }

  /** How many have a lease of this worker's, until what they ended with is written. */
  get unsettled(): number {
    return this.#executions.unsettled;
  }

  /** Those whose lease is this worker's, until what they ended with is written. */
  get leased(): readonly Execution[] {
    return this.#executions.all.filter(({ left }) => !left);
  }

  /** What is settled without a start, until that is written. There is no handler to abort. */
  get unbegun(): readonly Held[] {
    return [...this.#unbegun].map((claimed) => ({ claimed, abort() {} }));
  }

  /**
   * The tasks whose handler runs without a lease, or may soon. Each is named from its abort on, for a claim that is made before its
   * grace is over may reach the store together with its settlement, or after that.
   */
  get withoutLease(): readonly number[] {
    return this.#executions.all
      .filter(({ ended, isAborted }) => !ended && isAborted)
      .map(({ claimed }) => claimed.lease.task);
  }

  abortEarlier(task: number): boolean {
    const earlier = this.#executions.find(task);
    earlier?.abort('lost');
    return earlier !== undefined;
  }

  /** What the store has not taken yet. */
  get unsaved(): readonly Claimed[] {
    return [...this.leased.map(({ claimed }) => claimed), ...this.#unbegun];
  }

  /** Whether a handler runs of another type than these. */
  runsOther(types: readonly string[]): boolean {
    return this.#executions.all.some(({ ended, claimed }) => !ended && !types.includes(claimed.type));
  }

  /** All whose handler has not ended, or that are not settled. */
  get all(): readonly Execution[] {
    return this.#executions.all;
  }

  /** Leaves no timer. */
  rest(): void {
    this.#limits.rest();
  }

  /** No handler of this worker is left whose stray errors it would record. */
  stop(): void {
    this.rest();
    stopListeningForStrays(this);
    this.#options.ownHandlers.delete(this);
  }

  /** Why what was claimed is handed back at once; undefined where it is to run. */
  #refusal({ lease }: Claimed): string | undefined {
    if (this.#options.ownHandlers.abortEarlier(lease)) return STILL_RUNS.message;
    return this.#options.isStopping() ? SHUT_DOWN : undefined;
  }

  /** Never rejects. */
  #settleUnbegun(claimed: Claimed, outcome: Outcome): Promise<Ended> {
    const { settler, policyFor, inBackground } = this.#options;
    this.#unbegun.add(claimed);
    const settled = settler
      .settle(claimed, policyFor(claimed), { outcome, ranFor: 0 })
      .finally(() => this.#unbegun.delete(claimed));
    return inBackground(
      settled.then(
        (finished) => ({ finished }),
        (error: unknown) => ({ error }),
      ),
    );
  }

  #start(claimed: Claimed): Execution {
    const { announcer, pause, suspects, pulse, definitionOf, policyFor, onStart } = this.#options;
    const policy = policyFor(claimed);
    this.#begun += 1;
    onStart();
    pulse.begin();
    listenForStrays(this);
    announcer.tell({ kind: 'started', task: claimed, policy });
    const execution = new Execution(claimed, definitionOf(claimed.type) as AnyTask, policy, this.#host);
    this.#executions.add(execution);
    pause.begun(execution);
    suspects.begin(claimed);
    this.#limits.watch(execution);
    return execution;
  }

  #freeSlot(execution: Execution, reported: boolean): void {
    this.#executions.end(execution);
    this.#options.suspects.end(execution.claimed, reported);
  }

  #settle(execution: Execution, { outcome, returned, unhealthy }: Judged, onEnded: (ended: Ended) => void): void {
    const { settler, pause, policyFor, sizeLimit, onRan } = this.#options;
    const { claimed, elapsed, frozenFor } = execution;
    // A failure is answered by the policy of this moment, which may have changed while it ran.
    const policy = outcome.kind === 'success' ? execution.policy : policyFor(claimed);
    if (unhealthy) this.#begun -= 1;
    else onRan(claimed.type, elapsed - frozenFor);
    pause.ended(execution, outcome);
    const ending: Writable<Ending> = endingOf(outcome, elapsed, returned, sizeLimit);
    const { limit } = execution;
    if (frozenFor > 0) ending.frozenFor = frozenFor;
    if (unhealthy) ending.unhealthy = unhealthy;
    if (limit) ending.limit = limit;
    settler
      .settle(claimed, policy, ending, () => this.#unwritten.add(execution))
      .then(
        (finished) => onEnded({ finished }),
        (error: unknown) => onEnded({ error }),
      );
  }

  #leave(execution: Execution, ended: Ended): void {
    const heldSlot = this.#unwritten.delete(execution);
    this.#executions.leave(execution);
    this.#options.onLeft(execution.claimed, ended, heldSlot);
  }

  #endAbandoned(execution: Execution): void {
    this.#freeSlot(execution, false);
    this.#options.onOver();
  }
}
