-- Holding and releasing sources, which changes their lanes and never their tasks; pausing and configuring queues. Each call has
-- its effect once, so that a hold whose answer was lost does not take effect again after a release.

-- Whether this call comes for the first time. If the same call is running, this waits for its end.
CREATE FUNCTION is_first(p_call uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_ms(), 'null') ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;

-- Holds a source: claims skip its lanes. With `p_for` the hold ends by itself; of a source that is held only this is changed.
CREATE FUNCTION hold_source(p_call uuid, p_source text, p_actor text, p_note text, p_for bigint DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT is_first(p_call) THEN RETURN; END IF;
  PERFORM record_action('source', p_source, 'hold', json_strip_nulls(json_build_object('actor', p_actor, 'note', p_note)),
    jsonb_strip_nulls(jsonb_build_object('heldForMs', p_for)));
  INSERT INTO sources (name, shut_at, actor, note, until) VALUES (p_source, now_ms(), p_actor, p_note, now_ms() + p_for)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    -- One whose time is over is another one.
    UPDATE sources SET shut_at = now_ms(), actor = p_actor, note = p_note WHERE name = p_source AND until <= now_ms();
    UPDATE sources SET until = now_ms() + p_for WHERE name = p_source;
    RETURN;
  END IF;
  PERFORM 1 FROM lanes WHERE source = p_source ORDER BY id FOR NO KEY UPDATE;
  UPDATE lanes SET active = false WHERE source = p_source AND active;
END $$;

-- Opens a source: all of its lanes are active, for a task may be about to come into any of them. Those that are empty are put to
-- rest by the next claim, which gives the others their ranks.
CREATE FUNCTION release_source(p_call uuid, p_source text, p_by json DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT is_first(p_call) THEN RETURN; END IF;
  DELETE FROM sources WHERE name = p_source;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM record_action('source', p_source, 'release', p_by);
  PERFORM wake_all(ARRAY(SELECT id FROM lanes WHERE source = p_source));
END $$;

-- Activates lanes, even if they are empty, with ranks that are certainly not too high.
CREATE FUNCTION wake_all(p_lanes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM lanes WHERE id = ANY(p_lanes) ORDER BY id FOR NO KEY UPDATE;
  UPDATE lanes l SET active = NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source) AND NOT is_closed(l.source, l.track), low_key = '-infinity',
    rank = CASE WHEN q.fair THEN coalesce((SELECT t.turn::double precision FROM turns t WHERE t.queue = q.id AND t.source = l.source), 0)
      ELSE '-infinity' END, rank_seq = 0
  FROM classes c, queues q WHERE l.id = ANY(p_lanes) AND c.id = l.class AND q.id = c.queue;
  PERFORM lower_floors(p_lanes);
END $$;

-- Makes a queue if it is missing. Fails, to be called again, if an open transaction is making the same queue.
CREATE FUNCTION make_queue(p_queue text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  before text := set_patience(500);
BEGIN
  INSERT INTO queues (name) VALUES (p_queue) ON CONFLICT DO NOTHING;
  PERFORM set_config('lock_timeout', before, true);
END $$;

CREATE FUNCTION pause_queue(p_call uuid, p_queue text, p_actor text, p_note text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT is_first(p_call) THEN RETURN; END IF;
  PERFORM make_queue(p_queue);
  UPDATE queues SET paused_at = now_ms(), actor = p_actor, note = p_note WHERE name = p_queue AND paused_at IS NULL;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM record_action('queue', p_queue, 'pause', json_strip_nulls(json_build_object('actor', p_actor, 'note', p_note)));
END $$;

CREATE FUNCTION resume_queue(p_call uuid, p_queue text, p_by json DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT is_first(p_call) THEN RETURN; END IF;
  UPDATE queues SET paused_at = NULL, actor = NULL, note = NULL WHERE name = p_queue AND paused_at IS NOT NULL;
  IF FOUND THEN PERFORM record_action('queue', p_queue, 'resume', p_by); END IF;
END $$;

-- Sets the limits of a queue: `pace` and `concurrency`, where they are named; null is none.
CREATE FUNCTION limit_queue(p_queue integer, p_limits jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_limits ? 'pace' THEN
    -- Another pace counts from now on: what a slow one of before held back may start.
    UPDATE queues SET per_second = (p_limits #>> '{pace,perSecond}')::double precision,
      burst = (p_limits #>> '{pace,burst}')::double precision, next_start = NULL
      WHERE id = p_queue AND (per_second, burst) IS DISTINCT FROM
        ((p_limits #>> '{pace,perSecond}')::double precision, (p_limits #>> '{pace,burst}')::double precision);
  END IF;
  IF p_limits ? 'concurrency' THEN
    UPDATE queues SET concurrency = (p_limits ->> 'concurrency')::integer WHERE id = p_queue;
    -- After this lock no claim is running, and later claims see the limit. Tasks that started before are counted from now on.
    PERFORM pg_advisory_xact_lock(lane_lock() + 4, p_queue);
    UPDATE live SET counted_queue = p_queue WHERE id IN (
      SELECT l.id FROM live l WHERE l.id IN (SELECT id FROM running_of_queue(p_queue) id) FOR UPDATE SKIP LOCKED);
  END IF;
END $$;

CREATE FUNCTION running_of_queue(p_queue integer) RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY SELECT l.id FROM live l JOIN classes c ON c.id = l.class
    WHERE l.state = 'running' AND l.worker IS NOT NULL AND l.why IS DISTINCT FROM 'expiry' AND c.queue = p_queue;
END $$;

-- Gives a queue an order. Returns whether tasks wait in another one: then `reorder` is to be called until none is left.
CREATE FUNCTION order_queue(p_call uuid, p_queue text, p_order text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF is_first(p_call) THEN
    PERFORM make_queue(p_queue);
    IF EXISTS (SELECT 1 FROM queues WHERE name = p_queue AND ordering <> p_order) THEN
      -- No task is given a key of the order before from here on, and those that have one are seen.
      PERFORM pg_advisory_xact_lock(lane_lock() + 7, 0);
      PERFORM pg_advisory_xact_lock(lane_lock() + 2, id) FROM queues WHERE name = p_queue;
      UPDATE queues SET ordering = p_order, reorder_below = (SELECT max(id) + 1 FROM live) WHERE name = p_queue;
    END IF;
  END IF;
  RETURN EXISTS (SELECT 1 FROM queues WHERE name = p_queue AND reorder_below IS NOT NULL);
END $$;

-- Puts some tasks of a queue whose order was changed into this order, the newest first. Returns whether any may be left, of any queue.
CREATE FUNCTION reorder(p_most integer DEFAULT 1000) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  queue_ queues;
  lowest bigint;
  ids bigint[];
BEGIN
  IF NOT EXISTS (SELECT 1 FROM queues WHERE reorder_below IS NOT NULL) THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock(lane_lock() + 7, 0);
  SELECT * INTO queue_ FROM queues WHERE reorder_below IS NOT NULL ORDER BY id LIMIT 1;
  IF NOT FOUND THEN RETURN false; END IF;
  SELECT min(t.id), array_agg(t.id) FILTER (WHERE c.queue = queue_.id) INTO lowest, ids FROM (
    SELECT id, class FROM live WHERE id < queue_.reorder_below ORDER BY id DESC LIMIT p_most) t JOIN classes c ON c.id = t.class;
  PERFORM 1 FROM live WHERE id = ANY(ids) ORDER BY id FOR UPDATE;
  UPDATE live l SET order_key = order_key(queue_.ordering, b.priority, b.submitted_at, queue_.last_key, l.ran_at),
    seq = CASE WHEN queue_.ordering = 'lifo' THEN -l.id ELSE l.id END
  FROM bodies b WHERE l.id = ANY(ids) AND b.id = l.id;
  PERFORM wake_lanes(array_agg(lane), array_agg(order_key), array_agg(seq)) FROM (
    SELECT DISTINCT ON (lane) lane, order_key, seq FROM live WHERE id = ANY(ids) AND state IS NOT DISTINCT FROM 'ready'
    ORDER BY lane, order_key, seq) ready;
  UPDATE queues SET reorder_below = lowest WHERE id = queue_.id;
  RETURN true;
END $$;

-- Makes a queue fair or not, and sets its limits.
CREATE FUNCTION set_up_queue(p_call uuid, p_queue text, p_fair boolean, p_limits jsonb DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  changes_turns boolean;
  before queues;
  lanes_ bigint[];
BEGIN
  IF NOT is_first(p_call) THEN RETURN; END IF;
  PERFORM make_queue(p_queue);
  changes_turns := EXISTS (SELECT 1 FROM queues WHERE name = p_queue AND fair <> p_fair);
  IF changes_turns THEN
    -- The same locks in the same order as `order_queue` and `reorder`.
    PERFORM pg_advisory_xact_lock(lane_lock() + 7, 0);
    -- What becomes due is left to a claim that sees whether the queue is fair.
    PERFORM pg_advisory_xact_lock(lane_lock() + 2, id) FROM queues WHERE name = p_queue;
  END IF;
  SELECT * INTO before FROM queues WHERE name = p_queue FOR NO KEY UPDATE;
  IF changes_turns THEN
    UPDATE queues SET fair = p_fair WHERE id = before.id;
    lanes_ := ARRAY(SELECT l.id FROM lanes l WHERE l.class IN (SELECT id FROM classes WHERE queue = before.id) ORDER BY l.id);
    -- Before the queue's lock, for whoever waits for that may have lanes locked.
    PERFORM 1 FROM lanes WHERE id = ANY(lanes_) ORDER BY id FOR NO KEY UPDATE;
    -- No claim picks from here on until this is committed.
    PERFORM pg_advisory_xact_lock(lane_lock() + 4, before.id);
    -- Whose first task is first gets the first turn.
    DELETE FROM turns WHERE queue = before.id;
    PERFORM begin_turns(ARRAY(SELECT g.id FROM unnest(lanes_) g(id) CROSS JOIN LATERAL (
      SELECT t.order_key, t.seq FROM live t WHERE t.lane = g.id AND t.state = 'ready' ORDER BY t.order_key, t.seq LIMIT 1) first
      WHERE EXISTS (SELECT 1 FROM lanes l WHERE l.id = g.id AND l.active) ORDER BY first.order_key, first.seq));
    PERFORM wake_all(lanes_);
  END IF;
  PERFORM limit_queue(before.id, p_limits);
END $$;
