-- As before, but the first day that gets partitions also makes one for all days before it: `succeeded_earlier`, for tasks that are
-- imported as succeeded long ago. In the default partition they would be read whenever a partition is made, which locks it.
CREATE OR REPLACE FUNCTION add_day(p_day integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '50ms' AS $$
DECLARE
  first_ms bigint := p_day * 86400000::bigint;
  is_first boolean;
  parent text;
  time_column text;
  name text;
  early bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(lane_lock(), 64);
  is_first := NOT EXISTS (SELECT 1 FROM days);
  INSERT INTO days (day) VALUES (p_day) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN; END IF;
  FOR parent, time_column IN VALUES ('succeeded', 'since'), ('executions', 'ended_at') LOOP
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_other');
    IF is_first AND parent = 'succeeded' AND NOT EXISTS (SELECT 1 FROM succeeded_other WHERE since < first_ms) THEN
      EXECUTE format('CREATE TABLE succeeded_earlier PARTITION OF succeeded FOR VALUES FROM (MINVALUE) TO (%s) WITH (
        autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0)', first_ms);
    END IF;
    EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM %I WHERE %I >= $1 AND %2$I < $1 + 86400000 LIMIT 10001) early',
      parent || '_other', time_column) INTO early USING first_ms;
    IF early > 10000 THEN
      EXECUTE format('UPDATE days SET %I = true WHERE day = $1', parent || '_dropped') USING p_day;
      CONTINUE;
    END IF;
    name := parent || to_char(to_timestamp(p_day * 86400.0) AT TIME ZONE 'UTC', '_YYYYMMDD');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (
      autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0)', name, parent);
    IF early > 0 THEN
      EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= $1 AND %2$I < $1 + 86400000 RETURNING *)
        INSERT INTO %I SELECT * FROM moved', parent || '_other', time_column, name) USING first_ms;
    END IF;
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, name, first_ms, first_ms + 86400000);
  END LOOP;
EXCEPTION WHEN lock_not_available OR invalid_object_definition THEN
  -- The second: the clock went back to before the first day.
  RETURN;
END $$;
