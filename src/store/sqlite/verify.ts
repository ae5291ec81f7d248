import { FULL } from '../../budget.ts';
import { PROBE_HOLDS_FOR } from '../../starts.ts';
import { WHEN_GROUP_ENDS } from '../new-task.ts';
import type { Sql } from './driver.ts';

/** Each query finds rows that break an invariant; the sentence says which. */
const INVARIANTS: Readonly<Record<string, string>> = {
  'stands in no place or in several': `
    WITH places AS (
      SELECT id FROM hf_scheduled UNION ALL SELECT abs(seq) FROM hf_ready
      UNION ALL SELECT id FROM hf_running UNION ALL SELECT id FROM hf_resting)
    SELECT id FROM hf_tasks WHERE id NOT IN (SELECT id FROM places)
    UNION ALL SELECT id FROM places GROUP BY id HAVING count(*) > 1`,
  'has a place but no task': `
    SELECT id FROM hf_scheduled WHERE id NOT IN (SELECT id FROM hf_tasks)
    UNION ALL SELECT abs(seq) FROM hf_ready WHERE abs(seq) NOT IN (SELECT id FROM hf_tasks)
    UNION ALL SELECT id FROM hf_running WHERE id NOT IN (SELECT id FROM hf_tasks)
    UNION ALL SELECT id FROM hf_resting WHERE id NOT IN (SELECT id FROM hf_tasks)`,
  'is scheduled at another time than is remembered': `
    SELECT s.id FROM hf_scheduled s JOIN hf_tasks t ON t.id = s.id LEFT JOIN hf_facts f ON f.task = s.id
    WHERE s.run_at <> coalesce(f.run_at, t.run_at)`,
  'is scheduled as one that has failed but has not, or the other way round': `
    SELECT s.id FROM hf_scheduled s LEFT JOIN hf_facts f ON f.task = s.id WHERE s.failed <> (f.reason IS NOT NULL)`,
  'is the last one, and those before it are neither all there nor counted as removed': `
    SELECT seq AS id FROM sqlite_sequence WHERE name = 'hf_tasks'
    AND seq <> (SELECT tasks FROM hf_removed) + (SELECT count(*) FROM hf_tasks)`,
  'stands in a lane of another class, source or track': `
    SELECT t.id FROM hf_ready r JOIN hf_lanes l ON l.id = r.lane JOIN hf_tasks t ON t.id = abs(r.seq)
    LEFT JOIN hf_facts f ON f.task = t.id
    WHERE l.class <> t.class OR l.source <> t.source OR CASE coalesce(f.suspect, 0)
      WHEN 0 THEN iif(coalesce(f.needs_token, 0), l.track <> 1, l.track NOT IN (0, 4)) WHEN 1 THEN l.track <> 2 ELSE l.track <> 3 END`,
  'is the first task of a lane but not in hf_active, or the other way round': `
    WITH first_tasks (class, track, order_key, seq, lane, source) AS (
      SELECT l.class, l.track, iif(q.fair, t.turn + 0.0, r.order_key), iif(q.fair, l.id, r.seq), l.id AS lane, l.source
      FROM (SELECT lane, order_key, seq, row_number() OVER (PARTITION BY lane ORDER BY order_key, seq) AS place FROM hf_ready) r
      JOIN hf_lanes l ON l.id = r.lane JOIN hf_classes c ON c.id = l.class JOIN hf_queues q ON q.id = c.queue
      LEFT JOIN hf_turns t ON t.queue = q.id AND t.source = l.source
      WHERE r.place = 1 AND NOT EXISTS (
        SELECT 1 FROM hf_restricted s WHERE s.source = l.source AND (s.held_by IS NOT NULL OR s.no_token AND l.track = 1)))
    SELECT abs(r.seq) AS id FROM (
      SELECT * FROM (SELECT * FROM first_tasks EXCEPT SELECT class, track, order_key, seq, lane, source FROM hf_active)
      UNION ALL
      SELECT * FROM (SELECT class, track, order_key, seq, lane, source FROM hf_active EXCEPT SELECT * FROM first_tasks)) wrong
    LEFT JOIN hf_ready r ON r.lane = wrong.lane`,
  'is of a source whose turn is later than any that its queue gave': `
    SELECT abs(r.seq) AS id FROM hf_turns t JOIN hf_queues q ON q.id = t.queue JOIN hf_lanes l ON l.source = t.source
    JOIN hf_ready r ON r.lane = l.id WHERE t.turn > q.last_turn`,
  'is leased to a worker that is not there': `
    SELECT id FROM hf_running WHERE worker <> 0 AND worker NOT IN (SELECT id FROM hf_workers)`,
  'waits with a deadline that is not watched, or the other way round': `
    WITH waiting AS (SELECT id FROM hf_scheduled UNION ALL SELECT abs(seq) FROM hf_ready)
    SELECT id FROM (
      SELECT t.id, t.deadline FROM hf_tasks t JOIN waiting w ON w.id = t.id WHERE t.deadline IS NOT NULL
      EXCEPT SELECT id, deadline FROM hf_deadlines)
    UNION ALL SELECT id FROM hf_deadlines WHERE id NOT IN (SELECT id FROM waiting)`,
  'has a key that does not lead to it': `
    SELECT t.id FROM hf_tasks t JOIN hf_classes c ON c.id = t.class LEFT JOIN hf_keys k ON k.key = t.key AND k.type = c.type
    WHERE t.key IS NOT NULL AND k.task IS NOT t.id`,
  'has a unique key to itself that it should not have, or the other way round': `
    WITH unique_tasks AS (
      SELECT t.id, c.type, t.unique_key AS key, t.unique_while AS scope, e.state, r.id AS running
      FROM hf_tasks t JOIN hf_classes c ON c.id = t.class
      LEFT JOIN hf_resting e ON e.id = t.id LEFT JOIN hf_running r ON r.id = t.id WHERE t.unique_key IS NOT NULL),
    entitled AS (
      SELECT type, key, id FROM unique_tasks
      WHERE coalesce(state, 'held') = 'held' AND running IS NULL OR scope = 'unfinished' AND (running IS NOT NULL OR state = 'needs_manual'))
    SELECT id FROM (SELECT * FROM entitled EXCEPT SELECT type, key, task FROM hf_unique WHERE NOT released)
    UNION ALL SELECT task FROM (SELECT type, key, task FROM hf_unique WHERE NOT released EXCEPT SELECT * FROM entitled)`,
  'was removed and left something behind': `
    SELECT id FROM (
      SELECT task AS id FROM hf_facts UNION SELECT task FROM hf_executions UNION SELECT task FROM hf_acts
      UNION SELECT task FROM hf_keys UNION SELECT task FROM hf_checkpoints UNION SELECT task FROM hf_unique
      UNION SELECT task FROM hf_lost UNION SELECT task FROM hf_redrive_tasks
      UNION SELECT follow_up FROM hf_group_tasks)
    WHERE id NOT IN (SELECT id FROM hf_tasks)`,
  'waits for a group that has ended': `
    SELECT id FROM hf_scheduled s WHERE run_at = ${WHEN_GROUP_ENDS}
      AND NOT EXISTS (SELECT 1 FROM hf_group_tasks g WHERE g.follow_up = s.id AND g.ended IS NULL)`,
  'has ended, and its group waits for it': `
    SELECT task AS id FROM hf_group_tasks g WHERE g.ended IS NULL AND (task NOT IN (SELECT id FROM hf_tasks)
      OR EXISTS (SELECT 1 FROM hf_resting e WHERE e.id = g.task AND e.state NOT IN ('held', 'needs_manual')))`,
  'has a history with a text that is missing': `
    SELECT e.task AS id FROM hf_executions e, json_each(json_array(e.failure_text, e.because_text)) j
    WHERE j.value IS NOT NULL AND j.value NOT IN (SELECT id FROM hf_texts)`,
  'runs without its lease saying how long it has its unique key': `
    SELECT t.id FROM hf_running r JOIN hf_tasks t ON t.id = r.id WHERE t.unique_while IS NOT r.unique_while`,
};

/** The same for sources. */
const INVARIANTS_OF_SOURCES: Readonly<Record<string, string>> = {
  'is restricted but is not kept as such, or the other way round': `
    WITH restricted AS (
      SELECT name AS source FROM hf_sources UNION SELECT source FROM hf_source_states WHERE cause IS NOT NULL
      UNION SELECT source FROM hf_source_limits UNION SELECT source FROM hf_budgets)
    SELECT source FROM (SELECT * FROM restricted EXCEPT SELECT source FROM hf_restricted)
    UNION SELECT source FROM (SELECT source FROM hf_restricted EXCEPT SELECT * FROM restricted)`,
  'is held, or shut until somebody releases it, and is open': `
    SELECT source FROM hf_restricted WHERE held_by IS NULL AND (
      source IN (SELECT name FROM hf_sources WHERE until IS NULL)
      OR source IN (SELECT source FROM hf_source_states WHERE cause IS NOT NULL AND until_released))`,
  'opens by itself at a time that nobody looks for': `
    SELECT source FROM hf_restricted WHERE opens_at IS NULL AND (
      held_by = 'source_held' AND source IN (SELECT name FROM hf_sources WHERE until IS NOT NULL)
      OR held_by = 'pace' OR no_token)`,
  'lets nothing start although none of its tasks runs': `
    SELECT r.source FROM hf_restricted r LEFT JOIN hf_source_states s ON s.source = r.source
    WHERE (r.held_by = 'concurrency' OR s.probing AND r.held_by = s.cause AND r.opens_at IS NOT s.shut_until AND NOT s.until_released)
      AND NOT EXISTS (SELECT 1 FROM hf_running t WHERE t.limited_source = r.source)`,
  'has a probe that began too soon after another one': `
    SELECT t.limited_source AS source FROM hf_running t JOIN hf_running o ON o.limited_source = t.limited_source AND o.id <> t.id
    WHERE t.probe = 1 AND o.probe = 1 AND t.started_at >= o.started_at AND t.started_at < o.started_at + ${PROBE_HOLDS_FOR}`,
  'has a budget beyond its bounds': `
    SELECT source FROM hf_budgets WHERE tokens < 0 OR tokens > ${FULL}`,
};

/** Every broken invariant, as a sentence that names a task or a source; none in a sound file. */
export function brokenInvariants(sql: Sql): string[] {
  const ofTasks = Object.entries(INVARIANTS).flatMap(([sentence, query]) =>
    sql.all<{ id: number }>(`${query} LIMIT 5`).map(({ id }) => `Task #${id} ${sentence}.`),
  );
  const ofSources = Object.entries(INVARIANTS_OF_SOURCES).flatMap(([sentence, query]) =>
    sql.all<{ source: string }>(`${query} LIMIT 5`).map(({ source }) => `The source ${source} ${sentence}.`),
  );
  const broken = [...ofTasks, ...ofSources];
  const damage = sql
    .all<{ quick_check: string }>('PRAGMA quick_check')
    .map((row) => row.quick_check)
    .filter((line) => line !== 'ok');
  return [...broken, ...damage];
}
