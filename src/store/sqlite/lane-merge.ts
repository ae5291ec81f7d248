import type { Sql } from './driver.ts';
import { type ActiveLane, type LaneGroup, type Lanes, type Position, precedes } from './lanes.ts';

/** The lanes of one group in their order, as far as they were read from `hf_active`. */
export interface MergeInput {
  readonly group: LaneGroup;
  lanes: ActiveLane[];
  /** Whether `hf_active` may have more. */
  more: boolean;
  /** How many were asked for at the last read; 0 if only the first lane is known. */
  asked: number;
  /** Whether tasks were taken from it since the last read. */
  changed: boolean;
}

/** How many lanes of a group are read at once. */
const MOST_LANES = 128;

/** In how many inputs the lanes are counted. */
const MOST_COUNTED = 8;

/**
 * The inputs that a claim merges, sorted by their first lanes. A claim reads only the inputs that it reaches, even if there are
 * thousands.
 */
export class Merge {
  readonly #sql: Sql;
  readonly #lanes: Lanes;
  readonly #inputs: MergeInput[];
  /** How many lanes are read of an input that a claim reaches. */
  readonly #each: number;

  /** `inputs` have only their first lanes. `limit`: how many tasks the claim wants. */
  constructor(sql: Sql, lanes: Lanes, inputs: MergeInput[], limit: number) {
    this.#sql = sql;
    this.#lanes = lanes;
    this.#inputs = inputs.sort((a, b) => (precedes(a.lanes[0] as ActiveLane, b.lanes[0] as ActiveLane) ? -1 : 1));
    this.#each = Math.min(MOST_LANES, 1 + Math.ceil((2 * limit) / (inputs.length + 1)));
  }

  /** The input whose first lane comes before all others. */
  get first(): MergeInput | undefined {
    return this.#inputs[0];
  }

  /** The inputs whose first lanes have the same order key as the first lane of all: in a fair queue, the lanes of one source. */
  firsts(): MergeInput[] {
    const key = this.first?.lanes[0]?.order_key;
    const others = this.#inputs.findIndex((input) => input.lanes[0]?.order_key !== key);
    return others < 0 ? [...this.#inputs] : this.#inputs.slice(0, others);
  }

  /** The position of the second lane of all. */
  secondPosition(): Position | undefined {
    const [first, second] = this.#inputs;
    if (!first) return undefined;
    if (first.lanes.length < 2) this.#read(first);
    return earlier(first.lanes[1], second?.lanes[0]);
  }

  /**
   * Whether at least this many lanes wait. If there are many inputs, only the lanes of the first few are counted, and one lane of
   * each other.
   */
  hasAtLeast(lanes: number): boolean {
    let counted = this.#inputs.length;
    for (const { group } of this.#inputs.slice(0, MOST_COUNTED)) {
      if (counted >= lanes) break;
      const [found] = this.#sql.column<number>(
        'SELECT count(*) FROM (SELECT 1 FROM hf_active WHERE class = ? AND track = ? LIMIT ?)',
        group.class,
        group.track,
        lanes - counted + 1,
      ) as [number];
      counted += found - 1;
    }
    return counted >= lanes;
  }

  /**
   * Called after tasks were taken from the first lane of each of the first inputs. A lane with more tasks moves to its new
   * position, `next`.
   */
  moveFirst(inputs: readonly MergeInput[], next: readonly (ActiveLane | undefined)[]): void {
    this.#inputs.splice(0, inputs.length);
    inputs.forEach((input, n) => {
      input.changed = true;
      input.lanes.shift();
      const lane = next[n];
      if (lane) insertLane(input, lane);
      if (input.lanes.length === 0) this.#read(input);
      this.#insertSorted(input);
    });
  }

  /** Leaves out the lanes of a track. */
  dropTrack(track: number): void {
    const others = this.#inputs.filter(({ group }) => group.track !== track);
    if (others.length === this.#inputs.length) return;
    this.#inputs.splice(0, this.#inputs.length, ...others);
  }

  /** Whether the lanes of a group are among the inputs. */
  has({ class: id, track }: LaneGroup): boolean {
    return this.#inputs.some(({ group }) => group.class === id && group.track === track);
  }

  /** Reads the lanes of a group again, after a task was taken from one that was not the first of all. */
  readAgain({ class: id, track }: LaneGroup): void {
    const at = this.#inputs.findIndex(({ group }) => group.class === id && group.track === track);
    const [input] = this.#inputs.splice(at, 1) as [MergeInput];
    Object.assign(input, { lanes: [], more: true, changed: true });
    this.#read(input);
    this.#insertSorted(input);
  }

  /** Leaves out lanes of a source that were deactivated: all of them, or those of one track. */
  dropSource(source: string, track?: number): void {
    const isAffected = (input: MergeInput) =>
      (track === undefined || input.group.track === track) && input.lanes.some((lane) => lane.source === source);
    const affected = this.#inputs.filter(isAffected);
    if (affected.length === 0) return;
    const others = this.#inputs.filter((input) => !affected.includes(input));
    this.#inputs.splice(0, this.#inputs.length, ...others);
    for (const input of affected) {
      input.lanes = input.lanes.filter((lane) => lane.source !== source);
      if (input.lanes.length === 0) this.#read(input);
      this.#insertSorted(input);
    }
  }

  #insertSorted(input: MergeInput): void {
    const [lane] = input.lanes;
    if (!lane) return;
    let [low, high] = [0, this.#inputs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (precedes(this.#inputs[middle]?.lanes[0] as ActiveLane, lane)) low = middle + 1;
      else high = middle;
    }
    this.#inputs.splice(low, 0, input);
  }

  #read(input: MergeInput): void {
    if (!input.more) return;
    if (input.changed) this.#lanes.flush();
    input.changed = false;
    input.asked = Math.min(MOST_LANES, input.asked > 0 ? 2 * input.asked : this.#each);
    input.lanes = this.#sql.all<ActiveLane>(
      'SELECT order_key, seq, lane, source FROM hf_active WHERE class = ? AND track = ? ORDER BY order_key, seq LIMIT ?',
      input.group.class,
      input.group.track,
      input.asked,
    );
    input.more = input.lanes.length === input.asked;
  }
}

/** A lane that comes after those that were read is found with the next read, if there are more. */
function insertLane(input: MergeInput, lane: ActiveLane): void {
  const at = input.lanes.findIndex((other) => precedes(lane, other));
  if (at >= 0) input.lanes.splice(at, 0, lane);
  else if (!input.more) input.lanes.push(lane);
}

function earlier(a: Position | undefined, b: Position | undefined): Position | undefined {
  return a && b ? (precedes(a, b) ? a : b) : (a ?? b);
}
