-- Reports of workers whose lease is lost: a repeated report, a late success that counts, or evidence.

-- Returns the answer of `settle` for it.
CREATE FUNCTION settle_late(p_item settlement, p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  earlier record;
BEGIN
  SELECT x.late, x.next INTO earlier FROM (
    SELECT false AS late, state AS next FROM ended WHERE id = p_item.id AND token = p_item.t AND executions = p_item.x
    UNION ALL SELECT false, state FROM succeeded WHERE id = p_item.id AND token = p_item.t AND executions = p_item.x
    UNION ALL SELECT late, next FROM executions WHERE task = p_item.id AND token = p_item.t AND execution = p_item.x) x
  ORDER BY x.late LIMIT 1;
  IF earlier.late IS FALSE AND earlier.next = p_item.n THEN RETURN json_build_array(p_item.id, 'already'); END IF;
  IF earlier.late IS NULL AND p_item.n = 'succeeded' THEN
    IF succeed_late(p_item, p_now) THEN RETURN json_build_array(p_item.id, 'settled', 'succeeded'); END IF;
  END IF;
  IF earlier.late IS NOT TRUE AND (EXISTS (SELECT 1 FROM live WHERE id = p_item.id) OR EXISTS (SELECT 1 FROM ended
    WHERE id = p_item.id)
    OR EXISTS (SELECT 1 FROM succeeded WHERE id = p_item.id)) THEN
    PERFORM record_late(p_item, 'a worker that left', true, p_item.m, p_now);
  END IF;
  RETURN json_build_array(p_item.id, 'stale');
END $$;

CREATE FUNCTION record_late(p_item settlement, p_worker text, p_late boolean, p_message text, p_now bigint) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO executions (task, execution, token, late, worker, started_at, ended_at, outcome, next, after_ms, charge,
    failure, message, because)
  VALUES (p_item.id, p_item.x, p_item.t, p_late, p_worker, p_now - p_item.rf, p_now, p_item.oc, p_item.n,
    CASE WHEN p_item.n = 'scheduled' THEN p_item.a END, p_item.c, p_item.f, p_message, p_item.b);
END $$;

-- Settles a success whose lease was lost, if the task was not started again and waits, is being recovered, or needs a person
-- because of this loss. Otherwise returns false.
CREATE FUNCTION succeed_late(p_item settlement, p_now bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  lost_by text;
  found_ record;
BEGIN
  SELECT worker INTO lost_by FROM lost WHERE task = p_item.id AND execution = p_item.x AND token = p_item.t;
  IF NOT FOUND THEN RETURN false; END IF;
  SELECT l.state, l.executions, l.round_base, l.why INTO found_ FROM live l WHERE l.id = p_item.id FOR UPDATE;
  IF NOT FOUND THEN
    SELECT e.state, e.executions, e.round_base, NULL::text AS why INTO found_ FROM ended e WHERE e.id = p_item.id FOR UPDATE;
  END IF;
  IF NOT FOUND OR found_.executions <> p_item.x OR NOT is_legal(found_.state, 'succeeded') THEN RETURN false; END IF;
  IF found_.state = 'running' THEN
    IF found_.why IS DISTINCT FROM 'loss' THEN RETURN false; END IF;
  ELSIF found_.round_base >= p_item.x OR last_outcome(p_item.id) IS DISTINCT FROM 'loss' THEN
    RETURN false;
  END IF;
  PERFORM free_unique(ARRAY[p_item.id], p_now);
  -- If it counted against a limit of its source, the next claim checks again what may start.
  UPDATE source_states s SET opens_at = p_now FROM live l WHERE l.id = p_item.id AND s.name = l.counted AND s.closed_by IS NOT NULL
    AND (s.opens_at IS NULL OR s.is_probing) AND coalesce(s.shut_until, 0) <= p_now;
  IF found_.state = 'needs_manual' THEN
    WITH gone AS (DELETE FROM ended WHERE id = p_item.id RETURNING *) INSERT INTO succeeded SELECT * FROM gone;
  ELSE
    PERFORM end_task(p_item.id, 'succeeded', NULL, NULL, p_now);
  END IF;
  UPDATE succeeded SET state = 'succeeded', since = p_now, token = p_item.t, reason = NULL, result = p_item.rs, suspect = false
    WHERE id = p_item.id;
  PERFORM record_late(p_item, lost_by, false, coalesce(p_item.m,
    'Its lease had been lost, but nobody had begun the task again, so its success counts.'), p_now);
  DELETE FROM lost WHERE task = p_item.id;
  RETURN true;
END $$;

-- The last outcome that was decided about.
CREATE FUNCTION last_outcome(p_task bigint) RETURNS text LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  SELECT x.outcome FROM (
    SELECT e.id, e.outcome FROM executions e WHERE e.task = p_task AND NOT e.late
    UNION ALL SELECT o.id, o.outcome FROM old_executions o WHERE o.task = p_task AND NOT o.late) x ORDER BY x.id DESC LIMIT 1
$$;
