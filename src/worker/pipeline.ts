import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { type Outcome, saysSomething } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import type { Claimed } from '../store/store.ts';
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
import type { Callbacks, Ended, Ending, Settler } from './settler.ts';
import { listenForStrays, stopListeningForStrays } from './strays.ts';
import type { Suspects } from './suspects.ts';
import { TimeLimits } from './time-limits.ts';

export interface PipelineOptions {
  readonly clock: Clock;
  readonly settler: Settler;
  readonly announcer: Announcer;
  readonly suspects: Suspects;
  readonly pause: ClaimPause;
  readonly pulse: Pulse;
  readonly ownHandlers: OwnHandlers;
  /** The largest result that is stored, in bytes. */
  readonly sizeLimit: number;
  readonly host: Omit<Host, 'clock' | 'onOver' | 'onProgress'>;
  readonly definitionOf: (type: string) => AnyTask | undefined;
  /** With the configuration of this moment. */
  readonly policyFor: (claimed: Claimed) => Policy;
  /** Whether the worker was told to stop, so that nothing begins any more. */
  readonly isStopping: () => boolean;
  /** Called when a handler is about to be called. */
  readonly onStart: () => void;
  /** Called where a handler succeeded and its result could not be kept, with the reason. */
  readonly onResultLost: (claimed: Claimed, why: string) => void;
  /** Called with how long a handler ran, without the time in which its process was frozen. */
  readonly onRan: (claimed: Claimed, time: Milliseconds) => void;
  /** Called when a slot may be free, in the same turn as the settlement: the claim that follows shares its transaction. */
  readonly onRoom: () => void;
  /** Called when a handler ends whose outcome was decided without it. */
  readonly onOver: () => void;
  /**
   * Called when an execution is settled, or this process will not settle it. `heldSlot`: it kept its slot because its outcome
   * could not be written.
   */
  readonly onLeft: (claimed: Claimed, ended: Ended, heldSlot: boolean) => void;
  /** Makes a stop and a drain wait for this. */
  readonly inBackground: <T>(work: Promise<T>) => Promise<T>;
}

export const SHUT_DOWN = 'Its worker shut down before it began.';

/** So many handlers are called one after the other. Then other microtasks get their turn. */
const MOST_IN_A_ROW = 100;

/** An execution, and what follows its outcome. Of a class for the reason that stands at `ClaimedTask`. */
class Started implements Callbacks {
  readonly execution: Execution;
  onDecided: (() => void) | undefined;
  readonly #onWritten: (started: Started, ended: Ended) => void;
  readonly #unwritten: Set<Execution>;
  readonly waiter: ((ended: Ended) => void) | undefined;

  constructor(
    execution: Execution,
    waiter: ((ended: Ended) => void) | undefined,
    unwritten: Set<Execution>,
    onWritten: (started: Started, ended: Ended) => void,
  ) {
    this.execution = execution;
    this.waiter = waiter;
    this.onDecided = undefined;
    this.#unwritten = unwritten;
    this.#onWritten = onWritten;
  }

  onEnded(ended: Ended): void {
    this.#onWritten(this, ended);
  }

  onTrouble(): void {
    this.#unwritten.add(this.execution);
  }
}

/** Every execution of a worker, from its claim to its settlement: `execute` reads straight down. */
export class Pipeline implements WorkerHandlers {
  readonly #options: PipelineOptions;
  readonly #host: Host;
  readonly #executions = new Executions();
  readonly #limits: TimeLimits;
  /**
   * Executions whose outcome could not be written at once. They keep their slots, so that a worker does not run more tasks than
   * it can write.
   */
  readonly #unwritten = new Set<Execution>();
  /** Claims that are being settled without a start. */
  readonly #unbegun = new Set<Claimed>();
  /** Executions whose handlers are called at the end of this turn. */
  readonly #starting: Started[] = [];
  #isBeginning = false;
  #begun = 0;

  constructor(options: PipelineOptions) {
    const { clock, pulse, host, announcer } = options;
    this.#options = options;
    this.#host = {
      ...host,
      clock,
      onOver: (execution) => this.#endAbandoned(execution),
      onProgress: (event) => announcer.tell(event),
    };
    this.#limits = new TimeLimits({
      clock,
      running: () => this.#executions.all,
      onTimer: (dueAt) => pulse.noticeLate(dueAt),
    });
    options.ownHandlers.add(this);
  }

  /**
   * Runs the handler of a claimed task, and settles the outcome. Some claims end or are handed back without a start. It uses
   * callbacks and not promises, because each promise costs about a microsecond where handlers run in `AsyncLocalStorage`.
   */
  execute(claimed: Claimed, onEnded?: (ended: Ended) => void): void {
    const { verdict } = claimed.facts;
    if (verdict !== undefined) {
      void this.#settleUnbegun(claimed, { kind: 'verdict', reason: verdict }).then((ended) => {
        this.#options.onLeft(claimed, ended, false);
        onEnded?.(ended);
      });
      return;
    }
    const refusal = this.#refusal(claimed);
    if (refusal !== undefined) {
      void this.handBack(claimed, refusal).then(onEnded);
      return;
    }
    this.#starting.push(new Started(this.#start(claimed), onEnded, this.#unwritten, this.#onWritten));
    // The caller must have the execution before its handler starts. All that start in this turn share the microtask.
    if (this.#starting.length === 1 && !this.#isBeginning) queueMicrotask(() => this.#beginAll());
  }

  /**
   * Calls the handlers of executions that start now, and of those that take the slots of handlers that have returned: a microtask for
   * each would cost a microsecond. Before a failure is decided, nothing takes the slot of another task, for it may hold a source.
   */
  #beginAll(): void {
    const { settler } = this.#options;
    const starting = this.#starting;
    // They are removed together, because removing each one at once moves all others.
    let begun = 0;
    this.#isBeginning = true;
    try {
      let unconditional = starting.length;
      while (begun < starting.length) {
        if (unconditional === 0) {
          if (begun >= MOST_IN_A_ROW || settler.isDeciding) break;
          unconditional = starting.length - begun;
        }
        unconditional -= 1;
        begun += 1;
        this.#begin(starting[begun - 1] as Started);
      }
    } finally {
      starting.splice(0, begun);
      this.#isBeginning = false;
      if (this.#starting.length > 0) queueMicrotask(() => this.#beginAll());
    }
  }

  #begin(started: Started): void {
    const { execution } = started;
    execution.begin((judged) => {
      if (execution.ended) this.#freeSlot(execution, saysSomething(judged.outcome));
      this.#settle(started, judged);
      if (judged.outcome.kind === 'success') this.#options.onRoom();
    });
  }

  /** Settles a claim whose handler was not called: nothing is charged, and the task runs again. Never rejects. */
  handBack(claimed: Claimed, message: string): Promise<Ended> {
    return this.#settleUnbegun(claimed, { kind: 'interruption', started: false, message });
  }

  /** How many have begun. */
  get begun(): number {
    return this.#begun;
  }

  /** How many slots are taken: by handlers that have not ended, and by outcomes that could not be written. */
  get slotsTaken(): number {
    let unwritten = 0;
    for (const { ended } of this.#unwritten) if (ended) unwritten += 1;
    return this.#executions.running + unwritten;
  }

  /** Whether any handler has not ended. */
  get isRunning(): boolean {
    return this.#executions.running > 0;
  }

  /** How many are not settled yet; their leases are this worker's. */
  get unsettled(): number {
    return this.#executions.unsettled;
  }

  /** The executions that are not settled yet; their leases are this worker's. */
  get leased(): readonly Execution[] {
    return this.#executions.all.filter(({ left }) => !left);
  }

  /** Claims that are being settled without a start. They have no handler to abort. */
  get unbegun(): readonly Held[] {
    return [...this.#unbegun].map((claimed) => ({ claimed, abort() {} }));
  }

  /**
   * The tasks whose handler runs without a lease, or soon may. Each is listed from its abort on, because a claim made during its
   * grace may reach the store together with its settlement, or later.
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

  /** The claims whose outcome is not written yet. */
  get unsaved(): readonly Claimed[] {
    return [...this.leased.map(({ claimed }) => claimed), ...this.#unbegun];
  }

  /** Whether a handler of another type than these runs. */
  runsOther(types: readonly string[]): boolean {
    return this.#executions.all.some(({ ended, claimed }) => !ended && !types.includes(claimed.type));
  }

  /** The executions whose handler has not ended, or that are not settled. */
  get all(): readonly Execution[] {
    return this.#executions.all;
  }

  /** Clears the timer. */
  rest(): void {
    this.#limits.rest();
  }

  /** Stops listening for stray errors: no handler of this worker is left. */
  stop(): void {
    this.rest();
    stopListeningForStrays(this);
    this.#options.ownHandlers.delete(this);
  }

  /** Why a claim is handed back at once; undefined if it may run. */
  #refusal({ lease }: Claimed): string | undefined {
    if (this.#options.ownHandlers.abortEarlier(lease)) return STILL_RUNS.message;
    return this.#options.isStopping() ? SHUT_DOWN : undefined;
  }

  /** Never rejects. */
  #settleUnbegun(claimed: Claimed, outcome: Outcome): Promise<Ended> {
    const { settler, policyFor, inBackground } = this.#options;
    this.#unbegun.add(claimed);
    const settled = new Promise<Ended>((resolve) => {
      const onEnded = (ended: Ended) => {
        this.#unbegun.delete(claimed);
        resolve(ended);
      };
      settler.begin(claimed, policyFor(claimed), { outcome, ranFor: 0 }, { onEnded });
    });
    return inBackground(settled);
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

  #settle(started: Started, judged: Judged): void {
    const { execution } = started;
    const { progress } = execution;
    if (progress?.saving) {
      void progress.saving.then(() => this.#settle(started, judged));
      return;
    }
    const { outcome, returned, error, unhealthy } = judged;
    const { settler, pause, policyFor, sizeLimit, onRan, onRoom } = this.#options;
    const { claimed, elapsed, frozenFor } = execution;
    // A failure is decided by the policy of this moment, which may have changed during the execution.
    const policy = outcome.kind === 'success' ? execution.policy : policyFor(claimed);
    if (unhealthy) this.#begun -= 1;
    else onRan(claimed, elapsed - frozenFor);
    pause.ended(execution, outcome);
    const ending: Writable<Ending> = endingOf(outcome, elapsed, returned, sizeLimit);
    if (ending.note !== undefined) this.#options.onResultLost(claimed, ending.note);
    if (judged.note !== undefined) ending.note = judged.note;
    const { limit } = execution;
    const unsaved = progress?.end();
    if (unsaved !== undefined) ending.progress = unsaved;
    if (frozenFor > 0) ending.frozenFor = frozenFor;
    if (unhealthy) ending.unhealthy = unhealthy;
    if (limit) ending.limit = limit;
    if (error !== undefined) ending.error = error;
    // A failure may hold its source, so no task begins before the settler has decided about it.
    if (outcome.kind !== 'success') started.onDecided = onRoom;
    settler.begin(claimed, policy, ending, started);
  }

  readonly #onWritten = ({ execution, waiter }: Started, ended: Ended): void => {
    const heldSlot = this.#unwritten.delete(execution);
    this.#executions.leave(execution);
    this.#options.onLeft(execution.claimed, ended, heldSlot);
    waiter?.(ended);
  };

  #endAbandoned(execution: Execution): void {
    this.#freeSlot(execution, false);
    this.#options.onOver();
  }
}
