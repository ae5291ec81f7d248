import type { ClaimRequest } from '../store.ts';
import { takes } from '../takes.ts';
import type { Catalogue, Queue } from './catalogue.ts';
import type { Sql } from './driver.ts';
import { Merge, type MergeInput } from './lane-merge.ts';
import { type Head, isUnbound, type Lanes, precedes, type Ranked, type Stream, TRACK } from './lanes.ts';
import { isLimited, type QueueLimits } from './queue-limits.ts';
import type { Restricted, Room } from './restricted.ts';

/** What one claim may take from one queue. */
interface Line {
  readonly queue: Queue;
  readonly merge: Merge;
  /** How many tasks its limits allow. */
  room: number;
}

/** What one round over the queues may take. */
interface Allowance {
  readonly limit: number;
  suspects: number;
  /**
   * Whether a task that must run alone may be taken: only while nothing else was taken. `taken` when it was: then nothing more is
   * taken.
   */
  alone: boolean | 'taken';
  /** In a claim ahead: tasks of these types, and none behind a task of another type or a suspect. Absent: any. */
  readonly types?: readonly string[];
  /** The classes of the taken tasks. */
  readonly classes: Set<number>;
}

/** The first tasks of one lane of a source that has its turn. */
interface Turn {
  readonly input: MergeInput;
  readonly head: Head;
  readonly tasks: readonly Ranked[];
  given: number;
}

/** How many tasks of a lane are read at once while the first task of another lane may come before some of them. */
const WHILE_BOUNDED = 8;

/**
 * In a fair queue a turn is one task. If many lanes wait, a turn is a few tasks, because each turn changes database pages of its
 * own.
 */
const MANY_LANES = 1_000;
const TASKS_A_TURN = { few: 1, many: 4 } as const;

export interface WalkParts {
  readonly sql: Sql;
  readonly catalogue: Catalogue;
  readonly lanes: Lanes;
  readonly restricted: Restricted;
  readonly queueLimits: QueueLimits;
}

/**
 * How a claim finds its tasks: it compares the first tasks of the lanes that its worker may take from, and takes the exact next
 * ones.
 */
export class Walk {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;
  readonly #lanes: Lanes;
  readonly #restricted: Restricted;
  readonly #queueLimits: QueueLimits;
  #rotation = 0;

  constructor({ sql, catalogue, lanes, restricted, queueLimits }: WalkParts) {
    this.#restricted = restricted;
    this.#queueLimits = queueLimits;
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#lanes = lanes;
  }

  /**
   * Takes the next tasks for a claim out of their lanes, and returns their ids. The queues take turns. In each queue the tasks
   * come in its exact order, or, if it is fair, the sources take turns. Tasks beyond the request's limit are claimed ahead.
   */
  take(request: ClaimRequest, now: number): number[] {
    this.#lanes.flush();
    const { limit, ahead } = request;
    const lines = this.#lines(request, limit + (ahead?.limit ?? 0), now);
    const first = this.#rotation++ % Math.max(1, lines.length);
    const rotated = [...lines.slice(first), ...lines.slice(0, first)];
    const classes = new Set<number>();
    const allowance: Allowance = { limit, suspects: request.suspects, alone: request.alone, classes };
    const taken = this.#takeRound(rotated, allowance);
    if (allowance.alone === 'taken') return taken;
    const others = [...classes].some((id) => !ahead?.types.includes(this.#catalogue.class(id).type));
    if (ahead && ahead.limit > 0 && taken.length === limit && !others) {
      taken.push(...this.#takeRound(rotated, { ...allowance, limit: ahead.limit, types: ahead.types }));
    }
    return taken;
  }

  /** Whether a claim could get other tasks than these. It only reads. */
  offersOthers(request: ClaimRequest, ids: readonly number[]): boolean {
    this.#lanes.flush();
    return this.#firsts(request).some(({ stream: { class: id, track } }) =>
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

  /** Takes an equal share from each queue, then the rest from queues that have more. */
  #takeRound(lines: readonly Line[], allowance: Allowance): number[] {
    const { limit } = allowance;
    const share = Math.ceil(limit / Math.max(1, lines.length));
    const taken: number[] = [];
    for (const most of lines.length > 1 ? [share, limit] : [limit]) {
      for (const line of lines) {
        const { queue, merge } = line;
        // No task of a queue with limits is claimed ahead.
        const room = allowance.types && isLimited(queue) ? 0 : line.room;
        const before = taken.length;
        const enough = Math.min(limit, before + most, before + room);
        if (before >= enough || allowance.alone === 'taken') continue;
        if (allowance.suspects <= 0) merge.drop(TRACK.suspect);
        if (!allowance.alone) merge.drop(TRACK.alone);
        if (queue.fair === 1) this.#takeInTurn(queue.id, merge, enough, allowance, taken);
        else this.#takeInOrder(merge, enough, allowance, taken);
        line.room -= taken.length - before;
      }
    }
    return taken;
  }

  /**
   * Merges the lanes of one queue: takes tasks from the lane with the very first task until another lane's first task comes
   * before its next one.
   */
  #takeInOrder(merge: Merge, enough: number, allowance: Allowance, taken: number[]): void {
    while (taken.length < enough && allowance.alone !== 'taken') {
      if (taken.length > 0 && !allowance.types) merge.drop(TRACK.alone);
      const input = merge.first;
      if (!input) return;
      const [head] = input.heads as [Head];
      if (!this.#allows(input.stream, head, allowance)) return;
      const { track } = input.stream;
      const room = this.#restricted.roomOf(head.source, track);
      if (room && !hasRoom(room, track)) {
        merge.dropSource(head.source, room.starts < 1 ? undefined : track);
        continue;
      }
      const turn = room?.ramping ? this.#otherSide(merge, room, track, head.source) : undefined;
      if (room && turn) {
        const [task, next] = this.#tasksOf(turn.head.lane, 2) as [Ranked, Ranked | undefined];
        taken.push(Math.abs(task.seq));
        allowance.classes.add(turn.stream.class);
        this.#lanes.cut(turn.stream, turn.head, task, next);
        merge.takenFrom(turn.stream);
        this.#account(merge, room, 1, turn.stream.track);
        continue;
      }
      const bound = merge.bound();
      const left = isUnbound(track) && !room?.ramping ? Math.min(enough - taken.length, room?.starts ?? enough) : 1;
      const most = bound ? Math.min(left, WHILE_BOUNDED) : left;
      const tasks = this.#tasksOf(head.lane, most + 1);
      const beyond = tasks.findIndex((task, n) => n === most || (n > 0 && bound && !precedes(task, bound)));
      const count = beyond < 0 ? tasks.length : beyond;
      for (const { seq } of tasks.slice(0, count)) taken.push(Math.abs(seq));
      allowance.classes.add(input.stream.class);
      const next = tasks[count];
      this.#lanes.cut(input.stream, head, tasks[count - 1] as Ranked, next);
      merge.moved(
        [input],
        [next && { order_key: next.order_key, seq: next.seq, lane: head.lane, source: head.source }],
      );
      if (room) this.#account(merge, room, count, track);
      if (track === TRACK.alone) allowance.alone = 'taken';
      if (track === TRACK.suspect && --allowance.suspects <= 0) merge.drop(TRACK.suspect);
    }
  }

  /**
   * For a source that ramps: new work and backlog take turns. If the first task is of the side that has no turn, this returns the
   * first task of the other side.
   */
  #otherSide(
    merge: Merge,
    { backlogNext, tokens }: Room,
    track: number,
    source: string,
  ): { readonly stream: Stream; readonly head: Head } | undefined {
    if ((track !== TRACK.new) === backlogNext) return undefined;
    return this.#lanes.firstOf(
      source,
      (stream) =>
        (stream.track !== TRACK.new) === backlogNext &&
        (stream.track !== TRACK.token || tokens >= 1) &&
        // Suspects have their own rules, and come in their order.
        stream.track !== TRACK.suspect &&
        stream.track !== TRACK.alone &&
        merge.has(stream),
    );
  }

  /** Counts the tasks that were taken from a restricted source. If it may start no more, its lanes are left out. */
  #account(merge: Merge, room: Room, count: number, track: number): void {
    this.#restricted.take(room, count, track);
    this.#dropIfSpent(merge, room);
  }

  #dropIfSpent(merge: Merge, room: Room): void {
    const left = this.#restricted.leave(room);
    if (left === 'shut') merge.dropSource(room.source);
    if (left === 'no_token') merge.dropSource(room.source, TRACK.token);
  }

  /**
   * Takes tasks from the sources of a fair queue in turn: a few tasks of one source in their order, then the source gets the last
   * turn.
   */
  #takeInTurn(queue: number, merge: Merge, enough: number, allowance: Allowance, taken: number[]): void {
    const atOnce = merge.hold(MANY_LANES) ? TASKS_A_TURN.many : TASKS_A_TURN.few;
    while (taken.length < enough && allowance.alone !== 'taken') {
      if (taken.length > 0 && !allowance.types) merge.drop(TRACK.alone);
      const before = taken.length;
      const firsts = merge.firsts();
      const [first] = firsts;
      const source = first?.heads[0]?.source;
      if (source === undefined) return;
      const needsToken = firsts.some(({ stream }) => stream.track === TRACK.token);
      const room = this.#restricted.roomOf(source, needsToken ? TRACK.token : TRACK.fresh);
      if (room && room.starts < 1) {
        merge.dropSource(source);
        continue;
      }
      const lanes = firsts.map((input): Turn => {
        const [head] = input.heads as [Head];
        return { input, head, tasks: this.#tasksOf(head.lane, atOnce + 1), given: 0 };
      });
      const most = Math.min(enough, before + atOnce, before + (room?.starts ?? atOnce));
      while (taken.length < most && allowance.alone !== 'taken') {
        const lane = sooner(lanes, allowance, taken.length > 0 && !allowance.types, room);
        if (!lane || !this.#allows(lane.input.stream, lane.head, allowance)) break;
        const { track } = lane.input.stream;
        if (room) this.#restricted.take(room, 1, track);
        if (track === TRACK.suspect) allowance.suspects -= 1;
        if (track === TRACK.alone) allowance.alone = 'taken';
        taken.push(Math.abs(lane.tasks[lane.given]?.seq as number));
        allowance.classes.add(lane.input.stream.class);
        lane.given += 1;
      }
      if (taken.length === before) return;
      this.#serve(queue, merge, lanes);
      if (room) this.#dropIfSpent(merge, room);
      if (allowance.suspects <= 0) merge.drop(TRACK.suspect);
    }
  }

  /** Ends the turn of a source: removes the taken tasks from its lanes, and gives all of its lanes the last turn. */
  #serve(queue: number, merge: Merge, lanes: readonly Turn[]): void {
    const [{ head: first }] = lanes as [Turn];
    const order_key = this.#lanes.serve(queue, first.source);
    const next = lanes.map(({ input, head, tasks, given }) => {
      const last = tasks[given - 1];
      if (last) this.#lanes.cut(input.stream, head, last, tasks[given]);
      return tasks[given] && { ...head, order_key };
    });
    merge.moved(
      lanes.map(({ input }) => input),
      next,
    );
  }

  #allows({ class: id, track }: Stream, { source }: Head, { types }: Allowance): boolean {
    if (!types) return true;
    return types.includes(this.#catalogue.class(id).type) && !this.#restricted.forbidsAhead(source, track);
  }

  #tasksOf(lane: number, most: number): Ranked[] {
    return this.#sql
      .rows<[order_key: number, seq: number]>(
        'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT ?',
        lane,
        most,
      )
      .map(([order_key, seq]) => ({ order_key, seq }));
  }

  /** The lanes that a claim of `limit` tasks may take from, by queue. */
  #lines(request: ClaimRequest, limit: number, now: number): Line[] {
    const byQueue = new Map<Queue, MergeInput[]>();
    for (const input of this.#firsts(request)) {
      const queue = this.#catalogue.queueOfClass(input.stream.class);
      const inputs = byQueue.get(queue);
      if (inputs) inputs.push(input);
      else byQueue.set(queue, [input]);
    }
    return [...byQueue].map(([queue, inputs]) => ({
      queue,
      merge: new Merge(this.#sql, this.#lanes, inputs, limit),
      room: isLimited(queue) ? this.#queueLimits.roomOf(queue, now) : Number.POSITIVE_INFINITY,
    }));
  }

  /** The first lane of every class and track that this worker may take from, with one lookup for each. */
  #firsts(request: ClaimRequest): MergeInput[] {
    const rows = this.#sql.rows<
      [class_: number, track: number, order_key: number, seq: number, lane: number, source: string]
    >(
      // With `>`, the lookup would read all lanes of the class and track before it.
      `WITH RECURSIVE firsts AS (
         SELECT * FROM (
           SELECT class, track, order_key, seq, lane, source FROM hf_active ORDER BY class, track, order_key, seq LIMIT 1)
         UNION ALL
         SELECT a.class, a.track, a.order_key, a.seq, a.lane, a.source FROM firsts f
         JOIN hf_active a ON (a.class, a.track, a.order_key, a.seq) = (
           SELECT class, track, order_key, seq FROM hf_active WHERE (class, track) >= (f.class, f.track + 1)
           ORDER BY class, track, order_key, seq LIMIT 1))
       SELECT * FROM firsts`,
    );
    return rows
      .filter(([id, track]) => mayGive(track, request) && this.admits(request, id))
      .map(([id, track, order_key, seq, lane, source]) => ({
        stream: { class: id, track },
        heads: [{ order_key, seq, lane, source }],
        more: true,
        asked: 0,
        changed: false,
      }));
  }
}

/** Whether the worker may take tasks of this track. */
function mayGive(track: number, { suspects, alone }: ClaimRequest): boolean {
  if (track === TRACK.alone) return alone;
  return track !== TRACK.suspect || suspects > 0;
}

/** Whether a task of this track may be taken. */
function hasRoom(room: Room, track: number): boolean {
  return room.starts >= 1 && (track !== TRACK.token || room.tokens >= 1);
}

/**
 * The lane of a source whose next task comes first; while the source ramps, of the side (new work or backlog) that has the turn,
 * if it has any.
 */
function sooner(
  lanes: readonly Turn[],
  { suspects }: Allowance,
  any: boolean,
  room: Room | undefined,
): Turn | undefined {
  const open = lanes.filter(({ input: { stream } }) => {
    if (stream.track === TRACK.token) return !room || room.tokens >= 1;
    return stream.track === TRACK.suspect ? suspects > 0 : stream.track !== TRACK.alone || !any;
  });
  const turn = open.filter(
    (lane) => lane.tasks[lane.given] && (lane.input.stream.track !== TRACK.new) === room?.backlogNext,
  );
  let first: Turn | undefined;
  for (const lane of room?.ramping && turn.length > 0 ? turn : open) {
    const task = lane.tasks[lane.given];
    if (task && (!first || precedes(task, first.tasks[first.given] as Ranked))) first = lane;
  }
  return first;
}
