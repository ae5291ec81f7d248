import type { Pace } from '../../pace.ts';
import { nextStartAfter, startsAllowed } from '../../starts.ts';
import type { Queue } from './catalogue.ts';
import type { Sql } from './driver.ts';

/** How many tasks of a queue with limits may start now, and how many may run at the same time. */
export class QueueLimits {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** How many tasks a claim may take now. */
  startsOf(queue: Queue, now: number): number {
    const pace = paceOf(queue);
    let starts = Number.POSITIVE_INFINITY;
    if (pace) starts = startsAllowed(pace, this.#nextStartOf(queue.id), now);
    if (queue.concurrency !== null) starts = Math.min(starts, queue.concurrency - this.#runningOf(queue.id));
    return Math.max(0, starts);
  }

  /** Counts the tasks that a claim has leased. */
  started(queue: Queue, ids: readonly number[], now: number): void {
    const pace = paceOf(queue);
    if (pace) {
      const next = nextStartAfter(pace, this.#nextStartOf(queue.id), ids.length, now);
      this.#sql.run('UPDATE hf_queues SET next_start = ? WHERE id = ?', next, queue.id);
    }
    if (queue.concurrency !== null) {
      this.#sql.run(
        'UPDATE hf_running SET limited_queue = ? WHERE id IN (SELECT value FROM json_each(?))',
        queue.id,
        JSON.stringify(ids),
      );
    }
  }

  #nextStartOf(queue: number): number | null {
    return this.#sql.column<number | null>('SELECT next_start FROM hf_queues WHERE id = ?', queue)[0] ?? null;
  }

  #runningOf(queue: number): number {
    return this.#sql.column<number>('SELECT count(*) FROM hf_running WHERE limited_queue = ?', queue)[0] as number;
  }
}

export function isLimited({ per_second, concurrency }: Queue): boolean {
  return per_second !== null || concurrency !== null;
}

function paceOf({ per_second, burst }: Queue): Pace | undefined {
  return per_second === null ? undefined : { perSecond: per_second, burst: burst ?? 1 };
}
