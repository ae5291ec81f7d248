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

-- In a fair queue a source that has a ready task there for the first time goes to the back of the line.
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
  -- While this is locked no claim adds a turn, or it could wait for this one.
  PERFORM pg_advisory_xact_lock_shared(lane_lock() + 5, queue) FROM (SELECT DISTINCT queue FROM unnest(queues_) queue ORDER BY 1) q;
  INSERT INTO turns (queue, source, turn) SELECT queue, source, nextval('turn') FROM unnest(queues_, fresh) x(queue, source)
  ON CONFLICT DO NOTHING;
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
  WHERE NOT l.active OR g.key < l.low_key OR (g.key, g.seq) < (l.rank, l.rank_seq) AND NOT EXISTS (
    SELECT 1 FROM classes c JOIN queues q ON q.id = c.queue WHERE c.id = l.class AND q.fair);
  IF changing IS NULL THEN RETURN; END IF;
  PERFORM 1 FROM lanes WHERE id = ANY(changing) ORDER BY id FOR NO KEY UPDATE;
  PERFORM begin_turns(changing);
  UPDATE lanes l SET
    active = l.active OR is_open,
    was_active = true,
    low_key = CASE WHEN l.active THEN least(l.low_key, g.key) ELSE g.key END,
    rank = CASE WHEN q.fair THEN coalesce(t.turn, l.rank) WHEN l.active AND is_before THEN l.rank ELSE g.key END,
    rank_seq = CASE WHEN q.fair THEN l.id WHEN l.active AND is_before THEN l.rank_seq ELSE g.seq END
  FROM unnest(p_lanes, p_keys, p_seqs) g(id, key, seq) JOIN lanes o ON o.id = g.id JOIN classes c ON c.id = o.class
    JOIN queues q ON q.id = c.queue LEFT JOIN turns t ON q.fair AND t.queue = q.id AND t.source = o.source
    CROSS JOIN LATERAL (SELECT NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = o.source) AS is_open,
      (o.rank, o.rank_seq) < (g.key, g.seq) AS is_before) x
  WHERE l.id = g.id AND g.id = ANY(changing);
  IF EXISTS (SELECT 1 FROM floors) THEN PERFORM lower_floors(changing); END IF;
END $$;

-- A floor must not be above the rank of a lane that was woken.
CREATE FUNCTION lower_floors(p_lanes bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  queue_ record;
BEGIN
  FOR queue_ IN
    SELECT 'lanes ' || c.queue AS name, min(l.rank) AS rank FROM lanes l JOIN classes c ON c.id = l.class
    WHERE l.id = ANY(p_lanes) GROUP BY 1 ORDER BY 1
  LOOP
    UPDATE floors SET floor = queue_.rank WHERE name = queue_.name AND floor > queue_.rank;
  END LOOP;
END $$;

-- Where to begin to read an index that is known by this name.
CREATE FUNCTION floor_of(p_name text, p_now bigint) RETURNS double precision LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT floor FROM floors WHERE name = p_name AND until > p_now), '-infinity')
$$;

-- How many blocks of a table and an index of it this transaction has read.
CREATE FUNCTION blocks_read(p_table regclass, p_index regclass) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT pg_stat_get_xact_blocks_fetched(p_table) + pg_stat_get_xact_blocks_fetched(p_index)
$$;

-- So long it is believed that there is nothing below a floor, for something may have been committed late there: a second, and
-- longer where it takes long to look.
CREATE FUNCTION believed_until(p_blocks bigint, p_now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT p_now + 1000 + p_blocks / 5
$$;

-- Notes where reading such an index may begin, after many blocks were read of it in vain.
CREATE FUNCTION raise_floor(p_name text, p_floor double precision, p_blocks bigint, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM floors WHERE name = p_name) THEN
    UPDATE floors SET floor = p_floor, until = greatest(until, believed_until(p_blocks, p_now))
    WHERE name = (SELECT name FROM floors WHERE name = p_name FOR NO KEY UPDATE SKIP LOCKED);
  ELSE
    INSERT INTO floors VALUES (p_name, p_floor, believed_until(p_blocks, p_now)) ON CONFLICT DO NOTHING;
  END IF;
END $$;
