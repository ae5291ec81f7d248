import type { Milliseconds } from '../duration.ts';

/** A type whose executions take longer than this on average is not claimed ahead. */
const LONGEST: Milliseconds = 10;
/** And one whose executions take longer than this does not keep what was claimed ahead: giving back costs an execution each. */
const FAR_TOO_LONG: Milliseconds = 50;
/** What is claimed ahead is at most so much work for each slot, as far as was measured. */
const MOST_WORK: Milliseconds = 50;
/** And at most so many tasks. */
const MOST_TASKS = 500;
/** So many executions of a type are measured before anything is concluded. */
const ENOUGH = 20;
/** No execution is taken for shorter than this. */
const SHORTEST: Milliseconds = 0.1;

/** An average follows what is slower than itself at once, and what is faster in its time. */
const UP = 1 / 4;
const DOWN = 1 / 32;

/** How much one execution counts in the share of those that were far too long. */
const ONE_OF_MANY = 1 / 256;
/**
 * Each execution that is far too long has all that waits handed back, and each task that is handed back costs an execution. So
 * many fewer are claimed ahead, the more often that happens, that about this share of executions is repeated at most.
 */
const MOST_REPEATED = 1 / 50;

interface Measured {
  average: Milliseconds;
  /** The share of executions that were far too long; older ones count less. */
  tooLong: number;
  seen: number;
}

/** Measures how long the executions of each type take, and says how many tasks are worth claiming before there is room. */
export class Foresight {
  readonly #slots: number;
  readonly #permits: (type: string) => boolean;
  readonly #measured = new Map<string, Measured>();

  /** `permits` says which types may be claimed ahead at all. */
  constructor(slots: number, permits: (type: string) => boolean) {
    this.#slots = slots;
    this.#permits = permits;
  }

  note(type: string, ranFor: Milliseconds): void {
    const tooLong = ranFor > FAR_TOO_LONG ? 1 : 0;
    const known = this.#measured.get(type);
    if (!known) {
      this.#measured.set(type, { average: ranFor, tooLong: tooLong * ONE_OF_MANY, seen: 1 });
      return;
    }
    known.seen += 1;
    known.tooLong += (tooLong - known.tooLong) * ONE_OF_MANY;
    known.average += (ranFor - known.average) * (ranFor > known.average ? UP : DOWN);
  }

  /** Whether executions of this type were measured, and take so little time that more may be claimed ahead. */
  isShort(type: string): boolean {
    const known = this.#measured.get(type);
    return known !== undefined && known.seen >= ENOUGH && known.average <= LONGEST;
  }

  /** Whether executions of this type take so long that what waits for its turn is better claimed by somebody else. */
  isLong(type: string): boolean {
    const known = this.#measured.get(type);
    return known !== undefined && known.average > FAR_TOO_LONG;
  }

  /** What was measured holds no longer: what was claimed ahead had to wait. */
  doubt(): void {
    this.#measured.clear();
  }

  /** What to claim ahead where so many wait already; undefined while there are plenty, or nothing is known to be short. */
  request(waiting: number): { readonly limit: number; readonly types: readonly string[] } | undefined {
    const short = [...this.#measured].filter(([type]) => this.isShort(type) && this.#permits(type));
    if (short.length === 0) return undefined;
    const slowest = Math.max(SHORTEST, ...short.map(([, { average }]) => average));
    const tooLong = Math.max(...short.map(([, { tooLong: share }]) => share));
    const enough = Math.floor(Math.min(MOST_TASKS, (MOST_WORK * this.#slots) / slowest, MOST_REPEATED / tooLong));
    if (waiting > enough / 2) return undefined;
    return { limit: enough - waiting, types: short.map(([type]) => type) };
  }
}
