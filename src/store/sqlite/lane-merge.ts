import type { Sql } from './driver.ts';
import { type Head, type Lanes, precedes, type Ranked, type Stream } from './lanes.ts';

/** The lanes of one stream in their order, as far as they were read from `hf_active`. */
export interface MergeInput {
  readonly stream: Stream;
  heads: Head[];
  /** Whether `hf_active` may have more. */
  more: boolean;
  /** How many were asked for at the last read; 0 if only the first lane is known. */
  asked: number;
  /** Whether tasks were taken from it since the last read. */
  changed: boolean;
}

/** How many lanes of a stream are read at once. */
const MOST_HEADS = 128;

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
    this.#inputs = inputs.sort((a, b) => (precedes(a.heads[0] as Head, b.heads[0] as Head) ? -1 : 1));
    this.#each = Math.min(MOST_HEADS, 1 + Math.ceil((2 * limit) / (inputs.length + 1)));
  }

  /** The input whose first lane comes before all others. */
  get first(): MergeInput | undefined {
    return this.#inputs[0];
  }

  /** The inputs whose first lanes have the same order key as the very first lane: in a fair queue, the lanes of one source. */
  firsts(): MergeInput[] {
    const key = this.first?.heads[0]?.order_key;
    const others = this.#inputs.findIndex((input) => input.heads[0]?.order_key !== key);
    return others < 0 ? [...this.#inputs] : this.#inputs.slice(0, others);
  }

  /** The place of the lane after the very first. */
  bound(): Ranked | undefined {
    const [first, second] = this.#inputs;
    if (!first) return undefined;
    if (first.heads.length < 2) this.#read(first);
    return sooner(first.heads[1], second?.heads[0]);
  }

  /**
   * Whether at least this many lanes wait. If there are many inputs, only the lanes of the first few are counted, and one lane of
   * each other.
   */
  hold(lanes: number): boolean {
    let held = this.#inputs.length;
    for (const { stream } of this.#inputs.slice(0, MOST_COUNTED)) {
      if (held >= lanes) break;
      const [counted] = this.#sql.column<number>(
        'SELECT count(*) FROM (SELECT 1 FROM hf_active WHERE class = ? AND track = ? LIMIT ?)',
        stream.class,
        stream.track,
        lanes - held + 1,
      ) as [number];
      held += counted - 1;
    }
    return held >= lanes;
  }

  /** Tasks were taken from the first lanes of the first inputs. Lanes with more tasks have a new place now. */
  moved(inputs: readonly MergeInput[], next: readonly (Head | undefined)[]): void {
    this.#inputs.splice(0, inputs.length);
    inputs.forEach((input, n) => {
      input.changed = true;
      input.heads.shift();
      const head = next[n];
      if (head) insert(input, head);
      if (input.heads.length === 0) this.#read(input);
      this.#place(input);
    });
  }

  /** Leaves out the lanes of a track. */
  drop(track: number): void {
    const others = this.#inputs.filter(({ stream }) => stream.track !== track);
    if (others.length === this.#inputs.length) return;
    this.#inputs.splice(0, this.#inputs.length, ...others);
  }

  /** Whether the lanes of a stream are among the inputs. */
  has({ class: id, track }: Stream): boolean {
    return this.#inputs.some(({ stream }) => stream.class === id && stream.track === track);
  }

  /** A task was taken from a lane of this stream that was not the very first. */
  takenFrom({ class: id, track }: Stream): void {
    const at = this.#inputs.findIndex(({ stream }) => stream.class === id && stream.track === track);
    const [input] = this.#inputs.splice(at, 1) as [MergeInput];
    Object.assign(input, { heads: [], more: true, changed: true });
    this.#read(input);
    this.#place(input);
  }

  /** The lanes of a source were removed from `hf_active`: all of them, or those of one track. */
  dropSource(source: string, track?: number): void {
    const isGone = (input: MergeInput) =>
      (track === undefined || input.stream.track === track) && input.heads.some((head) => head.source === source);
    const affected = this.#inputs.filter(isGone);
    if (affected.length === 0) return;
    const others = this.#inputs.filter((input) => !affected.includes(input));
    this.#inputs.splice(0, this.#inputs.length, ...others);
    for (const input of affected) {
      input.heads = input.heads.filter((head) => head.source !== source);
      if (input.heads.length === 0) this.#read(input);
      this.#place(input);
    }
  }

  #place(input: MergeInput): void {
    const [head] = input.heads;
    if (!head) return;
    let [low, high] = [0, this.#inputs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (precedes(this.#inputs[middle]?.heads[0] as Head, head)) low = middle + 1;
      else high = middle;
    }
    this.#inputs.splice(low, 0, input);
  }

  #read(input: MergeInput): void {
    if (!input.more) return;
    if (input.changed) this.#lanes.flush();
    input.changed = false;
    input.asked = Math.min(MOST_HEADS, input.asked > 0 ? 2 * input.asked : this.#each);
    input.heads = this.#sql.all<Head>(
      'SELECT order_key, seq, lane, source FROM hf_active WHERE class = ? AND track = ? ORDER BY order_key, seq LIMIT ?',
      input.stream.class,
      input.stream.track,
      input.asked,
    );
    input.more = input.heads.length === input.asked;
  }
}

/** A lane that comes after those that were read is found with the next read, if there are more. */
function insert(input: MergeInput, head: Head): void {
  const at = input.heads.findIndex((other) => precedes(head, other));
  if (at >= 0) input.heads.splice(at, 0, head);
  else if (!input.more) input.heads.push(head);
}

function sooner(a: Ranked | undefined, b: Ranked | undefined): Ranked | undefined {
  return a && b ? (precedes(a, b) ? a : b) : (a ?? b);
}
