import type { ClaimRequest } from '../store.ts';
import { takes } from '../takes.ts';
import type { Catalogue, Queue } from './catalogue.ts';
import type { Sql } from './driver.ts';
import { Merge, type MergeInput } from './lane-merge.ts';
import {
  type ActiveLane,
  type GroupedLane,
  isUnbound,
  type LaneGroup,
  type Lanes,
  type Position,
  precedes,
  TRACK,
} from './lanes.ts';
import { isLimited, type QueueLimits } from './queue-limits.ts';
import type { Allowance, Restricted } from './restricted.ts';

/** The lanes of one queue that a claim may take from. */
interface QueueLanes {
  readonly queue: Queue;
  readonly merge: Merge;
  /** How many tasks the limits of the queue allow. */
  starts: number;
}

/** What one round over the queues may take. */
interface Round {
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

/** A lane of the source whose turn it is: its first tasks, and how many of them were taken. */
interface LaneTasks {
  readonly input: MergeInput;
  readonly active: ActiveLane;
  readonly tasks: readonly Position[];
  taken: number;
}

/** The first tasks of a lane: the last of them, and the one after it. */
interface FirstTasks {
  readonly seqs: readonly number[];
  readonly last: Position;
  readonly next: Position | undefined;
}

/** How many tasks of a lane are read at once while the first task of another lane may come before some of them. */
const READ_AT_ONCE = 8;

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
    const queues = this.#lanesByQueue(request, limit + (ahead?.limit ?? 0), now);
    const first = this.#rotation++ % Math.max(1, queues.length);
    const rotated = [...queues.slice(first), ...queues.slice(0, first)];
    const classes = new Set<number>();
    const round: Round = { limit, suspects: request.suspects, alone: request.alone, classes };
    const taken = this.#takeRound(rotated, round);
    if (round.alone === 'taken') return taken;
    const others = [...classes].some((id) => !ahead?.types.includes(this.#catalogue.class(id).type));
    if (ahead && ahead.limit > 0 && taken.length === limit && !others) {
      taken.push(...this.#takeRound(rotated, { ...round, limit: ahead.limit, types: ahead.types }));
    }
    return taken;
  }

  /** Whether a claim could get other tasks than these. It only reads. */
  offersOthers(request: ClaimRequest, ids: readonly number[]): boolean {
    this.#lanes.flush();
    return this.#firstLanes(request).some(({ group: { class: id, track } }) =>
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
  #takeRound(queues: readonly QueueLanes[], round: Round): number[] {
    const { limit } = round;
    const share = Math.ceil(limit / Math.max(1, queues.length));
    const taken: number[] = [];
    for (const most of queues.length > 1 ? [share, limit] : [limit]) {
      for (const queueLanes of queues) {
        const { queue, merge } = queueLanes;
        // No task of a queue with limits is claimed ahead.
        const starts = round.types && isLimited(queue) ? 0 : queueLanes.starts;
        const before = taken.length;
        const enough = Math.min(limit, before + most, before + starts);
        if (before >= enough || round.alone === 'taken') continue;
        if (round.suspects <= 0) merge.dropTrack(TRACK.suspect);
        if (!round.alone) merge.dropTrack(TRACK.alone);
        if (queue.fair === 1) this.#takeInTurn(queue.id, merge, enough, round, taken);
        else this.#takeInOrder(merge, enough, round, taken);
        queueLanes.starts -= taken.length - before;
      }
    }
    return taken;
  }

  /** Merges the lanes of one queue, and takes its next tasks in their exact order. */
  #takeInOrder(merge: Merge, enough: number, round: Round, taken: number[]): void {
    while (taken.length < enough && round.alone !== 'taken') {
      if (taken.length > 0 && !round.types) merge.dropTrack(TRACK.alone);
      const input = merge.first;
      if (!input) return;
      const [active] = input.lanes as [ActiveLane];
      if (!this.#allows(input.group, active, round)) return;
      const { track } = input.group;
      const allowance = this.#restricted.allowanceOf(active.source, track);
      if (allowance && !mayStart(allowance, track)) {
        merge.dropSource(active.source, allowance.starts < 1 ? undefined : track);
        continue;
      }
      const other = allowance?.ramping ? this.#otherSide(merge, allowance, track, active.source) : undefined;
      if (allowance && other) taken.push(this.#takeOther(merge, allowance, other, round));
      else this.#takeFirst(merge, input, allowance, enough, round, taken);
    }
  }

  /** Takes tasks from the first lane of all until the first task of another lane comes before its next one. */
  #takeFirst(
    merge: Merge,
    input: MergeInput,
    allowance: Allowance | undefined,
    enough: number,
    round: Round,
    taken: number[],
  ): void {
    const [active] = input.lanes as [ActiveLane];
    const { class: id, track } = input.group;
    const second = merge.secondPosition();
    const mayTakeMany = isUnbound(track) && !allowance?.ramping;
    const left = mayTakeMany ? Math.min(enough - taken.length, allowance?.starts ?? enough) : 1;
    const { seqs, last, next } = second
      ? this.#tasksBefore(active.lane, second, Math.min(left, READ_AT_ONCE))
      : this.#firstTasks(active.lane, left);
    for (const seq of seqs) taken.push(Math.abs(seq));
    round.classes.add(id);
    this.#lanes.takeUpTo(input.group, active, last, next);
    merge.moveFirst([input], [next && { ...active, ...next }]);
    if (allowance) this.#account(merge, allowance, seqs.length, track);
    if (track === TRACK.alone) round.alone = 'taken';
    if (track === TRACK.suspect && --round.suspects <= 0) merge.dropTrack(TRACK.suspect);
  }

  /** Takes the first task of a lane that is not the first of all, and returns its id. */
  #takeOther(merge: Merge, allowance: Allowance, { group, active }: GroupedLane, round: Round): number {
    const [task, next] = this.#tasksOf(active.lane, 2) as [Position, Position | undefined];
    round.classes.add(group.class);
    this.#lanes.takeUpTo(group, active, task, next);
    merge.readAgain(group);
    this.#account(merge, allowance, 1, group.track);
    return Math.abs(task.seq);
  }

  /**
   * While a source ramps, new work and backlog take turns. If it is not the turn of the first task's side, this returns the first
   * task of the other side.
   */
  #otherSide(merge: Merge, { backlogNext, tokens }: Allowance, track: number, source: string): GroupedLane | undefined {
    if ((track !== TRACK.new) === backlogNext) return undefined;
    return this.#lanes.firstOf(
      source,
      (group) =>
        (group.track !== TRACK.new) === backlogNext &&
        (group.track !== TRACK.token || tokens >= 1) &&
        // Suspects have their own rules, and come in their order.
        group.track !== TRACK.suspect &&
        group.track !== TRACK.alone &&
        merge.has(group),
    );
  }

  /** Counts the tasks that were taken from a restricted source. If it may start no more, leaves out its lanes. */
  #account(merge: Merge, allowance: Allowance, count: number, track: number): void {
    this.#restricted.take(allowance, count, track);
    this.#dropIfUsedUp(merge, allowance);
  }

  #dropIfUsedUp(merge: Merge, allowance: Allowance): void {
    const left = this.#restricted.deactivateIfUsedUp(allowance);
    if (left === 'held') merge.dropSource(allowance.source);
    if (left === 'no_token') merge.dropSource(allowance.source, TRACK.token);
  }

  /**
   * Takes tasks from the sources of a fair queue in turn: a few tasks of one source in their order, then the source gets the last
   * turn.
   */
  #takeInTurn(queue: number, merge: Merge, enough: number, round: Round, taken: number[]): void {
    const atOnce = merge.hasAtLeast(MANY_LANES) ? TASKS_A_TURN.many : TASKS_A_TURN.few;
    while (taken.length < enough && round.alone !== 'taken') {
      if (taken.length > 0 && !round.types) merge.dropTrack(TRACK.alone);
      const before = taken.length;
      const firsts = merge.firsts();
      const [first] = firsts;
      const source = first?.lanes[0]?.source;
      if (source === undefined) return;
      const needsToken = firsts.some(({ group }) => group.track === TRACK.token);
      const allowance = this.#restricted.allowanceOf(source, needsToken ? TRACK.token : TRACK.fresh);
      if (allowance && allowance.starts < 1) {
        merge.dropSource(source);
        continue;
      }
      const lanes = firsts.map((input): LaneTasks => {
        const [active] = input.lanes as [ActiveLane];
        return { input, active, tasks: this.#tasksOf(active.lane, atOnce + 1), taken: 0 };
      });
      const most = Math.min(enough, before + atOnce, before + (allowance?.starts ?? atOnce));
      while (taken.length < most && round.alone !== 'taken') {
        const lane = nextLane(lanes, round, taken.length > 0 && !round.types, allowance);
        if (!lane || !this.#allows(lane.input.group, lane.active, round)) break;
        const { track } = lane.input.group;
        if (allowance) this.#restricted.take(allowance, 1, track);
        if (track === TRACK.suspect) round.suspects -= 1;
        if (track === TRACK.alone) round.alone = 'taken';
        taken.push(Math.abs(lane.tasks[lane.taken]?.seq as number));
        round.classes.add(lane.input.group.class);
        lane.taken += 1;
      }
      if (taken.length === before) return;
      this.#endTurn(queue, merge, lanes);
      if (allowance) this.#dropIfUsedUp(merge, allowance);
      if (round.suspects <= 0) merge.dropTrack(TRACK.suspect);
    }
  }

  /** Ends the turn of a source: removes the taken tasks from its lanes, and gives all of its lanes the last turn. */
  #endTurn(queue: number, merge: Merge, lanes: readonly LaneTasks[]): void {
    const [{ active: first }] = lanes as [LaneTasks];
    const order_key = this.#lanes.giveLastTurn(queue, first.source);
    const next = lanes.map(({ input, active, tasks, taken }) => {
      const last = tasks[taken - 1];
      if (last) this.#lanes.takeUpTo(input.group, active, last, tasks[taken]);
      return tasks[taken] && { ...active, order_key };
    });
    merge.moveFirst(
      lanes.map(({ input }) => input),
      next,
    );
  }

  #allows({ class: id, track }: LaneGroup, { source }: ActiveLane, { types }: Round): boolean {
    if (!types) return true;
    return types.includes(this.#catalogue.class(id).type) && !this.#restricted.forbidsAhead(source, track);
  }

  /** The first task of a lane, and those after it that come before a task of another lane. */
  #tasksBefore(lane: number, other: Position, most: number): FirstTasks {
    const tasks = this.#tasksOf(lane, most + 1);
    const beyond = tasks.findIndex((task, n) => n === most || (n > 0 && !precedes(task, other)));
    const count = beyond < 0 ? tasks.length : beyond;
    const seqs = tasks.slice(0, count).map(({ seq }) => seq);
    return { seqs, last: tasks[count - 1] as Position, next: tasks[count] };
  }

  /** The first tasks of a lane that come in their turn in any case, so that nobody compares their order keys. */
  #firstTasks(lane: number, most: number): FirstTasks {
    const seqs = this.#sql.column<number>(
      'SELECT seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT ?',
      lane,
      most,
    );
    const [last, next] = this.#tasksOf(lane, 2, seqs.length - 1);
    return { seqs, last: last as Position, next };
  }

  #tasksOf(lane: number, most: number, from = 0): Position[] {
    return this.#sql
      .rows<[order_key: number, seq: number]>(
        'SELECT order_key, seq FROM hf_ready WHERE lane = ? ORDER BY order_key, seq LIMIT ? OFFSET ?',
        lane,
        most,
        from,
      )
      .map(([order_key, seq]) => ({ order_key, seq }));
  }

  /** The lanes that a claim of `limit` tasks may take from, by queue. */
  #lanesByQueue(request: ClaimRequest, limit: number, now: number): QueueLanes[] {
    const byQueue = new Map<Queue, MergeInput[]>();
    for (const input of this.#firstLanes(request)) {
      const queue = this.#catalogue.queueOfClass(input.group.class);
      const inputs = byQueue.get(queue);
      if (inputs) inputs.push(input);
      else byQueue.set(queue, [input]);
    }
    return [...byQueue].map(([queue, inputs]) => ({
      queue,
      merge: new Merge(this.#sql, this.#lanes, inputs, limit),
      starts: isLimited(queue) ? this.#queueLimits.startsOf(queue, now) : Number.POSITIVE_INFINITY,
    }));
  }

  /** The first lane of every class and track that this worker may take from, with one lookup for each. */
  #firstLanes(request: ClaimRequest): MergeInput[] {
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
        group: { class: id, track },
        lanes: [{ order_key, seq, lane, source }],
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
function mayStart(allowance: Allowance, track: number): boolean {
  return allowance.starts >= 1 && (track !== TRACK.token || allowance.tokens >= 1);
}

/**
 * The lane of a source whose next task comes first; while the source ramps, of the side (new work or backlog) whose turn it
 * is, if that side has any.
 */
function nextLane(
  lanes: readonly LaneTasks[],
  { suspects }: Round,
  hasTaken: boolean,
  allowance: Allowance | undefined,
): LaneTasks | undefined {
  const allowed = lanes.filter(({ input: { group } }) => {
    if (group.track === TRACK.token) return !allowance || allowance.tokens >= 1;
    return group.track === TRACK.suspect ? suspects > 0 : group.track !== TRACK.alone || !hasTaken;
  });
  const inTurn = allowed.filter(
    (lane) => lane.tasks[lane.taken] && (lane.input.group.track !== TRACK.new) === allowance?.backlogNext,
  );
  let first: LaneTasks | undefined;
  for (const lane of allowance?.ramping && inTurn.length > 0 ? inTurn : allowed) {
    const task = lane.tasks[lane.taken];
    if (task && (!first || precedes(task, first.tasks[first.taken] as Position))) first = lane;
  }
  return first;
}
