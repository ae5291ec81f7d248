import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { StoreError } from '../errors.ts';
import { aged } from '../failure/aged.ts';
import { type Decision, decide } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import type { Logger } from '../log.ts';
import type { Claimed, Report, Settled, Settlement, World } from '../store/store.ts';
import type { TaskState } from '../task.ts';
import type { Asking } from './asking.ts';
import type { Announcer, Finished } from './events.ts';

/** How an execution ended, or what there is to be said of a task that had none. */
export interface Ending {
  readonly outcome: Outcome;
  readonly ranFor: Milliseconds;
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

/** Decides about endings and writes the decisions, again and again until each is taken or refused. */
export class Settler {
  readonly #asking: Asking;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #log: Logger;
  readonly #announcer: Announcer;
  readonly #pauses = new Set<() => void>();
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
  async settle(claimed: Claimed, policy: Policy, ending: Ending, onTrouble = () => {}): Promise<Finished> {
    const { outcome, ranFor, result } = ending;
    let { facts, revision } = claimed;
    let elapsed = ranFor;
    for (;;) {
      const decision = decide(aged(facts, elapsed), outcome, policy, this.#random());
      const settlement: Settlement = {
        lease: claimed.lease,
        revision,
        decision,
        report: reportOf(ending),
        ...(result !== undefined && { result }),
      };
      const settled = await this.#persist(settlement, onTrouble);
      if (settled.answer === 'changed') {
        revision = settled.revision;
        // What a definition said of the task holds, whatever else has changed.
        facts = { ...settled.facts, idempotent: settled.facts.idempotent && claimed.facts.idempotent };
        elapsed = 0;
        continue;
      }
      const finished: Finished =
        settled.answer === 'stale'
          ? { kind: 'stale', task: claimed, outcome }
          : { kind: 'settled', task: claimed, outcome, decision, state: stateAfter(settled, decision), ranFor };
      this.#announcer.tell(finished);
      return finished;
    }
  }

  /** From now on a write that fails is not tried again. */
  giveUp(): void {
    this.#gaveUp = true;
    for (const over of [...this.#pauses]) over();
  }

  /** Our own writes are retried: finished work is never judged by a write that failed. */
  async #persist(settlement: Settlement, onTrouble: () => void): Promise<Settled> {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      try {
        const [answer] = await this.#asking.ask((tasks) => tasks.settle([settlement]));
        return answer as Settled;
      } catch (error) {
        // What is no failure of the store would fail the same way for ever.
        if (this.#gaveUp || !(error instanceof StoreError)) throw error;
        onTrouble();
        const { task } = settlement.lease;
        this.#log.error({ err: error, task }, 'The outcome could not be written; trying again');
        await this.#pause(pause);
      }
    }
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
  const base = { ranFor: Math.round(ranFor), outcome: outcome.kind };
  switch (outcome.kind) {
    case 'failure':
      return { ...base, failure: outcome.failure };
    case 'deferral':
      return { ...base, message: outcome.message };
    case 'interruption':
      return { ...base, message: outcome.message, ...(!outcome.started && { unbegun: true }) };
    case 'success':
    case 'loss':
    case 'expiry':
      return { ...base, ...(note !== undefined && { message: note }) };
  }
}

function stateAfter(settled: Settled, decision: Decision): TaskState {
  return settled.answer === 'settled' ? settled.state : decision.next;
}
