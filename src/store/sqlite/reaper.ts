import type { Clock } from '../../clock.ts';
import type { Milliseconds } from '../../duration.ts';
import { isProvablyDead, type ProcessIdentity } from '../liveness.ts';
import type { Sql } from './driver.ts';

interface WorkerRow extends ProcessIdentity {
  readonly id: number;
  readonly name: string;
  readonly lease_for: number;
  readonly lease_until: number;
  readonly gone: number;
}

/** A worker that said nothing for so long, and holds nothing, is forgotten. */
const FORGOTTEN_AFTER_MS = 24 * 3_600_000;

/** A lease is renewed three times in its length, so a living worker is heard of within a third of it. */
const RENEWALS_PER_LEASE = 3;

/**
 * Finds the leases that ended without a word. A worker whose process is provably dead, or that left, loses them at once; any
 * other only after this process has itself watched its lease expired and unrenewed for one interval of its own monotonic
 * clock, so that neither a laptop's sleep nor a jump of the wall clock robs the living.
 */
export class Reaper {
  readonly #sql: Sql;
  readonly #clock: Clock;
  readonly #watched = new Map<number, { leaseUntil: number; since: Milliseconds }>();

  constructor(sql: Sql, clock: Clock) {
    this.#sql = sql;
    this.#clock = clock;
  }

  /** Makes them the taker's under a new token, and answers their tasks. */
  takeOver(taker: number, limit: number, now: number, token: string): number[] {
    const taken: number[] = [];
    for (const worker of this.#sql.all<WorkerRow>('SELECT * FROM hf_workers WHERE id <> ?', taker)) {
      if (!this.#hasEnded(worker, now)) continue;
      const rows = this.#sql.all<{ id: number }>(
        'SELECT id FROM hf_running WHERE worker = ? ORDER BY id LIMIT ?',
        worker.id,
        limit - taken.length,
      );
      for (const { id } of rows) {
        this.#sql.run(
          `UPDATE hf_running SET worker = ?, token = ?, why = coalesce(why, 'loss'), lost_by = coalesce(lost_by, ?) WHERE id = ?`,
          taker,
          token,
          worker.name,
          id,
        );
        taken.push(id);
      }
      this.#forgetIfEmpty(worker, now);
    }
    return taken;
  }

  /** Whether a worker is there to be given something. */
  knows(worker: number): boolean {
    return this.#sql.get('SELECT 1 FROM hf_workers WHERE id = ? AND gone = 0', worker) !== undefined;
  }

  /** A worker leaves of its own will. What it still holds can be taken over at once. */
  dismiss(worker: number): void {
    this.#sql.run('UPDATE hf_workers SET gone = 1 WHERE id = ?', worker);
    this.#forgetIfUnused(worker);
  }

  #hasEnded(worker: WorkerRow, now: number): boolean {
    if (worker.gone || isProvablyDead(worker)) return true;
    if (worker.lease_until > now) {
      this.#watched.delete(worker.id);
      return false;
    }
    const watched = this.#watched.get(worker.id);
    if (watched?.leaseUntil !== worker.lease_until) {
      this.#watched.set(worker.id, { leaseUntil: worker.lease_until, since: this.#clock.monotonic() });
      return false;
    }
    return this.#clock.monotonic() - watched.since >= worker.lease_for / RENEWALS_PER_LEASE;
  }

  #forgetIfEmpty(worker: WorkerRow, now: number): void {
    const silent = now - worker.lease_until > FORGOTTEN_AFTER_MS;
    if (worker.gone || silent || isProvablyDead(worker)) this.#forgetIfUnused(worker.id);
  }

  #forgetIfUnused(worker: number): void {
    if (this.#sql.get('SELECT 1 FROM hf_running WHERE worker = ? LIMIT 1', worker)) return;
    this.#sql.run('DELETE FROM hf_workers WHERE id = ?', worker);
    this.#watched.delete(worker);
  }
}
