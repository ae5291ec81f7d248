-- Tasks that are imported from another queue.

CREATE TYPE imported_task AS (
  stands text, executions integer, charged jsonb, deferrals integer, in_a_row integer, reason text, error text, result text,
  ended_at bigint, actor text, note text, imported text
);

-- Records tasks of another queue: as new ones first, so that keys mean the same, then as they stood there.
CREATE FUNCTION import_tasks(p_call uuid, p_groups json, p_tasks json, p_imported json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  done json;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  PERFORM pg_advisory_xact_lock_shared(lane_lock(), import_lock());
  done := enqueue_keyed(p_groups, p_tasks, true, 500, now_);
  PERFORM must_be_legal('elsewhere', stands) FROM (
    SELECT DISTINCT stands FROM json_populate_recordset(NULL::imported_task, p_imported) WHERE stands <> 'waiting') states;
  -- Each step hands on what the next one needs: a join of two lists that have no index would compare each row with each.
  WITH imported AS MATERIALIZED (
    SELECT (t.receipt ->> 0)::bigint AS id, t.* FROM ROWS FROM (
      json_array_elements(done), json_populate_recordset(NULL::imported_task, p_imported)) WITH ORDINALITY
      t(receipt, stands, executions, charged, deferrals, in_a_row, reason, error, result, ended_at, actor, note, imported, n)
    WHERE (t.receipt ->> 1)::boolean),
  waits AS (
    UPDATE live l SET executions = i.executions, charged = nullif(i.charged, '[]'), deferrals = i.deferrals, in_a_row = i.in_a_row,
      deferred_since = CASE WHEN i.in_a_row > 0 THEN now_ END, reason = i.reason, error = i.error,
      state = CASE WHEN i.stands = 'held' THEN 'held' ELSE l.state END
    FROM imported i WHERE l.id = i.id AND i.stands IN ('waiting', 'held')
    RETURNING i.n, l.id, l.state, i.actor, i.note, i.imported),
  leaves AS (
    DELETE FROM live l USING imported i WHERE l.id = i.id AND i.stands NOT IN ('waiting', 'held')
    RETURNING i.*, l.class, l.run_at, l.deadline, l.idempotent),
  rests AS (
    DELETE FROM bodies b USING leaves l WHERE b.id = l.id
    RETURNING l.n, l.id, l.class, b.source, l.stands AS state,
      CASE WHEN l.stands = 'needs_manual' THEN now_ ELSE coalesce(l.ended_at, now_) END AS since,
      l.reason, l.result, b.priority, b.submitted_at, b.created_at, l.run_at, l.deadline, l.idempotent, b.key, b.policy, b.payload,
      l.executions, nullif(l.charged, '[]') AS charged, l.deferrals, l.in_a_row,
      CASE WHEN l.in_a_row > 0 THEN now_ END AS deferred_since, l.error, l.actor, l.note, l.imported),
  well AS (
    INSERT INTO succeeded (id, class, source, state, since, result, priority, submitted_at, created_at, run_at, deadline, idempotent,
      key, policy, payload, executions, charged, deferrals, in_a_row, deferred_since, error)
    SELECT id, class, source, state, since, result, priority, submitted_at, created_at, run_at, deadline, idempotent,
      key, policy, payload, executions, charged, deferrals, in_a_row, deferred_since, error FROM rests WHERE state = 'succeeded'),
  others AS (
    INSERT INTO ended (id, class, source, state, since, reason, result, priority, submitted_at, created_at, run_at, deadline,
      idempotent, key, policy, payload, executions, charged, deferrals, in_a_row, deferred_since, error)
    SELECT id, class, source, state, since, reason, result, priority, submitted_at, created_at, run_at, deadline,
      idempotent, key, policy, payload, executions, charged, deferrals, in_a_row, deferred_since, error
    FROM rests WHERE state <> 'succeeded')
  INSERT INTO acts (task, at, actor, verb, told, note, from_state, to_state, brought)
    SELECT id, now_, actor, 'imported', true, note, 'elsewhere', state, imported FROM (
      SELECT n, id, state, actor, note, imported FROM waits UNION ALL SELECT n, id, state, actor, note, imported FROM rests) i ORDER BY n;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done);
  RETURN done;
END $$;
