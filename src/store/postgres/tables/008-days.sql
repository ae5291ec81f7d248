-- Every table has a primary key: a table without one refuses UPDATE and DELETE once a publication includes it.
ALTER TABLE succeeded ADD PRIMARY KEY (id, since);
DROP INDEX succeeded_id;
ALTER TABLE executions ADD PRIMARY KEY (task, id, ended_at);
DROP INDEX executions_task;
ALTER TABLE old_executions ADD PRIMARY KEY (task, id);
DROP INDEX old_executions_task;

-- What belongs to a day that has no partition: mostly tasks that are imported as succeeded long ago.
CREATE TABLE succeeded_other PARTITION OF succeeded DEFAULT;
CREATE TABLE executions_other PARTITION OF executions DEFAULT;
ALTER TABLE succeeded_other SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);
ALTER TABLE executions_other SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);

-- Up to which task the history of an old day has been moved to `old_executions`.
ALTER TABLE days ADD COLUMN history_moved_to bigint NOT NULL DEFAULT 0;

-- Makes the partitions of a day. Rows that were written before it has them are moved there. A day of which there are too many to
-- move at once stays in the default partition, and counts as dropped. Waits for no lock longer than 50 ms: where others are in the
-- way nothing is made, the rows go to the default partition, and upkeep tries again later.
CREATE OR REPLACE FUNCTION add_day(p_day integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '50ms' AS $$
DECLARE
  first_ms bigint := p_day * 86400000::bigint;
  parent text;
  time_column text;
  name text;
  early bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(lane_lock(), 64);
  INSERT INTO days (day) VALUES (p_day) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN; END IF;
  FOR parent, time_column IN VALUES ('succeeded', 'since'), ('executions', 'ended_at') LOOP
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_other');
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
EXCEPTION WHEN lock_not_available THEN
  RETURN;
END $$;
