import type { Sql } from './driver.ts';

/** The turn of a source in a fair queue: as it is in `hf_active`, and as it will be. */
interface Turn {
  readonly queue: number;
  readonly source: string;
  /** Undefined if the source has none yet. */
  before: number | undefined;
  now: number;
}

/** A lane whose source got a new turn, while its row in `hf_active` still has the old one. */
export interface MovedLane {
  readonly class: number;
  readonly track: number;
  readonly lane: number;
  readonly source: string;
  readonly before: number;
  readonly now: number;
}

/**
 * The turns of the sources of fair queues. The source whose last turn is longest ago comes first, and then gets the last turn. A
 * new source also gets the last turn, because an endless number of new sources would starve the others otherwise. A source that
 * comes back keeps its old turn.
 */
export class Turns {
  readonly #sql: Sql;
  readonly #known = new Map<string, Turn>();
  readonly #last = new Map<number, number>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  forget(): void {
    this.#known.clear();
    this.#last.clear();
  }

  /** A source's turn. It is cached, and written by `write`. */
  of(queue: number, source: string): Readonly<Turn> {
    return this.#of(queue, source);
  }

  /** Gives a source the last turn, and returns it. */
  giveLast(queue: number, source: string): number {
    const turn = this.#of(queue, source);
    turn.now = this.#next(queue);
    return turn.now;
  }

  hasMoved(queue: number, source: string): boolean {
    const turn = this.#known.get(nameOf(queue, source));
    return turn !== undefined && turn.now !== turn.before;
  }

  /** Removes all turns of a queue. */
  clear(queue: number): void {
    this.forget();
    this.#sql.run('DELETE FROM hf_turns WHERE queue = ?', queue);
  }

  /** Writes the changed turns, and returns the lanes that still have the old turn in `hf_active`. */
  write(): MovedLane[] {
    if (this.#known.size === 0) return [];
    const moved = [...this.#known.values()].filter(({ before, now }) => before !== now);
    this.#sql.insertAll(
      'hf_turns (queue, source, turn)',
      3,
      moved.flatMap(({ queue, source, now }) => [queue, source, now]),
      'ON CONFLICT (queue, source) DO UPDATE SET turn = excluded.turn',
    );
    for (const [queue, last] of this.#last) {
      this.#sql.run('UPDATE hf_queues SET last_turn = ? WHERE id = ? AND last_turn <> ?', last, queue, last);
    }
    const lanes = this.#movedLanes(moved.filter(({ before }) => before !== undefined));
    this.forget();
    return lanes;
  }

  #movedLanes(moved: readonly Turn[]): MovedLane[] {
    if (moved.length === 0) return [];
    return this.#sql.all<MovedLane>(
      `SELECT l.class, l.track, l.id AS lane, l.source, j.value ->> 2 AS before, j.value ->> 3 AS now
       FROM json_each(?) j
       CROSS JOIN hf_lanes l ON l.source = j.value ->> 1
       CROSS JOIN hf_active a ON a.class = l.class AND a.track = l.track AND a.order_key = j.value ->> 2 AND a.seq = l.id
       CROSS JOIN hf_classes c ON c.id = l.class
       WHERE c.queue = j.value ->> 0`,
      JSON.stringify(moved.map(({ queue, source, before, now }) => [queue, source, before, now])),
    );
  }

  #of(queue: number, source: string): Turn {
    const name = nameOf(queue, source);
    const known = this.#known.get(name);
    if (known) return known;
    const [before] = this.#sql.column<number>(
      'SELECT turn FROM hf_turns WHERE queue = ? AND source = ?',
      queue,
      source,
    );
    const turn = { queue, source, before, now: before ?? this.#next(queue) };
    this.#known.set(name, turn);
    return turn;
  }

  #next(queue: number): number {
    const last =
      this.#last.get(queue) ?? this.#sql.column<number>('SELECT last_turn FROM hf_queues WHERE id = ?', queue)[0] ?? 0;
    this.#last.set(queue, last + 1);
    return last + 1;
  }
}

function nameOf(queue: number, source: string): string {
  return `${queue} ${source}`;
}
