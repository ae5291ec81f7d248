-- Floors: where to start reading an index. While an old snapshot is open, dead entries cannot be removed, and they are before the
-- live ones. A floor stores, for about a second, where the live entries start. It is only written after many blocks of dead
-- entries were read.

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
