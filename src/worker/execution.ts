import type { Clock } from '../clock.ts';
import { duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError, LeaseLostError } from '../errors.ts';
import { fingerprint } from '../failure/classify/fingerprint.ts';
import type { RateLimit } from '../failure/classify/quotas.ts';
import type { Classifier } from '../failure/classify/rules.ts';
import { type Outcome, SUCCESS } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { isSignal } from '../failure/signals.ts';
import type { Logger } from '../log.ts';
import type { Claimed, Records, TaskStore } from '../store/store.ts';
import type { Json } from '../task.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import type { Batches } from './batches.ts';
import { Checkpoint } from './checkpoint.ts';
import type { ChildSettings } from './child/options.ts';
import { runInChild } from './child/run.ts';
import { type AnyTask, isThenable, parseInput, type RunningTask } from './define-task.ts';
import { type Group, groupFrom } from './group.ts';
import { currentPayload, isOtherVersion } from './input-version.ts';
import { intactPayload } from './intact.ts';
import { Progress, type ProgressHost } from './progress.ts';
import type { Freeze } from './pulse.ts';
import { runningTask } from './running-task.ts';
import { type Owner, ownedBy } from './strays.ts';
import type { Limited } from './time-limits.ts';
import { mustVerify, verified } from './verify.ts';

/** Why a handler's signal aborted. */
export type AbortCause = 'timeout' | 'cancel' | 'shutdown' | 'lost';

/** The facts about an execution that has ended. */
export type StrayOwner = Pick<Claimed, 'lease' | 'type' | 'queue' | 'source'>;

/** What all executions of a worker share. */
export interface Host {
  readonly clock: Clock;
  readonly log: Logger;
  /** Classifies a thrown value by the rules at this moment. */
  readonly outcomeOf: Classifier['outcomeOf'];
  readonly batches: Batches;
  /** How long a handler may run after its signal aborted. After that, the outcome is decided without it. */
  readonly grace: Milliseconds;
  readonly save: TaskStore['save'];
  readonly groupOf: Records['groupOf'];
  readonly onProgress: ProgressHost['onProgress'];
  readonly telemetry?: Telemetry | undefined;
  /**
   * Called with an error of a promise, timer or listener that a handler left behind; perhaps long after the end of the handler.
   */
  readonly onStray: (of: StrayOwner, thrown: unknown) => void;
  /** Called when a handler ends whose outcome was decided without it. */
  readonly onOver: (execution: Execution) => void;
}

/** How an execution ended; `returned` by a handler that succeeded. */
export interface Judged {
  readonly outcome: Outcome;
  readonly returned?: unknown;
  /** What it threw. */
  readonly error?: unknown;
  /** A note about a success for the history. */
  readonly note?: string;
  /** Its handler was not called, because its type's `health` says that the source does not work. */
  readonly unhealthy?: true;
}

/**
 * One start of a handler.
 *
 * ```
 * running ──(ends)───────────────────────────────────────────► outcome
 *    └──(aborted)──► aborting ──(ends)──────────────────────► outcome, of the abort unless it ended well
 *                        └──(grace over)──► abandoned ───────► outcome of the abort; `over` when it really ends
 * ```
 */
export class Execution implements Limited {
  readonly claimed: Claimed;
  readonly policy: Policy;
  /** Its place in `Executions` of the worker, and whether it is settled. Only `Executions` writes these. */
  at = 0;
  left = false;
  readonly #definition: AnyTask;
  readonly #host: Host;
  /** Made when the handler first asks for its signal, which most never do. */
  #controller: AbortController | undefined;
  readonly #startedAt: Milliseconds;
  #aborted: AbortCause | undefined;
  #begun = false;
  /** It waits for other tasks of its batch. */
  #gathering = false;
  /** Whether its source is asked for its health. */
  #askingHealth = false;
  /** Why its source does not work, if its handler was not called for that. */
  #sourceTrouble: string | undefined;
  #ended = false;
  #judged = false;
  #lastBeat: Milliseconds;
  #frozenFor: Milliseconds = 0;
  /** How much longer than its limit it may run, because the event loop was blocked since its last heartbeat. */
  #addedByBlocking: Milliseconds = 0;
  #stopGrace: (() => void) | undefined;
  #onJudged: (judged: Judged) => void = () => {};
  #endChild: (() => void) | undefined;
  /** Made at first use. */
  #checkpoint: Checkpoint | undefined;
  #progress: Progress | undefined;
  #limit: { readonly remaining: number; readonly until: Milliseconds } | undefined;

  constructor(claimed: Claimed, definition: AnyTask, policy: Policy, host: Host) {
    this.claimed = claimed;
    this.policy = policy;
    this.#definition = definition;
    this.#host = host;
    this.#startedAt = host.clock.monotonic();
    this.#lastBeat = this.#startedAt;
  }

  /**
   * Calls the handler. `onJudged` is called once: when the handler has ended, or when the grace after its abort is over. A handler
   * that returns at once needs no promise: each costs about a microsecond where handlers run in `AsyncLocalStorage`.
   */
  begin(onJudged: (judged: Judged) => void): void {
    this.#onJudged = onJudged;
    let judged: Judged;
    try {
      const returned = this.#startHandler();
      if (isThenable(returned)) {
        void this.#awaitHandler(returned);
        return;
      }
      judged = this.#judgedOf(returned);
    } catch (thrown) {
      judged = this.#judgedOfThrown(thrown);
    }
    this.#end(judged);
  }

  /** Whether its handler has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether its signal has aborted. Its handler may then run without a lease, now or after its grace. */
  get isAborted(): boolean {
    return this.#aborted !== undefined;
  }

  get log(): Logger {
    return this.#host.log;
  }

  /** How long ago it started. */
  get elapsed(): Milliseconds {
    return this.#host.clock.monotonic() - this.#startedAt;
  }

  /** For how much of that time its process was frozen. */
  get frozenFor(): Milliseconds {
    return this.#frozenFor;
  }

  /** When its time limit ends, counted from its start or its last heartbeat. */
  get limitAt(): Milliseconds {
    const { timeout } = this.policy;
    return timeout === 'none' || this.#aborted || this.#ended ? Number.POSITIVE_INFINITY : this.#lastBeat + timeout;
  }

  /** The wait for other tasks of its batch does not count. */
  overLimit(): void {
    if (this.#gathering) this.heartbeat();
    else this.abort('timeout');
  }

  /**
   * The time in which the process was frozen does not count against its limit. For time in which the event loop was blocked,
   * perhaps by this handler, it gets at most its limit once more, so that a handler that always blocks still ends.
   */
  discount({ since, until, blocked }: Freeze): void {
    const { timeout } = this.policy;
    this.#frozenFor += Math.max(0, until - Math.max(since, this.#startedAt));
    const lost = Math.max(0, until - Math.max(since, this.#lastBeat));
    const added = blocked && timeout !== 'none' ? Math.min(lost, timeout - this.#addedByBlocking) : lost;
    if (blocked) this.#addedByBlocking += added;
    this.#lastBeat += added;
  }

  /** Aborts the signal of the handler, once. The handler has the grace to end. */
  abort(cause: AbortCause): void {
    // If the handler has already ended, its own end is the outcome.
    if (this.#aborted || this.#ended || this.#judged) return;
    this.#aborted = cause;
    // Read events that have already arrived first: the handler may have ended by then.
    this.#stopGrace = this.#host.clock.after(this.#host.grace, () => setImmediate(() => this.abandon()));
    this.#controller?.abort(this.#abortReason(cause));
  }

  /** Ends the grace of an aborted handler now. A handler in a child process is ended with it. */
  abandon(): void {
    this.#endChild?.();
    this.#judge(this.#judgementOfAbort());
  }

  heartbeat(): void {
    this.#lastBeat = this.#host.clock.monotonic();
    this.#addedByBlocking = 0;
  }

  rateLimit({ remaining, resetsIn }: Parameters<RunningTask['rateLimit']>[0]): void {
    try {
      const until = this.#host.clock.monotonic() + duration(resetsIn);
      if (remaining >= 0 && Number.isFinite(remaining)) this.#limit = { remaining, until };
    } catch (error) {
      // A handler that did its work must not fail because of an unreadable header.
      if (!(error instanceof InvalidInputError)) throw error;
    }
  }

  /** The rate limit of its source that the handler reported last. */
  get limit(): RateLimit | undefined {
    const resetsIn = this.#limit ? this.#limit.until - this.#host.clock.monotonic() : 0;
    return this.#limit && resetsIn > 0 ? { remaining: this.#limit.remaining, resetsIn } : undefined;
  }

  async group(): Promise<Group> {
    return groupFrom(await this.#host.groupOf(this.claimed.lease.task));
  }

  get checkpoint(): Json | undefined {
    return this.#saved.value;
  }

  async saveCheckpoint(value: unknown): Promise<void> {
    try {
      await this.#saved.save(value);
    } catch (error) {
      if (error instanceof LeaseLostError) this.abort('lost');
      throw error;
    }
  }

  reportProgress(value: unknown): void {
    this.#progress ??= new Progress(this.claimed, this.#host, () => this.abort('lost'));
    this.#progress.report(value);
  }

  /** What its handler reported, if it reported any. */
  get progress(): Progress | undefined {
    return this.#progress;
  }

  get #saved(): Checkpoint {
    this.#checkpoint ??= new Checkpoint(this.claimed, this.#host.save);
    return this.#checkpoint;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted && !this.#controller.signal.aborted) this.#controller.abort(this.#abortReason(this.#aborted));
    return this.#controller.signal;
  }

  async #awaitHandler(returned: PromiseLike<unknown>): Promise<void> {
    let judged: Judged;
    try {
      judged = this.#judgedOf(await returned);
    } catch (thrown) {
      judged = this.#judgedOfThrown(thrown);
    }
    this.#end(judged);
  }

  #judgedOf(returned: unknown): Judged {
    return isSignal(returned) ? this.#judgedOfThrown(returned) : { outcome: SUCCESS, returned };
  }

  #judgedOfThrown(thrown: unknown): Judged {
    if (this.#sourceTrouble !== undefined) return this.#unhealthy(this.#sourceTrouble);
    return this.#aborted ? this.#judgementOfAbort() : { outcome: this.#outcomeOf(thrown), error: thrown };
  }

  #end(judged: Judged): void {
    this.#ended = true;
    if (this.#definition.verify && !this.#judged) void this.#verified(judged).then((found) => this.#tell(found));
    else this.#tell(judged);
  }

  #tell(judged: Judged): void {
    if (this.#judged) this.#host.onOver(this);
    else this.#judge(judged);
  }

  /** Returns what the handler returned, or a promise for it if something must be waited for before. */
  #startHandler(): unknown {
    const owner = this.#owner();
    const asksHealth = this.claimed.probe && this.#definition.health;
    if (asksHealth || isOtherVersion(this.#definition, this.claimed.policy)) return this.#prepareHandler(owner);
    return this.#parseAndRun(owner, intactPayload(this.claimed));
  }

  async #prepareHandler(owner: Owner): Promise<unknown> {
    const asksHealth = this.claimed.probe && this.#definition.health;
    if (asksHealth) this.#sourceTrouble = await this.#troubleOfSource(owner);
    if (this.#sourceTrouble !== undefined) throw new Error(this.#sourceTrouble);
    const stored = intactPayload(this.claimed);
    const { policy } = this.claimed;
    const payload = isOtherVersion(this.#definition, policy)
      ? await ownedBy(owner, () => currentPayload(this.#definition, stored, policy))
      : stored;
    return this.#parseAndRun(owner, payload);
  }

  #parseAndRun(owner: Owner, payload: Json): unknown {
    // A child process parses the input itself.
    const { child, input: schema } = this.#definition;
    const input = child || !schema ? payload : ownedBy(owner, () => parseInput(this.#definition, payload));
    return isThenable(input) ? this.#runLater(owner, payload, input) : this.#run(owner, payload, input);
  }

  async #runLater(owner: Owner, payload: Json, input: PromiseLike<unknown>): Promise<unknown> {
    return this.#run(owner, payload, await input);
  }

  #run(owner: Owner, payload: Json, input: unknown): unknown {
    // An execution that was aborted before it began must not begin: another worker may have its task by now.
    if (this.#aborted) throw this.#abortReason(this.#aborted);
    const { child, batching } = this.#definition;
    if (batching) this.#gathering = true;
    else this.#begun = true;
    const task = runningTask(this, this.policy.maxAttempts);
    const { telemetry, batches } = this.#host;
    const call = () => {
      if (child) return this.#runInChild(child, payload, task);
      return batching
        ? batches.run(batching, input, task, () => this.#beginBatch())
        : this.#definition.run(input, task);
    };
    return ownedBy(owner, telemetry ? () => telemetry.within(this.claimed, call) : call);
  }

  /** What its verify step makes of an outcome of which a person would be asked. */
  async #verified(judged: Judged): Promise<Judged> {
    const { clock, log } = this.#host;
    const context = { definition: this.#definition, policy: this.policy, clock, log };
    if (!mustVerify(judged.outcome, this.claimed.facts, context)) return judged;
    this.#stopGrace?.();
    const found = await ownedBy(this.#owner(), () => verified(judged.outcome, this.claimed, context));
    return found.outcome.kind === 'success' ? found : { ...judged, ...found };
  }

  #beginBatch(): void {
    this.#gathering = false;
    this.#begun = true;
    this.heartbeat();
  }

  #runInChild(child: ChildSettings, payload: Json, task: RunningTask): Promise<unknown> {
    const { returned, end } = runInChild(child, this.#definition.type, payload, task);
    this.#endChild = end;
    return returned;
  }

  /** Why its source does not work, from the `health` check of its type; undefined if it works. */
  async #troubleOfSource(owner: Owner): Promise<string | undefined> {
    this.#askingHealth = true;
    const { signal } = this;
    let answer: unknown;
    try {
      answer = await ownedBy(owner, () => this.#definition.health?.(this.claimed.source, { signal }));
      if (isSignal(answer)) throw answer;
    } catch (thrown) {
      const outcome = this.#outcomeOf(thrown);
      return outcome.kind === 'failure' ? outcome.failure.message : 'it threw';
    }
    if (answer === false) return 'it answered false';
    // A result after the time limit does not count.
    if (this.#aborted) throw this.#abortReason(this.#aborted);
    this.#askingHealth = false;
    // The time of the check does not count as the handler's time.
    this.heartbeat();
    return undefined;
  }

  #unhealthy(why: string): Judged {
    if (this.#aborted && this.#aborted !== 'timeout') return { outcome: this.#outcomeOfAbort() };
    const message = `The health check of ${this.claimed.source} failed before the task began: ${why}.`;
    return { outcome: { kind: 'interruption', started: false, message }, unhealthy: true };
  }

  /** Everything that the handler starts keeps this object, so it references neither the execution nor its payload. */
  #owner(): Owner {
    const { lease, type, queue, source } = this.claimed;
    const { onStray } = this.#host;
    const execution = { lease, type, queue, source };
    return { onStray: (thrown) => onStray(execution, thrown) };
  }

  #outcomeOf(thrown: unknown): Outcome {
    return this.#host.outcomeOf(thrown, { now: this.#host.clock.now(), type: this.claimed.type });
  }

  #judge(judged: Judged): void {
    if (this.#judged) return;
    this.#judged = true;
    this.#stopGrace?.();
    this.#onJudged(judged);
  }

  #judgementOfAbort(): Judged {
    const { timeout } = this.policy;
    if (this.#aborted === 'timeout' && this.#askingHealth) return this.#unhealthy(`no answer within ${timeout} ms`);
    return { outcome: this.#outcomeOfAbort() };
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
  const name = 'TimeoutError';
  const message = `It ran longer than its time limit of ${limit} ms without a heartbeat.`;
  return {
    kind: 'transient',
    reason: 'timeout',
    fault: 'task',
    ambiguous: true,
    name,
    message,
    evidence: { rule: 'worker.timeout' },
    fingerprint: fingerprint('timeout', { name, message }),
  } as const;
}
