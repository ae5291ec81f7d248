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

/** The values of a task that decide its lane and its position there. */
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
  /** Whether its last execution had a reason, so that it is retried. */
  readonly hasFailed: boolean;
}

/** Which lanes of a source are not in `hf_active`, because their tasks may not start now. From `hf_restricted`. */
export interface LaneState {
  /** None of its tasks may start. */
  readonly held: boolean;
  /** Tasks that need a token may not start. */
  readonly noToken: boolean;
  readonly ramping: boolean;
}

/** The state of a source without a row in hf_restricted. */
export const UNRESTRICTED: LaneState = { held: false, noToken: false, ramping: false };

/** The lanes of one class and track. */
export interface LaneGroup {
  readonly class: number;
  readonly track: number;
}

/** The position of a task in its lane, or of a lane in `hf_active`. The smallest comes first. */
export interface Position {
  readonly order_key: number;
  readonly seq: number;
}

/** A lane in `hf_active`, with the position of its first task, or, in a fair queue, the turn of its source. */
export interface ActiveLane extends Position {
  readonly lane: number;
  readonly source: string;
}

/** A lane and its group. */
export interface GroupedLane {
  readonly group: LaneGroup;
  readonly active: ActiveLane;
}

/** A lane that changed since `hf_active` was last updated: its first task before and now, as far as it is known. */
interface ChangedLane {
  readonly group: LaneGroup;
  readonly source: string;
  /** Whether its tasks may not start now, so that it is not in `hf_active`. */
  readonly isHeld: boolean;
  readonly before: Position | undefined;
  now: Position | undefined | 'unknown';
}

/** Tasks with consecutive ids that were added to a lane. They have the same order key. */
interface Series {
  readonly lane: number;
  readonly orderKey: number;
  /** The id of the first. */
  readonly first: number;
  readonly count: number;
  /** -1 in a `lifo` queue, otherwise 1. */
  readonly sign: number;
}

/** A row of `hf_active`. */
type ActiveRow = [class_: number, track: number, orderKey: number, seq: number, lane: number, source: string];

/** The distance between two priorities in order keys: about 34 years of milliseconds. */
const PRIORITY_STEP = 2 ** 40;

const YEAR_2020 = Date.UTC(2020, 0, 1);

/**
 * The ready tasks, in lanes. A lane is active if it has a task and its source may start it: then `hf_active` has the position
 * of its first task. Both tables are changed only here, so that they stay consistent.
 */
export class Lanes {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;
  readonly #turns: Turns;
  readonly #random: () => number;
  readonly #changed = new Map<number, ChangedLane>();
  /** The last claimed keys of weighted queues, until they are written. */
  readonly #lastKeys = new Map<number, number>();
  /** Tasks that were added to lanes since the last read: one insert writes many. */
  #added: number[] = [];
  #addedSeries: Series[] = [];
  /** The limits of the sources that were read since `hf_active` was last updated. */
  readonly #laneStates = new Map<string, LaneState>();

  constructor(sql: Sql, catalogue: Catalogue, random: () => number) {
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#turns = new Turns(sql);
    this.#random = random;
  }

  /** Forgets the changes of a transaction that was rolled back. */
  forget(): void {
    this.#changed.clear();
    this.#laneStates.clear();
    this.#added = [];
    this.#addedSeries = [];
    this.#lastKeys.clear();
    this.#turns.forget();
    this.#catalogue.forget();
  }

  /** Puts a due task into its lane. */
  add(place: Place, track = this.#trackFor(place)): void {
    const lane = this.#catalogue.laneIdOf(place.class, track, place.source);
    const changed = this.#changeOf(lane, { class: place.class, track }, place.source);
    const { ordering } = this.#catalogue.queueOfClass(place.class);
    const position = { order_key: this.#orderKey(place, ordering), seq: seqOf(place.id, ordering) };
    this.#added.push(lane, position.order_key, position.seq);
    noteAdded(changed, position);
  }

  /** Puts so many due tasks into their lane: `first`, and those with the next ids, which differ from it in nothing else. */
  addSeries(first: Place, count: number): void {
    const { ordering } = this.#catalogue.queueOfClass(first.class);
    if (ordering === 'weighted_random') {
      // Each has a random key of its own.
      for (let n = 0; n < count; n++) this.add({ ...first, id: first.id + n });
      return;
    }
    const track = this.#trackFor(first);
    const lane = this.#catalogue.laneIdOf(first.class, track, first.source);
    const changed = this.#changeOf(lane, { class: first.class, track }, first.source);
    const orderKey = this.#orderKey(first, ordering);
    const sign = ordering === 'lifo' ? -1 : 1;
    this.#addedSeries.push({ lane, orderKey, first: first.id, count, sign });
    const foremost = sign === 1 ? first.id : first.id + count - 1;
    noteAdded(changed, { order_key: orderKey, seq: sign * foremost });
  }

  /** Takes one task out of its lane, and returns the track of the lane; undefined if it is in none. */
  remove(place: Place): number | undefined {
    this.#insertAdded();
    const track = trackOf(place);
    if (this.#removeFrom(this.#catalogue.laneIdOf(place.class, track, place.source), track, place)) return track;
    if (track !== TRACK.fresh) return undefined;
    const lane = this.#catalogue.findLane(place.class, TRACK.new, place.source);
    return lane !== undefined && this.#removeFrom(lane, TRACK.new, place) ? TRACK.new : undefined;
  }

  #removeFrom(lane: number, track: number, place: Place): boolean {
    const { ordering } = this.#catalogue.queueOfClass(place.class);
    const seq = seqOf(place.id, ordering);
    const position =
      ordering === 'weighted_random'
        ? this.#sql.get<Position>('SELECT order_key, seq FROM hf_ready WHERE lane = ? AND seq = ?', lane, seq)
        : { order_key: this.#orderKey(place, ordering), seq };
    if (!position) return false;
    this.#changeOf(lane, { class: place.class, track }, place.source).now = 'unknown';
    const gone = this.#sql.run(
      'DELETE FROM hf_ready WHERE lane = ? AND order_key = ? AND seq = ?',
      lane,
      position.order_key,
      seq,
    );
    return gone.changes > 0;
  }

  /** Takes the first tasks out of a lane, up to and including `last`. `next` is its new first task. */
  takeUpTo(group: LaneGroup, active: ActiveLane, last: Position, next: Position | undefined): void {
    const changed = this.#changed.get(active.lane);
    if (changed) changed.now = next;
    else this.#changed.set(active.lane, { group, source: active.source, isHeld: false, before: active, now: next });
    this.#sql.run(
      'DELETE FROM hf_ready WHERE lane = ? AND (order_key, seq) <= (?, ?)',
      active.lane,
      last.order_key,
      last.seq,
    );
    const { ordering, id } = this.#catalogue.queueOfClass(group.class);
    if (ordering === 'weighted_random') this.#lastKeys.set(id, Math.max(this.#lastKeyOf(id), last.order_key));
  }

  /** Gives a source the last turn in its fair queue, and returns the new key of its lanes in `hf_active`. */
  giveLastTurn(queue: number, source: string): number {
    return this.#turns.giveLast(queue, source);
  }

  /** Updates `hf_active` for the changed lanes: once for each lane, even if many tasks came and went. */
  flush(): void {
    this.#insertAdded();
    const activated: ActiveRow[] = [];
    for (const [lane, { group, source, isHeld, before, now }] of this.#changed) {
      if (isHeld) continue;
      const first = now === 'unknown' ? this.#firstTaskOf(lane) : now;
      if (!before && !first) continue;
      const queue = this.#catalogue.queueOfClass(group.class);
      let from = before;
      let to = first;
      if (queue.fair === 1) {
        // While it has tasks, only a new turn of its source changes its position.
        if (before && first && !this.#turns.hasMoved(queue.id, source)) continue;
        const turn = this.#turns.of(queue.id, source);
        from = before && { order_key: turn.before as number, seq: lane };
        to = first && { order_key: turn.now, seq: lane };
      }
      if (to?.seq === from?.seq && to?.order_key === from?.order_key) continue;
      if (from) this.#deactivate(group, from);
      if (to) activated.push([group.class, group.track, to.order_key, to.seq, lane, source]);
    }
    this.#changed.clear();
    this.#laneStates.clear();
    for (const { class: id, track, lane, source, before, now } of this.#turns.write()) {
      this.#deactivate({ class: id, track }, { order_key: before, seq: lane });
      activated.push([id, track, now, lane, lane, source]);
    }
    this.#activate(activated);
    this.#noteLastKeys();
  }

  /** Which lanes of a source may not start tasks now. */
  laneStateOf(source: string): LaneState {
    const known = this.#laneStates.get(source);
    if (known) return known;
    if (this.#catalogue.isFree(source)) return UNRESTRICTED;
    const [row] = this.#sql.rows<[held: number, noToken: number, ramping: number]>(
      'SELECT held_by IS NOT NULL, no_token, ramping FROM hf_restricted WHERE source = ?',
      source,
    );
    const state = row ? { held: row[0] === 1, noToken: row[1] === 1, ramping: row[2] === 1 } : UNRESTRICTED;
    this.#laneStates.set(source, state);
    return state;
  }

  /** Deactivates lanes of a source or activates them again. `write` stores the new state. */
  changeLaneState(source: string, after: LaneState, write: () => void): void {
    this.flush();
    const before = this.laneStateOf(source);
    write();
    this.#laneStates.set(source, after);
    if (before.held === after.held && before.noToken === after.noToken) return;
    const activated: ActiveRow[] = [];
    for (const row of this.#activeRowsOf(source)) {
      const [id, track, order_key, seq] = row;
      if (holds(before, track) === holds(after, track)) continue;
      if (holds(after, track)) this.#deactivate({ class: id, track }, { order_key, seq });
      else activated.push(row);
    }
    this.#turns.write();
    this.#activate(activated);
  }

  /**
   * The first task of a source's lanes in the accepted groups, and its lane. If the queue is in order, it is also the lane's
   * entry in `hf_active`.
   */
  firstOf(source: string, accepts: (group: LaneGroup) => boolean): GroupedLane | undefined {
    let first: GroupedLane | undefined;
    for (const [lane, id, track] of this.#lanesOf(source)) {
      const group = { class: id, track };
      const position = accepts(group) ? this.#firstTaskOf(lane) : undefined;
      if (!position || (first && !precedes(position, first.active))) continue;
      first = { group, active: { ...position, lane, source } };
    }
    return first;
  }

  /** Whether a source has a ready task. */
  hasReady(source: string): boolean {
    this.#insertAdded();
    return this.#lanesOf(source).some(([lane]) => this.#firstTaskOf(lane) !== undefined);
  }

  /** Returns whether it was not paused. */
  pause(queue: string, { actor, note }: By, now: number): boolean {
    const paused = this.#sql.run(
      'UPDATE hf_queues SET paused_at = ?, actor = ?, note = ? WHERE id = ? AND paused_at IS NULL',
      now,
      actor,
      note ?? null,
      this.#catalogue.queueIdOf(queue),
    );
    this.#catalogue.changed();
    return paused.changes > 0;
  }

  /** Returns whether it was paused. */
  resume(queue: string): boolean {
    const resumed = this.#sql.run(
      'UPDATE hf_queues SET paused_at = NULL, actor = NULL, note = NULL WHERE name = ? AND paused_at IS NOT NULL',
      queue,
    );
    this.#catalogue.changed();
    return resumed.changes > 0;
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
           SELECT t.id FROM hf_running r CROSS JOIN hf_tasks t ON t.id = r.id JOIN hf_classes c ON c.id = t.class
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
    const activated = lanes.map(([id, track, lane, source]): ActiveRow => {
      const { order_key, seq } = this.#activePosition(id, lane, source, this.#firstTaskOf(lane) as Position);
      return [id, track, order_key, seq, lane, source];
    });
    this.#turns.write();
    this.#activate(activated);
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
      READY,
      3,
      all.flatMap((place, n) => [rows[n]?.[0], this.#orderKey(place, ordering), seqOf(place.id, ordering)]),
    );
  }

  /** The rows that a source would have in `hf_active` if all of its tasks could start. */
  #activeRowsOf(source: string): ActiveRow[] {
    return this.#lanesOf(source).flatMap(([lane, id, track]): ActiveRow[] => {
      const first = this.#firstTaskOf(lane);
      if (!first) return [];
      const { order_key, seq } = this.#activePosition(id, lane, source, first);
      return [[id, track, order_key, seq, lane, source]];
    });
  }

  #lanesOf(source: string): [lane: number, class_: number, track: number][] {
    return this.#sql.rows('SELECT id, class, track FROM hf_lanes WHERE source = ?', source);
  }

  /** The position of a lane in `hf_active`. */
  #activePosition(id: number, lane: number, source: string, first: Position): Position {
    const queue = this.#catalogue.queueOfClass(id);
    return queue.fair === 1 ? { order_key: this.#turns.of(queue.id, source).now, seq: lane } : first;
  }

  #insertAdded(): void {
    if (this.#added.length > 0) {
      this.#sql.insertAll(READY, 3, this.#added);
      this.#added = [];
    }
    for (const { lane, orderKey, first, count, sign } of this.#addedSeries) {
      this.#sql.insertAlike(READY, nextOfSeries, count, { lane, orderKey, first, sign });
    }
    if (this.#addedSeries.length > 0) this.#addedSeries = [];
  }

  #changeOf(lane: number, group: LaneGroup, source: string): ChangedLane {
    const known = this.#changed.get(lane);
    if (known) return known;
    const first = this.#firstTaskOf(lane);
    const isHeld = holds(this.laneStateOf(source), group.track);
    const changed = { group, source, isHeld, before: isHeld ? undefined : first, now: first };
    this.#changed.set(lane, changed);
    return changed;
  }

  #firstTaskOf(lane: number): Position | undefined {
    return this.#sql.get<Position>(
      'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT 1',
      lane,
    );
  }

  #activate(rows: readonly ActiveRow[]): void {
    this.#sql.insertAll('hf_active (class, track, order_key, seq, lane, source)', 6, rows.flat());
  }

  #deactivate({ class: id, track }: LaneGroup, { order_key, seq }: Position): void {
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
    const isNew = track === TRACK.fresh && place.ranAt === null && this.laneStateOf(place.source).ramping;
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

const READY = 'hf_ready (lane, order_key, seq)';

/** The row of a task of a series. */
function nextOfSeries(n: number): string {
  return `(@lane, @orderKey, @sign * (@first + ${n}))`;
}

/** A task that was added may be the first one of its lane. */
function noteAdded(changed: ChangedLane, position: Position): void {
  if (changed.now !== 'unknown' && (!changed.now || precedes(position, changed.now))) changed.now = position;
}

/** Whether a comes before b. */
export function precedes(a: Position, b: Position): boolean {
  return a.order_key < b.order_key || (a.order_key === b.order_key && a.seq < b.seq);
}

/** Ties are broken by age: the older first, but in a `lifo` queue the newer. */
function seqOf(id: number, ordering: QueueOrder): number {
  return ordering === 'lifo' ? -id : id;
}

/** Whether tasks of this track may not start. */
function holds({ held, noToken }: LaneState, track: number): boolean {
  return held || (noToken && track === TRACK.token);
}

function trackOf({ lostInARow, needsToken }: Place): number {
  if (lostInARow === 0) return needsToken ? TRACK.token : TRACK.fresh;
  return mustRunAlone(lostInARow) ? TRACK.alone : TRACK.suspect;
}
