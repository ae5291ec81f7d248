-- Holding and releasing sources, which touches their lanes and never their tasks; pausing and setting up queues.

-- Gives lanes the rank of their first tasks, and wakes those that have any.
CREATE FUNCTION rank_lanes(p_lanes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM lanes WHERE id = ANY(p_lanes) ORDER BY id FOR NO KEY UPDATE;
  UPDATE lanes l SET active = h.order_key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source),
    rank = CASE WHEN q.fair THEN l.rank ELSE coalesce(h.order_key, l.rank) END,
    rank_seq = CASE WHEN q.fair THEN l.id ELSE coalesce(h.seq, 0) END, low_key = coalesce(h.order_key, '-infinity')
  FROM unnest(p_lanes) g(id) LEFT JOIN LATERAL (
    SELECT t.order_key, t.seq FROM live t WHERE t.lane = g.id AND t.state = 'ready' ORDER BY t.order_key, t.seq LIMIT 1) h
      ON true,
    classes c, queues q
  WHERE l.id = g.id AND c.id = l.class AND q.id = c.queue;
  PERFORM begin_lanes(ARRAY(SELECT id FROM lanes WHERE id = ANY(p_lanes) AND active ORDER BY id));
END $$;

CREATE FUNCTION hold_source(p_source text, p_actor text, p_note text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO sources (name, shut_at, actor, note) VALUES (p_source, now_ms(), p_actor, p_note) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM 1 FROM lanes WHERE source = p_source ORDER BY id FOR NO KEY UPDATE;
  UPDATE lanes SET active = false WHERE source = p_source AND active;
END $$;

CREATE FUNCTION release_source(p_source text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM sources WHERE name = p_source;
  IF FOUND THEN PERFORM rank_lanes(array_agg(id)) FROM lanes WHERE source = p_source; END IF;
END $$;

CREATE FUNCTION pause_queue(p_queue text, p_actor text, p_note text) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  INSERT INTO queues (name) VALUES (p_queue) ON CONFLICT DO NOTHING;
  UPDATE queues SET paused_at = now_ms(), actor = p_actor, note = p_note WHERE name = p_queue AND paused_at IS NULL
$$;

CREATE FUNCTION resume_queue(p_queue text) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  UPDATE queues SET paused_at = NULL, actor = NULL, note = NULL WHERE name = p_queue
$$;

-- Puts the waiting tasks of a queue into its new order, and its lanes into their line.
CREATE FUNCTION set_up_queue(p_queue text, p_order text, p_fair boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  before queues;
  lanes_ bigint[];
BEGIN
  INSERT INTO queues (name) VALUES (p_queue) ON CONFLICT DO NOTHING;
  -- Nobody enqueues with the order before, and what was enqueued with it is seen.
  PERFORM pg_advisory_xact_lock(lane_lock() + 2, id) FROM queues WHERE name = p_queue;
  SELECT * INTO before FROM queues WHERE name = p_queue FOR NO KEY UPDATE;
  IF before.ordering = coalesce(p_order, before.ordering) AND before.fair = coalesce(p_fair, before.fair) THEN RETURN; END IF;
  UPDATE queues SET ordering = coalesce(p_order, before.ordering), fair = coalesce(p_fair, before.fair) WHERE id = before.id;
  IF p_order <> before.ordering THEN
    WITH theirs AS MATERIALIZED (
      SELECT id FROM live WHERE class IN (SELECT id FROM classes WHERE queue = before.id) ORDER BY id FOR UPDATE)
    UPDATE live l SET order_key = order_key(p_order, b.priority, b.submitted_at, before.last_key, l.ran_at),
      seq = CASE WHEN p_order = 'lifo' THEN -l.id ELSE l.id END
    FROM theirs t JOIN bodies b ON b.id = t.id WHERE l.id = t.id;
  END IF;
  SELECT array_agg(l.id ORDER BY l.rank, l.rank_seq) INTO lanes_ FROM lanes l WHERE l.class IN (SELECT id FROM classes
    WHERE queue = before.id);
  PERFORM 1 FROM lanes WHERE id = ANY(lanes_) ORDER BY id FOR NO KEY UPDATE;
  -- Who stands first gets the first turn; who has nothing there gets one when it does.
  UPDATE lanes SET has_turn = false WHERE id = ANY(lanes_) AND has_turn;
  PERFORM begin_lanes(ARRAY(SELECT o.id FROM unnest(lanes_) WITH ORDINALITY o(id, n) JOIN lanes l ON l.id = o.id
    WHERE l.active AND EXISTS (SELECT 1 FROM live t WHERE t.lane = l.id AND t.state = 'ready') ORDER BY o.n));
  PERFORM rank_lanes(lanes_);
END $$;
