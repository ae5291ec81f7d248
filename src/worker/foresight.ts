import type { Milliseconds } from '../duration.ts';

/** A type whose executions take longer than this on average is not claimed ahead. */
const LONGEST: Milliseconds = 10;
/**
 * If executions of a type take longer than this, its tasks that were claimed ahead are handed back. Handing back costs an
 * execution each.
 */
const FAR_TOO_LONG: Milliseconds = 50;
/** At most this much work is claimed ahead for each slot, as far as it was measured. */
const MOST_WORK: Milliseconds = 50;
/** The most tasks that are claimed ahead. */
const MOST_TASKS = 500;
/** At most about so many characters of payload are claimed ahead: the worker has them in memory. */
const MOST_CHARACTERS = 16 * 1_048_576;
/** How many executions of a type are measured before its tasks may be claimed ahead. */
const ENOUGH = 20;
/** The shortest time that is assumed for an execution. */
const SHORTEST: Milliseconds = 0.1;

/** An average follows slower executions and longer payloads at once, and others slowly. */
const UP = 1 / 4;
const DOWN = 1 / 32;

/** The weight of one execution in the share of those that were far too long. */
const ONE_OF_MANY = 1 / 256;
/**
 * If an execution is far too long, all tasks that were claimed ahead are handed back, and each of them costs an execution. The
 * more often this happens, the fewer tasks are claimed ahead, so that at most about this share of executions is repeated.
 */
const MOST_REPEATED = 1 / 50;

interface Measured {
  average: Milliseconds;
  /** The share of executions that were far too long; older ones count less. */
  tooLong: number;
  /** The average length of a payload. */
  length: number;
  seen: number;
}

/** Measures how long the executions of each type take, and decides how many tasks to claim before a slot is free. */
export class Foresight {
  readonly #slots: number;
  readonly #permits: (type: string) => boolean;
  readonly #measured = new Map<string, Measured>();

  /** `permits` says which types may be claimed ahead at all. */
  constructor(slots: number, permits: (type: string) => boolean) {
    this.#slots = slots;
    this.#permits = permits;
  }

  note(type: string, ranFor: Milliseconds, length: number): void {
    const tooLong = ranFor > FAR_TOO_LONG ? 1 : 0;
    const known = this.#measured.get(type);
    if (!known) {
      this.#measured.set(type, { average: ranFor, tooLong: tooLong * ONE_OF_MANY, length, seen: 1 });
      return;
    }
    known.seen += 1;
    known.tooLong += (tooLong - known.tooLong) * ONE_OF_MANY;
    known.average += (ranFor - known.average) * (ranFor > known.average ? UP : DOWN);
    known.length += (length - known.length) * (length > known.length ? UP : DOWN);
  }

  /** Whether executions of this type were measured, and are short enough to claim more tasks ahead. */
  isShort(type: string): boolean {
    const known = this.#measured.get(type);
    return known !== undefined && known.seen >= ENOUGH && known.average <= LONGEST;
  }

  /** Whether executions of this type take so long that another worker should claim the waiting tasks. */
  isLong(type: string): boolean {
    const known = this.#measured.get(type);
    return known !== undefined && known.average > FAR_TOO_LONG;
  }

  /** Forgets the measurements: tasks that were claimed ahead had to wait. */
  doubt(): void {
    this.#measured.clear();
  }

  /**
   * How many tasks of which types to claim ahead if this many wait already; undefined if enough wait, or no type is known to be
   * short.
   */
  request(waiting: number): { readonly limit: number; readonly types: readonly string[] } | undefined {
    // Most calls end here.
    if (waiting > MOST_TASKS / 2) return undefined;
    const short = [...this.#measured].filter(([type]) => this.isShort(type) && this.#permits(type));
    if (short.length === 0) return undefined;
    const slowest = Math.max(SHORTEST, ...short.map(([, { average }]) => average));
    const tooLong = Math.max(...short.map(([, { tooLong: share }]) => share));
    const longest = Math.max(...short.map(([, { length }]) => length));
    const most = Math.min(MOST_TASKS, MOST_CHARACTERS / longest);
    const enough = Math.floor(Math.min(most, (MOST_WORK * this.#slots) / slowest, MOST_REPEATED / tooLong));
    if (waiting > enough / 2) return undefined;
    return { limit: enough - waiting, types: short.map(([type]) => type) };
  }
}
