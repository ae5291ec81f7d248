import type { Decision } from '../../failure/decide.ts';
import type { UniqueScope } from '../../task.ts';
import type { Writable } from '../../writable.ts';
import { splitBecause, splitFailure } from '../history-text.ts';
import { LATE_SUCCESS } from '../late-success.ts';
import { isPlain, leavesSource, NO_SOURCE_STATE, partsOf, reasonOf, SUCCEEDED } from '../settlement.ts';
import type { News, Report, Settled, Settlement, SourceChange } from '../store.ts';
import { type Action, recordAction, SUPERSEDED, superseding } from './actions.ts';
import type { Catalogue } from './catalogue.ts';
import type { Claiming, ClaimingParts } from './claim.ts';
import type { Counting } from './counters.ts';
import type { Sql } from './driver.ts';
import { afterDecision, type FactsRow, type FactsTable, UNTOUCHED } from './facts.ts';
import type { Groups } from './groups.ts';
import { among, rangeOf } from './ids.ts';
import type { Place } from './lanes.ts';
import { LateSuccesses } from './late-success.ts';
import type { LeaseCache } from './lease-cache.ts';
import { mustBeLegal, type Places, pastOf } from './places.ts';
import type { Restricted } from './restricted.ts';
import type { SharedTexts } from './shared-texts.ts';
import { SourceChanges } from './source-changes.ts';
import type { SourceStates } from './source-states.ts';
import type { Uniques } from './uniques.ts';

interface RunningRow {
  readonly id: number;
  readonly worker: number;
  readonly execution: number;
  readonly token: string;
  readonly revision: number;
  readonly started_at: number;
  readonly deadline: number | null;
  readonly lost_by: string | null;
  readonly unique_while: UniqueScope | null;
}

/** A batch of settlements: what it has read, and what it will write. */
interface Batch {
  readonly now: number;
  /** Rows are removed when they are settled, so that a repeated settlement is noticed. */
  readonly running: Map<number, RunningRow>;
  readonly facts: Map<number, FactsRow>;
  readonly places: ReadonlyMap<number, Place>;
  readonly workers: Map<number, string>;
  /** Leases that end. */
  ended: number[];
  executions: unknown[];
  resting: unknown[];
  remembered: [id: number, facts: FactsRow][];
  actions: Action[];
  /** Succeeded tasks whose settlements do not change the budget of their source. */
  succeeded: number[];
  /** Absent until a settlement concerns a source. */
  sources?: SourceChanges;
}

/** Writes decisions, if the lease and the revision are still valid. */
export class Settling {
  readonly #sql: Sql;
  readonly #places: Places;
  readonly #facts: FactsTable;
  readonly #claiming: Claiming;
  readonly #uniques: Uniques;
  readonly #groups: Groups;
  readonly #texts: SharedTexts;
  readonly #leaseCache: LeaseCache;
  readonly #late: LateSuccesses;
  readonly #restricted: Restricted;
  readonly #sourceStates: SourceStates;
  readonly #catalogue: Catalogue;
  readonly #counting: Counting;
  /** Whether a running task ended that a limit of its queue counted. */
  #queueHasRoom = false;

  constructor(parts: ClaimingParts, claiming: Claiming, counting: Counting) {
    const { sql, places, facts, uniques, leaseCache } = parts;
    this.#restricted = parts.restricted;
    this.#sourceStates = parts.sourceStates;
    this.#catalogue = parts.catalogue;
    this.#sql = sql;
    this.#leaseCache = leaseCache;
    this.#late = new LateSuccesses(sql, places);
    this.#places = places;
    this.#facts = facts;
    this.#claiming = claiming;
    this.#uniques = uniques;
    this.#groups = parts.groups;
    this.#texts = parts.texts;
    this.#counting = counting;
  }

  /** What the last settlements changed for other tasks and workers. */
  takeNews(): Iterable<News> {
    const news = new Set<News>(this.#restricted.takeNews());
    if (this.#queueHasRoom) news.add('work');
    this.#queueHasRoom = false;
    return news;
  }

  settle(settlements: readonly Settlement[], now: number): readonly Settled[] {
    return partsOf(settlements).flatMap((part) => this.#settlePart(part, now));
  }

  #settlePart(settlements: readonly Settlement[], now: number): readonly Settled[] {
    const answers = new Array<Settled>(settlements.length);
    const restricted = this.#mayBeRestricted(settlements);
    const released = this.#limitedBy(restricted);
    const settled = this.#settle(settlements, restricted, answers, now);
    for (const source of released) this.#restricted.refresh(source, now);
    this.#counting.add(settlements, settled, now);
    return settled;
  }

  /** Those of tasks that limits may count, or whose source may have a state: not those of claims that were of free sources only. */
  #mayBeRestricted(settlements: readonly Settlement[]): readonly Settlement[] {
    if (!this.#restricted.any) return [];
    let token: string | undefined;
    let isFree = false;
    return settlements.filter(({ lease }) => {
      // Most of them are of one claim.
      if (lease.token !== token) isFree = this.#catalogue.isFreeClaim(lease.token);
      token = lease.token;
      return !isFree;
    });
  }

  /** The sources whose limits count the tasks of these settlements. */
  #limitedBy(settlements: readonly Settlement[]): Iterable<string> {
    if (settlements.length === 0) return [];
    const { sources, queues } = this.#restricted.countedBy(JSON.stringify(settlements.map(({ lease }) => lease.task)));
    if (queues) this.#queueHasRoom = true;
    return sources;
  }

  #settle(
    settlements: readonly Settlement[],
    restricted: readonly Settlement[],
    answers: Settled[],
    now: number,
  ): readonly Settled[] {
    this.#settlePlain(settlements, restricted, answers, now);
    const others = settlements.filter((_, i) => !answers[i]);
    if (others.length === 0) return answers;
    const batch = this.#lookUp(others, now);
    const made = others.map((settlement) => this.#settleOne(settlement, batch));
    this.#flush(batch);
    // With the facts and the state of the source as they are after the whole call.
    const theirs = made.map((answer, i) => answer ?? this.#changed((others[i] as Settlement).lease.task, now)).values();
    return Array.from(answers, (answer) => answer ?? (theirs.next().value as Settled));
  }

  /**
   * Settles successes of first executions, which most settlements are. They need only a check of the lease, and leave no history.
   * It leaves out those whose lease is missing, those that must free a unique key, those whose source has a state, and those
   * after a settlement that may change their source.
   */
  #settlePlain(
    settlements: readonly Settlement[],
    restricted: readonly Settlement[],
    answers: Settled[],
    now: number,
  ): void {
    mustBeLegal('running', 'succeeded');
    const eventful = new Set<number>();
    let firstOfSource = settlements.length;
    settlements.forEach((one, i) => {
      if (mayChangeSource(one) && i < firstOfSource) firstOfSource = i;
      if (!isBare(one)) eventful.add(one.lease.task);
    });
    const concerned = restricted.filter(({ source }) => source !== 'any');
    if (concerned.length > 0 && this.#sourceStates.any) {
      const ids = JSON.stringify(concerned.map(({ lease }) => lease.task));
      for (const id of this.#sourceStates.tasksWith(ids)) eventful.add(id);
    }
    const byToken = new Map<string, number[]>();
    settlements.forEach((settlement, i) => {
      const { token, task } = settlement.lease;
      if (eventful.has(task) || (i > firstOfSource && settlement.source !== 'any')) return;
      const group = byToken.get(token);
      if (group) group.push(i);
      else byToken.set(token, [i]);
    });
    for (const [token, group] of byToken) {
      const taskAt = (i: number) => (settlements[i] as Settlement).lease.task;
      const leased = this.#endLeases(token, group.map(taskAt));
      const written = leased === 'all' ? group : group.filter((i) => leased.has(taskAt(i)));
      const ended = written.map(taskAt);
      const silent: number[] = [];
      const withResults: unknown[] = [];
      for (const i of written) {
        const { lease, result } = settlements[i] as Settlement;
        if (result === undefined) silent.push(lease.task);
        else withResults.push(lease.task, 'succeeded', now, 1, token, null, result);
        answers[i] = SUCCEEDED;
      }
      this.#sql.run(
        `INSERT INTO hf_resting (id, state, since, executions, token) SELECT value, 'succeeded', ?, 1, ? FROM json_each(?)`,
        now,
        token,
        JSON.stringify(silent),
      );
      this.#sql.insertAll(RESTING, 7, withResults);
      this.#groups.ended(ended);
      if (concerned.length > 0) {
        const toCount = written.filter((i) => settlements[i]?.source !== 'any').map(taskAt);
        this.#restricted.addSuccesses(JSON.stringify(toCount), now);
      }
    }
  }

  /** Ends the leases with this token that are of first executions and free no unique key. Returns their tasks. */
  #endLeases(token: string, tasks: readonly number[]): ReadonlySet<number> | 'all' {
    const range = rangeOf(tasks);
    if (range) {
      // To count them first and then to delete them is half as slow as to delete them and return their ids.
      const [count] = this.#sql.column<number>(
        `SELECT count(*) FROM hf_running WHERE id BETWEEN ? AND ? AND ${ENDS_PLAINLY}`,
        ...range,
        token,
      );
      if (count === tasks.length) {
        this.#sql.run('DELETE FROM hf_running WHERE id BETWEEN ? AND ?', ...range);
        return 'all';
      }
    }
    const { sql, values } = among(tasks);
    return new Set(
      this.#sql.column<number>(
        `DELETE FROM hf_running WHERE id ${sql} AND ${ENDS_PLAINLY} RETURNING id`,
        ...values,
        token,
      ),
    );
  }

  #lookUp(settlements: readonly Settlement[], now: number): Batch {
    const ids = settlements.map(({ lease }) => lease.task);
    const running = this.#runningOf(settlements);
    // The facts of a task may have changed since it was leased if its revision has.
    const isFirst = (task: number) => (running.get(task)?.revision ?? 0) === 0;
    const known = settlements.flatMap(({ lease }) => {
      const cached = this.#leaseCache.take(lease);
      return cached && isFirst(lease.task) ? [cached] : [];
    });
    const facts = new Map(known.map((one) => [one.place.id, one.facts]));
    const places = new Map(known.map(({ place }) => [place.id, place]));
    const others = ids.filter((id) => !places.has(id));
    if (others.length > 0) {
      for (const [id, row] of this.#facts.ofAll(others)) facts.set(id, row);
      for (const [id, place] of this.#places.bareOf(others)) places.set(id, place);
    }
    return {
      now,
      running,
      facts,
      places,
      workers: new Map(),
      ended: [],
      executions: [],
      resting: [],
      remembered: [],
      actions: [],
      succeeded: [],
    };
  }

  /** Undefined if its task or its source was changed since the decision. */
  #settleOne(settlement: Settlement, batch: Batch): Settled | undefined {
    const { lease, revision, decision } = settlement;
    const running = batch.running.get(lease.task);
    if (running?.execution !== lease.execution || running.token !== lease.token) {
      return this.#lateAnswer(settlement, batch);
    }
    const { source = NO_SOURCE_STATE } = settlement;
    const sourceName = (batch.places.get(lease.task) as Place).source;
    if (source !== 'any') {
      batch.sources ??= new SourceChanges(this.#sourceStates, batch.now);
      if (!batch.sources.accepts(sourceName, source)) return undefined;
    }
    if (decision.next !== 'succeeded' && running.revision !== revision) return undefined;
    const answer = this.#write(settlement, running, batch);
    if (source !== 'any' && source.change) this.#changeSource(sourceName, source.change, batch);
    else if (source !== 'any' && decision.next === 'succeeded') batch.succeeded.push(lease.task);
    return answer;
  }

  /** Changes a source. Refunded charges may be of this batch, so the batch is written first. */
  #changeSource(source: string, change: NonNullable<SourceChange['change']>, batch: Batch): void {
    if (change.refunds.length > 0) this.#flush(batch);
    for (const { task, facts } of (batch.sources as SourceChanges).write(source, change)) {
      this.#leaseCache.forget(task);
      if (batch.places.has(task)) batch.facts.set(task, facts);
      const running = batch.running.get(task);
      if (running) batch.running.set(task, { ...running, revision: running.revision + 1 });
    }
  }

  #write(settlement: Settlement, running: RunningRow, batch: Batch): Settled {
    const { lease, decision, result, report } = settlement;
    batch.running.delete(lease.task);
    batch.ended.push(lease.task);
    const facts = batch.facts.get(lease.task) ?? UNTOUCHED;
    const after = afterDecision(facts, running, decision, report, batch.now);
    if (!isPlain(settlement)) {
      this.#record(running, decision, report, batch, false);
      batch.remembered.push([lease.task, after]);
    }
    const next = decision.next === 'scheduled' && decision.after === 0 ? 'ready' : decision.next;
    const occupiedBy = this.#uniques.follow(lease.task, running.unique_while, 'running', next, batch.now);
    if (occupiedBy !== undefined) return this.#supersede(running, occupiedBy, batch);
    if (decision.next === 'scheduled') {
      const place = batch.places.get(lease.task) as Writable<Place>;
      Object.assign(place, pastOf(after));
      const state = this.#places.enter('running', place, batch.now + decision.after, running.deadline, batch.now);
      return { answer: 'settled', state };
    }
    mustBeLegal('running', decision.next);
    const reason = reasonOf(decision);
    const { execution, token } = running;
    batch.resting.push(lease.task, decision.next, batch.now, execution, token, reason, result ?? null);
    return { answer: 'settled', state: decision.next };
  }

  /** The task would wait again, but a newer task with its unique key already waits, and runs instead. */
  #supersede({ id, execution }: RunningRow, by: number, batch: Batch): Settled {
    mustBeLegal('running', 'cancelled');
    // The report of its execution stays as it was, so that a repeated report is recognised. The end of the task is a separate
    // action.
    batch.resting.push(id, 'cancelled', batch.now, execution, null, SUPERSEDED, null);
    batch.actions.push(superseding(id, by, 'running'));
    return { answer: 'settled', state: 'cancelled' };
  }

  #flush(batch: Batch): void {
    const { ended, executions, resting, remembered, actions, succeeded } = batch;
    if (ended.length > 0) {
      const leases = among(ended);
      this.#sql.run(`DELETE FROM hf_running WHERE id ${leases.sql}`, ...leases.values);
    }
    this.#sql.insertAll(EXECUTIONS, 16, executions);
    this.#sql.insertAll(RESTING, 7, resting);
    this.#groups.ended(ended);
    this.#facts.writeAll(remembered);
    for (const action of actions) recordAction(this.#sql, action, batch.now);
    if (succeeded.length > 0) this.#restricted.addSuccesses(JSON.stringify(succeeded), batch.now);
    Object.assign(batch, { ended: [], executions: [], resting: [], remembered: [], actions: [], succeeded: [] });
  }

  #changed(id: number, now: number): Settled {
    const [found] = this.#claiming.leased([id]);
    const row = found as NonNullable<typeof found>;
    const { revision, facts, source } = this.#claiming.claimed(row, row, this.#facts.of(id), now);
    const sourceState = this.#sourceStates.of(source, now);
    return { answer: 'changed', revision, facts, ...(sourceState && { sourceState }) };
  }

  /** The answer for a worker whose lease is lost: the report was written before, still counts, or is kept as evidence. */
  #lateAnswer(settlement: Settlement, batch: Batch): Settled {
    const { lease, decision, report } = settlement;
    // Its report may be among those that are not written yet.
    this.#flush(batch);
    const { task, token, execution } = lease;
    const earlier = this.#sql.get<{ late: number; next: string }>(
      `SELECT 0 AS late, state AS next FROM hf_resting WHERE id = :task AND token = :token AND executions = :execution
       UNION ALL SELECT late, next FROM hf_executions WHERE task = :task AND token = :token AND execution = :execution
       ORDER BY late LIMIT 1`,
      { task, token, execution },
    );
    if (earlier?.late === 0 && earlier.next === decision.next) return { answer: 'already' };
    if (earlier === undefined && decision.next === 'succeeded' && this.#succeedLate(settlement, batch))
      return SUCCEEDED;
    if (earlier?.late !== 1 && this.#sql.get('SELECT 1 FROM hf_tasks WHERE id = ?', task)) {
      const started_at = batch.now - report.ranFor;
      this.#record({ id: task, execution, token, started_at, worker: 0, lost_by: null }, decision, report, batch, true);
    }
    return { answer: 'stale' };
  }

  /** Settles a success that counts although its lease was lost. */
  #succeedLate({ lease, decision, report, result }: Settlement, batch: Batch): boolean {
    const open = this.#late.find(lease);
    if (!open) return false;
    const { found, worker } = open;
    const { task: id, execution, token } = lease;
    mustBeLegal(found.state, 'succeeded');
    this.#uniques.follow(id, found.row.unique_while, found.state, 'succeeded', batch.now);
    this.#places.leave(found);
    this.#sql.run('DELETE FROM hf_resting WHERE id = ?', id);
    // If another worker is recovering the task, it loses its lease with this.
    batch.running.delete(id);
    batch.ended.push(id);
    const running = { id, execution, token, worker: 0, lost_by: worker, started_at: batch.now - report.ranFor };
    this.#record(running, decision, { ...report, message: report.message ?? LATE_SUCCESS }, batch, false);
    batch.remembered.push([id, afterDecision(found.facts, running, decision, report, batch.now)]);
    batch.resting.push(id, 'succeeded', batch.now, execution, token, null, result ?? null);
    this.#late.forget(id);
    return true;
  }

  #record(
    running: Omit<RunningRow, 'revision' | 'deadline' | 'unique_while'>,
    decision: Decision,
    report: Report,
    batch: Batch,
    late: boolean,
  ): void {
    const after = decision.next === 'scheduled' ? decision.after : null;
    const { failure, message = null } = report;
    const { because } = decision;
    batch.executions.push(
      running.id,
      running.execution,
      running.token,
      late ? 1 : 0,
      running.lost_by ?? this.#nameOf(running.worker, batch),
      running.started_at,
      batch.now,
      report.outcome,
      decision.next,
      after,
      'charge' in decision ? decision.charge.to : 'nobody',
      message,
      ...(failure ? this.#texts.columnsOf(failure, splitFailure(failure)) : [null, null]),
      ...this.#texts.columnsOf(because, splitBecause(because, after)),
    );
  }

  #nameOf(worker: number, { workers }: Batch): string {
    const known = workers.get(worker);
    if (known !== undefined) return known;
    const row = this.#sql.get<{ name: string }>('SELECT name FROM hf_workers WHERE id = ?', worker);
    const name = row?.name ?? 'a worker that left';
    workers.set(worker, name);
    return name;
  }

  #runningOf(settlements: readonly Settlement[]): Map<number, RunningRow> {
    const rows = new Map<number, RunningRow>();
    const others: number[] = [];
    for (const group of groupsOf(settlements)) {
      const alike = this.#alikeLease(group);
      if (!alike) for (const id of group.tasks) others.push(id);
      else for (const id of group.tasks) rows.set(id, runningRow(id, alike, group));
    }
    if (others.length > 0) this.#readRunning(others, rows);
    return rows;
  }

  /** What the leases of a group have in common, if all are valid and ordinary. To compare them in SQLite is faster than to read each. */
  #alikeLease({ token, execution, tasks }: LeaseGroup): AlikeLease | undefined {
    const { sql, values } = among(tasks);
    const [[count, worker, last, first] = []] = this.#sql.rows<
      [count: number, worker: number, last: number, first: number]
    >(
      `SELECT count(*), max(worker), max(started_at), min(started_at) FROM hf_running WHERE id ${sql} AND ${IS_ORDINARY}`,
      ...values,
      token,
      execution,
    );
    // A token is of one claim, so all of its leases are of one worker.
    return count === tasks.length && first === last
      ? { worker: worker as number, startedAt: first as number }
      : undefined;
  }

  #readRunning(ids: readonly number[], into: Map<number, RunningRow>): void {
    const { sql, values } = among(ids);
    const rows = this.#sql.rows<
      [
        id: number,
        worker: number,
        execution: number,
        token: string,
        revision: number,
        startedAt: number,
        deadline: number | null,
        lostBy: string | null,
        uniqueWhile: UniqueScope | null,
      ]
    >(
      `SELECT id, worker, execution, token, revision, started_at, deadline, lost_by, unique_while FROM hf_running
       WHERE id ${sql}`,
      ...values,
    );
    for (const [id, worker, execution, token, revision, started_at, deadline, lost_by, unique_while] of rows) {
      into.set(id, { id, worker, execution, token, revision, started_at, deadline, lost_by, unique_while });
    }
  }
}

/** Tasks of one claim whose executions have the same number. */
interface LeaseGroup {
  readonly token: string;
  readonly execution: number;
  readonly tasks: number[];
}

interface AlikeLease {
  readonly worker: number;
  readonly startedAt: number;
}

function groupsOf(settlements: readonly Settlement[]): readonly LeaseGroup[] {
  const groups: LeaseGroup[] = [];
  let last: LeaseGroup | undefined;
  for (const { lease } of settlements) {
    const { token, execution, task } = lease;
    if (last?.token !== token || last.execution !== execution) {
      last = groups.find((group) => group.token === token && group.execution === execution);
      if (!last) {
        last = { token, execution, tasks: [] };
        groups.push(last);
      }
    }
    last.tasks.push(task);
  }
  return groups;
}

function runningRow(id: number, { worker, startedAt }: AlikeLease, { execution, token }: LeaseGroup): RunningRow {
  return {
    id,
    worker,
    execution,
    token,
    revision: 0,
    started_at: startedAt,
    deadline: null,
    lost_by: null,
    unique_while: null,
  };
}

/** A lease as it was handed out, of a task without a deadline and without a unique key. */
const IS_ORDINARY =
  'token = ? AND execution = ? AND revision = 0 AND deadline IS NULL AND lost_by IS NULL AND unique_while IS NULL';

/** Whether it is a plain success of a first execution: nothing must be stored about the task or its source. */
function isBare(settlement: Settlement): boolean {
  return isPlain(settlement) && !mayChangeSource(settlement);
}

/** Whether it was made where its source had a state, or changes that. */
function mayChangeSource(settlement: Settlement): boolean {
  return settlement.source !== 'any' && !leavesSource(settlement);
}

const ENDS_PLAINLY = "token = ? AND execution = 1 AND unique_while IS NOT 'unfinished'";

const RESTING = 'hf_resting (id, state, since, executions, token, reason, result)';

const EXECUTIONS = `hf_executions (task, execution, token, late, worker, started_at, ended_at, outcome, next, after_ms,
  charge, message, failure, failure_text, because, because_text)`;
