-- The order of tasks in a queue, and the lanes in which they wait: how lanes are made, activated, ranked and deactivated.

-- The order key of a task in its queue; the smallest is claimed first. A task that has run comes after all tasks that were
-- submitted before its last start, so that no task runs twice before a ready task that has not run; in a lifo queue it comes
-- after all tasks that have not run. Weighted: an exponentially distributed step from the last claimed key, so that a task comes
-- first with a probability in proportion to its weight.
CREATE FUNCTION order_key(ordering text, priority integer, submitted_at bigint, last_key double precision, ran_at bigint DEFAULT NULL)
RETURNS double precision LANGUAGE sql VOLATILE AS $$
  SELECT CASE ordering
    WHEN 'fifo' THEN greatest(submitted_at::double precision, ran_at + 0.5::double precision)
    WHEN 'lifo' THEN coalesce(ran_at, -submitted_at)::double precision
    WHEN 'priority' THEN -priority * 1099511627776::double precision
      + least(greatest(submitted_at - 1577836800000, ran_at + 0.5::double precision - 1577836800000, 0), 1099511627775)
    WHEN 'weighted_random' THEN last_key - ln(1 - random()) / greatest(1, priority)
  END $$;

-- How many times in a row a task was lost. An earlier version stored only whether it was.
CREATE FUNCTION lost_of(l live) RETURNS integer LANGUAGE sql AS $$
  SELECT CASE WHEN l.suspect THEN greatest(l.lost_in_a_row, 1) ELSE 0 END
$$;

-- The track of a task, which says the kind of lane that it waits in: 0 most tasks, 1 retries that need a token, 2 suspects that
-- may run beside others, 3 suspects that must run alone, 4 tasks that became ready for their first execution while their source
-- ramped.
CREATE FUNCTION track_of(lost integer, needs_token boolean) RETURNS integer LANGUAGE sql AS $$
  SELECT CASE WHEN lost = 1 THEN 2 WHEN lost > 1 THEN 3 WHEN needs_token THEN 1 ELSE 0 END
$$;

-- The track of new work of a source: 4 while it ramps, otherwise 0.
CREATE FUNCTION new_track_of(p_source text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN CASE WHEN EXISTS (SELECT 1 FROM source_states WHERE name = p_source AND is_ramping) THEN 4 ELSE 0 END;
END $$;

-- The track of a task that becomes ready now.
CREATE FUNCTION track_now(l live, p_source text) RETURNS integer LANGUAGE sql AS $$
  SELECT CASE WHEN l.suspect OR l.needs_token OR l.ran_at IS NOT NULL THEN track_of(lost_of(l), l.needs_token) ELSE new_track_of(p_source) END
$$;

-- The lane of a class, source and track. It is made if it is missing.
CREATE FUNCTION lane_of(p_class integer, p_source text, p_track integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  found_id bigint;
BEGIN
  SELECT id INTO found_id FROM lanes WHERE source = p_source AND class = p_class AND track = p_track;
  IF found_id IS NOT NULL THEN RETURN found_id; END IF;
  INSERT INTO lanes (class, source, track) VALUES (p_class, p_source, p_track)
    ON CONFLICT DO NOTHING;
  SELECT id INTO found_id FROM lanes WHERE source = p_source AND class = p_class AND track = p_track;
  RETURN found_id;
END $$;

-- In a fair queue, a source with its first ready task gets the last turn.
CREATE FUNCTION begin_turns(p_lanes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  fresh text[];
  queues_ integer[];
BEGIN
  SELECT array_agg(source ORDER BY n), array_agg(queue ORDER BY n) INTO fresh, queues_ FROM (
    SELECT c.queue, l.source, min(g.n) AS n FROM unnest(p_lanes) WITH ORDINALITY g(id, n) JOIN lanes l ON l.id = g.id
      JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue
    WHERE q.fair AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.queue = c.queue AND t.source = l.source)
    GROUP BY 1, 2) x;
  IF fresh IS NULL THEN RETURN; END IF;
  -- While this is locked, no claim adds a turn. Otherwise the claim could wait for this transaction.
  PERFORM pg_advisory_xact_lock_shared(lane_lock() + 5, queue) FROM (SELECT DISTINCT queue FROM unnest(queues_) queue ORDER BY 1) q;
  INSERT INTO turns (queue, source, turn) SELECT queue, source, nextval('turn') FROM unnest(queues_, fresh) x(queue, source)
  ON CONFLICT DO NOTHING;
END $$;

-- Whether a source has a turn in the queue of this class, or needs none because the queue is not fair.
CREATE FUNCTION has_turn(p_class integer, p_source text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM classes c JOIN queues q ON q.id = c.queue WHERE c.id = p_class AND q.fair
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.queue = q.id AND t.source = p_source));
END $$;

-- Activates lanes into which ready tasks were put, with the least key and seq of the new tasks of each. Until this transaction
-- ends, it prevents two things, because others cannot see its tasks: the shared locks of buckets prevent claims from deactivating
-- these lanes, and the locks of the lanes' rows prevent claims from raising their ranks. Earlier changes by claims are visible
-- here. Enqueues do not wait for each other. Returns whether workers may be idle: a lane was inactive, or may have been kept
-- active although it was empty.
CREATE FUNCTION wake_lanes(p_lanes bigint[], p_keys double precision[], p_seqs bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  changing bigint[];
  held bigint[];
  may_be_idle boolean;
  has_low_keys boolean;
BEGIN
  IF cardinality(p_lanes) IS NULL OR cardinality(p_lanes) = 0 THEN RETURN false; END IF;
  PERFORM pg_advisory_xact_lock_shared(lane_lock(), bucket)
    FROM (SELECT DISTINCT (l % 64)::integer AS bucket FROM unnest(p_lanes) l ORDER BY 1) buckets;
  PERFORM 1 FROM lanes WHERE id = ANY(p_lanes) ORDER BY id FOR KEY SHARE;
  SELECT array_agg(l.id ORDER BY l.id) FILTER (WHERE is_changing), bool_or(CASE WHEN l.active THEN l.rank > kept_active_since(now_ms()) ELSE is_changing END),
    EXISTS (SELECT 1 FROM low_keys)
  INTO changing, may_be_idle, has_low_keys
  FROM unnest(p_lanes, p_keys, p_seqs) g(id, key, seq) JOIN lanes l ON l.id = g.id CROSS JOIN LATERAL (SELECT
    -- Opening a source activates all of its lanes that it can see. It cannot see a lane that is not committed yet. So a lane that
    -- was never active is activated here even if its source is closed, and a claim deactivates it.
    NOT (NOT l.active AND l.was_active AND EXISTS (SELECT 1 FROM source_states) AND is_closed(l.source, l.track) AND has_turn(l.class, l.source))
    AND (NOT l.active OR g.key < l.low_key OR (g.key, g.seq) < (l.rank, l.rank_seq) AND NOT EXISTS (
      SELECT 1 FROM classes c JOIN queues q ON q.id = c.queue WHERE c.id = l.class AND q.fair)
    -- `wake_all` also activates lanes that never had a ready task. Their sources have no turn yet.
    OR l.low_key = '-infinity' AND NOT has_turn(l.class, l.source)) AS is_changing) x;
  IF has_low_keys THEN PERFORM lower_low_keys(p_lanes, p_keys); END IF;
  IF changing IS NULL THEN RETURN may_be_idle; END IF;
  -- A release cannot see lanes that are not committed. With this lock, either it waits until these lanes are committed, or this
  -- waits for the release.
  held := ARRAY(SELECT l.id FROM (SELECT id, source FROM lanes WHERE id = ANY(changing) ORDER BY source) l
    CROSS JOIN LATERAL (SELECT 1 FROM sources s WHERE s.name = l.source FOR KEY SHARE) s);
  PERFORM 1 FROM lanes WHERE id = ANY(changing) ORDER BY id FOR NO KEY UPDATE;
  PERFORM begin_turns(changing);
  UPDATE lanes l SET
    -- Decided by the rows locked above, not by the holds of now: a hold that was committed meanwhile may be released before these
    -- lanes are visible.
    active = l.active OR l.id <> ALL(held),
    was_active = true,
    low_key = CASE WHEN l.active THEN least(l.low_key, g.key) ELSE g.key END,
    rank = CASE WHEN q.fair THEN coalesce(t.turn, l.rank) WHEN l.active AND is_before THEN l.rank ELSE g.key END,
    rank_seq = CASE WHEN q.fair THEN l.id WHEN l.active AND is_before THEN l.rank_seq ELSE g.seq END
  FROM unnest(p_lanes, p_keys, p_seqs) g(id, key, seq) JOIN lanes o ON o.id = g.id JOIN classes c ON c.id = o.class
    JOIN queues q ON q.id = c.queue LEFT JOIN turns t ON q.fair AND t.queue = q.id AND t.source = o.source
    CROSS JOIN LATERAL (SELECT (o.rank, o.rank_seq) < (g.key, g.seq) AS is_before) x
  WHERE l.id = g.id AND g.id = ANY(changing);
  IF EXISTS (SELECT 1 FROM floors) THEN PERFORM lower_floors(changing); END IF;
  RETURN may_be_idle;
END $$;

-- The same for one lane, with few statements in the usual case: it is active and need not be changed. The same locks are taken, in the
-- same order.
CREATE FUNCTION wake_lane(p_lane bigint, p_key double precision, p_seq bigint, p_now bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  is_usual boolean;
  may_be_idle boolean;
BEGIN
  IF NOT pg_try_advisory_xact_lock_shared(lane_lock(), (p_lane % 64)::integer) THEN
    PERFORM pg_advisory_xact_lock_shared(lane_lock(), (p_lane % 64)::integer);
  END IF;
  -- A lane with a low key has a turn if its queue is fair.
  SELECT active AND low_key > '-infinity' AND p_key >= low_key AND (p_key, p_seq) >= (rank, rank_seq) AND NOT EXISTS (SELECT 1 FROM low_keys),
    rank > kept_active_since(p_now)
  INTO is_usual, may_be_idle FROM lanes WHERE id = p_lane FOR KEY SHARE;
  IF is_usual THEN RETURN may_be_idle; END IF;
  RETURN wake_lanes(ARRAY[p_lane], ARRAY[p_key], ARRAY[p_seq]);
END $$;

-- A lane of a fifo queue that was activated after this time stays active although it is empty. A source with steady work would
-- otherwise have its lane deactivated and activated again at each claim, and beside an old snapshot, each change leaves one more
-- dead row that all claims and enqueues read. (In other orders a rank is no time, and an empty lane is deactivated at once.)
CREATE FUNCTION kept_active_since(p_now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT p_now - 10000
$$;

-- The rank of a lane whose next task has this key and seq.
CREATE FUNCTION rank_of(p_queue claimable, p_lane bigint, p_key double precision, p_seq bigint, p_now bigint)
RETURNS TABLE (rank double precision, rank_seq bigint) LANGUAGE sql STABLE AS $$
  -- In a fifo queue no rank is raised into the last second. So few ranks change if tasks are claimed soon after they were
  -- enqueued.
  SELECT CASE WHEN (p_queue).fair THEN (SELECT t.turn FROM lanes l JOIN turns t ON t.queue = (p_queue).queue
      AND t.source = l.source WHERE l.id = p_lane) WHEN (p_queue).ordering = 'fifo' THEN least(p_key, p_now - 1000) ELSE p_key END,
    CASE WHEN (p_queue).fair THEN p_lane WHEN (p_queue).ordering = 'fifo' AND p_key > p_now - 1000 THEN 0 ELSE p_seq END
$$;

-- Raises the ranks of lanes to the first task after those that a claim took; the claim took all that it found. A rank is only
-- raised if there are more lanes than a claim reads, because each change of a rank leaves a dead entry at the start of an index.
-- If the claim read many dead entries, this also raises the low keys. A lane into which an open transaction put a task stays as it is.
CREATE FUNCTION rank_lanes(p_queue claimable, p_found picked, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  own bigint[];
  keys_ double precision[];
  seqs bigint[];
BEGIN
  own := ARRAY(SELECT l.id FROM unnest(p_found.lanes_left, p_found.next_keys, p_found.next_seqs) g(id, key, seq)
    CROSS JOIN LATERAL rank_of(p_queue, g.id, g.key, g.seq, p_now) r JOIN lanes l ON l.id = g.id
    WHERE l.active AND (p_found.blocks IS NOT NULL OR (l.rank, l.rank_seq) < (r.rank, r.rank_seq)) FOR UPDATE OF l SKIP LOCKED);
  -- A task before this place may have been committed since the claim picked its tasks.
  SELECT array_agg(g.id), array_agg(coalesce(t.order_key, g.key)), array_agg(coalesce(t.seq, g.seq)) INTO own, keys_, seqs
  FROM unnest(p_found.lanes_left, p_found.next_keys, p_found.next_seqs) g(id, key, seq)
    LEFT JOIN low_keys low ON low.queue = p_queue.queue AND low.until > p_now
    LEFT JOIN LATERAL (
      SELECT t.order_key, t.seq FROM live t WHERE t.lane = g.id AND t.state = 'ready' AND (t.order_key, t.seq) < (g.key, g.seq)
        AND t.order_key >= low_key_in(low.lanes, low.keys, g.id)
      ORDER BY t.order_key, t.seq LIMIT 1) t ON true
  WHERE g.id = ANY(own);
  IF own IS NULL THEN RETURN; END IF;
  IF p_found.has_more THEN
    UPDATE lanes l SET rank = r.rank, rank_seq = r.rank_seq FROM unnest(own, keys_, seqs) p(id, key, seq)
      CROSS JOIN LATERAL rank_of(p_queue, p.id, p.key, p.seq, p_now) r
    WHERE l.id = p.id AND (l.rank, l.rank_seq) < (r.rank, r.rank_seq);
  END IF;
  IF p_found.blocks IS NOT NULL THEN PERFORM raise_low_keys(p_queue.queue, own, keys_, p_now); END IF;
END $$;

-- Whether no task of this track of a source may start at present, because of the source's state, limits or budget.
CREATE FUNCTION is_closed(p_source text, p_track integer) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM source_states WHERE name = p_source AND (closed_by IS NOT NULL OR p_track = 1 AND budget_opens_at IS NOT NULL));
END $$;

-- Deactivates those of these lanes that are empty or whose source may start nothing, and returns how many. A lane stays active if
-- it is locked, or if another transaction may be putting a task into it. Lanes in which many dead entries were read get a low key
-- above these, because they would be read again after the lane was activated.
CREATE FUNCTION rest_lanes(p_lanes bigint[], p_now bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  own bigint[];
  closed bigint[] := '{}';
  buckets integer[];
  blocks bigint;
BEGIN
  IF p_lanes IS NULL THEN RETURN 0; END IF;
  own := ARRAY(SELECT id FROM lanes WHERE id = ANY(p_lanes) AND active FOR NO KEY UPDATE SKIP LOCKED);
  IF own <> '{}' AND EXISTS (SELECT 1 FROM source_states) THEN
    -- They cannot be opened until this is committed.
    closed := ARRAY(SELECT l.id FROM lanes l CROSS JOIN LATERAL (SELECT 1 FROM source_states s WHERE s.name = l.source
        AND (s.closed_by IS NOT NULL OR l.track = 1 AND s.budget_opens_at IS NOT NULL) FOR KEY SHARE SKIP LOCKED) s
      WHERE l.id = ANY(own));
    UPDATE lanes SET active = false WHERE id = ANY(closed);
    own := ARRAY(SELECT id FROM unnest(own) id WHERE id <> ALL(closed));
  END IF;
  -- A transaction that puts a task into a lane has its bucket locked. Tasks that were put there before are visible after this
  -- statement.
  buckets := ARRAY(SELECT bucket FROM (SELECT DISTINCT (id % 64)::integer AS bucket FROM unnest(own) id OFFSET 0) b
    WHERE pg_try_advisory_xact_lock(lane_lock(), bucket));
  blocks := blocks_read('live', 'live_ready');
  own := ARRAY(SELECT o.lane FROM unnest(own) o(lane) WHERE (o.lane % 64)::integer = ANY(buckets)
    AND NOT EXISTS (SELECT 1 FROM live t WHERE t.lane = o.lane AND t.state = 'ready'));
  blocks := blocks_read('live', 'live_ready') - blocks;
  IF own = '{}' THEN RETURN cardinality(closed); END IF;
  IF blocks >= 50 * cardinality(own) THEN
    PERFORM raise_low_keys(c.queue, array_agg(l.id), array_agg('infinity'::double precision), p_now)
      FROM lanes l JOIN classes c ON c.id = l.class WHERE l.id = ANY(own) GROUP BY c.queue;
  END IF;
  UPDATE lanes SET active = false WHERE id = ANY(own);
  RETURN cardinality(own) + cardinality(closed);
END $$;

-- The key of the first ready task of a lane.
CREATE FUNCTION first_key(p_lane bigint) RETURNS double precision LANGUAGE sql STABLE AS $$
  SELECT order_key FROM live WHERE lane = p_lane AND state = 'ready' ORDER BY order_key, seq LIMIT 1
$$;

-- Since when the oldest ready task of each fifo queue waits that is in an active lane. The rank of an active lane is never above the key
-- of its first task, so of the lanes of a class and track only those up to the first with a task are read. In a fair queue the rank is a
-- turn: then each active lane is read.
CREATE FUNCTION oldest_ready() RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (WITH found (queue, since) AS (
    SELECT c.queue, least(f.since, (
      SELECT min(first_key(l.id)) FROM lanes l WHERE l.class = c.id AND l.track = k.track AND l.active AND l.rank < f.since))
    FROM queues q JOIN classes c ON c.queue = q.id CROSS JOIN generate_series(0, 4) k (track) CROSS JOIN LATERAL (
      SELECT i.since FROM (
        SELECT first_key(l.id) AS since FROM lanes l
        WHERE l.class = c.id AND l.track = k.track AND l.active ORDER BY l.rank, l.rank_seq OFFSET 0) i
      WHERE i.since IS NOT NULL LIMIT 1) f
    WHERE q.ordering = 'fifo' AND NOT q.fair
    UNION ALL
    SELECT q.id, first_key(l.id) FROM queues q JOIN classes c ON c.queue = q.id JOIN lanes l ON l.class = c.id AND l.active
    WHERE q.ordering = 'fifo' AND q.fair)
  SELECT json_agg(json_build_object('queue', s.name, 'since', s.since) ORDER BY s.name COLLATE "C")
  FROM (SELECT q.name, min(f.since) AS since FROM found f JOIN queues q ON q.id = f.queue WHERE f.since IS NOT NULL GROUP BY q.name) s);
END $$;

-- By type: how many tasks are ready in active lanes of these classes. At most so many of each class are counted.
CREATE FUNCTION ready_of(p_classes integer[], p_most integer) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT coalesce(json_agg(json_build_object('id', c, 'ready', (SELECT count(*) FROM (
    SELECT 1 FROM lanes l JOIN live t ON t.lane = l.id AND t.state = 'ready' WHERE l.class = c AND l.active LIMIT p_most) x))), '[]')
    FROM unnest(p_classes) c);
END $$;
