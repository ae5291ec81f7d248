import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { StoreError } from '../errors.ts';
import { aged } from '../failure/aged.ts';
import { type Decision, decide, type Facts } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import type { Logger } from '../log.ts';
import type { Claimed, Report, Settled, Settlement, World } from '../store/store.ts';
import type { TaskState } from '../task.ts';
import type { Finished } from '../telemetry/events.ts';
import type { Writable } from '../writable.ts';
import type { Announcer } from './announcer.ts';
import type { Asking } from './asking.ts';

/** How an execution ended, or what there is to be said of a task that had none. */
export interface Ending {
  readonly outcome: Outcome;
  readonly ranFor: Milliseconds;
  /** For how much of that time its process was frozen. */
  readonly frozenFor?: Milliseconds;
  /** As JSON. */
  readonly result?: string;
  /** What is worth remembering of a success. */
  readonly note?: string;
}

/** A write that failed is tried again after 100 ms, doubling up to this. */
export const LONGEST_PAUSE: Milliseconds = 5_000;
export const FIRST_PAUSE: Milliseconds = 100;

export interface SettlerOptions {
  readonly asking: Asking;
  readonly world: World;
  readonly log: Logger;
  readonly announcer: Announcer;
}

/** What is to be settled, as far as it is known: the facts change while somebody else touches the task. */
interface Pending {
  readonly claimed: Claimed;
  readonly policy: Policy;
  readonly ending: Ending;
  readonly onTrouble: () => void;
  readonly resolve: (finished: Finished) => void;
  readonly reject: (error: unknown) => void;
  facts: Facts;
  revision: number;
  /** How much later than the facts it is now. */
  elapsed: Milliseconds;
  /** For how much of that its process was frozen. */
  frozen: Milliseconds;
  decision?: Decision;
}

/**
 * Decides about endings and writes the decisions, again and again until each is taken or refused. What ends in one turn is
 * written with one call.
 */
export class Settler {
  readonly #asking: Asking;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #log: Logger;
  readonly #announcer: Announcer;
  readonly #pauses = new Set<() => void>();
  #round: Pending[] = [];
  #gaveUp = false;

  constructor({ asking, world, log, announcer }: SettlerOptions) {
    this.#asking = asking;
    this.#clock = world.clock;
    this.#random = world.random;
    this.#log = log;
    this.#announcer = announcer;
  }

  /**
   * Settles one claim; decides again where its facts changed meanwhile. `onTrouble` is called when a write has failed.
   * Rejects only when the worker gives up, or its store is closed: then the lease is left to be taken over.
   */
  settle(claimed: Claimed, policy: Policy, ending: Ending, onTrouble = () => {}): Promise<Finished> {
    const { facts, revision } = claimed;
    return new Promise((resolve, reject) => {
      const { ranFor: elapsed, frozenFor: frozen = 0 } = ending;
      this.#add({ claimed, policy, ending, onTrouble, resolve, reject, facts, revision, elapsed, frozen });
    });
  }

  /** From now on a write that fails is not tried again. */
  giveUp(): void {
    this.#gaveUp = true;
    for (const over of [...this.#pauses]) over();
  }

  #add(pending: Pending): void {
    this.#round.push(pending);
    if (this.#round.length > 1) return;
    queueMicrotask(() => {
      const round = this.#round;
      this.#round = [];
      void this.#write(round);
    });
  }

  /** Our own writes are retried: finished work is never judged by a write that failed. */
  async #write(round: readonly Pending[]): Promise<void> {
    const settlements = round.map((pending) => this.#decide(pending));
    for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        const answers = await this.#asking.ask((tasks) => tasks.settle(settlements));
        for (const [i, pending] of round.entries()) this.#take(pending, answers[i] as Settled);
        return;
      } catch (error) {
        // What is no failure of the store would fail the same way for ever.
        if (this.#gaveUp || !(error instanceof StoreError)) return this.#writeAlone(round, error);
        for (const { onTrouble } of round) onTrouble();
        // A statement was refused or blocked, perhaps because of one of them: the others must not wait for that.
        if (/^store_(?:unavailable|busy)$/.test(error.code) && round.length > 1) return this.#writeAlone(round, error);
        const [first, ...others] = round.map(({ claimed }) => claimed.lease.task);
        const fields = { err: error, task: first, ...(others.length > 0 && { others: others.length }) };
        this.#log.error(fields, 'The outcome could not be written; trying again');
        await this.#pause(pause);
      }
    }
  }

  async #writeAlone(round: readonly Pending[], error: unknown): Promise<void> {
    const [only, ...others] = round;
    if (others.length === 0 || this.#gaveUp) for (const { reject } of round) reject(error);
    else await Promise.all([only as Pending, ...others].map((pending) => this.#write([pending])));
  }

  #decide(pending: Pending): Settlement {
    const { claimed, policy, ending, facts, revision, elapsed } = pending;
    // A success is one whatever the facts.
    const judged = ending.outcome.kind === 'success' ? facts : aged(facts, elapsed, pending.frozen);
    const decision = decide(judged, ending.outcome, policy, this.#random());
    pending.decision = decision;
    const settlement: Writable<Settlement> = { lease: claimed.lease, revision, decision, report: reportOf(ending) };
    if (ending.result !== undefined) settlement.result = ending.result;
    return settlement;
  }

  #take(pending: Pending, settled: Settled): void {
    const { claimed, ending, resolve } = pending;
    const { outcome, ranFor } = ending;
    if (settled.answer === 'changed') {
      pending.revision = settled.revision;
      // What a definition said of the task holds, whatever else has changed.
      pending.facts = { ...settled.facts, idempotent: settled.facts.idempotent && claimed.facts.idempotent };
      pending.elapsed = 0;
      pending.frozen = 0;
      this.#add(pending);
      return;
    }
    const decision = pending.decision as Decision;
    const finished: Finished =
      settled.answer === 'stale'
        ? { kind: 'stale', task: claimed, outcome }
        : { kind: 'settled', task: claimed, outcome, decision, state: stateAfter(settled, decision), ranFor };
    this.#announcer.tell(finished);
    resolve(finished);
  }

  /** Waits, but no longer than until the worker gives up. */
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
