import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import type { Loss } from '../../failure/outcome.ts';
import { isRespected, type Respected, type Watch, watches, watchFor } from '../leases.ts';
import { identityOf, type Liveness, livenessOnOneKernel, type ProcessIdentity } from '../liveness.ts';
import { timelineOf } from '../timeline.ts';
import type { Sql } from './driver.ts';
import { lossOf } from './losses.ts';

interface WorkerRow extends ProcessIdentity {
  readonly id: number;
  readonly name: string;
  readonly lease_for: number;
  readonly lease_until: number;
  readonly may_run_for: number | null;
  readonly gone: number;
  readonly stopping: number;
}

/** The worker that takes leases over, the worker that lost them, and how they were lost, if it is known. */
interface Takeover {
  readonly taker: number;
  readonly token: string;
  readonly now: number;
  readonly lostBy: string;
  readonly how: Loss | null;
}

interface TakenOver {
  readonly ids: readonly number[];
  /** When the next lease that has run out may be taken over. */
  readonly nextIn?: Milliseconds;
  readonly neighbours: readonly ProcessIdentity[];
}

/** A worker without leases that has not renewed for this long is removed. */
const FORGOTTEN_AFTER_MS = 24 * 3_600_000;

/** Leases that their worker gave up. Any worker may recover them, also this one. */
const GIVEN_UP = 0;

/**
 * Finds the leases that ended without an outcome. A worker whose process is provably dead, or that left, loses its leases at
 * once. Any other worker loses them only after its expired lease was watched for a while without a renewal. The watch is stored,
 * for each timeline of monotonic clocks, so that short-lived processes can continue it.
 */
export class LostLeases {
  readonly #sql: Sql;
  readonly #clock: Clock;

  constructor(sql: Sql, clock: Clock) {
    this.#sql = sql;
    this.#clock = clock;
  }

  /** Leases them to the worker that takes them over, with a new token, and returns their tasks. */
  takeOver(taker: number, limit: number, now: number, token: string): TakenOver {
    const taken: number[] = [];
    const neighbours: ProcessIdentity[] = [];
    let nextIn = Number.POSITIVE_INFINITY;
    for (const worker of this.#sql.all<WorkerRow>('SELECT * FROM hf_workers WHERE id <> ?', taker)) {
      const liveness = livenessOnOneKernel(worker);
      if (liveness === 'alive' && worker.pid !== process.pid) neighbours.push(identityOf(worker));
      const left = worker.gone || liveness === 'dead' ? 0 : this.#watchLeft(worker, liveness, now);
      if (left === undefined) continue;
      if (left === 0) {
        const ids = this.#heldBy(worker.id, limit - taken.length);
        const how = ids.length > 0 ? lossOf(this.#sql, worker) : null;
        taken.push(...this.#take({ taker, token, now, lostBy: worker.name, how }, ids));
        // A living process continues by itself, so its lease needs no watch.
      } else if (!isRespected(respected(worker), liveness) && this.#holdsAny(worker.id)) {
        nextIn = Math.min(nextIn, left);
      }
      this.#forgetIfEmpty(worker, liveness, now);
    }
    const lostBy = 'a worker that left';
    taken.push(...this.#take({ taker, token, now, lostBy, how: null }, this.#heldByNobody(limit - taken.length)));
    return { ids: taken, neighbours, ...(Number.isFinite(nextIn) && { nextIn }) };
  }

  /** Gives to recovery the leases that a worker does not name and has had since longer than a lease before `until`. */
  giveUp(worker: number, named: readonly number[], until: number, now: number): void {
    const row = this.#sql.get<WorkerRow>('SELECT * FROM hf_workers WHERE id = ?', worker);
    if (!row) return;
    const forgotten = this.#sql.column<number>(
      `SELECT r.id FROM hf_running r LEFT JOIN hf_lost l ON l.task = r.id AND l.execution = r.execution AND r.why = 'loss'
       WHERE r.worker = :worker AND coalesce(l.at, r.started_at) < :before
         AND r.id NOT IN (SELECT value FROM json_each(:named))`,
      { worker, before: until - row.lease_for, named: JSON.stringify(named) },
    );
    for (const id of forgotten) {
      this.#noteLoss(id, row.name, now);
      this.#sql.run(
        `UPDATE hf_running SET worker = ?, why = coalesce(why, 'loss'), lost_by = coalesce(lost_by, ?) WHERE id = ?`,
        GIVEN_UP,
        row.name,
        id,
      );
    }
  }

  /** Whether the store knows a worker. */
  knows(worker: number): boolean {
    return this.#sql.get('SELECT 1 FROM hf_workers WHERE id = ? AND gone = 0', worker) !== undefined;
  }

  /** Tasks that the worker loses from now on are charged to nobody. */
  noteStopping(worker: number): void {
    this.#sql.run('UPDATE hf_workers SET stopping = 1 WHERE id = ?', worker);
  }

  /** Removes a worker that leaves. Tasks that it still has can be taken over at once. */
  dismiss(worker: number, now: number): void {
    this.#sql.run('UPDATE hf_workers SET gone = 1 WHERE id = ?', worker);
    this.#forgetIfUnused(worker, now);
  }

  /** Ends the leases of all workers, because the store is older than they are. */
  dismissAll(): void {
    this.#sql.run(`UPDATE hf_running SET token = 'restored' || lower(hex(randomblob(12)))`);
    this.#sql.run('UPDATE hf_workers SET gone = 1, stopping = 1');
  }

  /** How much longer the worker's expired lease must be watched; undefined if it has not run out. */
  #watchLeft(worker: WorkerRow, liveness: Liveness, now: number): Milliseconds | undefined {
    if (worker.lease_until > now) return undefined;
    const monotonic = this.#clock.monotonic();
    const whole = watchFor(respected(worker), liveness);
    const watch = this.#watchOver(worker.id);
    if (watches(watch, worker.lease_until, monotonic)) return Math.max(0, whole - (monotonic - watch.since));
    this.#sql.run(
      'INSERT OR REPLACE INTO hf_watches (worker, timeline, lease_until, since) VALUES (?, ?, ?, ?)',
      worker.id,
      timelineOf(this.#clock),
      worker.lease_until,
      monotonic,
    );
    return whole;
  }

  #watchOver(worker: number): Watch | undefined {
    return this.#sql.get<Watch>(
      'SELECT lease_until AS leaseUntil, since FROM hf_watches WHERE worker = ? AND timeline = ?',
      worker,
      timelineOf(this.#clock),
    );
  }

  #take({ taker, token, now, lostBy, how }: Takeover, ids: readonly number[]): readonly number[] {
    for (const id of ids) {
      this.#noteLoss(id, lostBy, now);
      this.#sql.run(
        `UPDATE hf_running SET worker = ?, token = ?, lost_by = coalesce(lost_by, ?),
           lost_how = iif(why IS NULL, ?, lost_how), started_at = iif(why = 'expiry', ?, started_at),
           why = coalesce(why, 'loss') WHERE id = ?`,
        taker,
        token,
        lostBy,
        how,
        now,
        id,
      );
    }
    return ids;
  }

  /** Keeps the token of the execution, even if the task is taken over several times. */
  #noteLoss(task: number, worker: string, now: number): void {
    this.#sql.run(
      `INSERT INTO hf_lost (task, execution, token, worker, at)
         SELECT id, execution, token, ?, ? FROM hf_running WHERE id = ? AND why IS NOT 'expiry'
       ON CONFLICT (task) DO UPDATE SET at = excluded.at,
         token = iif(execution = excluded.execution, token, excluded.token),
         worker = iif(execution = excluded.execution, worker, excluded.worker), execution = excluded.execution`,
      worker,
      now,
      task,
    );
  }

  #heldBy(worker: number, limit: number): readonly number[] {
    return this.#sql.column<number>('SELECT id FROM hf_running WHERE worker = ? ORDER BY id LIMIT ?', worker, limit);
  }

  /** Leases that were given up, or whose worker has no row any more. */
  #heldByNobody(limit: number): readonly number[] {
    return this.#sql.column<number>(
      'SELECT id FROM hf_running WHERE worker NOT IN (SELECT id FROM hf_workers) ORDER BY id LIMIT ?',
      limit,
    );
  }

  #holdsAny(worker: number): boolean {
    return this.#sql.get('SELECT 1 FROM hf_running WHERE worker = ? LIMIT 1', worker) !== undefined;
  }

  #forgetIfEmpty(worker: WorkerRow, liveness: Liveness, now: number): void {
    const silent = now - worker.lease_until > FORGOTTEN_AFTER_MS;
    if (worker.gone || silent || liveness === 'dead') this.#forgetIfUnused(worker.id, now);
  }

  #forgetIfUnused(worker: number, now: number): void {
    if (this.#holdsAny(worker)) return;
    this.#sql.run(
      `UPDATE hf_types SET (worker, host, program, at) = (SELECT name, host, program, min(lease_until, :now) FROM hf_workers WHERE id = :worker)
       WHERE type IN (SELECT j.value FROM hf_workers w, json_each(iif(json_valid(w.takes), w.takes, '{}'), '$.types') j WHERE w.id = :worker)`,
      { worker, now },
    );
    this.#sql.run('DELETE FROM hf_workers WHERE id = ?', worker);
    this.#sql.run('DELETE FROM hf_watches WHERE worker = ?', worker);
  }
}

function respected({ lease_for, may_run_for }: WorkerRow): Respected {
  return { leaseFor: lease_for, mayRunFor: may_run_for };
}
