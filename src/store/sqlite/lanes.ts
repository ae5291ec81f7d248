import type { QueueOrder } from '../../task.ts';
import type { By } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import type { Sql } from './driver.ts';

/** Which kind of work a lane holds. 1 is kept for retries that will need a token of their source's budget. */
export const TRACK = { fresh: 0, suspect: 2 } as const;

/** What a task brings along when it enters a lane. */
export interface Place {
  readonly id: number;
  readonly class: number;
  readonly source: string;
  readonly priority: number;
  readonly submittedAt: number;
  readonly suspect: boolean;
}

/** The lanes of one class and track. */
export interface Stream {
  readonly class: number;
  readonly track: number;
}

/** Where a task stands: the smaller, the sooner. */
export interface Ranked {
  readonly order_key: number;
  readonly seq: number;
}

/** A lane's first task. */
export interface Head extends Ranked {
  readonly lane: number;
  readonly source: string;
}

/** A lane that changed since the ring was last made to mirror it: its head before, and now as far as it is known. */
interface Touched {
  readonly stream: Stream;
  readonly source: string;
  readonly shut: boolean;
  readonly before: Ranked | undefined;
  now: Ranked | undefined | 'unknown';
}

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
  readonly #random: () => number;
  readonly #touched = new Map<number, Touched>();
  /** What enters its lane before these are next read: one insert for many. */
  #entering: number[] = [];

  constructor(sql: Sql, catalogue: Catalogue, random: () => number) {
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#random = random;
  }

  /** Forgets what was begun in a transaction that was undone. */
  forget(): void {
    this.#touched.clear();
    this.#entering = [];
    this.#catalogue.forget();
  }

  /** Puts a due task where claims find it. */
  add(place: Place): void {
    const lane = this.#laneOf(place);
    const touched = this.#touch(lane, place);
    const { ordering } = this.#catalogue.queueOfClass(place.class);
    const ranked = { order_key: this.#orderKey(place, ordering), seq: seqOf(place.id, ordering) };
    this.#entering.push(lane, ranked.order_key, ranked.seq);
    if (touched.now !== 'unknown' && (!touched.now || precedes(ranked, touched.now))) touched.now = ranked;
  }

  /** Takes one task out of its lane; false if it is not there. */
  remove(place: Place): boolean {
    this.#enter();
    const lane = this.#laneOf(place);
    const { ordering } = this.#catalogue.queueOfClass(place.class);
    const seq = seqOf(place.id, ordering);
    const ranked =
      ordering === 'weighted_random'
        ? this.#sql.get<Ranked>('SELECT order_key, seq FROM hf_ready WHERE lane = ? AND seq = ?', lane, seq)
        : { order_key: this.#orderKey(place, ordering), seq };
    if (!ranked) return false;
    this.#touch(lane, place).now = 'unknown';
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
    else this.#touched.set(head.lane, { stream, source: head.source, shut: false, before: head, now: next });
    this.#sql.run(
      'DELETE FROM hf_ready WHERE lane = ? AND (order_key, seq) <= (?, ?)',
      head.lane,
      last.order_key,
      last.seq,
    );
    const { ordering, id } = this.#catalogue.queueOfClass(stream.class);
    if (ordering === 'weighted_random') {
      this.#sql.run('UPDATE hf_queues SET last_key = max(last_key, ?) WHERE id = ?', last.order_key, id);
    }
  }

  /** Makes the ring mirror the lanes that were touched: once for each, however many tasks came and went. */
  flush(): void {
    this.#enter();
    for (const [lane, { stream, source, shut, before, now }] of this.#touched) {
      if (shut) continue;
      const head = now === 'unknown' ? this.#headOf(lane) : now;
      if (head?.seq === before?.seq && head?.order_key === before?.order_key) continue;
      if (before) this.#retire(stream, before);
      if (head) this.#raise(stream, { order_key: head.order_key, seq: head.seq, lane, source });
    }
    this.#touched.clear();
  }

  /** Shuts a source: its lanes leave the ring, whatever they hold. */
  shut(source: string, { actor, note }: By, now: number): void {
    if (this.isShut(source)) return;
    for (const { stream, head } of this.#headsOfSource(source)) this.#retire(stream, head);
    this.#sql.run(
      'INSERT INTO hf_sources (name, shut_at, actor, note) VALUES (?, ?, ?, ?)',
      source,
      now,
      actor,
      note ?? null,
    );
  }

  /** Opens a source: those of its lanes that hold anything join the ring. */
  open(source: string): void {
    if (this.#sql.run('DELETE FROM hf_sources WHERE name = ?', source).changes === 0) return;
    for (const { stream, head } of this.#headsOfSource(source)) this.#raise(stream, head);
  }

  isShut(source: string): boolean {
    return this.#sql.get('SELECT 1 FROM hf_sources WHERE name = ?', source) !== undefined;
  }

  pause(queue: string, { actor, note }: By, now: number): void {
    this.#sql.run(
      'UPDATE hf_queues SET paused_at = ?, actor = ?, note = ? WHERE id = ? AND paused_at IS NULL',
      now,
      actor,
      note ?? null,
      this.#catalogue.queueIdOf(queue),
    );
    this.#catalogue.queuesChanged();
  }

  resume(queue: string): void {
    this.#sql.run('UPDATE hf_queues SET paused_at = NULL, actor = NULL, note = NULL WHERE name = ?', queue);
    this.#catalogue.queuesChanged();
  }

  /** Sets a queue's order, and puts its ready tasks into it. */
  reorder(queue: string, ordering: QueueOrder, places: (ids: readonly number[]) => readonly Place[]): void {
    const id = this.#catalogue.queueIdOf(queue);
    if (this.#catalogue.queue(id).ordering === ordering) return;
    this.flush();
    const all = places(
      this.#sql.column<number>(
        `SELECT abs(r.seq) AS id FROM hf_ready r JOIN hf_lanes l ON l.id = r.lane JOIN hf_classes c ON c.id = l.class
         WHERE c.queue = ? ORDER BY id`,
        id,
      ),
    );
    this.#sql.run(
      'DELETE FROM hf_ready WHERE lane IN (SELECT l.id FROM hf_lanes l JOIN hf_classes c ON c.id = l.class WHERE c.queue = ?)',
      id,
    );
    this.#sql.run('DELETE FROM hf_active WHERE class IN (SELECT id FROM hf_classes WHERE queue = ?)', id);
    this.#sql.run('UPDATE hf_queues SET ordering = ? WHERE id = ?', ordering, id);
    this.#catalogue.queuesChanged();
    for (const place of all) this.add(place);
  }

  #headsOfSource(source: string): { readonly stream: Stream; readonly head: Head }[] {
    this.flush();
    return this.#sql
      .all<{ id: number; class: number; track: number }>(
        'SELECT id, class, track FROM hf_lanes WHERE source = ?',
        source,
      )
      .flatMap(({ id: lane, class: group, track }) => {
        const head = this.#headOf(lane);
        return head ? [{ stream: { class: group, track }, head: { ...head, lane, source } }] : [];
      });
  }

  #enter(): void {
    if (this.#entering.length === 0) return;
    this.#sql.insertAll('hf_ready (lane, order_key, seq)', 3, this.#entering);
    this.#entering = [];
  }

  #touch(lane: number, place: Place): Touched {
    const known = this.#touched.get(lane);
    if (known) return known;
    const head = this.#headOf(lane);
    const shut = this.isShut(place.source);
    const stream = { class: place.class, track: trackOf(place) };
    const touched = { stream, source: place.source, shut, before: shut ? undefined : head, now: head };
    this.#touched.set(lane, touched);
    return touched;
  }

  #headOf(lane: number): Ranked | undefined {
    return this.#sql.get<Ranked>(
      'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT 1',
      lane,
    );
  }

  #raise({ class: id, track }: Stream, { order_key, seq, lane, source }: Head): void {
    this.#sql.run(
      'INSERT INTO hf_active (class, track, order_key, seq, lane, source) VALUES (?, ?, ?, ?, ?, ?)',
      id,
      track,
      order_key,
      seq,
      lane,
      source,
    );
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

  #laneOf(place: Place): number {
    return this.#catalogue.laneIdOf(place.class, trackOf(place), place.source);
  }

  /** Where a task stands in its queue: the smaller, the sooner. A retry keeps the place of its submission. */
  #orderKey({ class: id, priority, submittedAt }: Place, ordering: QueueOrder): number {
    switch (ordering) {
      case 'fifo':
        return submittedAt;
      case 'lifo':
        return -submittedAt;
      case 'priority': {
        const since2020 = Math.min(Math.max(submittedAt - YEAR_2020, 0), PRIORITY_STEP - 1);
        return -priority * PRIORITY_STEP + since2020;
      }
      case 'weighted_random': {
        // Exponential races from the last key claimed on: the one that comes first is drawn in proportion to its weight,
        // and what came earlier is not forgotten by what comes later.
        const { last_key } = this.#sql.get<{ last_key: number }>(
          'SELECT last_key FROM hf_queues WHERE id = ?',
          this.#catalogue.queueOfClass(id).id,
        ) as { last_key: number };
        return last_key - Math.log(1 - this.#random()) / Math.max(1, priority);
      }
    }
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

function trackOf({ suspect }: Place): number {
  return suspect ? TRACK.suspect : TRACK.fresh;
}
