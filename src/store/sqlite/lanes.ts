import type { Needs, QueueOrder } from '../../task.ts';
import { meets } from '../../task.ts';
import type { By, ClaimRequest, Takes } from '../store.ts';
import type { Sql } from './driver.ts';
import type { StoreClock } from './store-clock.ts';

/** Which kind of work a lane holds. 1 is kept for retries that will need a token of their source's budget. */
const TRACK = { fresh: 0, suspect: 2 } as const;

/** What a task brings along when it enters a lane. */
export interface Place {
  readonly id: number;
  readonly class: number;
  readonly source: string;
  readonly priority: number;
  readonly submittedAt: number;
  readonly suspect: boolean;
}

interface Class {
  readonly id: number;
  readonly queue: number;
  readonly type: string;
  readonly category: string;
  readonly needs: Needs;
}

interface Queue {
  readonly id: number;
  readonly name: string;
  readonly ordering: QueueOrder;
  readonly paused_at: number | null;
}

interface Head {
  readonly order_key: number;
  readonly seq: number;
  readonly lane: number;
  readonly source: string;
}

interface Stream {
  readonly class: number;
  readonly track: number;
}

type Ranked = Pick<Head, 'order_key' | 'seq'>;

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
/** How many lanes a process keeps in mind; beyond that it starts to learn them anew. */
const MOST_LANES_KNOWN = 20_000;

const YEAR_2020 = Date.UTC(2020, 0, 1);

/**
 * The ready tasks, in lanes. hf_active mirrors the head of every lane that is not empty; both are changed here and nowhere
 * else, so that they cannot part ways.
 */
export class Lanes {
  readonly #sql: Sql;
  readonly #clock: StoreClock;
  readonly #random: () => number;
  readonly #classIds = new Map<string, number>();
  readonly #classes = new Map<number, Class>();
  readonly #queues = new Map<number, Queue>();
  readonly #laneIds = new Map<string, number>();
  readonly #touched = new Map<number, Touched>();
  #catalogue = -1;
  #turn = 0;

  constructor(sql: Sql, clock: StoreClock, random: () => number) {
    this.#sql = sql;
    this.#clock = clock;
    this.#random = random;
  }

  /** Forgets what was learned in a transaction that was undone. */
  forget(): void {
    this.#touched.clear();
    this.#classIds.clear();
    this.#classes.clear();
    this.#queues.clear();
    this.#laneIds.clear();
  }

  /** The class of a task, made at its first use. */
  classOf(queue: string, type: string, category: string | undefined, needs: Needs | undefined): number {
    const name = JSON.stringify([queue, type, category ?? '', canonical(needs)]);
    const known = this.#classIds.get(name);
    if (known !== undefined) return known;
    const row = [this.queueOf(queue), type, category ?? '', canonical(needs)];
    const found = this.#sql.get<{ id: number }>(
      'SELECT id FROM hf_classes WHERE queue = ? AND type = ? AND category = ? AND needs = ?',
      ...row,
    );
    const id =
      found?.id ??
      this.#sql.run('INSERT INTO hf_classes (queue, type, category, needs) VALUES (?, ?, ?, ?)', ...row).id;
    this.#classIds.set(name, id);
    return id;
  }

  /** Puts a due task where claims find it. */
  add(place: Place): void {
    const lane = this.#laneOf(place);
    const touched = this.#touch(lane, place);
    const { ordering } = this.#queueOfClass(place.class);
    const ranked = { order_key: this.#orderKey(place, ordering), seq: seqOf(place.id, ordering) };
    this.#sql.run('INSERT INTO hf_ready (lane, order_key, seq) VALUES (?, ?, ?)', lane, ranked.order_key, ranked.seq);
    if (touched.now !== 'unknown' && (!touched.now || precedes(ranked, touched.now))) touched.now = ranked;
  }

  /** Takes one task out of its lane; false if it is not there. */
  remove(place: Place): boolean {
    const lane = this.#laneOf(place);
    const { ordering } = this.#queueOfClass(place.class);
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

  /** Makes the ring mirror the lanes that were touched: once for each, however many tasks came and went. */
  flush(): void {
    for (const [lane, { stream, source, shut, before, now }] of this.#touched) {
      if (shut) continue;
      const head = now === 'unknown' ? this.#headOf(lane) : now;
      if (head?.seq === before?.seq && head?.order_key === before?.order_key) continue;
      if (before) this.#retire(stream, before);
      if (head) this.#raise(stream, { ...head, lane, source });
    }
    this.#touched.clear();
  }

  /** The ids of the next tasks for a claim, taken out of their lanes: each queue's in its exact order, the queues in turn. */
  take(request: ClaimRequest): number[] {
    this.flush();
    const queues = this.#streamsByQueue(request);
    const first = this.#turn++ % Math.max(1, queues.length);
    const turn = [...queues.slice(first), ...queues.slice(0, first)];
    const share = Math.ceil(request.limit / Math.max(1, queues.length));
    const taken: number[] = [];
    const allowed = { suspects: request.suspect ? 1 : 0 };
    // A fair share each, then whatever is left for whoever has more.
    for (const most of [share, request.limit]) {
      for (const streams of turn) {
        taken.push(...this.#takeFrom(streams, Math.min(most, request.limit - taken.length), allowed));
      }
    }
    return taken;
  }

  /** Whether a claim could be given anything but these tasks. A look: it takes nothing. */
  offersOthers(request: ClaimRequest, ids: readonly number[]): boolean {
    this.flush();
    const streams = [...this.#streamsByQueue(request)].flat();
    return streams
      .filter(({ track }) => track !== TRACK.suspect || request.suspect)
      .some(({ class: id, track }) =>
        this.#sql
          .all<{ id: number }>(
            `SELECT abs(r.seq) AS id FROM hf_active a JOIN hf_ready r ON r.lane = a.lane
             WHERE a.class = ? AND a.track = ? LIMIT ?`,
            id,
            track,
            ids.length + 1,
          )
          .some((row) => !ids.includes(row.id)),
      );
  }

  /** What a class is, in the words of the seam. */
  describe(id: number): { readonly queue: string; readonly type: string; readonly category: string } {
    const { queue, type, category } = this.#classOfId(id);
    return { queue: this.#queueOfId(queue).name, type, category };
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
      this.queueOf(queue),
    );
    this.#queuesChanged();
  }

  resume(queue: string): void {
    this.#sql.run('UPDATE hf_queues SET paused_at = NULL, actor = NULL, note = NULL WHERE name = ?', queue);
    this.#queuesChanged();
  }

  /** Sets a queue's order, and puts its ready tasks into it. */
  reorder(queue: string, ordering: QueueOrder, places: (ids: readonly number[]) => readonly Place[]): void {
    const id = this.queueOf(queue);
    if (this.#queueOfId(id).ordering === ordering) return;
    const ready = this.#sql.all<{ id: number }>(
      `SELECT abs(r.seq) AS id FROM hf_ready r JOIN hf_lanes l ON l.id = r.lane JOIN hf_classes c ON c.id = l.class
       WHERE c.queue = ? ORDER BY id`,
      id,
    );
    const all = places(ready.map((row) => row.id));
    this.flush();
    this.#sql.run(
      'DELETE FROM hf_ready WHERE lane IN (SELECT l.id FROM hf_lanes l JOIN hf_classes c ON c.id = l.class WHERE c.queue = ?)',
      id,
    );
    this.#sql.run('DELETE FROM hf_active WHERE class IN (SELECT id FROM hf_classes WHERE queue = ?)', id);
    this.#sql.run('UPDATE hf_queues SET ordering = ? WHERE id = ?', ordering, id);
    this.#queuesChanged();
    for (const place of all) this.add(place);
  }

  /** Other processes keep the queues in mind: they learn from the catalogue's number that these are new ones. */
  #queuesChanged(): void {
    this.#sql.run('UPDATE hf_clock SET catalogue = catalogue + 1 WHERE id = 1');
    this.#clock.catalogue += 1;
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

  queueOf(name: string): number {
    const found = this.#sql.get<{ id: number }>('SELECT id FROM hf_queues WHERE name = ?', name);
    return found?.id ?? this.#sql.run('INSERT INTO hf_queues (name) VALUES (?)', name).id;
  }

  /** Merges the heads of one queue's streams: the smallest goes first, and its lane gives until another head is smaller. */
  #takeFrom(streams: readonly Stream[], limit: number, allowed: { suspects: number }): number[] {
    const open = new Map(streams.map((stream) => [stream, this.#headsOf(stream)]));
    const taken: number[] = [];
    while (taken.length < limit) {
      const heads = [...open]
        .filter(([{ track }]) => track !== TRACK.suspect || allowed.suspects > 0)
        .flatMap(([stream, [head, next]]) => (head ? [{ stream, head, next }] : []));
      const [best, ...others] = heads.sort((a, b) => (precedes(a.head, b.head) ? -1 : 1));
      if (!best) break;
      const bound = first([best.next, others[0]?.head]);
      const suspect = best.stream.track === TRACK.suspect;
      if (suspect) allowed.suspects -= 1;
      taken.push(...this.#takeHeads(best.stream, best.head, bound, suspect ? 1 : limit - taken.length));
      open.set(best.stream, this.#headsOf(best.stream));
    }
    return taken;
  }

  /** Takes the tasks of one lane that come before the bound. */
  #takeHeads(stream: Stream, head: Head, bound: Head | undefined, limit: number): number[] {
    const rows = bound
      ? this.#sql.all<Ranked>(
          `SELECT order_key, seq FROM hf_ready WHERE lane = ? AND (order_key, seq) < (?, ?)
           ORDER BY order_key, seq LIMIT ?`,
          head.lane,
          bound.order_key,
          bound.seq,
          limit,
        )
      : this.#sql.all<Ranked>(
          'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT ?',
          head.lane,
          limit,
        );
    const last = rows.at(-1) as Ranked;
    this.#sql.run(
      'DELETE FROM hf_ready WHERE lane = ? AND (order_key, seq) <= (?, ?)',
      head.lane,
      last.order_key,
      last.seq,
    );
    this.#succeed(stream, head, head.lane, head.source);
    const queue = this.#queueOfClass(stream.class);
    if (queue.ordering === 'weighted_random') {
      this.#sql.run('UPDATE hf_queues SET last_key = max(last_key, ?) WHERE id = ?', last.order_key, queue.id);
    }
    return rows.map(({ seq }) => Math.abs(seq));
  }

  /** The classes and tracks that have ready tasks and that this worker may take from, by queue. */
  #streamsByQueue(request: ClaimRequest): Stream[][] {
    const queues = new Map<number, Stream[]>();
    for (const stream of this.#streams()) {
      const { queue } = this.#classOfId(stream.class);
      if (this.admits(request, stream.class)) queues.set(queue, [...(queues.get(queue) ?? []), stream]);
    }
    return [...queues.values()];
  }

  /** Whether the worker that asks may take from this class. */
  admits(request: ClaimRequest, id: number): boolean {
    const { type, category, needs, queue: queueId } = this.#classOfId(id);
    const queue = this.#queueOfId(queueId);
    return queue.paused_at === null && takes(request, { queue: queue.name, type, category, needs });
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

  #headsOf({ class: id, track }: Stream): Head[] {
    return this.#sql.all<Head>(
      `SELECT order_key, seq, lane, source FROM hf_active WHERE class = ? AND track = ? ORDER BY order_key, seq LIMIT 2`,
      id,
      track,
    );
  }

  #headOf(lane: number): Ranked | undefined {
    return this.#sql.get<Ranked>(
      'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT 1',
      lane,
    );
  }

  /** The old head is gone; the lane's next one takes its place, if there is one. */
  #succeed(stream: Stream, old: Ranked, lane: number, source: string): void {
    this.#retire(stream, old);
    const head = this.#headOf(lane);
    if (head) this.#raise(stream, { ...head, lane, source });
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
    const track = trackOf(place);
    const name = `${place.class} ${track} ${place.source}`;
    const known = this.#laneIds.get(name);
    if (known !== undefined) return known;
    const row = [place.source, place.class, track];
    const found = this.#sql.get<{ id: number }>(
      'SELECT id FROM hf_lanes WHERE source = ? AND class = ? AND track = ?',
      ...row,
    );
    const id = found?.id ?? this.#sql.run('INSERT INTO hf_lanes (source, class, track) VALUES (?, ?, ?)', ...row).id;
    if (this.#laneIds.size >= MOST_LANES_KNOWN) this.#laneIds.clear();
    this.#laneIds.set(name, id);
    return id;
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
          this.#queueOfClass(id).id,
        ) as { last_key: number };
        return last_key - Math.log(1 - this.#random()) / Math.max(1, priority);
      }
    }
  }

  #queueOfClass(id: number): Queue {
    return this.#queueOfId(this.#classOfId(id).queue);
  }

  #classOfId(id: number): Class {
    const known = this.#classes.get(id);
    if (known) return known;
    const row = this.#sql.get<{ queue: number; type: string; category: string; needs: string }>(
      'SELECT queue, type, category, needs FROM hf_classes WHERE id = ?',
      id,
    ) as { queue: number; type: string; category: string; needs: string };
    const made = { ...row, id, needs: JSON.parse(row.needs) as Needs };
    this.#classes.set(id, made);
    return made;
  }

  #queueOfId(id: number): Queue {
    if (this.#catalogue !== this.#clock.catalogue) {
      this.#queues.clear();
      this.#catalogue = this.#clock.catalogue;
    }
    const known = this.#queues.get(id);
    if (known) return known;
    const row = this.#sql.get<Queue>('SELECT id, name, ordering, paused_at FROM hf_queues WHERE id = ?', id) as Queue;
    this.#queues.set(id, row);
    return row;
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

/** Ties are broken by age: the older first, but in a `lifo` queue the newer. */
function seqOf(id: number, ordering: QueueOrder): number {
  return ordering === 'lifo' ? -id : id;
}

function trackOf({ suspect }: Place): number {
  return suspect ? TRACK.suspect : TRACK.fresh;
}

function precedes(a: Ranked, b: Ranked): boolean {
  return a.order_key < b.order_key || (a.order_key === b.order_key && a.seq < b.seq);
}

function first(heads: readonly (Head | undefined)[]): Head | undefined {
  return heads.reduce((least, head) => (head && (!least || precedes(head, least)) ? head : least), undefined);
}

function canonical(needs: Needs = {}): string {
  return JSON.stringify(Object.fromEntries(Object.entries(needs).sort(([a], [b]) => (a < b ? -1 : 1))));
}
