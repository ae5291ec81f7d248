-- Removing old tasks, and chores that one process does for all. Limits are lists of state, reason and how long such tasks are
-- kept.

-- Whether this caller does a chore now. Exactly one of all callers does it, once in `p_every` milliseconds.
CREATE FUNCTION take_turn(p_call uuid, p_chore text, p_every bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN true; END IF;
  IF EXISTS (SELECT 1 FROM chores WHERE name = p_chore AND at > now_ - p_every) THEN RETURN false; END IF;
  INSERT INTO chores AS c (name, at) VALUES (p_chore, now_)
    ON CONFLICT (name) DO UPDATE SET at = now_ WHERE c.at <= now_ - p_every;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, 'true');
  RETURN true;
END $$;

-- The states and reasons of tasks that ended or need a person. Succeeded tasks have no reason.
CREATE FUNCTION rested() RETURNS json LANGUAGE sql SET search_path FROM CURRENT AS $$
  SELECT json_agg(json_build_object('state', state, 'reason', reason)) FROM (SELECT DISTINCT state, reason FROM ended) r
$$;

CREATE FUNCTION ripe(p_limits json) RETURNS json LANGUAGE sql SET search_path FROM CURRENT AS $$
  SELECT json_agg(json_build_object('state', r.state, 'reason', r.reason, 'count', r.count)
    ORDER BY r.state <> 'succeeded', r.count DESC, r.state COLLATE "C", r.reason COLLATE "C" NULLS FIRST)
  FROM (
    SELECT e.state, e.reason, count(*) AS count FROM json_array_elements(p_limits) g JOIN ended e
      ON e.state = g ->> 0 AND e.reason IS NOT DISTINCT FROM g ->> 1 AND e.since <= now_ms() - (g ->> 2)::bigint GROUP BY 1, 2
    UNION ALL SELECT 'succeeded', NULL, count(*) FROM succeeded s JOIN json_array_elements(p_limits) g
      ON g ->> 0 = 'succeeded' AND s.since <= now_ms() - (g ->> 2)::bigint HAVING count(*) > 0) r
$$;

-- Removes tasks with everything that belongs to them. The succeeded ones among them ended by this time.
CREATE FUNCTION remove_tasks(p_ids bigint[], p_succeeded_before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM ended WHERE id = ANY(p_ids);
  DELETE FROM succeeded WHERE id = ANY(p_ids) AND since <= p_succeeded_before;
  DELETE FROM keys WHERE task = ANY(p_ids);
  DELETE FROM uniques WHERE task = ANY(p_ids);
  DELETE FROM executions WHERE task = ANY(p_ids);
  DELETE FROM old_executions WHERE task = ANY(p_ids);
  DELETE FROM acts WHERE task = ANY(p_ids);
  DELETE FROM checkpoints WHERE task = ANY(p_ids);
  DELETE FROM lost WHERE task = ANY(p_ids);
  DELETE FROM redrive_tasks WHERE task = ANY(p_ids);
  DELETE FROM group_tasks WHERE follow_up = ANY(p_ids);
END $$;

-- Removes the first of these tasks that are in one of these states, and returns after which id the next call continues.
CREATE FUNCTION remove_ended(p_call uuid, p_ids bigint[], p_states text[], p_after bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  wanted bigint[] := ARRAY(SELECT id FROM unnest(p_ids) id WHERE id > p_after ORDER BY id LIMIT 500);
  removed json;
  ids bigint[];
  done json;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  WITH others AS (
    SELECT id, class, state, reason FROM ended WHERE id = ANY(wanted) AND state = ANY(p_states) ORDER BY id
    FOR UPDATE SKIP LOCKED),
  well AS (
    SELECT id, class, state, reason FROM succeeded WHERE id = ANY(wanted) AND 'succeeded' = ANY(p_states) ORDER BY id FOR UPDATE SKIP LOCKED)
  SELECT json_agg(json_build_object('id', d.id, 'type', c.type, 'state', d.state, 'reason', d.reason) ORDER BY d.id), array_agg(d.id)
  INTO removed, ids FROM (SELECT * FROM others UNION ALL SELECT * FROM well) d JOIN classes c ON c.id = d.class;
  IF ids IS NOT NULL THEN PERFORM remove_tasks(ids, now_); END IF;
  done := json_build_object('removed', removed, 'next', wanted[500]);
  IF ids IS NOT NULL THEN INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done); END IF;
  RETURN done;
END $$;

-- Removes a small batch of tasks whose retention is over, with everything that belongs to them. A call checks the tasks after an
-- id, in the order of ids, and returns where the next call continues. When no task is left to remove, a call drops one empty day.
CREATE FUNCTION prune(p_call uuid, p_limits json, p_after bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  succeeded_before bigint := now_ - (SELECT (g ->> 2)::bigint FROM json_array_elements(p_limits) g WHERE g ->> 0 = 'succeeded');
  last_id bigint;
  removed json;
  ids bigint[];
  done json;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  SELECT id INTO last_id FROM ended WHERE id > p_after ORDER BY id LIMIT 1 OFFSET 1999;
  SELECT coalesce((SELECT id FROM succeeded WHERE id > p_after AND id <= coalesce(last_id, 9223372036854775807)
    AND since <= succeeded_before ORDER BY id LIMIT 1 OFFSET 499), last_id) INTO last_id;
  WITH limits AS MATERIALIZED (
    SELECT g ->> 0 AS state, g ->> 1 AS reason, now_ - (g ->> 2)::bigint AS before FROM json_array_elements(p_limits) g),
  looked_at AS MATERIALIZED (
    SELECT id, state, reason, since FROM ended WHERE id > p_after AND id <= coalesce(last_id, 9223372036854775807) ORDER BY id),
  others AS (
    -- The task may have been resolved or retried since it was read.
    SELECT e.id, e.class, e.state, e.reason FROM looked_at t JOIN ended e ON e.id = t.id AND e.state = t.state AND e.since = t.since
    WHERE EXISTS (SELECT 1 FROM limits g WHERE g.state = t.state AND g.reason IS NOT DISTINCT FROM t.reason AND t.since <= g.before)
    ORDER BY e.id FOR UPDATE OF e SKIP LOCKED),
  well AS (
    SELECT s.id, s.class, s.state, s.reason FROM succeeded s WHERE s.id > p_after
      AND s.id <= coalesce(last_id, 9223372036854775807) AND s.since <= succeeded_before ORDER BY s.id FOR UPDATE OF s SKIP LOCKED)
  SELECT json_agg(json_build_object('id', d.id, 'type', c.type, 'state', d.state, 'reason', d.reason) ORDER BY d.id), array_agg(d.id)
  INTO removed, ids FROM (SELECT * FROM others UNION ALL SELECT * FROM well) d JOIN classes c ON c.id = d.class;
  IF ids IS NOT NULL THEN
    PERFORM remove_tasks(ids, succeeded_before);
    last_id := coalesce(last_id, (SELECT max(id) FROM unnest(ids) id));
  ELSIF last_id IS NULL AND drop_empty_day(least(succeeded_before, now_ - 3600000)) THEN
    last_id := p_after;
  END IF;
  done := json_build_object('removed', removed, 'next', last_id);
  IF ids IS NOT NULL THEN INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done); END IF;
  RETURN done;
END $$;

-- Removes old answers of calls, makes the partitions of the next days, drops days of old history, and removes redrives that ended
-- long ago. Returns whether there may be more to do: 0 means no.
CREATE FUNCTION tidy(p_listed_for bigint, p_changes_for bigint, p_most_changes bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  forgotten integer;
BEGIN
  -- The schema of these functions, which is the first of their search path.
  UPDATE functions SET used_at = now_ WHERE schema = current_schema() AND used_at < now_ - 3600000;
  PERFORM make_days(now_, 2);
  DELETE FROM days WHERE succeeded_dropped AND executions_dropped AND (day + 32) * 86400000::bigint <= now_;
  DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE at < now_ - 900000 ORDER BY at LIMIT 5000 FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  DELETE FROM low_keys WHERE until <= now_;
  PERFORM forget_sources(now_);
  -- A worker of a former version has ended them.
  PERFORM end_group_tasks(ARRAY(SELECT task FROM group_tasks g WHERE ended IS NULL AND NOT EXISTS (SELECT 1 FROM live WHERE id = g.task)
    AND NOT EXISTS (SELECT 1 FROM ended e WHERE e.id = g.task AND e.state = 'needs_manual')));
  PERFORM end_other_groups();
  IF drop_old_history(now_) THEN forgotten := forgotten + 1; END IF;
  forgotten := forgotten + forget_redrive(now_ - p_listed_for) + forget_changes(now_ - p_changes_for, p_most_changes);
  RETURN forgotten;
END $$;

CREATE FUNCTION take_steps(p_call uuid, p_limit integer) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  steps json;
BEGIN
  SELECT answer INTO steps FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN steps; END IF;
  UPDATE acts SET told = true WHERE id IN (SELECT id FROM acts WHERE NOT told AND at < now_ - 86400000
    ORDER BY id LIMIT p_limit FOR UPDATE SKIP LOCKED);
  WITH news AS (
    UPDATE acts SET told = true WHERE id IN (
      SELECT id FROM acts WHERE NOT told AND at >= now_ - 86400000 ORDER BY id LIMIT p_limit FOR UPDATE SKIP LOCKED)
    RETURNING id, task, at, actor, verb, note, from_state, to_state)
  SELECT json_agg(json_build_object('task', n.task, 'type', t.type, 'queue', t.queue, 'source', t.source, 'at', n.at,
    'actor', n.actor,
    'verb', n.verb, 'note', n.note, 'from', n.from_state, 'to', n.to_state) ORDER BY n.id)
  INTO steps FROM news n JOIN holdfast_tasks t ON t.id = n.task;
  IF steps IS NOT NULL THEN INSERT INTO calls (id, at, answer) VALUES (p_call, now_, steps); END IF;
  RETURN steps;
END $$;
