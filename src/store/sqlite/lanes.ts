import { mustRunAlone } from '../../suspects.ts';
import type { QueueOrder } from '../../task.ts';
import type { By, QueueSettings } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import type { Sql } from './driver.ts';
import { Turns } from './turns.ts';

/**
 * Which kind of work a lane holds: what may start at once, retries that need a token of their source's budget, suspects that may run
 * beside others, and those that must run alone. `new` is what became ready for its first execution while its source ramped.
 */
export const TRACK = { fresh: 0, token: 1, suspect: 2, alone: 3, new: 4 } as const;

/** Whether all tasks of a track may be taken at once. */
export function isUnbound(track: number): boolean {
  return track === TRACK.fresh || track === TRACK.new;
}

/** What a task brings along when it enters a lane. */
export interface Place {
  readonly id: number;
  readonly class: number;
  readonly source: string;
  readonly priority: number;
  readonly submittedAt: number;
  readonly lostInARow: number;
  /** When it last began to run in its present round; null where it has not. */
  readonly ranAt: number | null;
  readonly needsToken: boolean;
}

/** What of a source stands in the ring, as hf_restricted has it. */
export interface Reach {
  /** None of its lanes does. */
  readonly shut: boolean;
  /** Those do not that hold tasks which need a token. */
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

/** Where a task stands in its lane, or a lane in the ring: the smaller, the sooner. */
export interface Ranked {
  readonly order_key: number;
  readonly seq: number;
}

/** A lane in the ring: where its first task stands, or, in a fair queue, its source. */
export interface Head extends Ranked {
  readonly lane: number;
  readonly source: string;
}

/** A lane that changed since the ring was last made to mirror it: its first task before, and now as far as it is known. */
interface Touched {
  readonly stream: Stream;
  readonly source: string;
  /** Whether the ring has nothing of it. */
  readonly out: boolean;
  readonly before: Ranked | undefined;
  now: Ranked | undefined | 'unknown';
}

/** A row of the ring. */
type RingRow = [class_: number, track: number, orderKey: number, seq: number, lane: number, source: string];

/** The most queue positions that priority leaves room for: about 34 years of milliseconds. */
const PRIORITY_STEP = 2 ** 40;

const YEAR_2020 = Date.UTC(2020, 0, 1);

/**
 * The ready tasks, in lanes. hf_active, the ring, mirrors the head of every lane that is not empty and whose source is open;
 * both are changed here and nowhere else, so that they cannot part ways.
 */
export class Lanes {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;
  readonly #turns: Turns;
  readonly #random: () => number;
  readonly #touched = new Map<number, Touched>();
  /** Of weighted queues, until it is written down. */
  readonly #lastKeys = new Map<number, number>();
  /** What enters its lane before these are next read: one insert for many. */
  #entering: number[] = [];
  /** Of the sources that were looked up since the ring was last brought up to date. */
  readonly #reach = new Map<string, Reach>();

  constructor(sql: Sql, catalogue: Catalogue, random: () => number) {
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#turns = new Turns(sql);
    this.#random = random;
  }

  /** Forgets what was begun in a transaction that was undone. */
  forget(): void {
    this.#touched.clear();
    this.#reach.clear();
    this.#entering = [];
    this.#lastKeys.clear();
    this.#turns.forget();
    this.#catalogue.forget();
  }

  /** Puts a due task where claims find it. */
  add(place: Place, track = this.#trackFor(place)): void {
    const lane = this.#catalogue.laneIdOf(place.class, track, place.source);
    const touched = this.#touch(lane, { class: place.class, track }, place.source);
    const { ordering } = this.#catalogue.queueOfClass(place.class);
    const ranked = { order_key: this.#orderKey(place, ordering), seq: seqOf(place.id, ordering) };
    this.#entering.push(lane, ranked.order_key, ranked.seq);
    if (touched.now !== 'unknown' && (!touched.now || precedes(ranked, touched.now))) touched.now = ranked;
  }

  /** Takes one task out of its lane, and answers the track of that; undefined if it is in none. */
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

  /** Takes the first tasks of a lane out of it, up to and with the last; `next` is its head from now on. */
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

  /** Sends a source to the back of the line of its fair queue, and answers the key of its lanes in the ring from now on. */
  serve(queue: number, source: string): number {
    return this.#turns.serve(queue, source);
  }

  /** Makes the ring mirror the lanes that were touched: once for each, however many tasks came and went. */
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
        // While it has tasks, only a turn of its source moves it.
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

  /** What of a source stands in the ring. */
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

  /** Takes lanes of a source out of the ring or puts them back, however many tasks they hold; `write` notes what it is from now on. */
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

  /** The first task of the lanes of a source, and its lane, among those of these streams; their head where the ring is in order. */
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

  /** Sets up a queue, and puts its ready tasks into its order and its lanes into their line. */
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

  /** Puts the ready tasks of all queues into their order again, after the times by which they stand have changed. */
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

  /** Puts the ready tasks of a queue into its order, lane by lane; the ring is its caller's. */
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

  /** What the ring holds of a source, or would if it were open. */
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

  /** Where a lane stands in the ring. */
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

  /** Where a task that becomes ready now goes. */
  #trackFor(place: Place): number {
    const track = trackOf(place);
    const isNew = track === TRACK.fresh && place.ranAt === null && this.reachOf(place.source).ramping;
    return isNew ? TRACK.new : track;
  }

  /**
   * Where a task stands in its queue: the smaller, the sooner. One that has run stands behind what was submitted up to its last
   * start, so that nothing runs twice before a ready task that has not run; in a `lifo` queue behind all of those.
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
        // Exponential races from the last key claimed on: the one that comes first is drawn in proportion to its weight,
        // and what came earlier is not forgotten by what comes later.
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

/** Whether a stands before b. */
export function precedes(a: Ranked, b: Ranked): boolean {
  return a.order_key < b.order_key || (a.order_key === b.order_key && a.seq < b.seq);
}

/** Ties are broken by age: the older first, but in a `lifo` queue the newer. */
function seqOf(id: number, ordering: QueueOrder): number {
  return ordering === 'lifo' ? -id : id;
}

/** Whether lanes of this track are not in the ring. */
function isOut({ shut, noToken }: Reach, track: number): boolean {
  return shut || (noToken && track === TRACK.token);
}

function trackOf({ lostInARow, needsToken }: Place): number {
  if (lostInARow === 0) return needsToken ? TRACK.token : TRACK.fresh;
  return mustRunAlone(lostInARow) ? TRACK.alone : TRACK.suspect;
}
