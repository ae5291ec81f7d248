-- Removing what is old, and what one process does for all. Limits are lists of state, reason and how long it is kept.

-- Whether this caller does a chore now: one of all does, once in `p_every` milliseconds.
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

-- The states and reasons of those that came to rest; those that succeeded have none.
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

-- Removes some tasks whose time is up, with everything that belongs to them, so few at once that nobody waits for it. Days of
-- which every task that succeeded is over age are told in slices and then dropped as a whole.
CREATE FUNCTION prune(p_call uuid, p_limits json, p_after bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  kept bigint := (SELECT (g ->> 2)::bigint FROM json_array_elements(p_limits) g WHERE g ->> 0 = 'succeeded');
  old_day integer;
  removed json;
  ids bigint[];
  looked bigint;
  done json;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  SELECT min(day) INTO old_day FROM days WHERE NOT succeeded_dropped AND (day + 1) * 86400000::bigint <= now_ - kept;
  IF old_day IS NOT NULL THEN
    SELECT json_agg(json_build_object('id', s.id, 'type', c.type, 'state', s.state, 'reason', s.reason) ORDER BY s.id),
      array_agg(s.id), max(s.id)
    INTO removed, ids, looked FROM (
      SELECT id, class, state, reason FROM succeeded WHERE id > p_after
        AND since >= old_day * 86400000::bigint AND since < (old_day + 1) * 86400000::bigint ORDER BY id LIMIT 2000) s
    JOIN classes c ON c.id = s.class;
    DELETE FROM keys WHERE task = ANY(ids);
    DELETE FROM acts WHERE task = ANY(ids);
    DELETE FROM checkpoints WHERE task = ANY(ids);
    DELETE FROM lost WHERE task = ANY(ids);
    IF looked IS NULL OR cardinality(ids) < 2000 THEN
      looked := CASE WHEN drop_succeeded(old_day) THEN 0 END;
    END IF;
  ELSE
    WITH due AS (
      SELECT e.id, e.class, e.state, e.reason FROM json_array_elements(p_limits) g JOIN ended e
        ON e.state = g ->> 0 AND e.reason IS NOT DISTINCT FROM g ->> 1 AND e.since <= now_ - (g ->> 2)::bigint
      WHERE e.id > p_after ORDER BY e.id LIMIT 500 FOR UPDATE OF e SKIP LOCKED),
    old AS (
      -- Of a day of very many the whole day is waited for.
      SELECT s.id, s.class, s.state, s.reason FROM succeeded s WHERE s.id > p_after AND s.since <= now_ - kept
        AND (SELECT count(*) FROM (SELECT 1 FROM succeeded WHERE since <= now_ - kept LIMIT 10001) many) <= 10000
      ORDER BY s.id LIMIT 500 FOR UPDATE OF s SKIP LOCKED),
    first AS (SELECT * FROM (SELECT * FROM due UNION ALL SELECT * FROM old) x ORDER BY id LIMIT 500)
    SELECT json_agg(json_build_object('id', f.id, 'type', c.type, 'state', f.state, 'reason', f.reason) ORDER BY f.id),
      array_agg(f.id), CASE WHEN count(*) = 500 THEN max(f.id) END
    INTO removed, ids, looked FROM first f JOIN classes c ON c.id = f.class;
    DELETE FROM ended WHERE id = ANY(ids);
    DELETE FROM succeeded WHERE id = ANY(ids);
    DELETE FROM keys WHERE task = ANY(ids);
    DELETE FROM uniques WHERE task = ANY(ids);
    DELETE FROM executions WHERE task = ANY(ids);
    DELETE FROM old_executions WHERE task = ANY(ids);
    DELETE FROM acts WHERE task = ANY(ids);
    DELETE FROM checkpoints WHERE task = ANY(ids);
    DELETE FROM lost WHERE task = ANY(ids);
  END IF;
  done := json_build_object('removed', removed, 'next', looked);
  IF ids IS NOT NULL THEN INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done); END IF;
  RETURN done;
END $$;

-- Drops a day of tasks that succeeded, with their keys. False where others were at it for too long.
CREATE FUNCTION drop_succeeded(p_day integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  first bigint := p_day * 86400000::bigint;
BEGIN
  DELETE FROM keys k USING succeeded s WHERE s.since >= first AND s.since < first + 86400000 AND s.key IS NOT NULL
    AND k.task = s.id;
  DELETE FROM checkpoints c USING succeeded s WHERE s.since >= first AND s.since < first + 86400000 AND c.task = s.id;
  PERFORM drop_day(p_day, 'succeeded');
  UPDATE days SET succeeded_dropped = true WHERE day = p_day;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;

-- Drops a day of history that is older than a month. What belongs to a task that is still there stays, in a table of its own.
CREATE FUNCTION drop_executions(p_now bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  old_day integer := (SELECT min(day) FROM days WHERE NOT executions_dropped AND (day + 32) * 86400000::bigint <= p_now);
  first bigint := old_day * 86400000::bigint;
BEGIN
  IF old_day IS NULL THEN RETURN false; END IF;
  INSERT INTO old_executions SELECT e.* FROM executions e WHERE e.ended_at >= first AND e.ended_at < first + 86400000
    AND (EXISTS (SELECT 1 FROM live t WHERE t.id = e.task) OR EXISTS (SELECT 1 FROM ended t WHERE t.id = e.task)
      OR EXISTS (SELECT 1 FROM succeeded t WHERE t.id = e.task));
  PERFORM drop_day(old_day, 'executions');
  UPDATE days SET executions_dropped = true WHERE day = old_day;
  DELETE FROM days WHERE day = old_day AND succeeded_dropped;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;

-- Forgets answers that nobody will ask for again, makes the partitions of the days to come, and drops those of old history.
CREATE FUNCTION tidy() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  forgotten integer;
BEGIN
  -- The schema of these functions, which is the first of their search path.
  UPDATE functions SET used_at = now_ WHERE schema = current_schema() AND used_at < now_ - 3600000;
  FOR ahead IN 0..2 LOOP PERFORM need_day(now_ + ahead * 86400000::bigint); END LOOP;
  DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE at < now_ - 900000 ORDER BY at LIMIT 5000 FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  IF drop_executions(now_) THEN forgotten := forgotten + 1; END IF;
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
