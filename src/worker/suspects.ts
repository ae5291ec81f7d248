import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { decide } from '../failure/decide.ts';
import type { Policy } from '../failure/policy.ts';
import type { Claimed, ClaimRequest } from '../store/store.ts';
import { mustRunAlone, probationOf } from '../suspects.ts';

/** If a process was not empty for this long, and a task must run alone, the process claims nothing until it is empty. */
const LONGEST_BUSY: Milliseconds = 60_000;

/** If the process is still not empty after this long, it runs the task beside others, so that no task waits for ever. */
const LONGEST_DRAIN: Milliseconds = 60_000;

interface Suspect {
  readonly lostInARow: number;
  readonly begunAt: Milliseconds;
}

/** The outcome with which a busy process hands back a task that must run alone. */
export const AWAITS_EMPTY = {
  kind: 'interruption',
  started: false,
  message: 'It must run alone, and its process first finishes its other tasks.',
} as const;

/**
 * Decides which suspects this process may claim now, for all of its workers and claims by hand. Suspects that may run beside
 * others start one at a time at first, and one more for each that reports anything. A suspect that runs longer than its probation
 * is no longer counted. After a new loss, this starts with one again. A suspect that must run alone is claimed only by a process
 * that runs nothing, and during its probation nothing else is claimed. A busy process stops claiming until it is empty, and then
 * claims it.
 */
export class Suspects {
  readonly #clock: Clock;
  /** How many tasks began in workers of this process and have not ended. A Map of all would keep garbage alive. */
  #inWorkers = 0;
  /** The open claims by hand, and whether their lease is still held: a forgotten claim loses its lease. */
  readonly #byHand = new Map<Claimed, () => boolean>();
  readonly #running = new Map<Claimed, Suspect>();
  #atOnce = 1;
  /** When the process last was empty and asked for a task that must run alone, or began one. */
  #busySince: Milliseconds = 0;
  /** When the process last stopped claiming to become empty. */
  #drainsSince: Milliseconds | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Which suspects a claim may ask for. Undefined if nothing may be claimed, because a task runs alone or waits for the process
   * to become empty.
   */
  get allowed(): Pick<ClaimRequest, 'suspects' | 'alone'> | undefined {
    const now = this.#clock.monotonic();
    const onProbation = [...this.#running]
      .filter(
        ([claimed, { lostInARow, begunAt }]) =>
          (this.#byHand.get(claimed)?.() ?? true) && now - begunAt < probationOf(lostInARow),
      )
      .map(([, suspect]) => suspect);
    if (onProbation.some(({ lostInARow }) => mustRunAlone(lostInARow))) return undefined;
    const isEmpty = this.#isEmpty;
    if (!isEmpty && this.#drainsSince !== undefined && now - this.#drainsSince < LONGEST_DRAIN) return undefined;
    const alone = isEmpty || now - this.#busySince >= LONGEST_BUSY;
    return { suspects: Math.max(0, this.#atOnce - onProbation.length), alone };
  }

  /** A claim asks now for a task that must run alone. */
  noteAsked(): void {
    if (!this.#isEmpty) return;
    this.#busySince = this.#clock.monotonic();
    this.#drainsSince = undefined;
  }

  /**
   * Whether a task that was just claimed may begin. One that must run alone may not begin while others run: it is handed back
   * with `AWAITS_EMPTY`, and nothing is claimed until the process is empty, or the wait took too long. A task that would end if
   * it were handed back may begin.
   */
  mayBegin({ facts }: Claimed, policy: Policy): boolean {
    if (!mustRunAlone(facts.lostInARow) || this.#isEmpty) return true;
    const now = this.#clock.monotonic();
    // A slot is free when the process is empty, so the task is claimed soon after that. An older wait was for another task.
    if (this.#drainsSince !== undefined && now - this.#drainsSince < 2 * LONGEST_DRAIN) return true;
    if (decide(facts, AWAITS_EMPTY, policy, 0).next !== 'scheduled') return true;
    this.#drainsSince = now;
    return false;
  }

  get #isEmpty(): boolean {
    if (this.#inWorkers > 0) return false;
    for (const isHeld of this.#byHand.values()) if (isHeld()) return false;
    return true;
  }

  /** A task of this process was claimed and begins. `isHeld` is given for a claim by hand. */
  begin(claimed: Claimed, isHeld?: () => boolean): void {
    if (isHeld) this.#byHand.set(claimed, isHeld);
    else this.#inWorkers += 1;
    const { lostInARow } = claimed.facts;
    if (lostInARow === 0) return;
    const now = this.#clock.monotonic();
    this.#running.set(claimed, { lostInARow, begunAt: now });
    if (!mustRunAlone(lostInARow)) return;
    this.#busySince = now;
    this.#drainsSince = undefined;
  }

  /** The task has ended, or its lease is lost: called once for each that began. `reported`: its execution had an outcome of its own. */
  end(claimed: Claimed, reported: boolean): void {
    if (!this.#byHand.delete(claimed)) this.#inWorkers -= 1;
    if (this.#running.delete(claimed) && reported) this.#atOnce += 1;
  }

  /** This process decided about a task that was lost with its worker. */
  noteLoss(): void {
    this.#atOnce = 1;
  }
}
