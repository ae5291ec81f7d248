import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { StoreError } from '../errors.ts';
import { aged } from '../failure/aged.ts';
import type { RateLimit } from '../failure/classify/quotas.ts';
import { type Decision, decide, type Facts } from '../failure/decide.ts';
import { type Outcome, saysSomething } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import type { Logger } from '../log.ts';
import { type About, leavesNormal, type Observation, observationOf } from '../source/observation.ts';
import type { Claimed, Report, Settled, Settlement, World } from '../store/store.ts';
import type { TaskState } from '../task.ts';
import { CountedAs } from '../telemetry/counted-as.ts';
import type { Finished } from '../telemetry/events.ts';
import type { Writable } from '../writable.ts';
import type { Announcer } from './announcer.ts';
import type { Asking } from './asking.ts';
import { sightingOf } from './failure-groups.ts';
import { adaptedReason, type KnownRetries, retriedAs } from './known-retries.ts';
import type { KnownSources } from './known-sources.ts';
import { objectionToPolicy } from './policy-for.ts';
import { SourceChains, type SourceStep } from './source-chains.ts';
import { sourceEvent } from './source-event.ts';

/** How an execution ended, or the outcome of a task that did not run. */
export interface Ending {
  readonly outcome: Outcome;
  readonly ranFor: Milliseconds;
  /** What its handler threw. */
  readonly error?: unknown;
  /** For how much of this time its process was frozen. */
  readonly frozenFor?: Milliseconds;
  /** As JSON. */
  readonly result?: string;
  /** The last progress, as JSON, if it is not saved yet. */
  readonly progress?: string;
  /** A note about a success for the history. */
  readonly note?: string;
  /**
   * It did not begin, because the health check of its source failed. This counts as a failed probe, but not as a failure of the
   * task.
   */
  readonly unhealthy?: true;
  /** The rate limit that its source reported. */
  readonly limit?: RateLimit;
}

/**
 * The end of a settlement. An error if the worker gave up before the outcome was written: then another worker takes the task over.
 */
export type Ended = { readonly finished: Finished } | { readonly error: unknown };

/** A failed write is repeated after 100 ms, doubling up to this. */
export const LONGEST_PAUSE: Milliseconds = 5_000;
export const FIRST_PAUSE: Milliseconds = 100;

/** If other processes change the same source all the time, there are pauses between attempts, doubling up to the longest. */
const FIRST_YIELD: Milliseconds = 5;
const LONGEST_YIELD: Milliseconds = 200;

export interface SettlerOptions {
  readonly asking: Asking;
  readonly sources: KnownSources;
  readonly retries: KnownRetries;
  readonly world: World;
  readonly log: Logger;
  readonly announcer: Announcer;
  /** Whether its worker is there for one task only, and somebody waits for that. Default: no. */
  readonly isForOneTask?: () => boolean;
}

export interface Callbacks {
  onEnded(ended: Ended): void;
  /** Called when a write has failed. */
  onTrouble?(): void;
  /** Called when it was decided, in the same turn of the event loop. Once for all outcomes of a turn, which have the same. */
  readonly onDecided?: (() => void) | undefined;
}

/**
 * An outcome that is not written yet. Its facts are replaced when somebody else has changed the task. It is of a class for the reason that
 * stands at `ClaimedTask`.
 */
class Pending {
  readonly claimed: Claimed;
  readonly policy: Policy;
  readonly ending: Ending;
  readonly callbacks: Callbacks;
  facts: Facts;
  revision: number;
  /** How old the facts are. */
  elapsed: Milliseconds;
  /** For how much of this time the process was frozen. */
  frozen: Milliseconds;
  /** When it ended. */
  readonly endedAt: Milliseconds;
  /** How many times in a row it was decided again because only its source had changed. */
  overtaken = 0;
  decision: Decision | undefined;
  step: SourceStep | undefined;
  /** Set when it is written. */
  finished: Finished | undefined;

  constructor(claimed: Claimed, policy: Policy, ending: Ending, callbacks: Callbacks, endedAt: Milliseconds) {
    this.claimed = claimed;
    this.policy = policy;
    this.ending = ending;
    this.callbacks = callbacks;
    this.facts = claimed.facts;
    this.revision = claimed.revision;
    this.elapsed = ending.ranFor;
    this.frozen = ending.frozenFor ?? 0;
    this.endedAt = endedAt;
  }
}

/**
 * Decides about outcomes and writes the decisions, and repeats this until each is written or refused. Outcomes of one turn of the
 * event loop are written with one call.
 */
export class Settler {
  readonly #asking: Asking;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #log: Logger;
  readonly #announcer: Announcer;
  readonly #sources: KnownSources;
  readonly #retries: KnownRetries;
  readonly #isForOneTask: () => boolean;
  readonly #countedAs = new CountedAs();
  readonly #pauses = new Set<() => void>();
  #round: Pending[] = [];
  #isDeciding = false;
  /** To be called when the round is decided. */
  #onDecided: (() => void) | undefined;
  #gaveUp = false;

  constructor({ asking, world, log, announcer, sources, retries, isForOneTask = () => false }: SettlerOptions) {
    this.#asking = asking;
    this.#clock = world.clock;
    this.#random = world.random;
    this.#log = log;
    this.#announcer = announcer;
    this.#sources = sources;
    this.#retries = retries;
    this.#isForOneTask = isForOneTask;
  }

  /**
   * Settles one claim, and decides again if its facts have changed meanwhile. Rejects only if the worker gives up, or its store is
   * closed: then another worker takes the task over.
   */
  settle(claimed: Claimed, policy: Policy, ending: Ending): Promise<Finished> {
    return new Promise((resolve, reject) => {
      const onEnded = (ended: Ended) => ('finished' in ended ? resolve(ended.finished) : reject(ended.error));
      this.begin(claimed, policy, ending, { onEnded });
    });
  }

  /** The same with callbacks, because a promise for each execution is slow. */
  begin(claimed: Claimed, policy: Policy, ending: Ending, callbacks: Callbacks): void {
    const pending = new Pending(claimed, policy, ending, callbacks, this.#clock.monotonic());
    if (adaptedReason(ending.outcome, policy) === undefined) this.#add(pending);
    else void this.#retries.refresh().then(() => this.#add(pending));
  }

  /** From now on, a failed write is not repeated. */
  giveUp(): void {
    this.#gaveUp = true;
    for (const over of [...this.#pauses]) over();
  }

  #add(pending: Pending): void {
    this.#onDecided ??= pending.callbacks.onDecided;
    this.#isDeciding ||= !this.#leavesOthers(pending);
    this.#round.push(pending);
    if (this.#round.length > 1) return;
    queueMicrotask(() => {
      const round = this.#sources.areChanging ? this.#round.filter((one) => !this.#mustWait(one)) : this.#round;
      this.#round = [];
      this.#isDeciding = false;
      const onDecided = this.#onDecided;
      this.#onDecided = undefined;
      if (round.length > 0) void this.#write(round);
      onDecided?.();
    });
  }

  /** Whether an outcome waits that must be decided before another task begins, because it may hold a source. */
  get isDeciding(): boolean {
    return this.#isDeciding;
  }

  /** Whether it is a success of a source in its normal state, which changes nothing for other tasks. */
  #leavesOthers({ claimed, ending }: Pending): boolean {
    if (ending.outcome.kind !== 'success' || ending.limit !== undefined) return false;
    return claimed.sourceState === undefined && this.#sources.areNormal;
  }

  /** While a change of its source is being written, an outcome waits. It is then written together with the others that wait. */
  #mustWait(pending: Pending): boolean {
    const { claimed, ending } = pending;
    if (!saysSomething(ending.outcome)) return false;
    return this.#sources.awaitsChange(claimed.source, () => this.#add(pending));
  }

  /** A failed write is repeated. It never makes a failure of a finished task. */
  async #write(round: readonly Pending[]): Promise<void> {
    const chains = new SourceChains(this.#sources);
    const settlements = round.map((pending) => this.#decide(pending, chains));
    const changing = chains.changed;
    this.#sources.beginChange(changing);
    let changed: readonly Pending[] | undefined;
    for (let pause = FIRST_PAUSE; !changed; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        const answers = await this.#asking.ask((tasks) => tasks.settle(settlements));
        if (changing.length > 0) chains.taken(sourcesNotTaken(round, answers));
        changed = round.filter((pending, i) => this.#take(pending, answers[i] as Settled) === 'changed');
        this.#sources.endChange(changing);
      } catch (error) {
        // Outcomes that wait for this write must not wait while it fails.
        for (const source of changing) this.#sources.forget(source);
        this.#sources.endChange(changing);
        // An error that is not the store's would occur again each time.
        if (this.#gaveUp || !(error instanceof StoreError)) return this.#writeAlone(round, error);
        for (const { callbacks } of round) callbacks.onTrouble?.();
        // A statement was refused or blocked, perhaps because of one outcome. The others must not wait for it.
        if (/^store_(?:unavailable|busy)$/.test(error.code) && round.length > 1) return this.#writeAlone(round, error);
        const [first, ...others] = round.map(({ claimed }) => claimed.lease.task);
        const fields = { err: error, task: first, ...(others.length > 0 && { others: others.length }) };
        this.#log.error(fields, 'The outcome could not be written; trying again');
        await this.#pause(pause);
      }
    }
    for (const { finished, callbacks } of round) if (finished) callbacks.onEnded({ finished });
    return this.#writeAgain(changed);
  }

  async #writeAlone(round: readonly Pending[], error: unknown): Promise<void> {
    const [only, ...others] = round;
    if (others.length === 0 || this.#gaveUp) for (const { callbacks } of round) callbacks.onEnded({ error });
    else await Promise.all([only as Pending, ...others].map((pending) => this.#write([pending])));
  }

  #decide(pending: Pending, chains: SourceChains): Settlement {
    const { claimed, policy, ending, revision } = pending;
    const { outcome } = ending;
    const leavesSource =
      ending.limit === undefined && !ending.unhealthy && chains.isSurelyNormal(claimed) && leavesNormal(outcome);
    const step = leavesSource ? undefined : this.#observe(pending, chains);
    const decided = decide(this.#factsOf(pending, step), outcome, policy, this.#random());
    const decision = decided.next === 'succeeded' ? decided : sayingWhosePolicy(decided, claimed);
    pending.decision = decision;
    const settlement: Writable<Settlement> = { lease: claimed.lease, revision, decision, report: reportOf(ending) };
    const { facts } = pending;
    const retried = retriedAs(claimed, facts, policy, outcome, decision);
    settlement.countedAs = this.#countedAs.keyOf(claimed, facts, policy.maxAttempts, outcome, decision, retried);
    const sighting = sightingOf(claimed, outcome, decision);
    if (sighting) settlement.sighting = sighting;
    if (ending.result !== undefined) settlement.result = ending.result;
    if (ending.progress !== undefined) settlement.progress = ending.progress;
    if (step) {
      pending.step = step;
      if (step.source !== undefined) settlement.source = step.source;
      if (step.isRestricted) this.#sources.restricted(claimed.source);
    }
    return settlement;
  }

  /** Applies the outcome to the state of its source, after the earlier outcomes of this round. */
  #observe({ claimed, policy, ending, endedAt }: Pending, chains: SourceChains): SourceStep {
    const { lease, probe = false, drained = false } = claimed;
    const endedAgo = this.#clock.monotonic() - endedAt;
    const startedAgo = ending.ranFor + endedAgo;
    const about = {
      task: lease.task,
      execution: lease.execution,
      startedAgo,
      probe,
      drained,
      ...(ending.limit && { rateLimit: { ...ending.limit, resetsIn: ending.limit.resetsIn - endedAgo } }),
    };
    const observation = ending.unhealthy
      ? unhealthy(ending, policy, about)
      : observationOf(ending.outcome, policy, about);
    return chains.add(claimed, startedAgo, observation, this.#random);
  }

  #factsOf({ claimed, policy, ending, facts, elapsed, frozen }: Pending, step: SourceStep | undefined): Facts {
    // A success is decided without facts.
    if (ending.outcome.kind === 'success') return facts;
    const reason = adaptedReason(ending.outcome, policy);
    const known = aged(facts, elapsed, frozen);
    const now = reason === undefined ? known : { ...known, observed: this.#retries.of(claimed, reason) };
    if (!step?.facts) return now;
    return { ...now, source: this.#isForOneTask() ? { ...step.facts, alone: true } : step.facts };
  }

  #take(pending: Pending, settled: Settled): 'taken' | 'changed' {
    const { claimed, ending, step } = pending;
    const { outcome, ranFor } = ending;
    if (settled.answer === 'changed') {
      pending.overtaken = settled.revision === pending.revision ? pending.overtaken + 1 : 0;
      pending.revision = settled.revision;
      // `idempotent: false` of the definition still applies.
      pending.facts = { ...settled.facts, idempotent: settled.facts.idempotent && claimed.facts.idempotent };
      pending.elapsed = 0;
      pending.frozen = 0;
      if (step?.source !== 'any')
        this.#sources.heard(claimed.source, settled.sourceState, claimed.sourceState?.revision ?? 0);
      return 'changed';
    }
    const decision = pending.decision as Decision;
    const finished: Writable<Finished> =
      settled.answer === 'stale'
        ? { kind: 'stale', task: claimed, outcome }
        : { kind: 'settled', task: claimed, outcome, decision, state: stateAfter(settled, decision), ranFor };
    if (ending.error !== undefined) finished.error = ending.error;
    this.#announcer.tell(finished);
    if (finished.kind === 'settled' && step?.condition) {
      this.#announcer.log(sourceEvent(claimed.source, step.condition));
    }
    pending.finished = finished;
    return 'taken';
  }

  /**
   * Decides again with the new facts. If only the sources change, again and again, other workers change them too. Then each
   * worker waits for a random time, so that all of them make progress.
   */
  async #writeAgain(changed: readonly Pending[]): Promise<void> {
    if (changed.length === 0) return;
    const overtaken = Math.max(...changed.map((pending) => pending.overtaken));
    if (overtaken > 1 && !this.#gaveUp) {
      const pause = Math.min(FIRST_YIELD * 2 ** (overtaken - 1), LONGEST_YIELD) * this.#random();
      await this.#pause(pause);
      for (const pending of changed) pending.elapsed += pause;
    }
    for (const pending of changed) this.#add(pending);
  }

  /** Waits, or until the worker gives up. */
  async #pause(ms: Milliseconds): Promise<void> {
    await new Promise<void>((resolve) => {
      const over = () => {
        stop();
        this.#pauses.delete(over);
        resolve();
      };
      const stop = this.#clock.after(ms, over);
      this.#pauses.add(over);
    });
  }
}

/** The sources of outcomes that were not written. */
function sourcesNotTaken(round: readonly Pending[], answers: readonly Settled[]): ReadonlySet<string> {
  const missing = round.filter((_, i) => answers[i]?.answer === 'changed' || answers[i]?.answer === 'stale');
  return new Set(missing.map(({ claimed }) => claimed.source));
}

/** A failed probe, by the health check of its source. */
function unhealthy({ outcome }: Ending, { maxRetryAfter, source: switches }: Policy, about: About): Observation {
  const message = outcome.kind === 'interruption' ? outcome.message : '';
  return { ...about, kind: 'source_failure', reason: 'source.unhealthy', message, maxRetryAfter, switches };
}

/** A task's own policy may have been stored by a newer version that has other options. */
function sayingWhosePolicy<Decided extends Decision>(decided: Decided, { policy }: Claimed): Decided {
  const objection = objectionToPolicy(policy);
  if (objection === undefined) return decided;
  const text = `${decided.because.text} The task's own policy cannot be read, so the policy of its type decided: ${objection}`;
  return { ...decided, because: { ...decided.because, text } };
}

function reportOf({ outcome, ranFor, note }: Ending): Report {
  const report: Writable<Report> = { ranFor: Math.round(ranFor), outcome: outcome.kind };
  switch (outcome.kind) {
    case 'failure':
      report.failure = outcome.failure;
      return report;
    case 'interruption':
      if (!outcome.started) report.unbegun = true;
      report.message = outcome.message;
      return report;
    case 'deferral':
      report.message = outcome.message;
      return report;
    case 'verdict':
      report.unbegun = true;
      return report;
    case 'success':
    case 'loss':
    case 'expiry':
      if (note !== undefined) report.message = note;
      return report;
  }
}

function stateAfter(settled: Settled, decision: Decision): TaskState {
  return settled.answer === 'settled' ? settled.state : decision.next;
}
