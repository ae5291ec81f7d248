import { meets, type Needs } from '../../task.ts';
import type { ClaimRequest, Takes } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import type { Sql } from './driver.ts';
import { type Head, type Lanes, precedes, type Ranked, type Stream, TRACK } from './lanes.ts';

/** The heads of one stream's lanes, the sooner first: as many of them as were read from the ring at once. */
interface Front {
  readonly stream: Stream;
  heads: Head[];
  /** Whether the ring may hold more. */
  more: boolean;
}

/** What one round over the queues may take. */
interface Allowance {
  readonly limit: number;
  suspects: number;
  /** Only tasks of these types, and none behind a task of another. Absent: any. */
  readonly types?: readonly string[];
}

/** How many heads are read from the ring at once. */
const MOST_HEADS = 128;

/** How many tasks of a lane are read at once while another lane's head bounds them. */
const WHILE_BOUNDED = 8;

/** How a claim finds its tasks: it walks the heads of the lanes that its worker may take from, and never skips a task. */
export class Walk {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;
  readonly #lanes: Lanes;
  #turn = 0;

  constructor(sql: Sql, catalogue: Catalogue, lanes: Lanes) {
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#lanes = lanes;
  }

  /**
   * The ids of the next tasks for a claim, taken out of their lanes: each queue's in its exact order, the queues in turn.
   * Those beyond the request's limit are claimed ahead.
   */
  take(request: ClaimRequest): number[] {
    this.#lanes.flush();
    const queues = this.#streamsByQueue(request);
    const first = this.#turn++ % Math.max(1, queues.length);
    const turn = [...queues.slice(first), ...queues.slice(0, first)];
    const taken = this.#takeRound(turn, { limit: request.limit, suspects: request.suspect ? 1 : 0 });
    const { ahead } = request;
    if (ahead && ahead.limit > 0 && taken.length === request.limit) {
      taken.push(...this.#takeRound(turn, { limit: ahead.limit, suspects: 0, types: ahead.types }));
    }
    return taken;
  }

  /** Whether a claim could be given anything but these tasks. A look: it takes nothing. */
  offersOthers(request: ClaimRequest, ids: readonly number[]): boolean {
    this.#lanes.flush();
    const streams = this.#streamsByQueue(request).flat();
    return streams
      .filter(({ track }) => track !== TRACK.suspect || request.suspect)
      .some(({ class: id, track }) =>
        this.#sql
          .column<number>(
            `SELECT abs(r.seq) AS id FROM hf_active a JOIN hf_ready r ON r.lane = a.lane
             WHERE a.class = ? AND a.track = ? LIMIT ?`,
            id,
            track,
            ids.length + 1,
          )
          .some((other) => !ids.includes(other)),
      );
  }

  /** Whether the worker that asks may take from this class. */
  admits(request: ClaimRequest, id: number): boolean {
    const { type, category, needs, queue: queueId } = this.#catalogue.class(id);
    const queue = this.#catalogue.queue(queueId);
    return queue.paused_at === null && takes(request, { queue: queue.name, type, category, needs });
  }

  /** A fair share of each queue, then whatever is left for those that have more. */
  #takeRound(queues: readonly (readonly Stream[])[], allowance: Allowance): number[] {
    const { limit } = allowance;
    const share = Math.ceil(limit / Math.max(1, queues.length));
    const taken: number[] = [];
    for (const most of queues.length > 1 ? [share, limit] : [limit]) {
      for (const streams of queues) {
        if (taken.length < limit) this.#takeFrom(streams, Math.min(most, limit - taken.length), allowance, taken);
      }
    }
    return taken;
  }

  /** Merges the heads of one queue's streams: the smallest goes first, and its lane gives until another head is smaller. */
  #takeFrom(streams: readonly Stream[], limit: number, allowance: Allowance, taken: number[]): void {
    this.#lanes.flush();
    const fronts = streams.map((stream) => this.#frontOf(stream, limit));
    const enough = taken.length + limit;
    while (taken.length < enough) {
      const [best, second] = this.#twoBest(fronts, allowance);
      const head = best?.heads[0];
      if (!best || !head) return;
      const { type } = this.#catalogue.class(best.stream.class);
      if (allowance.types && !allowance.types.includes(type)) return;
      const suspect = best.stream.track === TRACK.suspect;
      if (suspect) allowance.suspects -= 1;
      const bound = sooner(best.heads[1], second?.heads[0]);
      this.#takeHead(best, head, bound, suspect ? 1 : enough - taken.length, taken);
      if (best.heads.length < 2 && best.more) this.#reload(best, limit);
    }
  }

  /** Takes the tasks of one lane that come before the bound, and puts its next head into its place. */
  #takeHead(front: Front, head: Head, bound: Ranked | undefined, limit: number, taken: number[]): void {
    const most = bound ? Math.min(limit, WHILE_BOUNDED) : limit;
    const rows = this.#sql.rows<[order_key: number, seq: number]>(
      'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT ?',
      head.lane,
      most + 1,
    );
    let count = 0;
    for (const [order_key, seq] of rows) {
      if (count === most || (count > 0 && bound && !precedes({ order_key, seq }, bound))) break;
      taken.push(Math.abs(seq));
      count += 1;
    }
    const next = ranked(rows[count]);
    this.#lanes.cut(front.stream, head, ranked(rows[count - 1]) as Ranked, next);
    front.heads.shift();
    if (next) insert(front, { ...next, lane: head.lane, source: head.source });
  }

  /** The two fronts whose heads come first. */
  #twoBest(fronts: readonly Front[], { suspects }: Allowance): [Front | undefined, Front | undefined] {
    let best: Front | undefined;
    let second: Front | undefined;
    for (const front of fronts) {
      const head = front.heads[0];
      if (!head || (front.stream.track === TRACK.suspect && suspects <= 0)) continue;
      if (!best || precedes(head, best.heads[0] as Head)) {
        second = best;
        best = front;
      } else if (!second || precedes(head, second.heads[0] as Head)) second = front;
    }
    return [best, second];
  }

  #frontOf(stream: Stream, limit: number): Front {
    const most = Math.min(limit + 1, MOST_HEADS);
    const heads = this.#sql.all<Head>(
      'SELECT order_key, seq, lane, source FROM hf_active WHERE class = ? AND track = ? ORDER BY order_key, seq LIMIT ?',
      stream.class,
      stream.track,
      most,
    );
    return { stream, heads, more: heads.length === most };
  }

  #reload(front: Front, limit: number): void {
    this.#lanes.flush();
    Object.assign(front, this.#frontOf(front.stream, limit));
  }

  /** The classes and tracks that have ready tasks and that this worker may take from, by queue. */
  #streamsByQueue(request: ClaimRequest): Stream[][] {
    const queues = new Map<number, Stream[]>();
    for (const stream of this.#streams()) {
      if (!this.admits(request, stream.class)) continue;
      const { queue } = this.#catalogue.class(stream.class);
      const streams = queues.get(queue);
      if (streams) streams.push(stream);
      else queues.set(queue, [stream]);
    }
    return [...queues.values()];
  }

  /** One probe for each class and track that has anything, however many tasks and lanes it has. */
  #streams(): Stream[] {
    const streams: Stream[] = [];
    let at: Stream = { class: -1, track: -1 };
    for (;;) {
      const next = this.#sql.get<Stream>(
        'SELECT class, track FROM hf_active WHERE (class, track) > (?, ?) ORDER BY class, track LIMIT 1',
        at.class,
        at.track,
      );
      if (!next) return streams;
      streams.push(next);
      at = next;
    }
  }
}

/** Whether a worker that takes these may run a task of this kind. */
export function takes(
  { types, queues, categories, capabilities }: Takes,
  task: { readonly queue: string; readonly type: string; readonly category: string; readonly needs: Needs },
): boolean {
  return (
    (!types || types.includes(task.type)) &&
    (!queues || queues.includes(task.queue)) &&
    (!categories || categories.includes(task.category)) &&
    meets(capabilities, task.needs)
  );
}

/** A head that stands behind those that were read, where there may be more, is found when these are read. */
function insert(front: Front, head: Head): void {
  const at = front.heads.findIndex((other) => precedes(head, other));
  if (at >= 0) front.heads.splice(at, 0, head);
  else if (!front.more) front.heads.push(head);
}

function ranked(row: readonly [order_key: number, seq: number] | undefined): Ranked | undefined {
  return row && { order_key: row[0], seq: row[1] };
}

function sooner(a: Ranked | undefined, b: Ranked | undefined): Ranked | undefined {
  return a && b ? (precedes(a, b) ? a : b) : (a ?? b);
}
