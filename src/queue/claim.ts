/// <reference lib="esnext.disposable" preserve="true" />
import type { Clock } from '../clock.ts';
import type { DurationInput, Milliseconds } from '../duration.ts';
import { ClosedError, LeaseLostError, StateConflictError } from '../errors.ts';
import type { Classifier } from '../failure/classify/rules.ts';
import { type Outcome, saysSomething } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { isSignal } from '../failure/signals.ts';
import { decodeJson } from '../json.ts';
import { refuseUnknown } from '../options.ts';
import type { Claimed, LastFailure, Lease, TaskStore } from '../store/store.ts';
import type { Json, Needs } from '../task.ts';
import type { Finished } from '../telemetry/events.ts';
import { Checkpoint } from '../worker/checkpoint.ts';
import { trueOrFalse } from '../worker/define-task.ts';
import { inputVersionOf } from '../worker/own-options.ts';
import { Progress, type ProgressHost } from '../worker/progress.ts';
import { endingOf } from '../worker/result.ts';
import { idempotencyKeyOf } from '../worker/running-task.ts';
import type { Ending } from '../worker/settler.ts';
import { type Unwritten, unwrittenOf } from '../worker/stopped.ts';

export interface ClaimOptions {
  /** Only this task. */
  readonly id?: number;
  /** Only tasks of these types. Default: all, whether or not this process has a definition of the type. */
  readonly types?: readonly string[];
  /** Only tasks of these queues. Default: all. */
  readonly queues?: readonly string[];
  /** Only tasks of these categories. Default: all, and those without one. */
  readonly categories?: readonly string[];
  /** The capabilities of this process, for tasks with `needs`. */
  readonly capabilities?: Needs;
  /** How long the claim holds without `renew()`. Default 30 s, at least 1 s. */
  readonly leaseFor?: DurationInput;
  /**
   * The worker's name in `workers()` and in the task's history. Default: the `workerName` with which Holdfast was opened, else
   * `worker-PID`.
   */
  readonly name?: string;
}

/**
 * The result of a renewal. `valid`: the lease was renewed. `cancel_requested`: somebody cancelled the task. Stop; then `release()` or `fail()` ends it as
 * cancelled, and `complete()` still counts. `lost`: another process may have the task already. Stop; nothing that this claim
 * reports changes the task, except a `complete()` while the task was not started again.
 */
export type ClaimStatus = 'valid' | 'cancel_requested' | 'lost';

/** The result of settling a claim: the state of the task, what was decided and why. */
export type SettledClaim = Extract<Finished, { kind: 'settled' }>;

/** What a claim needs from `Claims`, which made it. */
export interface ClaimHolder {
  readonly clock: Clock;
  readonly leaseFor: Milliseconds;
  readonly sizeLimit: number;
  /** Settles it by the policy of this moment. */
  settle(claimed: Claimed, ending: Ending): Promise<Finished>;
  readonly outcomeOf: Classifier['outcomeOf'];
  renew(lease: Lease): Promise<ClaimStatus>;
  readonly save: TaskStore['save'];
  readonly onProgress: ProgressHost['onProgress'];
  /** Called when the claim no longer needs its worker. `reported`: it was completed, failed, or released after it had begun. */
  letGo(claim: ManualClaim, reported: boolean): void;
  /** Called if it could not be handed back. */
  trouble(claim: ManualClaim, error: unknown): void;
}

type Verb = 'complete' | 'fail' | 'release';

/**
 * A task that was claimed by hand. The caller does the work, renews the claim during the work, and settles it once:
 *
 * ```
 * open ──(complete, fail, release)──► settled
 *   │                 └──(could not be written: StoreError)──► the same may be called again, and nothing else
 *   └──(not renewed in time, or its worker was ended)──► lost
 * ```
 *
 * Nothing renews it automatically, and the task's `timeout` does not apply. A forgotten claim ends with its lease, and then
 * another process gets the task. Disposing of an open claim releases it.
 */
export class ManualClaim implements AsyncDisposable {
  readonly id: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category: string | undefined;
  readonly key: string | undefined;
  /** Charged failures so far, plus one. */
  readonly attempt: number;
  /** The number of this claim of the task, over all rounds. */
  readonly execution: number;
  readonly maxAttempts: number;
  /** As `idempotencyKey` of a handler. */
  readonly idempotencyKey: string;
  /** An earlier execution was lost with its worker; perhaps it killed the worker. */
  readonly recovered: boolean;
  readonly submittedAt: Date;
  readonly deadline: Date | undefined;
  /** The message of the failure before this execution. */
  readonly lastError: string | undefined;
  /** The failure before this execution: its kind, its reason and its message. */
  readonly lastFailure: LastFailure | undefined;
  /** How long it holds from each renewal, in milliseconds. If you renew three times in this time, two renewals may fail. */
  readonly leaseFor: Milliseconds;
  /** The version of the type that stored its input; 1 if none was said. `input` is not migrated here. */
  readonly inputVersion: number;
  readonly #claimed: Claimed;
  readonly #holder: ClaimHolder;
  readonly #checkpoint: Checkpoint;
  readonly #progress: Progress;
  readonly #startedAt: Milliseconds;
  #renewedAt: Milliseconds;
  #input: { readonly value: Json } | undefined;
  /** How it was settled, whether or not that could be written. */
  #verb: Verb | undefined;
  #settling: Promise<unknown> | undefined;
  #finished: Finished | undefined;
  #lost = false;
  #closed = false;

  /** Made by `holdfast.claim()`. */
  constructor(claimed: Claimed, { maxAttempts }: Pick<Policy, 'maxAttempts'>, holder: ClaimHolder) {
    const { lease, facts } = claimed;
    this.#claimed = claimed;
    this.#holder = holder;
    this.#checkpoint = new Checkpoint(claimed, holder.save);
    this.#progress = new Progress(claimed, holder, () => {
      this.#letGoLost();
    });
    this.#startedAt = holder.clock.monotonic();
    this.#renewedAt = this.#startedAt;
    this.leaseFor = holder.leaseFor;
    this.id = lease.task;
    this.type = claimed.type;
    this.queue = claimed.queue;
    this.source = claimed.source;
    this.priority = claimed.priority;
    this.category = claimed.category;
    this.key = claimed.key;
    this.attempt = facts.charged.reduce((sum, { count }) => sum + count, 0) + 1;
    this.execution = lease.execution;
    this.maxAttempts = maxAttempts;
    this.idempotencyKey = idempotencyKeyOf(claimed);
    this.recovered = facts.lostInARow > 0;
    this.submittedAt = new Date(claimed.submittedAt);
    this.deadline = claimed.deadline === undefined ? undefined : new Date(claimed.deadline);
    this.lastFailure = claimed.lastFailure;
    this.lastError = claimed.lastFailure?.message;
    this.inputVersion = inputVersionOf(claimed.policy);
  }

  /** The payload. It was checked by the type's schema when it was enqueued by its definition, and is not checked again here. */
  get input(): Json {
    this.#input ??= { value: decodeJson(this.#claimed.payload) };
    return this.#input.value;
  }

  /** What this claim or an earlier execution of the task saved last. Undefined if nothing was saved. */
  get checkpoint(): Json | undefined {
    return this.#checkpoint.value;
  }

  /**
   * Saves one JSON value of at most 64 KiB, which later executions of the task read as `checkpoint`. Resolves when it is durable.
   * @throws PayloadError if the value is not JSON or too large; LeaseLostError if the claim was lost: nothing was saved;
   * StateConflictError if the claim was settled; StoreError if it could not be written: try again.
   */
  async saveCheckpoint(value: unknown): Promise<void> {
    if (this.#settling || this.#finished || this.#closed) throw this.#refusal('saveCheckpoint');
    await this.#checkpoint.save(value);
  }

  /**
   * Reports how far the work is, for people: any JSON value of at most 4 KiB. At most one value a second is written, and always the
   * last one.
   * @throws PayloadError if the value is not JSON or too large; StateConflictError if the claim was settled.
   */
  progress(value: unknown): void {
    if (this.#settling || this.#finished || this.#closed) throw this.#refusal('progress');
    this.#progress.report(value);
  }

  /**
   * The work is done. A result that cannot be stored (see `PayloadError`) is left out, and the task's history says why; the task
   * still succeeds. A signal such as `new NeedsManual()` is not a result: it acts as in `fail`.
   * @throws LeaseLostError if the claim was lost and another process has the task: the task is unchanged; StateConflictError if
   * it was settled before; StoreError if it could not be written: call it again.
   */
  async complete(result?: unknown): Promise<SettledClaim> {
    this.#refuseUnlessOpen('complete');
    if (isSignal(result)) return this.#settle('complete', this.#outcomeOf(result));
    return this.#settle('complete', { kind: 'success' }, result);
  }

  /**
   * The work failed with this error. It is classified and decided by the task's policy as if a handler had thrown it. `new
   * RetryLater('10m')` defers the task without a charge.
   * @throws the errors of `complete`.
   */
  async fail(error: unknown): Promise<SettledClaim> {
    this.#refuseUnlessOpen('fail');
    return this.#settle('fail', this.#outcomeOf(error), undefined, error);
  }

  /**
   * Hands the task back without a charge; it is ready at once. `begun` (default true) says whether the work was begun: if it was,
   * a task that must not run twice needs a person.
   * @throws the errors of `complete`.
   */
  async release(options: { readonly begun?: boolean } = {}): Promise<SettledClaim> {
    refuseUnknown(options, ['begun'], 'release');
    const { begun = true } = options;
    trueOrFalse(begun, 'begun');
    this.#refuseUnlessOpen('release');
    return this.#settle('release', interruption(begun));
  }

  /**
   * Extends the lease to `leaseFor` from now, and says whether to go on. A claim whose lease ran out gets it back if no process
   * has taken the task over yet.
   * @throws StateConflictError if the claim was settled; StoreError if the store cannot be reached: try again.
   */
  async renew(): Promise<ClaimStatus> {
    if (this.#lost || this.#finished?.kind === 'stale') return 'lost';
    // The settlement is being written. Its own answer says whether it came in time.
    if (this.#settling) return 'valid';
    if (this.#finished || this.#closed) throw this.#refusal('renew');
    const status = await this.#holder.renew(this.#claimed.lease);
    if (this.#settling || this.#finished) return 'valid';
    if (status === 'lost') this.#letGoLost();
    else this.#renewedAt = this.#holder.clock.monotonic();
    return status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handBack();
  }

  /** @internal Whether it still holds its task. Without a renewal, this ends with its lease. */
  get isHeld(): boolean {
    return this.#holder.clock.monotonic() - this.#renewedAt < this.leaseFor;
  }

  /** @internal How `close` reports it if its settlement is not written. */
  get unwritten(): Unwritten {
    return unwrittenOf(this.#claimed);
  }

  /** @internal Hands an open claim back when Holdfast closes. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#handBack();
  }

  /**
   * Releases it if it is open. If the work is done but could not be written, the lease just runs out, so that the work is not
   * repeated at once.
   */
  async #handBack(): Promise<void> {
    await this.#settling?.catch(() => {});
    if (this.#verb !== undefined || this.#lost) return;
    try {
      await this.#settle('release', interruption(true));
    } catch (error) {
      this.#holder.trouble(this, error);
    }
  }

  async #settle(verb: Verb, outcome: Outcome, result?: unknown, error?: unknown): Promise<SettledClaim> {
    this.#verb = verb;
    const ranFor = this.#holder.clock.monotonic() - this.#startedAt;
    const ending = endingOf(outcome, ranFor, result, this.#holder.sizeLimit);
    const settling = this.#written(error === undefined ? ending : { ...ending, error });
    this.#settling = settling;
    try {
      this.#finished = await settling;
    } finally {
      this.#settling = undefined;
    }
    this.#holder.letGo(this, saysSomething(outcome));
    if (this.#finished.kind === 'stale') throw new LeaseLostError(this.id, this.execution);
    return this.#finished;
  }

  #letGoLost(): void {
    this.#lost = true;
    this.#holder.letGo(this, false);
  }

  #outcomeOf(error: unknown): Outcome {
    const { clock, outcomeOf } = this.#holder;
    return outcomeOf(error, { now: clock.now(), type: this.type });
  }

  /** The last progress is written with the outcome. */
  async #written(ending: Ending): Promise<Finished> {
    if (this.#progress.saving) await this.#progress.saving;
    const progress = this.#progress.end();
    return this.#holder.settle(this.#claimed, { ...ending, ...(progress !== undefined && { progress }) });
  }

  #refuseUnlessOpen(verb: Verb): void {
    const again = this.#verb === verb && !this.#settling && !this.#finished;
    if (this.#closed || (this.#verb !== undefined && !again)) throw this.#refusal(verb);
  }

  /** The error for a call after the claim was settled. */
  #refusal(verb: Verb | 'renew' | 'saveCheckpoint' | 'progress'): Error {
    const { id } = this;
    if (this.#closed) return new ClosedError('Holdfast');
    if (this.#finished?.kind === 'stale') return new LeaseLostError(id, this.execution);
    if (this.#finished) {
      const { state } = this.#finished;
      const text = `The claim on task #${id} was already settled by ${this.#verb}() and the task is now ${state}, so ${verb}() is refused. Claim it again once it is ready.`;
      return new StateConflictError(id, state, text);
    }
    const text = this.#settling
      ? `The claim on task #${id} is being settled by ${this.#verb}(), so ${verb}() is refused. Await that call first.`
      : `The ${this.#verb}() of the claim on task #${id} could not be written, and ${verb}() cannot replace it. The first decision stays. Call ${this.#verb}() again, or let the lease run out.`;
    return new StateConflictError(id, 'running', text);
  }
}

function interruption(begun: boolean): Outcome {
  const when = begun ? 'while it was worked on' : 'before anything was done';
  return { kind: 'interruption', started: begun, message: `Its claim was released ${when}.` };
}
