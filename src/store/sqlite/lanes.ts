import { mustRunAlone } from '../../suspects.ts';
import type { QueueOrder } from '../../task.ts';
import type { By, QueueSettings } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import type { Sql } from './driver.ts';
import { Turns } from './turns.ts';

/**
 * The kind of tasks in a lane. `fresh`: most tasks. `token`: retries that need a token of their source's budget. `suspect`:
 * suspects that may run beside others. `alone`: suspects that must run alone. `new`: tasks that became ready for their first
 * execution while their source ramped.
 */
export const TRACK = { fresh: 0, token: 1, suspect: 2, alone: 3, new: 4 } as const;

/** Whether all tasks of a track may be taken at once. */
export function isUnbound(track: number): boolean {
  return track === TRACK.fresh || track === TRACK.new;
}

/** The values of a task that decide its lane and its place there. */
export interface Place {
  readonly id: number;
  readonly class: number;
  readonly source: string;
  readonly priority: number;
  readonly submittedAt: number;
  readonly lostInARow: number;
  /** When it last started in its present round; null if it has not. */
  readonly ranAt: number | null;
  readonly needsToken: boolean;
}

/** Which lanes of a source are in `hf_active`, from `hf_restricted`. */
export interface Reach {
  /** None of its lanes is. */
  readonly shut: boolean;
  /** Lanes of tasks that need a token are not. */
  readonly noToken: boolean;
  readonly ramping: boolean;
}

/** Of a source without a row in hf_restricted. */
export const UNRESTRICTED: Reach = { shut: false, noToken: false, ramping: false };

/** The lanes of one class and track. */
export interface Stream {
  readonly class: number;
  readonly track: number;
}

/** The place of a task in its lane, or of a lane in `hf_active`. The smallest comes first. */
export interface Ranked {
  readonly order_key: number;
  readonly seq: number;
}

/** A lane in `hf_active`, with the place of its first task, or, in a fair queue, the turn of its source. */
export interface Head extends Ranked {
  readonly lane: number;
  readonly source: string;
}

/** A lane that changed since `hf_active` was last updated: its first task before and now, as far as it is known. */
interface Touched {
  readonly stream: Stream;
  readonly source: string;
  /** Whether it is not in `hf_active`. */
  readonly out: boolean;
  readonly before: Ranked | undefined;
  now: Ranked | undefined | 'unknown';
}

/** A row of `hf_active`. */
type RingRow = [class_: number, track: number, orderKey: number, seq: number, lane: number, source: string];

/** The distance between two priorities in order keys: about 34 years of milliseconds. */
const PRIORITY_STEP = 2 ** 40;

const YEAR_2020 = Date.UTC(2020, 0, 1);

/**
 * The ready tasks, in lanes. `hf_active` has the place of the first task of every lane that is not empty and may start tasks.
 * Both tables are changed only here, so that they stay consistent.
 */
export class Lanes {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;
  readonly #turns: Turns;
  readonly #random: () => number;
  readonly #touched = new Map<number, Touched>();
  /** The last claimed keys of weighted queues, until they are written. */
  readonly #lastKeys = new Map<number, number>();
  /** Tasks that enter lanes, until the next read: one insert for many. */
  #entering: number[] = [];
  /** Of the sources that were read since `hf_active` was last updated. */
  readonly #reach = new Map<string, Reach>();

  constructor(sql: Sql, catalogue: Catalogue, random: () => number) {
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#turns = new Turns(sql);
    this.#random = random;
  }

  /** Forgets the changes of a transaction that was rolled back. */
  forget(): void {
    this.#touched.clear();
    this.#reach.clear();
    this.#entering = [];
    this.#lastKeys.clear();
    this.#turns.forget();
    this.#catalogue.forget();
  }

  /** Puts a due task into its lane. */
  add(place: Place, track = this.#trackFor(place)): void {
    const lane = this.#catalogue.laneIdOf(place.class, track, place.source);
    const touched = this.#touch(lane, { class: place.class, track }, place.source);
    const { ordering } = this.#catalogue.queueOfClass(place.class);
    const ranked = { order_key: this.#orderKey(place, ordering), seq: seqOf(place.id, ordering) };
    this.#entering.push(lane, ranked.order_key, ranked.seq);
    if (touched.now !== 'unknown' && (!touched.now || precedes(ranked, touched.now))) touched.now = ranked;
  }

  /** Takes one task out of its lane, and returns the track of the lane; undefined if it is in none. */
  remove(place: Place): number | undefined {
    this.#enter();
    const track = trackOf(place);
    if (this.#removeFrom(this.#catalogue.laneIdOf(place.class, track, place.source), track, place)) return track;
    if (track !== TRACK.fresh) return undefined;
    const lane = this.#catalogue.findLane(place.class, TRACK.new, place.source);
    return lane !== undefined && this.#removeFrom(lane, TRACK.new, place) ? TRACK.new : undefined;
  }

  #removeFrom(lane: number, track: number, place: Place): boolean {
    const { ordering } = this.#catalogue.queueOfClass(place.class);
    const seq = seqOf(place.id, ordering);
    const ranked =
      ordering === 'weighted_random'
        ? this.#sql.get<Ranked>('SELECT order_key, seq FROM hf_ready WHERE lane = ? AND seq = ?', lane, seq)
        : { order_key: this.#orderKey(place, ordering), seq };
    if (!ranked) return false;
    this.#touch(lane, { class: place.class, track }, place.source).now = 'unknown';
    const gone = this.#sql.run(
      'DELETE FROM hf_ready WHERE lane = ? AND order_key = ? AND seq = ?',
      lane,
      ranked.order_key,
      seq,
    );
    return gone.changes > 0;
  }

  /** Takes the first tasks out of a lane, up to and including `last`. `next` is its first task from now on. */
  cut(stream: Stream, head: Head, last: Ranked, next: Ranked | undefined): void {
    const touched = this.#touched.get(head.lane);
    if (touched) touched.now = next;
    else this.#touched.set(head.lane, { stream, source: head.source, out: false, before: head, now: next });
    this.#sql.run(
      'DELETE FROM hf_ready WHERE lane = ? AND (order_key, seq) <= (?, ?)',
      head.lane,
      last.order_key,
      last.seq,
    );
    const { ordering, id } = this.#catalogue.queueOfClass(stream.class);
    if (ordering === 'weighted_random') this.#lastKeys.set(id, Math.max(this.#lastKeyOf(id), last.order_key));
  }

  /** Gives a source the last turn in its fair queue, and returns the new key of its lanes in `hf_active`. */
  serve(queue: number, source: string): number {
    return this.#turns.serve(queue, source);
  }

  /** Updates `hf_active` for the changed lanes: once for each lane, even if many tasks came and went. */
  flush(): void {
    this.#enter();
    const rising: RingRow[] = [];
    for (const [lane, { stream, source, out, before, now }] of this.#touched) {
      if (out) continue;
      const head = now === 'unknown' ? this.#headOf(lane) : now;
      if (!before && !head) continue;
      const queue = this.#catalogue.queueOfClass(stream.class);
      let was = before;
      let is = head;
      if (queue.fair === 1) {
        // While it has tasks, only a new turn of its source changes its place.
        if (before && head && !this.#turns.hasMoved(queue.id, source)) continue;
        const turn = this.#turns.of(queue.id, source);
        was = before && { order_key: turn.before as number, seq: lane };
        is = head && { order_key: turn.now, seq: lane };
      }
      if (is?.seq === was?.seq && is?.order_key === was?.order_key) continue;
      if (was) this.#retire(stream, was);
      if (is) rising.push([stream.class, stream.track, is.order_key, is.seq, lane, source]);
    }
    this.#touched.clear();
    this.#reach.clear();
    for (const { class: id, track, lane, source, before, now } of this.#turns.write()) {
      this.#retire({ class: id, track }, { order_key: before, seq: lane });
      rising.push([id, track, now, lane, lane, source]);
    }
    this.#raise(rising);
    this.#noteLastKeys();
  }

  /** Which lanes of a source are in `hf_active`. */
  reachOf(source: string): Reach {
    const known = this.#reach.get(source);
    if (known) return known;
    if (this.#catalogue.isFree(source)) return UNRESTRICTED;
    const [row] = this.#sql.rows<[shut: number, noToken: number, ramping: number]>(
      'SELECT held_by IS NOT NULL, no_token, ramping FROM hf_restricted WHERE source = ?',
      source,
    );
    const reach = row ? { shut: row[0] === 1, noToken: row[1] === 1, ramping: row[2] === 1 } : UNRESTRICTED;
    this.#reach.set(source, reach);
    return reach;
  }

  /** Removes lanes of a source from `hf_active` or puts them back. `write` stores the new restriction. */
  changeReach(source: string, after: Reach, write: () => void): void {
    this.flush();
    const before = this.reachOf(source);
    write();
    this.#reach.set(source, after);
    if (before.shut === after.shut && before.noToken === after.noToken) return;
    const rising: RingRow[] = [];
    for (const row of this.#ringRowsOf(source)) {
      const [id, track, order_key, seq] = row;
      if (isOut(before, track) === isOut(after, track)) continue;
      if (isOut(after, track)) this.#retire({ class: id, track }, { order_key, seq });
      else rising.push(row);
    }
    this.#turns.write();
    this.#raise(rising);
  }

  /**
   * The first task of a source's lanes among the accepted streams, and its lane. If the queue is in order, it is also the lane's
   * entry in `hf_active`.
   */
  firstOf(
    source: string,
    accepts: (stream: Stream) => boolean,
  ): { readonly stream: Stream; readonly head: Head } | undefined {
    let first: { readonly stream: Stream; readonly head: Head } | undefined;
    for (const [lane, id, track] of this.#lanesOf(source)) {
      const stream = { class: id, track };
      const ranked = accepts(stream) ? this.#headOf(lane) : undefined;
      if (ranked && (!first || precedes(ranked, first.head))) first = { stream, head: { ...ranked, lane, source } };
    }
    return first;
  }

  /** Whether a source has a ready task. */
  hasReady(source: string): boolean {
    this.#enter();
    return this.#lanesOf(source).some(([lane]) => this.#headOf(lane) !== undefined);
  }

  pause(queue: string, { actor, note }: By, now: number): void {
    this.#sql.run(
      'UPDATE hf_queues SET paused_at = ?, actor = ?, note = ? WHERE id = ? AND paused_at IS NULL',
      now,
      actor,
      note ?? null,
      this.#catalogue.queueIdOf(queue),
    );
    this.#catalogue.changed();
  }

  resume(queue: string): void {
    this.#sql.run('UPDATE hf_queues SET paused_at = NULL, actor = NULL, note = NULL WHERE name = ?', queue);
    this.#catalogue.changed();
  }

  /** Changes settings of a queue, and puts its ready tasks and its lanes into the new order. */
  setUp(queue: string, settings: Partial<QueueSettings>, places: (ids: readonly number[]) => readonly Place[]): void {
    const id = this.#catalogue.queueIdOf(queue);
    this.#setLimits(id, settings);
    const before = this.#catalogue.queue(id);
    const { order = before.ordering, fair = before.fair === 1 } = settings;
    if (before.ordering === order && (before.fair === 1) === fair) return;
    this.#arrange(id, { order, fair, reorder: order !== before.ordering }, places);
  }

  #setLimits(id: number, { pace, concurrency }: Partial<QueueSettings>): void {
    if (pace !== undefined) {
      this.#sql.run(
        'UPDATE hf_queues SET per_second = ?, burst = ?, next_start = NULL WHERE id = ? AND (per_second, burst) IS NOT (?, ?)',
        pace?.perSecond ?? null,
        pace?.burst ?? null,
        id,
        pace?.perSecond ?? null,
        pace?.burst ?? null,
      );
    }
    if (concurrency !== undefined) {
      this.#sql.run('UPDATE hf_queues SET concurrency = ? WHERE id = ?', concurrency, id);
      this.#sql.run(
        `UPDATE hf_running SET limited_queue = ? WHERE id IN (
           SELECT t.id FROM hf_running r JOIN hf_tasks t ON t.id = r.id JOIN hf_classes c ON c.id = t.class
           WHERE c.queue = ? AND r.why IS NOT 'expiry')`,
        concurrency === null ? null : id,
        id,
      );
    }
    if (pace === undefined && concurrency === undefined) return;
    this.#catalogue.changed();
    if (pace || typeof concurrency === 'number') this.#catalogue.restrict();
    else this.#catalogue.unrestrict();
  }

  /** Puts the ready tasks of all queues into their order again, after their times were changed. */
  rearrange(places: (ids: readonly number[]) => readonly Place[]): void {
    for (const id of this.#sql.column<number>('SELECT id FROM hf_queues')) {
      const { ordering: order, fair } = this.#catalogue.queue(id);
      if (order !== 'weighted_random') this.#arrange(id, { order, fair: fair === 1, reorder: true }, places);
    }
  }

  #arrange(
    id: number,
    { order, fair, reorder }: Pick<QueueSettings, 'order' | 'fair'> & { readonly reorder: boolean },
    places: (ids: readonly number[]) => readonly Place[],
  ): void {
    this.flush();
    const lanes = this.#sql.rows<[class_: number, track: number, lane: number, source: string]>(
      `SELECT a.class, a.track, a.lane, a.source FROM hf_active a JOIN hf_classes c ON c.id = a.class
       WHERE c.queue = ? ORDER BY a.order_key, a.seq`,
      id,
    );
    this.#sql.run('DELETE FROM hf_active WHERE class IN (SELECT id FROM hf_classes WHERE queue = ?)', id);
    this.#sql.run('UPDATE hf_queues SET ordering = ?, fair = ? WHERE id = ?', order, fair ? 1 : 0, id);
    this.#catalogue.changed();
    if (!fair) this.#turns.clear(id);
    if (reorder) this.#reorder(id, places);
    const rising = lanes.map(([group, track, lane, source]): RingRow => {
      const { order_key, seq } = this.#ringKey(group, lane, source, this.#headOf(lane) as Ranked);
      return [group, track, order_key, seq, lane, source];
    });
    this.#turns.write();
    this.#raise(rising);
  }

  /** Puts the ready tasks of a queue into its order, lane by lane. The caller updates `hf_active`. */
  #reorder(queue: number, places: (ids: readonly number[]) => readonly Place[]): void {
    const rows = this.#sql.rows<[lane: number, id: number]>(
      `SELECT r.lane, abs(r.seq) FROM hf_ready r JOIN hf_lanes l ON l.id = r.lane JOIN hf_classes c ON c.id = l.class
       WHERE c.queue = ?`,
      queue,
    );
    const { ordering } = this.#catalogue.queue(queue);
    const all = places(rows.map(([, id]) => id));
    this.#sql.run(
      'DELETE FROM hf_ready WHERE lane IN (SELECT l.id FROM hf_lanes l JOIN hf_classes c ON c.id = l.class WHERE c.queue = ?)',
      queue,
    );
    this.#sql.insertAll(
      'hf_ready (lane, order_key, seq)',
      3,
      all.flatMap((place, n) => [rows[n]?.[0], this.#orderKey(place, ordering), seqOf(place.id, ordering)]),
    );
  }

  /** The rows of a source in `hf_active`, as if the source were not held. */
  #ringRowsOf(source: string): RingRow[] {
    return this.#lanesOf(source).flatMap(([lane, group, track]): RingRow[] => {
      const head = this.#headOf(lane);
      if (!head) return [];
      const { order_key, seq } = this.#ringKey(group, lane, source, head);
      return [[group, track, order_key, seq, lane, source]];
    });
  }

  #lanesOf(source: string): [lane: number, class_: number, track: number][] {
    return this.#sql.rows('SELECT id, class, track FROM hf_lanes WHERE source = ?', source);
  }

  /** The place of a lane in `hf_active`. */
  #ringKey(group: number, lane: number, source: string, head: Ranked): Ranked {
    const queue = this.#catalogue.queueOfClass(group);
    return queue.fair === 1 ? { order_key: this.#turns.of(queue.id, source).now, seq: lane } : head;
  }

  #enter(): void {
    if (this.#entering.length === 0) return;
    this.#sql.insertAll('hf_ready (lane, order_key, seq)', 3, this.#entering);
    this.#entering = [];
  }

  #touch(lane: number, stream: Stream, source: string): Touched {
    const known = this.#touched.get(lane);
    if (known) return known;
    const head = this.#headOf(lane);
    const out = isOut(this.reachOf(source), stream.track);
    const touched = { stream, source, out, before: out ? undefined : head, now: head };
    this.#touched.set(lane, touched);
    return touched;
  }

  #headOf(lane: number): Ranked | undefined {
    return this.#sql.get<Ranked>(
      'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT 1',
      lane,
    );
  }

  #raise(rows: readonly RingRow[]): void {
    this.#sql.insertAll('hf_active (class, track, order_key, seq, lane, source)', 6, rows.flat());
  }

  #retire({ class: id, track }: Stream, { order_key, seq }: Ranked): void {
    this.#sql.run(
      'DELETE FROM hf_active WHERE class = ? AND track = ? AND order_key = ? AND seq = ?',
      id,
      track,
      order_key,
      seq,
    );
  }

  /** The track of a task that becomes ready now. */
  #trackFor(place: Place): number {
    const track = trackOf(place);
    const isNew = track === TRACK.fresh && place.ranAt === null && this.reachOf(place.source).ramping;
    return isNew ? TRACK.new : track;
  }

  /**
   * The order key of a task in its queue; the smallest is claimed first. A task that has run comes after all tasks that were
   * submitted before its last start, so that no task runs twice before a ready task that has not run; in a `lifo` queue it comes
   * after all tasks that have not run.
   */
  #orderKey({ class: id, priority, submittedAt, ranAt }: Place, ordering: QueueOrder): number {
    const since = ranAt === null ? submittedAt : Math.max(submittedAt, ranAt + 0.5);
    switch (ordering) {
      case 'fifo':
        return since;
      case 'lifo':
        return ranAt ?? -submittedAt;
      case 'priority': {
        const since2020 = Math.min(Math.max(since - YEAR_2020, 0), PRIORITY_STEP - 1);
        return -priority * PRIORITY_STEP + since2020;
      }
      case 'weighted_random': {
        // An exponentially distributed step from the last claimed key. So a task comes first with a probability in proportion to
        // its weight, and later tasks do not starve earlier ones.
        const last = this.#lastKeyOf(this.#catalogue.queueOfClass(id).id);
        return last - Math.log(1 - this.#random()) / Math.max(1, priority);
      }
    }
  }

  /** The last key claimed of a weighted queue. */
  #lastKeyOf(queue: number): number {
    const known = this.#lastKeys.get(queue);
    if (known !== undefined) return known;
    const [key = 0] = this.#sql.column<number>('SELECT last_key FROM hf_queues WHERE id = ?', queue);
    this.#lastKeys.set(queue, key);
    return key;
  }

  #noteLastKeys(): void {
    for (const [queue, key] of this.#lastKeys) {
      this.#sql.run('UPDATE hf_queues SET last_key = ? WHERE id = ? AND last_key < ?', key, queue, key);
    }
    this.#lastKeys.clear();
  }
}

/** Whether a comes before b. */
export function precedes(a: Ranked, b: Ranked): boolean {
  return a.order_key < b.order_key || (a.order_key === b.order_key && a.seq < b.seq);
}

/** Ties are broken by age: the older first, but in a `lifo` queue the newer. */
function seqOf(id: number, ordering: QueueOrder): number {
  return ordering === 'lifo' ? -id : id;
}

/** Whether lanes of this track are not in `hf_active`. */
function isOut({ shut, noToken }: Reach, track: number): boolean {
  return shut || (noToken && track === TRACK.token);
}

function trackOf({ lostInARow, needsToken }: Place): number {
  if (lostInARow === 0) return needsToken ? TRACK.token : TRACK.fresh;
  return mustRunAlone(lostInARow) ? TRACK.alone : TRACK.suspect;
}
