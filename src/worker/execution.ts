import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { LeaseLostError } from '../errors.ts';
import { outcomeOf } from '../failure/classify/classify.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { decodeJson } from '../json.ts';
import { type Logger, withFields } from '../log.ts';
import type { Claimed } from '../store/store.ts';
import { type AnyTask, parseInput, type RunningTask } from './define-task.ts';

/** Why a handler's signal aborted. */
export type AbortCause = 'timeout' | 'cancel' | 'shutdown' | 'lost';

export interface ExecutionOptions {
  readonly claimed: Claimed;
  readonly definition: AnyTask;
  readonly policy: Policy;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a handler has after its signal aborted before the execution is judged without it. */
  readonly grace: Milliseconds;
}

/** How a handler ended, whenever it did. */
type HandlerEnd =
  | { readonly well: true; readonly result: unknown }
  | { readonly well: false; readonly thrown: unknown };

/**
 * One start of a handler.
 *
 * ```
 * running ──(ends)───────────────────────────────────────────► outcome
 *    └──(aborted)──► aborting ──(ends)──────────────────────► outcome, of the abort unless it ended well
 *                        └──(grace over)──► abandoned ───────► outcome of the abort; `over` when it really ends
 * ```
 */
export class Execution {
  readonly claimed: Claimed;
  readonly policy: Policy;
  /** What to settle. Never rejects. */
  readonly outcome: Promise<Outcome & { readonly returned?: unknown }>;
  /** When the handler has really ended, which an abandoned one does later, or never. */
  readonly over: Promise<void>;
  readonly #options: ExecutionOptions;
  /** Made when the handler first asks for its signal, which most never do. */
  #controller: AbortController | undefined;
  readonly #startedAt: Milliseconds;
  #aborted: AbortCause | undefined;
  #begun = false;
  #ended = false;
  #judged = false;
  #lastBeat: Milliseconds;
  #stopTimer = () => {};
  #judgeNow = () => {};

  constructor(options: ExecutionOptions) {
    this.#options = options;
    this.claimed = options.claimed;
    this.policy = options.policy;
    this.#startedAt = options.clock.monotonic();
    this.#lastBeat = this.#startedAt;
    const graceOver = new Promise<'grace over'>((resolve) => {
      this.#judgeNow = () => resolve('grace over');
    });
    const end = this.#call();
    this.over = end.then(() => {});
    this.outcome = Promise.race([end, graceOver]).then((first) => {
      this.#stopTimer();
      this.#judged = true;
      return first === 'grace over' ? this.#outcomeOfAbort() : this.#outcomeOfEnd(first);
    });
    this.#watchTime();
  }

  /** Whether its handler has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether its lease is gone, or about to be given up: it was lost, or judged. A handler may run on without it. */
  get isAstray(): boolean {
    return this.#aborted === 'lost' || this.#judged;
  }

  /** How long it has been running. */
  get elapsed(): Milliseconds {
    return this.#options.clock.monotonic() - this.#startedAt;
  }

  /** Tells the handler to stop, once. It has the grace to do so. */
  abort(cause: AbortCause): void {
    // Who has ended already is judged by its end.
    if (this.#aborted || this.#ended || this.#judged) return;
    this.#aborted = cause;
    this.#stopTimer();
    this.#stopTimer = this.#options.clock.after(this.#options.grace, this.#judgeNow);
    this.#controller?.abort(this.#abortReason(cause));
  }

  /** Ends the grace of an aborted handler now. */
  abandon(): void {
    this.#judgeNow();
  }

  async #call(): Promise<HandlerEnd> {
    try {
      const { definition, claimed } = this.#options;
      const input = await parseInput(definition, decodeJson(claimed.payload));
      // What was told to end before it began must not begin: by now its lease may be somebody else's.
      if (this.#aborted) throw this.#abortReason(this.#aborted);
      this.#begun = true;
      const result: unknown = await definition.run(input, this.#describe());
      return { well: true, result };
    } catch (thrown) {
      return { well: false, thrown };
    } finally {
      this.#ended = true;
    }
  }

  get #signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted && !this.#controller.signal.aborted) this.#controller.abort(this.#abortReason(this.#aborted));
    return this.#controller.signal;
  }

  #describe(): RunningTask {
    const { claimed, policy, log } = this.#options;
    const signal = () => this.#signal;
    const { facts, lease } = claimed;
    return {
      id: lease.task,
      type: claimed.type,
      queue: claimed.queue,
      source: claimed.source,
      attempt: facts.charged.reduce((sum, { count }) => sum + count, 0) + 1,
      execution: lease.execution,
      maxAttempts: policy.maxAttempts,
      recovered: facts.suspect,
      submittedAt: new Date(claimed.submittedAt),
      get signal() {
        return signal();
      },
      log: withFields(log, { task: lease.task, type: claimed.type, execution: lease.execution }),
      heartbeat: () => {
        this.#lastBeat = this.#options.clock.monotonic();
      },
      ...(claimed.key !== undefined && { key: claimed.key }),
      ...(claimed.deadline !== undefined && { deadline: new Date(claimed.deadline) }),
      ...(claimed.lastError !== undefined && { lastError: claimed.lastError }),
    };
  }

  /** One timer for the whole execution: a heartbeat only notes the time, and the timer looks when it fires. */
  #watchTime(): void {
    const { timeout } = this.policy;
    if (timeout === 'none') return;
    const { clock } = this.#options;
    const look = () => {
      const left = this.#lastBeat + timeout - clock.monotonic();
      if (left > 0) this.#stopTimer = clock.after(left, look);
      else this.abort('timeout');
    };
    look();
  }

  #outcomeOfEnd(end: HandlerEnd): Outcome & { returned?: unknown } {
    if (end.well) return { kind: 'success', returned: end.result };
    return this.#aborted ? this.#outcomeOfAbort() : outcomeOf(end.thrown, { now: this.#options.clock.now() });
  }

  #outcomeOfAbort(): Outcome {
    switch (this.#aborted) {
      case 'timeout':
        return {
          kind: 'failure',
          failure: { ...timedOut(this.policy.timeout as Milliseconds), ambiguous: this.#begun },
        };
      case 'cancel':
        return this.#interrupted('It was cancelled');
      case 'lost':
        return this.#interrupted('Its lease was lost');
      case 'shutdown':
      case undefined:
        return this.#interrupted('Its worker shut down');
    }
  }

  #interrupted(how: string): Outcome {
    const when = this.#begun ? 'while it ran' : 'before it began';
    return { kind: 'interruption', started: this.#begun, message: `${how} ${when}.` };
  }

  #abortReason(cause: AbortCause): Error {
    const { task, execution } = this.claimed.lease;
    switch (cause) {
      case 'lost':
        return new LeaseLostError(task, execution);
      case 'timeout':
        return new DOMException(timedOut(this.policy.timeout as Milliseconds).message, 'TimeoutError');
      case 'cancel':
        return new DOMException(`Task #${task} was cancelled.`, 'AbortError');
      case 'shutdown':
        return new DOMException('The worker is shutting down.', 'AbortError');
    }
  }
}

function timedOut(limit: Milliseconds) {
  return {
    kind: 'transient',
    reason: 'timeout',
    fault: 'task',
    ambiguous: true,
    name: 'TimeoutError',
    message: `It ran longer than its time limit of ${limit} ms without a heartbeat.`,
    evidence: { rule: 'worker.timeout' },
  } as const;
}
