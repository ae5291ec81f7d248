/**
 * Partitions of a day each, made ahead by upkeep, or at the moment when one is missing. Their makers own the tables, so
 * these functions run with their owner's rights: a worker's role needs none of its own.
 */
export const DAYS = `
CREATE FUNCTION add_day(p_day integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  parent text;
  name text;
BEGIN
  PERFORM pg_advisory_xact_lock(lane_lock(), 64);
  INSERT INTO days VALUES (p_day) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN; END IF;
  FOREACH parent IN ARRAY ARRAY['succeeded', 'executions'] LOOP
    name := parent || to_char(to_timestamp(p_day * 86400.0) AT TIME ZONE 'UTC', '_YYYYMMDD');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name, parent);
    -- Attaching lets reads and writes of the other days go on.
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, name,
      p_day * 86400000::bigint, (p_day + 1) * 86400000::bigint);
  END LOOP;
END $$;

CREATE FUNCTION need_day(p_at bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM days WHERE day = p_at / 86400000) THEN
    PERFORM add_day((p_at / 86400000)::integer);
  END IF;
END $$;

-- Drops the partitions of a day. Waits for nobody for long: a lock that is not had at once is asked for another time.
CREATE FUNCTION drop_day(p_day integer, p_parent text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET lock_timeout = '50ms' AS $$
BEGIN
  IF p_parent NOT IN ('succeeded', 'executions') THEN RAISE EXCEPTION 'There are no days of %.', p_parent; END IF;
  EXECUTE format('DROP TABLE IF EXISTS %I', p_parent || to_char(to_timestamp(p_day * 86400.0) AT TIME ZONE 'UTC', '_YYYYMMDD'));
END $$;
REVOKE ALL ON FUNCTION drop_day(integer, text), add_day(integer) FROM PUBLIC;
`;
