import type { Decision } from '../../failure/decide.ts';
import type { Lease, Report, Settled, Settlement } from '../store.ts';
import type { Claiming } from './claiming.ts';
import type { Sql } from './driver.ts';
import { afterDecision, type FactsRow, type FactsTable, UNTOUCHED } from './facts.ts';
import { mustBeLegal, type Places, placeOf, type TaskRow } from './places.ts';

interface RunningRow {
  readonly id: number;
  readonly worker: number;
  readonly execution: number;
  readonly token: string;
  readonly revision: number;
  readonly started_at: number;
  readonly deadline: number | null;
  readonly lost_by: string | null;
}

/** What a batch of settlements looks up once. Rows are taken out as they are settled, so that a repeated one is seen as such. */
interface Desk {
  readonly now: number;
  readonly running: Map<number, RunningRow>;
  /** Leases that end with this batch. */
  readonly ended: number[];
  readonly facts: ReadonlyMap<number, FactsRow>;
  readonly tasks: ReadonlyMap<number, TaskRow>;
  readonly workers: Map<number, string>;
}

/** Writes decisions, guarded by lease and revision. */
export class Settling {
  readonly #sql: Sql;
  readonly #places: Places;
  readonly #facts: FactsTable;
  readonly #claiming: Claiming;

  constructor(sql: Sql, places: Places, facts: FactsTable, claiming: Claiming) {
    this.#sql = sql;
    this.#places = places;
    this.#facts = facts;
    this.#claiming = claiming;
  }

  settle(settlements: readonly Settlement[], now: number): readonly Settled[] {
    const desk = this.#lookUp(settlements, now);
    const answers = settlements.map((settlement) => this.#settleOne(settlement, desk));
    this.#sql.run('DELETE FROM hf_running WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(desk.ended));
    return answers;
  }

  #lookUp(settlements: readonly Settlement[], now: number): Desk {
    const running = this.#runningRows(JSON.stringify(settlements.map(({ lease }) => lease.task)));
    // A first execution that succeeded needs nothing but its lease: no facts, no place, no history.
    const eventful = settlements.filter((one) => !isPlain(one)).map(({ lease }) => lease.task);
    const list = JSON.stringify(eventful);
    return {
      now,
      running: new Map(running.map((row) => [row.id, row])),
      ended: [],
      facts: eventful.length === 0 ? new Map() : this.#facts.ofAll(list),
      tasks: eventful.length === 0 ? new Map() : new Map(this.#places.rowsOf(list).map((row) => [row.id, row])),
      workers: new Map(),
    };
  }

  #settleOne(settlement: Settlement, desk: Desk): Settled {
    const { lease, revision, decision, result, report } = settlement;
    const running = desk.running.get(lease.task);
    if (running?.execution !== lease.execution || running.token !== lease.token) {
      return this.#lateAnswer(lease, decision, report, desk);
    }
    if (decision.next !== 'succeeded' && running.revision !== revision) return this.#changed(lease.task, desk);
    desk.running.delete(lease.task);
    desk.ended.push(lease.task);
    const facts = desk.facts.get(lease.task) ?? UNTOUCHED;
    const after = isPlain(settlement) ? undefined : afterDecision(facts, running, decision, report, desk.now);
    if (after) {
      this.#record(running, decision, report, desk, false);
      this.#facts.write(lease.task, after);
    }
    if (decision.next === 'scheduled') {
      const place = placeOf(desk.tasks.get(lease.task) as TaskRow, after);
      const state = this.#places.enter('running', place, desk.now + decision.after, running.deadline, desk.now);
      return { answer: 'settled', state };
    }
    mustBeLegal('running', decision.next);
    this.#sql.run(
      'UPDATE hf_tasks SET state = ?, state_at = ?, executions = ?, token = ?, reason = ?, result = ? WHERE id = ?',
      decision.next,
      desk.now,
      running.execution,
      running.token,
      decision.next === 'succeeded' ? null : decision.reason,
      result ?? null,
      lease.task,
    );
    return { answer: 'settled', state: decision.next };
  }

  #changed(id: number, desk: Desk): Settled {
    const [found] = this.#claiming.leased([id]);
    const row = found as NonNullable<typeof found>;
    const { revision, facts } = this.#claiming.claimed(row, row, this.#facts.of(id), desk.now);
    return { answer: 'changed', revision, facts };
  }

  /** What to tell a worker whose lease is gone: that its word was taken before, or that it came too late and is evidence. */
  #lateAnswer(lease: Lease, decision: Decision, report: Report, desk: Desk): Settled {
    const { task, token, execution } = lease;
    const told = this.#sql.get<{ late: number; next: string }>(
      `SELECT 0 AS late, state AS next FROM hf_tasks WHERE id = :task AND token = :token AND executions = :execution
       UNION ALL SELECT late, next FROM hf_executions WHERE task = :task AND token = :token AND execution = :execution
       ORDER BY late LIMIT 1`,
      { task, token, execution },
    );
    if (told?.late === 0 && told.next === decision.next) return { answer: 'already' };
    if (told?.late !== 1 && this.#sql.get('SELECT 1 FROM hf_tasks WHERE id = ?', task)) {
      const started_at = desk.now - report.ranFor;
      this.#record({ id: task, execution, token, started_at, worker: 0, lost_by: null }, decision, report, desk, true);
    }
    return { answer: 'stale' };
  }

  #record(
    running: Omit<RunningRow, 'revision' | 'deadline'>,
    decision: Decision,
    report: Report,
    desk: Desk,
    late: boolean,
  ): void {
    this.#sql.run(
      `INSERT INTO hf_executions (task, execution, token, late, worker, started_at, ended_at, outcome, next, after_ms, charge,
         failure, message, because) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      running.id,
      running.execution,
      running.token,
      late ? 1 : 0,
      running.lost_by ?? this.#nameOf(running.worker, desk),
      running.started_at,
      desk.now,
      report.outcome,
      decision.next,
      decision.next === 'scheduled' ? decision.after : null,
      'charge' in decision ? decision.charge.to : 'nobody',
      report.failure ? JSON.stringify(report.failure) : null,
      report.message ?? null,
      JSON.stringify(decision.because),
    );
  }

  #nameOf(worker: number, { workers }: Desk): string {
    const known = workers.get(worker);
    if (known !== undefined) return known;
    const row = this.#sql.get<{ name: string }>('SELECT name FROM hf_workers WHERE id = ?', worker);
    const name = row?.name ?? 'a worker that left';
    workers.set(worker, name);
    return name;
  }

  #runningRows(ids: string): RunningRow[] {
    return this.#sql.all<RunningRow>(
      `SELECT id, worker, execution, token, revision, started_at, deadline, lost_by FROM hf_running
       WHERE id IN (SELECT value FROM json_each(?))`,
      ids,
    );
  }
}

function isPlain({ lease, decision, report }: Settlement): boolean {
  return decision.next === 'succeeded' && lease.execution === 1 && report.message === undefined;
}
