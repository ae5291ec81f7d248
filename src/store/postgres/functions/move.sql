-- Operators' actions.

-- Makes a task that has ended or needs a person live again: ready now, in a new round.
CREATE FUNCTION begin_again(p_id bigint, p_from text, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  WITH well AS (DELETE FROM succeeded s WHERE s.id = p_id AND p_from = 'succeeded' RETURNING s.*),
  ill AS (DELETE FROM ended e WHERE e.id = p_id AND p_from <> 'succeeded' RETURNING e.*),
  past AS (SELECT * FROM well UNION ALL SELECT * FROM ill),
  wide AS (
    INSERT INTO bodies (id, source, priority, submitted_at, created_at, key, unique_key, unique_while, policy, payload)
    -- The others still have theirs.
    SELECT id, source, priority, submitted_at, created_at, key, unique_key, unique_while, policy, payload FROM past WHERE payload IS NOT NULL)
  INSERT INTO live (id, class, state, order_key, seq, run_at, deadline, idempotent, unique_while, since, executions, round_base)
  SELECT p.id, p.class, 'scheduled', order_key(q.ordering, p.priority, p.submitted_at, q.last_key),
    CASE WHEN q.ordering = 'lifo' THEN -p.id ELSE p.id END, p_now,
    -- A deadline that has passed is removed. Otherwise the task would end again at once.
    CASE WHEN p.deadline > p_now THEN p.deadline END, p.idempotent, p.unique_while, p_now, p.executions, p.executions
  FROM past p JOIN classes c ON c.id = p.class JOIN queues q ON q.id = c.queue;
END $$;

-- Puts a waiting task into its lane. The caller activates the lane.
CREATE FUNCTION make_ready(p_id bigint, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE live l SET state = 'ready', since = p_now,
    lane = lane_of(l.class, b.source, track_now(l, b.source)),
    -- A task without a lane may have the key of an earlier order of its queue.
    order_key = CASE WHEN q.ordering = 'weighted_random' OR l.lane IS NULL
      THEN order_key(q.ordering, b.priority, b.submitted_at, q.last_key, l.ran_at) ELSE l.order_key END,
    seq = CASE WHEN l.lane IS NOT NULL THEN l.seq WHEN q.ordering = 'lifo' THEN -l.id ELSE l.id END
  FROM bodies b, classes c, queues q WHERE l.id = p_id AND b.id = l.id AND c.id = l.class AND q.id = c.queue;
END $$;

CREATE FUNCTION move_task(p_id bigint, p_move json, p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  verb text := p_move ->> 'verb';
  task record;
  from_ text;
  to_ text;
  scope text;
  due bigint;
  occupant bigint;
BEGIN
  SELECT l.state, l.unique_while, l.run_at, l.cancel, l.executions INTO task FROM live l WHERE l.id = p_id FOR UPDATE;
  IF NOT FOUND THEN
    SELECT e.state, e.unique_while, e.run_at, false AS cancel, e.executions INTO task FROM ended e WHERE e.id = p_id FOR UPDATE;
  END IF;
  IF NOT FOUND THEN
    SELECT s.state, s.unique_while, s.run_at, false AS cancel, s.executions INTO task FROM succeeded s WHERE s.id = p_id FOR UPDATE;
  END IF;
  IF NOT FOUND THEN RETURN json_build_object('id', p_id, 'moved', false, 'why', 'missing'); END IF;
  from_ := task.state;
  scope := task.unique_while;
  due := task.run_at;
  IF from_ <> ALL(ARRAY(SELECT json_array_elements_text(p_move -> 'from'))) AND p_move -> 'from' IS NOT NULL THEN
    RETURN json_build_object('id', p_id, 'moved', false, 'from', from_, 'why', 'conflict');
  END IF;
  IF task.executions <> (p_move ->> 'executions')::bigint THEN
    RETURN json_build_object('id', p_id, 'moved', false, 'from', from_, 'why', 'conflict');
  END IF;
  IF from_ = 'running' THEN
    IF verb <> 'cancel' THEN RETURN json_build_object('id', p_id, 'moved', false, 'from', from_, 'why', 'conflict'); END IF;
    IF NOT task.cancel THEN
      UPDATE live SET cancel = true, revision = revision + 1 WHERE id = p_id;
      INSERT INTO acts (task, at, actor, verb, note, from_state, to_state)
        VALUES (p_id, p_now, p_move ->> 'actor', verb, p_move ->> 'note', from_, from_);
    END IF;
    RETURN json_build_object('id', p_id, 'moved', false, 'from', from_, 'why', 'requested');
  END IF;
  to_ := action_leads(verb, from_, due <= p_now, p_move ->> 'as');
  IF to_ IS NULL THEN RETURN json_build_object('id', p_id, 'moved', false, 'from', from_, 'why', 'conflict'); END IF;
  PERFORM must_be_legal(from_, to_);

  IF from_ IN ('succeeded', 'dead', 'cancelled', 'needs_manual') AND to_ = 'ready' THEN
    PERFORM begin_again(p_id, from_, p_now);
    IF scope IS NOT NULL THEN
      occupant := take_unique(p_id, 500, p_now);
      IF occupant IS NOT NULL THEN RAISE EXCEPTION 'occupied' USING ERRCODE = 'HF002', DETAIL = occupant::text; END IF;
    END IF;
    PERFORM make_ready(p_id, p_now);
  ELSIF to_ = 'ready' THEN
    IF verb = 'retry' THEN
      UPDATE live SET run_at = p_now, key_from = CASE WHEN p_move ->> 'newKey' = 'true' THEN executions ELSE key_from END WHERE id = p_id;
    END IF;
    PERFORM make_ready(p_id, p_now);
  ELSIF to_ IN ('scheduled', 'held') THEN
    UPDATE live SET state = to_, since = p_now WHERE id = p_id;
  ELSE
    PERFORM free_unique(ARRAY[p_id], p_now);
    IF from_ = 'needs_manual' THEN
      UPDATE ended SET state = to_, since = p_now, result = p_move ->> 'result',
        reason = CASE WHEN to_ = 'cancelled' THEN 'cancelled' ELSE reason END WHERE id = p_id;
      IF to_ = 'succeeded' THEN
        WITH gone AS (DELETE FROM ended WHERE id = p_id RETURNING *) INSERT INTO succeeded SELECT * FROM gone;
      END IF;
    ELSE
      PERFORM end_task(p_id, to_, 'cancelled', NULL, p_now);
    END IF;
  END IF;
  INSERT INTO acts (task, at, actor, verb, note, from_state, to_state)
    VALUES (p_id, p_now, p_move ->> 'actor', verb, p_move ->> 'note', from_, to_);
  RETURN json_build_object('id', p_id, 'moved', true, 'from', from_, 'to', to_);
EXCEPTION WHEN SQLSTATE 'HF002' THEN
  GET STACKED DIAGNOSTICS from_ = PG_EXCEPTION_DETAIL;
  RETURN json_build_object('id', p_id, 'moved', false, 'from', task.state, 'why', 'conflict', 'occupiedBy', from_::bigint);
END $$;

CREATE FUNCTION move_tasks(p_call uuid, p_ids bigint[], p_move json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  done json;
  moved json[] := '{}';
  id_ bigint;
  left_lanes bigint[];
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  -- All are locked in one order, so that two of these calls cannot wait for each other.
  PERFORM pg_advisory_xact_lock(lane_lock() + 3, bucket) FROM (
    SELECT DISTINCT (id % 64)::integer AS bucket FROM unnest(p_ids) id ORDER BY 1) buckets;
  IF p_move ->> 'verb' IN ('retry', 'redrive', 'release', 'resolve') THEN
    -- The orders of the queues cannot change until this is committed.
    PERFORM pg_advisory_xact_lock_shared(lane_lock() + 2, queue) FROM (
      SELECT DISTINCT c.queue FROM classes c JOIN (SELECT class FROM ended WHERE id = ANY(p_ids)
        UNION ALL SELECT class FROM succeeded WHERE id = ANY(p_ids)
        UNION ALL SELECT class FROM live WHERE id = ANY(p_ids) AND lane IS NULL) t ON t.class = c.id ORDER BY 1) queues;
  END IF;
  PERFORM 1 FROM live WHERE id = ANY(p_ids) ORDER BY id FOR UPDATE;
  PERFORM 1 FROM ended WHERE id = ANY(p_ids) ORDER BY id FOR UPDATE;
  left_lanes := ARRAY(SELECT DISTINCT lane FROM live WHERE id = ANY(p_ids) AND state IS NOT DISTINCT FROM 'ready');
  FOREACH id_ IN ARRAY p_ids LOOP
    moved := moved || move_task(id_, p_move, now_);
  END LOOP;
  -- Lanes are locked last, all at once: a transaction that has locked a lane waits for no task.
  PERFORM wake_lanes(array_agg(lane), array_agg(order_key), array_agg(seq)) FROM (
    SELECT DISTINCT ON (lane) lane, order_key, seq FROM live WHERE id = ANY(p_ids) AND state IS NOT DISTINCT FROM 'ready'
    ORDER BY lane, order_key, seq) entered;
  -- Otherwise claims would read the empty lanes before the others.
  PERFORM rest_lanes(left_lanes, now_);
  done := array_to_json(moved);
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done);
  RETURN done;
END $$;

-- Changes the payload of a task that waits or is held, if it still is `p_before`. Its next execution has a new idempotency key.
-- Returns whether it did.
CREATE FUNCTION amend_task(p_call uuid, p_id bigint, p_before text, p_after text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  done json;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  PERFORM 1 FROM live WHERE id = p_id AND state <> 'running' FOR UPDATE;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  UPDATE bodies SET payload = p_after WHERE id = p_id AND payload = p_before;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  UPDATE live SET key_from = executions WHERE id = p_id;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_ms(), 'true');
  RETURN 'true';
END $$;

-- Records a stray error of a handler in the history of its task. It changes no state, so workers need no message.
CREATE FUNCTION record_stray(p_call uuid, p_task bigint, p_worker text, p_verb text, p_note text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN; END IF;
  INSERT INTO acts (task, at, actor, verb, note, told, from_state, to_state)
    SELECT id, now_ms(), p_worker, p_verb, p_note, true, 'running', 'elsewhere' FROM holdfast_tasks WHERE id = p_task;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_ms(), 'null');
END $$;
