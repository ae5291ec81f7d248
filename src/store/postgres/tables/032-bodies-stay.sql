-- A task that succeeds in its first execution leaves its row of `bodies` where it is: its row of `succeeded` has no payload then. Who
-- reads a payload looks in both.
ALTER TABLE succeeded ALTER COLUMN payload DROP NOT NULL;
DO $$
DECLARE
  day_ regclass;
BEGIN
  -- Of a partition that has the constraint of its own.
  FOR day_ IN SELECT attrelid FROM pg_attribute JOIN pg_inherits ON inhrelid = attrelid
    WHERE inhparent = 'succeeded'::regclass AND attname = 'payload' AND attnotnull LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN payload DROP NOT NULL', day_);
  END LOOP;
END $$;

-- There are as many rows of `bodies` as tasks now, so it is vacuumed like `succeeded`.
ALTER TABLE bodies SET (autovacuum_vacuum_scale_factor = 0.05);

-- Whoever removes a row of `succeeded` removes the row of `bodies` with it; also a program of the version before, which knows nothing of
-- it. Unless the task is live again: then it needs it.
CREATE FUNCTION remove_bodies() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM bodies b WHERE b.id = ANY(ARRAY(SELECT id FROM removed WHERE payload IS NULL)) AND NOT EXISTS (SELECT 1 FROM live l WHERE l.id = b.id);
  RETURN NULL;
END $$;
CREATE TRIGGER remove_bodies AFTER DELETE ON succeeded REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION remove_bodies();

-- A program of the version before makes a succeeded task live by writing what it has in `succeeded` to `bodies`: without a payload, if
-- the row of `bodies` is still there. The new row replaces it and has its payload.
CREATE FUNCTION replace_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM bodies WHERE id = NEW.id RETURNING payload INTO NEW.payload;
  RETURN NEW;
END $$;
CREATE TRIGGER replace_body BEFORE INSERT ON bodies FOR EACH ROW WHEN (NEW.payload IS NULL) EXECUTE FUNCTION replace_body();

-- The view as it was, with the payloads of both.
CREATE OR REPLACE VIEW holdfast_tasks AS
SELECT v.id, v.type, v.queue, v.source, v.state, v.priority, v.category, v.needs, v.key, v.unique_key, v.unique_while, v.payload,
  v.result, v.policy, v.idempotent, v.submitted_at, v.created_at, v.due_at, v.deadline, v.ended_at, v.executions, v.charged,
  v.deferrals, v.recoveries, v.suspect, v.reason, v.held_by, v.worker, v.running_since, v.cancel_requested, v.lost_in_a_row,
  v.held_until, p.progress, p.progress_at, v.error,
  (SELECT coalesce(sum((x ->> 'count')::integer), 0) FROM jsonb_array_elements(v.charged) x)::integer AS attempts,
  (SELECT CASE WHEN x.because LIKE '{%' THEN (x.because::json ->> 'limit')::integer END FROM (
    SELECT id, because FROM executions WHERE task = v.id AND charge = 'task'
    UNION ALL SELECT id, because FROM old_executions WHERE task = v.id AND charge = 'task' ORDER BY id DESC LIMIT 1) x) AS max_attempts,
  v.lease_until
FROM (
  SELECT l.id, c.type, q.name AS queue, b.source, l.state, b.priority, nullif(c.category, '') AS category,
    nullif(c.needs, '{}') AS needs, b.key, b.unique_key, b.unique_while, b.payload, NULL::text AS result, b.policy,
    coalesce(l.idempotent, true) AS idempotent, b.submitted_at, b.created_at, CASE WHEN l.state = 'scheduled'
      THEN l.run_at END AS due_at,
    l.deadline, NULL::bigint AS ended_at, l.executions, l.charged, l.deferrals, coalesce(cardinality(l.recoveries),
      0) AS recoveries,
    l.suspect, l.reason, h.held_by,
    w.name AS worker, CASE WHEN l.state = 'running' THEN l.since END AS running_since, l.cancel AS cancel_requested,
    CASE WHEN l.suspect THEN greatest(l.lost_in_a_row, 1) ELSE 0 END AS lost_in_a_row, h.held_until,
    l.error, CASE WHEN l.state = 'running' THEN w.lease_until END AS lease_until
  FROM live l JOIN bodies b ON b.id = l.id JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue
  LEFT JOIN workers w ON w.id = l.worker LEFT JOIN sources o ON o.name = b.source
  LEFT JOIN source_states s ON s.name = b.source
  -- The first thing that holds a ready task, and when that ends, if it is known.
  LEFT JOIN LATERAL (
    SELECT held_by, held_until FROM (SELECT now_ms() AS now OFFSET 0) t CROSS JOIN LATERAL (VALUES
      (1, 'queue_paused', q.paused_at IS NOT NULL, NULL::bigint),
      (2, 'source_held', o.name IS NOT NULL, o.until),
      (3, s.closed_by, s.closed_by IS NOT NULL, s.opens_at),
      (4, 'budget', s.budget_opens_at IS NOT NULL AND l.needs_token AND NOT l.suspect, s.budget_opens_at),
      (5, 'concurrency', q.concurrency IS NOT NULL AND q.concurrency <= (
        SELECT count(*) FROM live r WHERE r.counted_queue = q.id AND r.state = 'running'), NULL),
      (6, 'pace', q.per_second IS NOT NULL AND q.next_start IS NOT NULL, ceil(q.next_start)::bigint)
    ) causes (n, held_by, applies, held_until)
    WHERE l.state = 'ready' AND applies AND coalesce(held_until > t.now, true) ORDER BY n LIMIT 1) h ON true
  UNION ALL
  SELECT e.id, c.type, q.name, e.source, e.state, e.priority, nullif(c.category, ''), nullif(c.needs, '{}'), e.key, e.unique_key,
    e.unique_while, coalesce(e.payload, (SELECT b.payload FROM bodies b WHERE b.id = e.id)), e.result, e.policy, coalesce(e.idempotent, true), e.submitted_at, e.created_at, NULL, e.deadline,
    CASE WHEN e.state <> 'needs_manual' THEN e.since END, e.executions, e.charged, e.deferrals,
    coalesce(cardinality(e.recoveries), 0), e.suspect, e.reason, NULL, NULL, NULL, false,
    CASE WHEN e.suspect THEN 1 ELSE 0 END, NULL, e.error, NULL
  FROM (SELECT * FROM ended UNION ALL SELECT * FROM succeeded) e JOIN classes c ON c.id = e.class JOIN queues q ON q.id = c.queue
) v LEFT JOIN checkpoints p ON p.task = v.id;
