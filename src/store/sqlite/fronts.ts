import type { Sql } from './driver.ts';
import { type Head, type Lanes, precedes, type Ranked, type Stream } from './lanes.ts';

/** The lanes of one stream, the sooner first: as many of them as were read from the ring. */
export interface Front {
  readonly stream: Stream;
  heads: Head[];
  /** Whether the ring may hold more. */
  more: boolean;
  /** How many were asked for when they were last read; 0 where only the first is known, for nobody has come to it. */
  asked: number;
  /** Whether it was taken from since. */
  changed: boolean;
}

/** How many lanes of a stream are read at once. */
const MOST_HEADS = 128;

/** Of how many fronts the lanes are counted. */
const MOST_COUNTED = 8;

/** The fronts that a claim merges, sorted by their first lanes: thousands of them cost no more than those that it comes to. */
export class Fronts {
  readonly #sql: Sql;
  readonly #lanes: Lanes;
  readonly #fronts: Front[];
  /** How many lanes are read of a front that a claim comes to. */
  readonly #each: number;

  /** For fronts of which their first lane is known, and a claim of so many tasks. */
  constructor(sql: Sql, lanes: Lanes, fronts: Front[], limit: number) {
    this.#sql = sql;
    this.#lanes = lanes;
    this.#fronts = fronts.sort((a, b) => (precedes(a.heads[0] as Head, b.heads[0] as Head) ? -1 : 1));
    this.#each = Math.min(MOST_HEADS, 1 + Math.ceil((2 * limit) / (fronts.length + 1)));
  }

  /** The front whose first lane comes before all others. */
  get first(): Front | undefined {
    return this.#fronts[0];
  }

  /** Those whose first lanes stand at the same place as the very first: in a fair queue, the lanes of one source. */
  firsts(): Front[] {
    const key = this.first?.heads[0]?.order_key;
    const others = this.#fronts.findIndex((front) => front.heads[0]?.order_key !== key);
    return others < 0 ? [...this.#fronts] : this.#fronts.slice(0, others);
  }

  /** Where the lane behind the very first stands. */
  bound(): Ranked | undefined {
    const [first, second] = this.#fronts;
    if (!first) return undefined;
    if (first.heads.length < 2) this.#read(first);
    return sooner(first.heads[1], second?.heads[0]);
  }

  /** Whether at least so many lanes wait; of many fronts, those of the first few are counted, and one of each other. */
  hold(lanes: number): boolean {
    let held = this.#fronts.length;
    for (const { stream } of this.#fronts.slice(0, MOST_COUNTED)) {
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

  /** The first lanes of the first fronts were taken from: those that hold more stand at a new place now. */
  moved(fronts: readonly Front[], next: readonly (Head | undefined)[]): void {
    this.#fronts.splice(0, fronts.length);
    fronts.forEach((front, n) => {
      front.changed = true;
      front.heads.shift();
      const head = next[n];
      if (head) insert(front, head);
      if (front.heads.length === 0) this.#read(front);
      this.#place(front);
    });
  }

  /** Leaves out what stands on a track. */
  drop(track: number): void {
    const others = this.#fronts.filter(({ stream }) => stream.track !== track);
    if (others.length === this.#fronts.length) return;
    this.#fronts.splice(0, this.#fronts.length, ...others);
  }

  #place(front: Front): void {
    const [head] = front.heads;
    if (!head) return;
    let [low, high] = [0, this.#fronts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (precedes(this.#fronts[middle]?.heads[0] as Head, head)) low = middle + 1;
      else high = middle;
    }
    this.#fronts.splice(low, 0, front);
  }

  #read(front: Front): void {
    if (!front.more) return;
    if (front.changed) this.#lanes.flush();
    front.changed = false;
    front.asked = Math.min(MOST_HEADS, front.asked > 0 ? 2 * front.asked : this.#each);
    front.heads = this.#sql.all<Head>(
      'SELECT order_key, seq, lane, source FROM hf_active WHERE class = ? AND track = ? ORDER BY order_key, seq LIMIT ?',
      front.stream.class,
      front.stream.track,
      front.asked,
    );
    front.more = front.heads.length === front.asked;
  }
}

/** A lane that stands behind those that were read, where there may be more, is found when these are read. */
function insert(front: Front, head: Head): void {
  const at = front.heads.findIndex((other) => precedes(head, other));
  if (at >= 0) front.heads.splice(at, 0, head);
  else if (!front.more) front.heads.push(head);
}

function sooner(a: Ranked | undefined, b: Ranked | undefined): Ranked | undefined {
  return a && b ? (precedes(a, b) ? a : b) : (a ?? b);
}
