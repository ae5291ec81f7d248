import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { decide } from '../failure/decide.ts';
import type { Policy } from '../failure/policy.ts';
import type { Claimed, ClaimRequest } from '../store/store.ts';
import { mustRunAlone, probationOf } from '../suspects.ts';

/** A process that did not ask for so long while it ran nothing ends what it runs, once a task is due that must run alone. */
const LONGEST_BUSY: Milliseconds = 60_000;

/** Where it is not empty after so long, it takes that task beside others, so that none waits for ever. */
const LONGEST_DRAIN: Milliseconds = 60_000;

interface Suspect {
  readonly lostInARow: number;
  readonly begunAt: Milliseconds;
}

/** What a task that must run alone is handed back with by a process that is busy. */
export const AWAITS_EMPTY = {
  kind: 'interruption',
  started: false,
  message: 'It must run alone, and its process first ends what it runs.',
} as const;

/**
 * Which suspects this process may claim now; one for all of its workers and claims by hand. Those that may run beside others are
 * let go one at a time at first, and one more for each that reports anything; one that outlives its probation is counted no more. A
 * new loss begins anew with one. One that must run alone is for a process that runs nothing, and for its probation nothing else is
 * claimed; a busy process becomes empty for it.
 */
export class Suspects {
  readonly #clock: Clock;
  /** Every task that began here and has not ended, and whether its lease is held: a claim by hand that is forgotten lapses. */
  readonly #begun = new Map<Claimed, () => boolean>();
  readonly #running = new Map<Claimed, Suspect>();
  #atOnce = 1;
  /** When it last ran nothing and asked for what must run alone, or began such a task. */
  #busySince: Milliseconds = 0;
  /** When it last began to claim nothing until it is empty. */
  #drainsSince: Milliseconds | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What a claim may ask for; undefined while a task must run alone, or waits for that: then nothing is to be claimed. */
  get allowed(): Pick<ClaimRequest, 'suspects' | 'alone'> | undefined {
    const now = this.#clock.monotonic();
    const onProbation = [...this.#running]
      .filter(
        ([claimed, { lostInARow, begunAt }]) => this.#begun.get(claimed)?.() && now - begunAt < probationOf(lostInARow),
      )
      .map(([, suspect]) => suspect);
    if (onProbation.some(({ lostInARow }) => mustRunAlone(lostInARow))) return undefined;
    const isEmpty = this.#isEmpty;
    if (!isEmpty && this.#drainsSince !== undefined && now - this.#drainsSince < LONGEST_DRAIN) return undefined;
    const alone = isEmpty || now - this.#busySince >= LONGEST_BUSY;
    return { suspects: Math.max(0, this.#atOnce - onProbation.length), alone };
  }

  /** A claim asks now for what must run alone. */
  noteAsked(): void {
    if (!this.#isEmpty) return;
    this.#busySince = this.#clock.monotonic();
    this.#drainsSince = undefined;
  }

  /**
   * Whether what was just claimed may begin. One that must run alone may not while others run: it is to be handed back with
   * `AWAITS_EMPTY`, and nothing is claimed until the process is empty, or was not for too long. One that would end by that begins.
   */
  mayBegin({ facts }: Claimed, policy: Policy): boolean {
    if (!mustRunAlone(facts.lostInARow) || this.#isEmpty) return true;
    const now = this.#clock.monotonic();
    // A slot is free at the end of the drain, so the task is claimed soon after it; an older drain was for another task.
    if (this.#drainsSince !== undefined && now - this.#drainsSince < 2 * LONGEST_DRAIN) return true;
    if (decide(facts, AWAITS_EMPTY, policy, 0).next !== 'scheduled') return true;
    this.#drainsSince = now;
    return false;
  }

  get #isEmpty(): boolean {
    for (const isHeld of this.#begun.values()) if (isHeld()) return false;
    return true;
  }

  /** A task of this process was claimed and begins. */
  begin(claimed: Claimed, isHeld = () => true): void {
    const now = this.#clock.monotonic();
    this.#begun.set(claimed, isHeld);
    const { lostInARow } = claimed.facts;
    if (lostInARow === 0) return;
    this.#running.set(claimed, { lostInARow, begunAt: now });
    if (!mustRunAlone(lostInARow)) return;
    this.#busySince = now;
    this.#drainsSince = undefined;
  }

  /** It has ended, or its lease is lost. `reported`: an execution of it said how it ended. */
  end(claimed: Claimed, reported: boolean): void {
    this.#begun.delete(claimed);
    if (this.#running.delete(claimed) && reported) this.#atOnce += 1;
  }

  /** This process decided about a task that was lost with its worker. */
  noteLoss(): void {
    this.#atOnce = 1;
  }
}
