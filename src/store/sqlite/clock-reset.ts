import type { Milliseconds } from '../../duration.ts';
import { WHEN_GROUP_ENDS } from '../new-task.ts';
import type { Sql } from './driver.ts';

/**
 * Moves back by `ahead` the times that were written while the store's time was ahead by this much: leases, waits of retries,
 * charged recoveries, places of waiting tasks, and the last times of chores. Times that a person chose stay: deadlines, and the
 * first due time of a task (a `delay` is stored as a time, like `at`). So does the history.
 */
export function bringBack(sql: Sql, now: number, ahead: Milliseconds): void {
  const values = { now, ahead };
  sql.run('UPDATE hf_workers SET lease_until = :now + lease_for WHERE lease_until > :now + lease_for', { now });
  sql.run('UPDATE hf_chores SET at = :now WHERE at > :now', { now });
  sql.run('UPDATE hf_redrives SET driver_until = min(driver_until, :now), next_at = min(next_at, :now)', { now });
  // 0: the next time was found by the wrong clock, so it is to be found anew.
  sql.run('UPDATE hf_schedules SET look_at = 0 WHERE look_at > :now', { now });
  // A follow-up that has not run is due since its group ended, and nobody chose that time. So is one whose group was empty.
  const followUps = JSON.stringify(
    sql.column<number>(
      `SELECT s.id FROM hf_scheduled s JOIN hf_tasks t ON t.id = s.id AND t.run_at = s.run_at
       WHERE s.run_at > :now AND s.run_at < ${WHEN_GROUP_ENDS}
         AND (s.id IN (SELECT follow_up FROM hf_group_tasks) OR s.run_at = t.created_at)
         AND NOT EXISTS (SELECT 1 FROM hf_executions WHERE task = s.id)`,
      { now },
    ),
  );
  for (const table of ['hf_tasks', 'hf_scheduled']) {
    sql.run(`UPDATE ${table} SET run_at = :now WHERE id IN (SELECT value FROM json_each(:followUps))`, {
      now,
      followUps,
    });
  }
  const retries = JSON.stringify(
    sql.column<number>(
      `SELECT s.id FROM hf_scheduled s JOIN hf_facts f ON f.task = s.id AND f.run_at = s.run_at
       WHERE s.run_at > :now AND (SELECT e.ended_at > :now AND e.next = 'scheduled' FROM hf_executions e
         WHERE e.task = s.id ORDER BY e.id DESC LIMIT 1)`,
      { now },
    ),
  );
  const these = { retries, ahead };
  sql.run(
    'UPDATE hf_scheduled SET run_at = run_at - :ahead WHERE id IN (SELECT value FROM json_each(:retries))',
    these,
  );
  sql.run('UPDATE hf_facts SET run_at = run_at - :ahead WHERE task IN (SELECT value FROM json_each(:retries))', these);
  // This comes before the change of the times that show which rows were written ahead.
  bringSourcesBack(sql, values);
  sql.run(
    'UPDATE hf_unique SET until = until - :ahead WHERE until > :now AND task IN (SELECT id FROM hf_tasks WHERE created_at > :now)',
    values,
  );
  for (const [table, column] of COUNTED_FROM) {
    sql.run(`UPDATE ${table} SET ${column} = ${column} - :ahead WHERE ${column} > :now`, values);
  }
  // Times in a damaged row cannot be changed.
  sql.run(
    `UPDATE hf_facts SET recoveries =
       (SELECT json_group_array(iif(value > :now, value - :ahead, value)) FROM json_each(iif(json_valid(recoveries), recoveries, '[]')))
     WHERE EXISTS (SELECT 1 FROM json_each(iif(json_valid(recoveries), recoveries, '[]')) WHERE value > :now)`,
    values,
  );
}

/** Times of sources: states and their waits, budgets and paces. The next claim finds out which sources are open. */
function bringSourcesBack(sql: Sql, values: { readonly now: number; readonly ahead: Milliseconds }): void {
  sql.run(
    `UPDATE hf_source_states SET written_at = written_at - :ahead, shut_until = shut_until - :ahead WHERE written_at > :now`,
    values,
  );
  sql.run('UPDATE hf_sources SET until = until - :ahead WHERE shut_at > :now', values);
  sql.run('UPDATE hf_queues SET next_start = next_start - :ahead WHERE next_start > :now', values);
  sql.run('UPDATE hf_restricted SET next_start = next_start - :ahead WHERE next_start > :now', values);
  sql.run('UPDATE hf_restricted SET opens_at = :now WHERE opens_at > :now', { now: values.now });
}

/** Columns with times of the store's clock, from which something is counted or by which tasks are ordered. */
const COUNTED_FROM = [
  ['hf_tasks', 'submitted_at'],
  ['hf_tasks', 'created_at'],
  ['hf_sources', 'shut_at'],
  ['hf_source_limits', 'set_at'],
  ['hf_budgets', 'counted_at'],
  ['hf_running', 'started_at'],
  ['hf_lost', 'at'],
  ['hf_facts', 'first_started_at'],
  ['hf_facts', 'last_started_at'],
  ['hf_facts', 'deferred_since'],
] as const;
