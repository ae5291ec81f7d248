-- How tasks are lost with their workers, and when they last ran. A version that does not know the counts goes on writing `suspect`.
-- `held_when_lost`: how many tasks the process of a worker ran when it was first found gone.
ALTER TABLE live ADD COLUMN lost_in_a_row integer NOT NULL DEFAULT 0;
ALTER TABLE live ADD COLUMN lost_how text;
ALTER TABLE live ADD COLUMN ran_at bigint;
ALTER TABLE workers ADD COLUMN stopping boolean NOT NULL DEFAULT false;
ALTER TABLE workers ADD COLUMN held_when_lost integer;

CREATE OR REPLACE VIEW holdfast_tasks AS
SELECT l.id, c.type, q.name AS queue, b.source, l.state, b.priority, nullif(c.category, '') AS category,
  nullif(c.needs, '{}') AS needs, b.key, b.unique_key, b.unique_while, b.payload, NULL::text AS result, b.policy,
  coalesce(l.idempotent, true) AS idempotent, b.submitted_at, b.created_at, CASE WHEN l.state = 'scheduled'
    THEN l.run_at END AS due_at,
  l.deadline, NULL::bigint AS ended_at, l.executions, l.charged, l.deferrals, coalesce(cardinality(l.recoveries),
    0) AS recoveries,
  l.suspect, l.reason, CASE WHEN l.state = 'ready' THEN
    CASE WHEN q.paused_at IS NOT NULL THEN 'queue_paused' WHEN o.name IS NOT NULL THEN 'source_held' END END AS held_by,
  w.name AS worker, CASE WHEN l.state = 'running' THEN l.since END AS running_since, l.cancel AS cancel_requested,
  CASE WHEN l.suspect THEN greatest(l.lost_in_a_row, 1) ELSE 0 END AS lost_in_a_row
FROM live l JOIN bodies b ON b.id = l.id JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue
LEFT JOIN workers w ON w.id = l.worker LEFT JOIN sources o ON o.name = b.source
UNION ALL
SELECT e.id, c.type, q.name, e.source, e.state, e.priority, nullif(c.category, ''), nullif(c.needs, '{}'), e.key, e.unique_key,
  e.unique_while, e.payload, e.result, e.policy, coalesce(e.idempotent, true), e.submitted_at, e.created_at, NULL, e.deadline,
  CASE WHEN e.state <> 'needs_manual' THEN e.since END, e.executions, e.charged, e.deferrals,
  coalesce(cardinality(e.recoveries), 0), e.suspect, e.reason, NULL, NULL, NULL, false,
  CASE WHEN e.suspect THEN 1 ELSE 0 END
FROM (SELECT * FROM ended UNION ALL SELECT * FROM succeeded) e JOIN classes c ON c.id = e.class JOIN queues q ON q.id = c.queue;
