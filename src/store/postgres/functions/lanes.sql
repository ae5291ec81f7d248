-- The order of tasks in a queue, and the lanes that they wait in.

-- Where a task stands in its queue: the smaller, the sooner. One that has run stands behind what was submitted up to its last
-- start, so that nothing runs twice before a ready task that has not run; in a lifo queue behind all of those. Weighted:
-- exponential races from the last key claimed on, in which the one that comes first is drawn in proportion to its weight.
CREATE FUNCTION order_key(ordering text, priority integer, submitted_at bigint, last_key double precision, ran_at bigint DEFAULT NULL)
RETURNS double precision LANGUAGE sql VOLATILE AS $$
  SELECT CASE ordering
    WHEN 'fifo' THEN greatest(submitted_at::double precision, ran_at + 0.5::double precision)
    WHEN 'lifo' THEN coalesce(ran_at, -submitted_at)::double precision
    WHEN 'priority' THEN -priority * 1099511627776::double precision
      + least(greatest(submitted_at - 1577836800000, ran_at + 0.5::double precision - 1577836800000, 0), 1099511627775)
    ELSE last_key - ln(1 - random()) / greatest(1, priority)
  END $$;

-- How often a task was lost in a row; the version before this count only noted whether it was.
CREATE FUNCTION lost_of(l live) RETURNS integer LANGUAGE sql AS $$
  SELECT CASE WHEN l.suspect THEN greatest(l.lost_in_a_row, 1) ELSE 0 END
$$;

-- Which lanes a task waits in: 0 what was not lost, 2 suspects, 3 those that must run alone.
CREATE FUNCTION track_of(lost integer) RETURNS integer LANGUAGE sql AS $$
  SELECT CASE lost WHEN 0 THEN 0 WHEN 1 THEN 2 ELSE 3 END
$$;

-- Makes the lane of a class, source and track where it is missing.
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

-- Lanes that get tasks, for the first time maybe. In a fair queue a source that has no turn goes to the back of the line; all
-- of its lanes have the same one.
CREATE FUNCTION begin_lanes(p_lanes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  fresh bigint[];
BEGIN
  UPDATE lanes SET was_active = true WHERE id = ANY(p_lanes) AND NOT was_active;
  fresh := ARRAY(SELECT l.id FROM unnest(p_lanes) WITH ORDINALITY g(id, n) JOIN lanes l ON l.id = g.id
    JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue WHERE q.fair AND NOT l.has_turn ORDER BY g.n);
  IF fresh = '{}' THEN RETURN; END IF;
  UPDATE lanes l SET has_turn = true, rank = x.turn, rank_seq = l.id FROM (
    SELECT first.id, nextval('turn') AS turn FROM (
      SELECT DISTINCT ON (c.queue, f.source) f.id, g.n
      FROM unnest(fresh) WITH ORDINALITY g(id, n) JOIN lanes f ON f.id = g.id JOIN classes c ON c.id = f.class
      WHERE NOT EXISTS (SELECT 1 FROM lanes s JOIN classes o ON o.id = s.class
        WHERE s.source = f.source AND o.queue = c.queue AND s.has_turn)
      ORDER BY c.queue, f.source, g.n) first
    ORDER BY first.n) x
  WHERE l.id = x.id AND NOT l.has_turn;
  UPDATE lanes l SET has_turn = true, rank_seq = l.id, rank = (SELECT max(s.rank) FROM lanes s JOIN classes o ON o.id = s.class
    WHERE s.source = l.source AND o.queue = c.queue AND s.has_turn)
  FROM classes c WHERE l.id = ANY(fresh) AND NOT l.has_turn AND c.id = l.class;
END $$;

-- Called when ready tasks were put into lanes, with the least key and seq of those of each. While the buckets of lanes are
-- locked shared, no claim can find one of these lanes empty and put it to rest; one that did so before is seen here.
CREATE FUNCTION wake_lanes(p_lanes bigint[], p_keys double precision[], p_seqs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  changing bigint[];
BEGIN
  IF cardinality(p_lanes) IS NULL OR cardinality(p_lanes) = 0 THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(lane_lock(), bucket)
    FROM (SELECT DISTINCT (l % 64)::integer AS bucket FROM unnest(p_lanes) l ORDER BY 1) buckets;
  SELECT array_agg(l.id ORDER BY l.id) INTO changing
  FROM unnest(p_lanes, p_keys, p_seqs) g(id, key, seq) JOIN lanes l ON l.id = g.id
  WHERE NOT l.active OR g.key < l.low_key OR (g.key, g.seq) < (l.rank, l.rank_seq);
  IF changing IS NULL THEN RETURN; END IF;
  PERFORM 1 FROM lanes WHERE id = ANY(changing) ORDER BY id FOR NO KEY UPDATE;
  PERFORM begin_lanes(p_lanes);
  UPDATE lanes l SET
    active = true,
    low_key = CASE WHEN l.active THEN least(l.low_key, g.key) ELSE g.key END,
    rank = CASE WHEN q.fair THEN l.rank WHEN l.active AND (l.rank, l.rank_seq) < (g.key, g.seq) THEN l.rank ELSE g.key END,
    rank_seq = CASE WHEN q.fair THEN l.id WHEN l.active AND (l.rank, l.rank_seq) < (g.key, g.seq) THEN l.rank_seq ELSE g.seq END
  FROM unnest(p_lanes, p_keys, p_seqs) g(id, key, seq), classes c, queues q
  WHERE l.id = g.id AND g.id = ANY(changing) AND c.id = l.class AND q.id = c.queue
    AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source)
    AND (NOT l.active OR g.key < l.low_key OR (NOT q.fair AND (g.key, g.seq) < (l.rank, l.rank_seq)));
END $$;

-- Called with active lanes, locked by the caller, from which tasks were taken up to a key: they get the rank of their first
-- task, or are put to rest where none is left and nobody is about to add one.
CREATE FUNCTION settle_lanes(p_lanes bigint[], p_from double precision[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  empty bigint[];
  lane bigint;
BEGIN
  WITH heads AS MATERIALIZED (
    SELECT g.id, g.low, h.order_key, h.seq FROM unnest(p_lanes, p_from) g(id, low)
    LEFT JOIN LATERAL (SELECT t.order_key, t.seq FROM live t
      WHERE t.lane = g.id AND t.state = 'ready' AND t.order_key >= g.low ORDER BY t.order_key, t.seq LIMIT 1) h ON true),
  moved AS (
    UPDATE lanes l SET
      rank = CASE WHEN q.fair THEN l.rank ELSE h.order_key END,
      rank_seq = CASE WHEN q.fair THEN l.id ELSE h.seq END,
      low_key = h.order_key,
      looked_at = CASE WHEN l.looked_at > p_now - 1000 THEN l.looked_at ELSE p_now END
    FROM heads h, classes c, queues q
    WHERE l.id = h.id AND h.order_key IS NOT NULL AND c.id = l.class AND q.id = c.queue)
  SELECT array_agg(h.id) INTO empty FROM heads h WHERE h.order_key IS NULL;
  FOREACH lane IN ARRAY coalesce(empty, '{}') LOOP
    -- Who is about to add a task holds the bucket; then the lane stays awake, and a later claim looks again.
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(lane_lock(), (lane % 64)::integer);
    UPDATE lanes l SET active = false WHERE l.id = lane
      AND NOT EXISTS (SELECT 1 FROM live t WHERE t.lane = l.id AND t.state = 'ready');
    IF NOT FOUND THEN UPDATE lanes l SET low_key = '-infinity' WHERE l.id = lane; END IF;
  END LOOP;
END $$;
