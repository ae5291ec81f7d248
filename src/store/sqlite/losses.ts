import type { Loss } from '../../failure/outcome.ts';
import type { ProcessIdentity } from '../liveness.ts';
import type { Sql } from './driver.ts';

interface LostWorker extends ProcessIdentity {
  readonly id: number;
  readonly stopping: number;
}

/**
 * How the tasks of a lost worker were lost. When the first worker of a process is found lost, all running tasks of the process
 * are counted, and the number is stored with its workers, because their leases are taken over a few at a time, perhaps by several
 * workers.
 */
export function lossOf(sql: Sql, worker: LostWorker): Loss {
  if (worker.stopping === 1) return 'while_stopping';
  const [known] = sql.column<number | null>('SELECT held_when_lost FROM hf_workers WHERE id = ?', worker.id);
  return (known ?? countHeld(sql, worker)) === 1 ? 'alone' : 'beside_others';
}

/** A task that was taken over to be decided about does not run. */
function countHeld(sql: Sql, { host, pid, pid_started }: ProcessIdentity): number {
  const same = 'w.host = :host AND w.pid = :pid AND w.pid_started IS :pid_started';
  const identity = { host, pid, pid_started };
  const [held] = sql.column<number>(
    `SELECT count(*) FROM hf_running r JOIN hf_workers w ON w.id = r.worker WHERE r.why IS NULL AND ${same}`,
    identity,
  ) as [number];
  sql.run(`UPDATE hf_workers AS w SET held_when_lost = :held WHERE ${same}`, { ...identity, held });
  return held;
}
