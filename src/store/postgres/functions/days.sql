-- Partitions by day. Rows of a day without a partition go to the default partition, so no call waits for a new partition.

-- Makes missing partitions of today and of the next days.
CREATE FUNCTION make_days(p_now bigint, p_ahead integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  today integer := floor(p_now / 86400000.0);
BEGIN
  FOR day_ IN today .. today + p_ahead LOOP
    IF NOT EXISTS (SELECT 1 FROM days WHERE day = day_) THEN PERFORM add_day(day_); END IF;
  END LOOP;
END $$;

-- Imports put tasks into past days. This lock excludes imports while such a day is dropped.
CREATE FUNCTION import_lock() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 66 $$;

-- Drops one day before this time from which retention has removed every succeeded task. False if there is none, or if it is
-- locked.
CREATE FUNCTION drop_empty_day(p_before bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  day_ integer;
BEGIN
  IF NOT pg_try_advisory_xact_lock(lane_lock(), import_lock()) THEN RETURN false; END IF;
  FOR day_ IN SELECT day FROM days WHERE NOT succeeded_dropped AND (day + 1) * 86400000::bigint <= p_before ORDER BY day LOOP
    CONTINUE WHEN EXISTS (
      SELECT 1 FROM succeeded WHERE since >= day_ * 86400000::bigint AND since < (day_ + 1) * 86400000::bigint);
    PERFORM drop_day(day_, 'succeeded');
    UPDATE days SET succeeded_dropped = true WHERE day = day_;
    RETURN true;
  END LOOP;
  RETURN false;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;

-- Takes one step of dropping the oldest day of history that is older than a month: moves the history of some tasks that still
-- exist to `old_executions`, or drops the day if everything has been moved. False if there is nothing to do, or if the day is
-- locked.
CREATE FUNCTION drop_old_history(p_now bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  old record;
  first_ms bigint;
  last_task bigint;
BEGIN
  SELECT day, history_moved_to INTO old FROM days WHERE NOT executions_dropped AND (day + 32) * 86400000::bigint <= p_now
    ORDER BY day LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN false; END IF;
  first_ms := old.day * 86400000::bigint;
  SELECT max(task) INTO last_task FROM (
    SELECT task FROM executions WHERE task > old.history_moved_to AND ended_at >= first_ms AND ended_at < first_ms + 86400000
    ORDER BY task LIMIT 2000) slice;
  IF last_task IS NULL THEN
    PERFORM drop_day(old.day, 'executions');
    UPDATE days SET executions_dropped = true WHERE day = old.day;
    RETURN true;
  END IF;
  WITH moved AS (
    DELETE FROM executions e WHERE e.task > old.history_moved_to AND e.task <= last_task
      AND e.ended_at >= first_ms AND e.ended_at < first_ms + 86400000
      AND (EXISTS (SELECT 1 FROM live t WHERE t.id = e.task) OR EXISTS (SELECT 1 FROM ended t WHERE t.id = e.task)
        OR EXISTS (SELECT 1 FROM succeeded t WHERE t.id = e.task))
    RETURNING e.*)
  INSERT INTO old_executions SELECT * FROM moved;
  UPDATE days SET history_moved_to = last_task WHERE day = old.day;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END $$;
