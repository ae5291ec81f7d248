import type { Loss } from '../../failure/outcome.ts';
import { mustRunAlone } from '../../suspects.ts';
import type { UniqueScope } from '../../task.ts';
import { claimedTask, leaseOf } from '../claimed.ts';
import { lastFailure } from '../last-error.ts';
import type { Claim, Claimed, ClaimRequest, Lease, Recovered, Recovery } from '../store.ts';
import type { Catalogue, Queue } from './catalogue.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { Sql } from './driver.ts';
import { type FactsRow, type FactsTable, factsOf, UNTOUCHED } from './facts.ts';
import type { Groups } from './groups.ts';
import { among, rangeOf } from './ids.ts';
import { type Lanes, TRACK } from './lanes.ts';
import type { LeaseCache } from './lease-cache.ts';
import { type Found, mustBeLegal, type Places, placeOf } from './places.ts';
import { isLimited, type QueueLimits } from './queue-limits.ts';
import type { LostLeases } from './recover.ts';
import type { Restricted } from './restricted.ts';
import type { SharedTexts } from './shared-texts.ts';
import type { SourceStates } from './source-states.ts';
import { newToken } from './token.ts';
import type { Uniques } from './uniques.ts';
import type { Walk } from './walk.ts';

/** How many due tasks one claim makes ready, so that no call waits long if a million become due at the same time. */
const MOST_PROMOTED = 1_000;

/** How many tasks past their deadline one claim returns for a decision. It may find some more among the ready tasks. */
const MOST_EXPIRED = 50;

/** The columns of hf_tasks that a claim returns. */
interface StoredRow {
  readonly id: number;
  readonly class: number;
  readonly source: string;
  readonly priority: number;
  readonly key: string | null;
  readonly policy: string | null;
  readonly submitted_at: number;
  readonly deadline: number | null;
  readonly idempotent: number | null;
  readonly unique_while: UniqueScope | null;
  readonly payload: string;
}

/** The same as an array, in the order of `STORED`. */
type StoredColumns = [
  id: number,
  class_: number,
  source: string,
  priority: number,
  key: string | null,
  policy: string | null,
  submittedAt: number,
  deadline: number | null,
  idempotent: number | null,
  uniqueWhile: UniqueScope | null,
  payload: string,
];

const STORED = 'id, class, source, priority, key, policy, submitted_at, deadline, idempotent, unique_while, payload';

/** Of so many tasks with ids without gaps, those that are like the first one are read in a faster way. */
const FEWEST_ALIKE = 8;

/** The payload of each task that is like the first one, and the id of each other one. */
const PAYLOAD_IF_ALIKE = `SELECT CASE WHEN class = ? AND source = ? AND priority = ? AND idempotent IS ? AND policy IS ?
    AND key IS NULL AND deadline IS NULL AND unique_while IS NULL THEN payload ELSE id END
  FROM hf_tasks WHERE id BETWEEN ? AND ? ORDER BY id`;

const TIMES = 'SELECT submitted_at FROM hf_tasks WHERE id BETWEEN ? AND ? ORDER BY id';

const DUE = '(SELECT min(run_at) FROM hf_scheduled), (SELECT min(deadline) FROM hf_deadlines)';

interface LeaseRow {
  readonly execution: number;
  readonly token: string;
  readonly revision: number;
  readonly started_at: number;
  readonly cancel: number;
}

interface LeasedRow extends StoredRow, LeaseRow {
  readonly why: 'loss' | 'expiry' | null;
  readonly lost_by: string | null;
  readonly lost_how: Loss | null;
}

export interface ClaimingParts {
  readonly sql: Sql;
  readonly catalogue: Catalogue;
  readonly lanes: Lanes;
  readonly walk: Walk;
  readonly places: Places;
  readonly facts: FactsTable;
  readonly lostLeases: LostLeases;
  readonly uniques: Uniques;
  readonly groups: Groups;
  readonly leaseCache: LeaseCache;
  readonly restricted: Restricted;
  readonly queueLimits: QueueLimits;
  readonly sourceStates: SourceStates;
  readonly texts: SharedTexts;
}

/** Hands out leases: on ready tasks, on tasks that other workers lost, and on tasks whose deadline has passed. */
export class Claiming {
  readonly #sql: Sql;
  readonly #catalogue: Catalogue;
  readonly #lanes: Lanes;
  readonly #walk: Walk;
  readonly #places: Places;
  readonly #facts: FactsTable;
  readonly #lostLeases: LostLeases;
  readonly #uniques: Uniques;
  readonly #leaseCache: LeaseCache;
  readonly #checkpoints: Checkpoints;
  readonly #restricted: Restricted;
  readonly #queueLimits: QueueLimits;
  readonly #sourceStates: SourceStates;
  /** Whether the present claim took a task of a queue with limits. */
  #countedByQueue = false;

  constructor(parts: ClaimingParts, checkpoints: Checkpoints) {
    const { sql, catalogue, lanes, walk, places, facts, lostLeases, uniques, leaseCache } = parts;
    this.#restricted = parts.restricted;
    this.#queueLimits = parts.queueLimits;
    this.#sourceStates = parts.sourceStates;
    this.#checkpoints = checkpoints;
    this.#sql = sql;
    this.#catalogue = catalogue;
    this.#lanes = lanes;
    this.#walk = walk;
    this.#places = places;
    this.#facts = facts;
    this.#lostLeases = lostLeases;
    this.#uniques = uniques;
    this.#leaseCache = leaseCache;
  }

  claim(request: ClaimRequest, now: number): Claim {
    if (!this.#lostLeases.knows(request.worker)) return { known: false, tasks: [], expired: [] };
    const waiting = this.#waiting(now);
    const late = waiting.deadline <= now ? this.#takeExpired(request.worker, MOST_EXPIRED, now) : [];
    if (waiting.due <= now) this.#places.promote(now, MOST_PROMOTED);
    const opening = this.#restricted.begin(now, waiting.opening <= now);
    this.#countedByQueue = false;
    const { tasks, more } =
      waiting.deadline <= now ? this.#claimUnexpired(late, request, now) : this.#claimNext(request, now);
    const changed =
      waiting.due <= now ||
      late.length > 0 ||
      this.#countedByQueue ||
      this.#restricted.touched ||
      tasks.some(({ deadline }) => deadline !== undefined);
    const next = answer(tasks, changed ? this.#waiting(now) : waiting, now);
    const expired = late.length > 0 ? this.#recovered(late, now) : [];
    return { ...next, ...((more || opening.more) && { nextDueIn: 0 }), expired };
  }

  #claimNext(request: ClaimRequest, now: number): { readonly tasks: Claimed[]; readonly more: boolean } {
    const ids = request.only ? this.#takeOnly(request, request.only, now) : this.#takeNext(request, now);
    const rows = ids.length === 0 ? new Map<number, StoredRow>() : this.#storedRows(ids);
    return { tasks: this.#lease(ids, rows, request, now), more: false };
  }

  /**
   * Claims while there may be ready tasks whose deadline has passed. Those that it finds are added to `late`, and it takes other
   * tasks instead. `more`: it found so many that it stopped early.
   */
  #claimUnexpired(
    late: number[],
    request: ClaimRequest,
    now: number,
  ): { readonly tasks: Claimed[]; readonly more: boolean } {
    const tasks: Claimed[] = [];
    const most = late.length + MOST_EXPIRED;
    for (;;) {
      const { ahead: _, ...rest } = request;
      const asked = {
        ...rest,
        limit: request.limit - tasks.length,
        suspects: request.suspects - tasks.filter(isSuspect).length,
        alone: request.alone && tasks.length === 0,
      };
      const ids = request.only ? this.#takeOnly(asked, request.only, now) : this.#takeNext(asked, now);
      const rows = this.#storedRows(ids);
      const hasPassed = (id: number) => isPast(rows.get(id)?.deadline ?? null, now);
      const passed = ids.filter(hasPassed);
      late.push(
        ...this.#leaseExpired(
          passed.map((id) => this.#places.find(id) as Found),
          request.worker,
          now,
        ),
      );
      tasks.push(
        ...this.#lease(
          ids.filter((id) => !hasPassed(id)),
          rows,
          asked,
          now,
        ),
      );
      const done = passed.length === 0 || tasks.length === request.limit || tasks.some(runsAlone);
      if (done) return { tasks, more: false };
      if (late.length >= most) return { tasks, more: true };
    }
  }

  /** Answers a claim without a transaction if a read shows that there is nothing to take. Undefined if there may be something. */
  lookFirst(request: ClaimRequest, now: number): Claim | undefined {
    if (!this.#lostLeases.knows(request.worker)) return undefined;
    this.#restricted.look();
    const waiting = this.#waiting(now);
    const isDue = waiting.due <= now || waiting.deadline <= now || waiting.opening <= now;
    const any = isDue || this.#sql.get('SELECT 1 FROM hf_active LIMIT 1') !== undefined;
    return any ? undefined : answer([], waiting, now);
  }

  /**
   * When the next scheduled task is due, the next waiting task reaches its deadline, and the next held source or queue may start
   * a task.
   */
  #waiting(now: number): Waiting {
    const never = Number.POSITIVE_INFINITY;
    if (!this.#restricted.any) {
      const [[due, deadline]] = this.#sql.rows<(number | null)[]>(`SELECT ${DUE}`) as [(number | null)[]];
      return { due: due ?? never, deadline: deadline ?? never, opening: never };
    }
    const [[due, deadline, ofSource, ofQueue]] = this.#sql.rows<(number | null)[]>(
      `SELECT ${DUE}, (SELECT min(opens_at) FROM hf_restricted WHERE opens_at IS NOT NULL),
         (SELECT min(next_start) FROM hf_queues WHERE per_second IS NOT NULL AND next_start > ?)`,
      now,
    ) as [(number | null)[]];
    const opening = Math.min(ofSource ?? never, Math.ceil(ofQueue ?? never));
    return { due: due ?? never, deadline: deadline ?? never, opening };
  }

  recover(worker: number, limit: number, now: number): Recovery {
    if (!this.#lostLeases.knows(worker)) return { tasks: [], neighbours: [] };
    const { ids: lost, nextIn, neighbours } = this.#lostLeases.takeOver(worker, limit, now, newToken());
    const expired = this.#takeExpired(worker, limit - lost.length, now);
    const tasks = this.#recovered([...lost, ...expired], now);
    return { tasks, neighbours, ...(nextIn !== undefined && { nextIn }) };
  }

  #recovered(ids: readonly number[], now: number): readonly Recovered[] {
    const checkpoints = this.#checkpoints.of(ids);
    return this.leased(ids).map((row) => {
      const claimed = withCheckpoint(this.claimed(row, row, this.#facts.of(row.id), now), checkpoints);
      const type = this.#sql.get<{ published: string }>('SELECT published FROM hf_types WHERE type = ?', claimed.type);
      return {
        ...claimed,
        why: row.why ?? 'loss',
        ...(row.lost_by !== null && { lostBy: row.lost_by }),
        ...(row.why === 'loss' && { how: row.lost_how ?? 'beside_others' }),
        ...(type && { published: type.published }),
      };
    });
  }

  /** The tasks that are leased now, in the order of the ids. */
  leased(ids: readonly number[]): LeasedRow[] {
    return this.#sql.all<LeasedRow>(
      `SELECT t.id, t.class, t.source, t.priority, t.key, t.policy, t.submitted_at, t.deadline, t.idempotent,
         t.unique_while, t.payload, r.execution, r.token, r.revision, r.started_at, r.cancel, r.why, r.lost_by, r.lost_how
       FROM json_each(?) j JOIN hf_running r ON r.id = j.value JOIN hf_tasks t ON t.id = r.id ORDER BY j.key`,
      JSON.stringify(ids),
    );
  }

  claimed(row: StoredRow, lease: LeaseRow, facts: FactsRow, now: number): Claimed {
    const { type, category, queue, damaged } = this.#catalogue.class(row.class);
    const unreadable: string[] = damaged ? ['needs'] : [];
    const claimed = claimedTask({
      lease: leaseOf(row.id, lease.execution, lease.token),
      revision: lease.revision,
      type,
      queue: this.#catalogue.queue(queue).name,
      source: row.source,
      priority: row.priority,
      payload: row.payload,
      submittedAt: row.submitted_at,
      facts: factsOf(now, facts, row, lease, unreadable),
    });
    if (row.idempotent === null) claimed.idempotenceUnsaid = true;
    if (category !== '') claimed.category = category;
    if (row.key !== null) claimed.key = row.key;
    if (row.policy !== null) claimed.policy = row.policy;
    if (row.deadline !== null) claimed.deadline = row.deadline;
    if (facts.error !== null) claimed.lastFailure = lastFailure(facts.error, facts.failed_as);
    if (facts.key_from > 0) claimed.keyFrom = facts.key_from;
    if (unreadable.length > 0) claimed.unreadable = unreadable;
    return claimed;
  }

  #takeNext(request: ClaimRequest, now: number): number[] {
    // Tasks that may not be taken are removed from their lanes until the end of this transaction, so that the walk does not find
    // them.
    const excluded = request.except
      .map((id) => this.#places.find(id))
      .filter((found) => found?.state === 'ready')
      .map((found) => placeOf((found as Found).row, (found as Found).facts));
    // Removing them is a write, and each commit wakes other processes, whose claims would wake this one. So it is only done if
    // other tasks may be taken.
    const ids = excluded.map(({ id }) => id);
    if (ids.length > 0 && !this.#walk.offersOthers(request, ids)) return [];
    const tracks = excluded.map((place) => this.#lanes.remove(place));
    const taken = this.#walk.take(request, now);
    excluded.forEach((place, n) => {
      this.#lanes.add(place, tracks[n]);
    });
    return taken;
  }

  #takeOnly(request: ClaimRequest, only: readonly number[], now: number): number[] {
    const queueStarts = new Map<Queue, number>();
    const taken: number[] = [];
    let { suspects } = request;
    for (const id of only) {
      if (taken.length === request.limit) break;
      const found = request.except.includes(id) ? undefined : this.#places.find(id);
      if (found?.state !== 'ready' || !this.#walk.admits(request, found.row.class)) continue;
      const place = placeOf(found.row, found.facts);
      const track = place.needsToken ? TRACK.token : TRACK.fresh;
      const allowance = this.#restricted.allowanceOf(place.source, track);
      if (allowance && (allowance.starts < 1 || (place.needsToken && allowance.tokens < 1))) continue;
      const queue = this.#catalogue.queueOfClass(place.class);
      const starts = queueStarts.get(queue) ?? this.#queueLimits.startsOf(queue, now);
      if (starts < 1) continue;
      const alone = mustRunAlone(place.lostInARow);
      if (alone ? !request.alone || taken.length > 0 : place.lostInARow > 0 && suspects-- <= 0) continue;
      if (this.#lanes.remove(place) === undefined) continue;
      taken.push(id);
      queueStarts.set(queue, starts - 1);
      if (allowance) {
        this.#restricted.take(allowance, 1, track);
        this.#restricted.deactivateIfUsedUp(allowance);
      }
      if (alone) break;
    }
    return taken;
  }

  #lease(taken: readonly number[], rows: Map<number, StoredRow>, request: ClaimRequest, now: number): Claimed[] {
    if (taken.length === 0) {
      this.#restricted.started([], now);
      return [];
    }
    this.#forbidSecondRun(taken, rows, request.notIdempotent);
    const facts = this.#facts.ofAll(taken);
    const ids = this.#withoutRefused(taken, rows, request.limit);
    // A task that never ran has no checkpoint, so a claim of new tasks reads none.
    const checkpoints = this.#checkpoints.of(ids.filter((id) => (facts.get(id)?.executions ?? 0) > 0));
    const token = newToken();
    const fresh: number[] = [];
    const others: unknown[] = [];
    const claimed = ids.map((id) => {
      const row = rows.get(id) as StoredRow;
      const remembered = facts.get(id) ?? UNTOUCHED;
      const execution = remembered.executions + 1;
      if (row.deadline !== null) this.#places.dropDeadline(row.deadline, id);
      if (execution === 1 && row.deadline === null && row.unique_while === null) fresh.push(id);
      else {
        this.#uniques.follow(id, row.unique_while, 'ready', 'running', now);
        others.push(id, request.worker, execution, token, now, row.deadline, row.unique_while);
      }
      if (execution > 1) this.#leaseCache.add(placeOf(row, remembered), token, remembered);
      const lease = { execution, token, revision: 0, started_at: now, cancel: 0 };
      return withCheckpoint(this.claimed(row, lease, remembered, now), checkpoints);
    });
    // Most tasks are new, and their rows differ only in the id.
    if (fresh.length > 0) {
      this.#sql.run(
        `INSERT INTO hf_running (id, worker, execution, token, started_at)
         SELECT value, :worker, 1, :token, :now FROM json_each(:ids)`,
        { worker: request.worker, token, now, ids: JSON.stringify(fresh) },
      );
    }
    this.#sql.insertAll('hf_running (id, worker, execution, token, started_at, deadline, unique_while)', 7, others);
    return this.#underLimits(claimed, rows, facts, now);
  }

  /** Counts leased tasks against the limits of their sources and queues, and adds the states of their sources. */
  #underLimits(
    claimed: Claimed[],
    rows: ReadonlyMap<number, StoredRow>,
    facts: ReadonlyMap<number, FactsRow>,
    now: number,
  ): Claimed[] {
    const { any } = this.#restricted;
    const queueOf = (task: number) => this.#catalogue.queueOfClass((rows.get(task) as StoredRow).class);
    const isFree = ({ lease, source }: Claimed) => this.#catalogue.isFree(source) && !isLimited(queueOf(lease.task));
    const needToken = [...facts.values()].some(({ needs_token }) => needs_token === 1);
    if (!needToken && (!any || claimed.every(isFree))) {
      const [first] = claimed;
      if (any && first) this.#catalogue.noteFreeClaim(first.lease.token);
      this.#restricted.started([], now);
      return claimed;
    }
    const byQueue = new Map<Queue, number[]>();
    const started = claimed.map(({ lease, source }) => {
      const queue = queueOf(lease.task);
      if (isLimited(queue)) byQueue.set(queue, [...(byQueue.get(queue) ?? []), lease.task]);
      return { id: lease.task, source, needsToken: facts.get(lease.task)?.needs_token === 1 };
    });
    for (const [queue, ids] of byQueue) this.#queueLimits.started(queue, ids, now);
    this.#countedByQueue ||= byQueue.size > 0;
    const probes = this.#restricted.started(started, now);
    if (!this.#sourceStates.any) return claimed;
    const states = new Map<string, Pick<Claimed, 'sourceState' | 'drained'>>();
    for (const { source } of claimed) {
      if (states.has(source)) continue;
      const sourceState = this.#sourceStates.of(source, now);
      const drained = sourceState !== undefined && !this.#lanes.hasReady(source);
      states.set(source, { ...(sourceState && { sourceState }), ...(drained && { drained }) });
    }
    return claimed.map((one) => ({
      ...one,
      ...states.get(one.source),
      ...(probes.has(one.lease.task) && { probe: true as const }),
    }));
  }

  /** Stores that tasks of these types must not run twice, if it is not stored yet whether they may. */
  #forbidSecondRun(taken: readonly number[], rows: Map<number, StoredRow>, types: ClaimRequest['notIdempotent']): void {
    if (!types || types.length === 0) return;
    const unknown = taken
      .map((id) => rows.get(id) as StoredRow)
      .filter((row) => row.idempotent === null && types.includes(this.#catalogue.class(row.class).type));
    if (unknown.length === 0) return;
    for (const row of unknown) rows.set(row.id, { ...row, idempotent: 0 });
    this.#storeNotIdempotent(unknown.map(({ id }) => id));
  }

  /** Stores that leased tasks must not run twice, if it is not stored yet whether they may. */
  forbidSecondRunOf(leases: readonly Lease[]): void {
    const held = leases.filter(
      ({ task, execution, token }) =>
        this.#sql.get(
          'SELECT 1 FROM hf_running WHERE id = ? AND execution = ? AND token = ?',
          task,
          execution,
          token,
        ) !== undefined,
    );
    this.#storeNotIdempotent(held.map(({ task }) => task));
  }

  #storeNotIdempotent(ids: readonly number[]): void {
    this.#sql.run(
      'UPDATE hf_tasks SET idempotent = 0 WHERE idempotent IS NULL AND id IN (SELECT value FROM json_each(?))',
      JSON.stringify(ids),
    );
  }

  #storedRows(ids: readonly number[]): Map<number, StoredRow> {
    const rows = new Map<number, StoredRow>();
    const range = ids.length >= FEWEST_ALIKE ? rangeOf(ids) : undefined;
    this.#readRows(range ? this.#readAlike(range, rows) : ids, rows);
    return rows;
  }

  /**
   * Reads tasks of which most differ from the first one only in their payload and time. Of the others it returns the ids. That takes
   * half as long as to read all columns of all rows.
   */
  #readAlike(range: readonly [first: number, last: number], rows: Map<number, StoredRow>): readonly number[] {
    const [first, last] = range;
    this.#readRows([first], rows);
    const like = rows.get(first) as StoredRow;
    const { source, priority, idempotent, policy } = like;
    const found = this.#sql.column<number | string>(
      PAYLOAD_IF_ALIKE,
      like.class,
      source,
      priority,
      idempotent,
      policy,
      ...range,
    );
    const times = this.#sql.column<number>(TIMES, ...range);
    const others: number[] = [];
    for (let id = first; id <= last; id++) {
      const payload = found[id - first];
      if (typeof payload !== 'string') {
        others.push(id);
        continue;
      }
      const submitted_at = times[id - first] as number;
      rows.set(id, { ...like, id, submitted_at, key: null, deadline: null, unique_while: null, payload });
    }
    return others;
  }

  #readRows(ids: readonly number[], rows: Map<number, StoredRow>): void {
    if (ids.length === 0) return;
    const { sql, values } = among(ids);
    for (const [
      id,
      class_,
      source,
      priority,
      key,
      policy,
      submitted_at,
      deadline,
      idempotent,
      scope,
      payload,
    ] of this.#sql.rows<StoredColumns>(`SELECT ${STORED} FROM hf_tasks WHERE id ${sql}`, ...values)) {
      rows.set(id, {
        id,
        class: class_,
        source,
        priority,
        key,
        policy,
        submitted_at,
        deadline,
        idempotent,
        unique_while: scope,
        payload,
      });
    }
  }

  /**
   * Of the tasks that were taken ahead, keeps those before the first one that may not be claimed ahead. That one and all later
   * ones go back to their lanes.
   */
  #withoutRefused(taken: readonly number[], rows: ReadonlyMap<number, StoredRow>, limit: number): readonly number[] {
    const refused = taken.findIndex((id, at) => {
      const row = rows.get(id) as StoredRow;
      return at >= limit && (row.idempotent === 0 || row.deadline !== null);
    });
    if (refused < 0) return taken;
    for (const place of this.#places.placesOf(taken.slice(refused))) this.#lanes.add(place);
    return taken.slice(0, refused);
  }

  /** Leases waiting tasks past their deadline for a decision. They are not executed, so no execution is counted. */
  #takeExpired(worker: number, limit: number, now: number): number[] {
    const ids = this.#sql
      .all<{ id: number }>(
        'SELECT id FROM hf_deadlines WHERE deadline <= ? ORDER BY deadline, id LIMIT ?',
        now,
        Math.max(0, limit),
      )
      .map(({ id }) => id);
    return this.#leaseExpired(
      ids.map((id) => this.#places.find(id) as Found),
      worker,
      now,
    );
  }

  #leaseExpired(expired: readonly Found[], worker: number, now: number): number[] {
    const token = newToken();
    return expired.map((found) => {
      const { id } = found.row;
      mustBeLegal(found.state, 'running');
      this.#uniques.follow(id, found.row.unique_while, found.state, 'running', now);
      this.#places.leave(found);
      this.#sql.run(
        `INSERT INTO hf_running (id, worker, execution, token, started_at, deadline, unique_while, why)
         VALUES (?, ?, ?, ?, ?, ?, ?, 'expiry')`,
        id,
        worker,
        found.facts.executions,
        token,
        now,
        found.row.deadline,
        found.row.unique_while,
      );
      return id;
    });
  }
}

function withCheckpoint(claimed: Claimed, checkpoints: ReadonlyMap<number, string>): Claimed {
  const checkpoint = checkpoints.get(claimed.lease.task);
  return checkpoint === undefined ? claimed : { ...claimed, checkpoint };
}

function isPast(deadline: number | null, now: number): boolean {
  return deadline !== null && deadline <= now;
}

function isSuspect({ facts }: Claimed): boolean {
  return facts.lostInARow > 0;
}

function runsAlone({ facts }: Claimed): boolean {
  return mustRunAlone(facts.lostInARow);
}

/** Infinity if there is none. */
interface Waiting {
  readonly due: number;
  readonly deadline: number;
  /** When a source or queue that may start nothing now may start a task again. */
  readonly opening: number;
}

export function answer(tasks: readonly Claimed[], { due, deadline, opening }: Waiting, now: number): Claim {
  const next = Math.min(due, deadline, opening);
  const answered = { known: true, tasks, expired: [] };
  return Number.isFinite(next) ? { ...answered, nextDueIn: Math.max(0, next - now) } : answered;
}
