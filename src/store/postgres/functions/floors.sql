-- Floors: where to start reading an index. While an old snapshot is open, dead entries cannot be removed, and they are before the
-- live ones. A floor stores, for about a second, where the live entries start. The low key of a lane says the same of its ready
-- tasks. Both are only written after many blocks of dead entries were read.

-- The floor of this name, or minus infinity.
CREATE FUNCTION floor_of(p_name text, p_now bigint) RETURNS double precision LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT floor FROM floors WHERE name = p_name AND until > p_now), '-infinity');
END $$;

-- The same as a time: 'due' for scheduled tasks, 'deadline' for waiting tasks.
CREATE FUNCTION floor_at(p_name text, p_now bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT floor::bigint FROM floors WHERE name = p_name AND until > p_now), -9223372036854775808);
END $$;

-- How many blocks of a table and one of its indexes this transaction has read.
CREATE FUNCTION blocks_read(p_table regclass, p_index regclass) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT pg_stat_get_xact_blocks_fetched(p_table) + pg_stat_get_xact_blocks_fetched(p_index)
$$;

-- Until when a floor is valid. A task below it may be committed late, so this is only a second, or more if reading takes longer.
CREATE FUNCTION valid_until(p_blocks bigint, p_now bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT p_now + 1000 + p_blocks / 5
$$;

-- Writes a floor after this many blocks of dead entries were read, if none is valid. So each floor is written about once a
-- second: beside an old snapshot, each write leaves one more dead row that all claims read.
CREATE FUNCTION raise_floor(p_name text, p_floor double precision, p_blocks bigint, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM floors WHERE name = p_name) THEN
    UPDATE floors SET floor = p_floor, until = valid_until(p_blocks, p_now)
    WHERE name = (SELECT name FROM floors WHERE name = p_name AND until <= p_now FOR NO KEY UPDATE SKIP LOCKED);
  ELSE
    INSERT INTO floors VALUES (p_name, p_floor, valid_until(p_blocks, p_now)) ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Lowers the floors of queues below the ranks of lanes that were just activated.
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

-- The low key of a lane in a row of `low_keys`.
CREATE FUNCTION low_key_in(p_lanes bigint[], p_keys double precision[], p_lane bigint) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_lanes[width_bucket(p_lane, p_lanes)] = p_lane THEN p_keys[width_bucket(p_lane, p_lanes)] ELSE '-infinity' END
$$;

-- Stores that these lanes, which the caller has locked, have no ready task below these keys. Whoever puts a task below such a key
-- into a lane lowers it, so it needs no short validity, as floors do. If another transaction is doing that, nothing is stored.
CREATE FUNCTION raise_low_keys(p_queue integer, p_lanes bigint[], p_keys double precision[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  known low_keys;
  -- In a fifo queue, most new tasks come above this key.
  highest double precision := (SELECT CASE ordering WHEN 'fifo' THEN p_now - 100 ELSE 'infinity'::double precision END
    FROM queues WHERE id = p_queue);
BEGIN
  SELECT * INTO known FROM low_keys WHERE queue = p_queue FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND AND EXISTS (SELECT 1 FROM low_keys WHERE queue = p_queue) THEN RETURN; END IF;
  INSERT INTO low_keys SELECT p_queue, array_agg(lane ORDER BY lane), array_agg(key ORDER BY lane), p_now + 60000 FROM (
    SELECT lane, least(key, highest) AS key FROM unnest(p_lanes, p_keys) raised(lane, key)
    UNION ALL SELECT lane, key FROM unnest(known.lanes, known.keys) other(lane, key) WHERE known.until > p_now AND lane <> ALL(p_lanes)) low
  ON CONFLICT (queue) DO UPDATE SET lanes = excluded.lanes, keys = excluded.keys, until = excluded.until;
END $$;

-- Lowers the low keys of lanes into which tasks with these keys are put. The caller has locked the lanes. In other orders than fifo,
-- the next tasks would often come below the key again. It locks the rows of all queues in one order, because a transaction may do
-- this twice, for different queues.
CREATE FUNCTION lower_low_keys(p_lanes bigint[], p_keys double precision[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM low_keys low CROSS JOIN unnest(p_lanes, p_keys) new(lane, key)
    WHERE new.key < low_key_in(low.lanes, low.keys, new.lane)) THEN RETURN; END IF;
  PERFORM 1 FROM low_keys ORDER BY queue FOR NO KEY UPDATE;
  UPDATE low_keys low SET keys = (
    SELECT array_agg(CASE WHEN new.key >= old.key OR new.key IS NULL THEN old.key WHEN q.ordering = 'fifo' THEN new.key ELSE '-infinity' END
      ORDER BY old.lane)
    FROM queues q CROSS JOIN unnest(low.lanes, low.keys) old(lane, key) LEFT JOIN unnest(p_lanes, p_keys) new(lane, key) ON new.lane = old.lane
    WHERE q.id = low.queue)
  WHERE low.lanes && p_lanes;
END $$;
