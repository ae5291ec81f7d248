import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Claimed, ClaimRequest } from '../store/store.ts';
import { mustRunAlone, probationOf } from '../suspects.ts';

/** A process that was busy for so long takes a task that must run alone beside others, so that none waits for ever. */
const LONGEST_BUSY: Milliseconds = 60_000;

interface Suspect {
  readonly lostInARow: number;
  readonly begunAt: Milliseconds;
}

/**
 * Which suspects this process may claim now; one for all of its workers and claims by hand. Those that may run beside others are
 * let go one at a time at first, and one more for each that reports anything; a new loss begins anew with one. One that must run
 * alone is for a process that runs nothing, and for its probation nothing else is claimed.
 */
export class Suspects {
  readonly #clock: Clock;
  /** Every task that began here and has not ended, and whether its lease is held: a claim by hand that is forgotten lapses. */
  readonly #begun = new Map<Claimed, () => boolean>();
  readonly #running = new Map<Claimed, Suspect>();
  #atOnce = 1;
  #busySince: Milliseconds = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What a claim may ask for; undefined while a task must run alone: then nothing is to be claimed. */
  get allowed(): Pick<ClaimRequest, 'suspects' | 'alone'> | undefined {
    const held = [...this.#running].filter(([claimed]) => this.#begun.get(claimed)?.()).map(([, suspect]) => suspect);
    const now = this.#clock.monotonic();
    if (held.some(({ lostInARow, begunAt }) => mustRunAlone(lostInARow) && now - begunAt < probationOf(lostInARow))) {
      return undefined;
    }
    const beside = held.filter(({ lostInARow }) => !mustRunAlone(lostInARow)).length;
    const alone = this.#isEmpty || now - this.#busySince >= LONGEST_BUSY;
    return { suspects: Math.max(0, this.#atOnce - beside), alone };
  }

  get #isEmpty(): boolean {
    for (const isHeld of this.#begun.values()) if (isHeld()) return false;
    return true;
  }

  /** A task of this process was claimed and begins. */
  begin(claimed: Claimed, isHeld = () => true): void {
    const now = this.#clock.monotonic();
    if (this.#isEmpty) this.#busySince = now;
    this.#begun.set(claimed, isHeld);
    const { lostInARow } = claimed.facts;
    if (lostInARow === 0) return;
    this.#running.set(claimed, { lostInARow, begunAt: now });
    if (mustRunAlone(lostInARow)) this.#busySince = now;
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
