/** What people look at. */
export const VIEWS = `
CREATE VIEW holdfast_tasks AS
SELECT l.id, c.type, q.name AS queue, b.source, l.state, b.priority, nullif(c.category, '') AS category,
  nullif(c.needs, '{}') AS needs, b.key, b.unique_key, b.unique_while, b.payload, NULL::text AS result, b.policy,
  coalesce(l.idempotent, true) AS idempotent, b.submitted_at, b.created_at, CASE WHEN l.state = 'scheduled'
    THEN l.run_at END AS due_at,
  l.deadline, NULL::bigint AS ended_at, l.executions, l.charged, l.deferrals, coalesce(cardinality(l.recoveries),
    0) AS recoveries,
  l.suspect, l.reason, CASE WHEN l.state = 'ready' THEN
    CASE WHEN q.paused_at IS NOT NULL THEN 'queue_paused' WHEN o.name IS NOT NULL THEN 'source_held' END END AS held_by,
  w.name AS worker, CASE WHEN l.state = 'running' THEN l.since END AS running_since, l.cancel AS cancel_requested
FROM live l JOIN bodies b ON b.id = l.id JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue
LEFT JOIN workers w ON w.id = l.worker LEFT JOIN sources o ON o.name = b.source
UNION ALL
SELECT e.id, c.type, q.name, e.source, e.state, e.priority, nullif(c.category, ''), nullif(c.needs, '{}'), e.key, e.unique_key,
  e.unique_while, e.payload, e.result, e.policy, coalesce(e.idempotent, true), e.submitted_at, e.created_at, NULL, e.deadline,
  CASE WHEN e.state <> 'needs_manual' THEN e.since END, e.executions, e.charged, e.deferrals,
  coalesce(cardinality(e.recoveries), 0), e.suspect, e.reason, NULL, NULL, NULL, false
FROM (SELECT * FROM ended UNION ALL SELECT * FROM succeeded) e JOIN classes c ON c.id = e.class JOIN queues q ON q.id = c.queue;
`;
