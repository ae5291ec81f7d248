-- Which task has which unique key. A task has a row in `uniques` while it is in a state in which it has its key, by its own scope.
-- If it was to have the key for a time (`until`), its row stays after that state, as `released`: then the key is free from that
-- time on.

-- These tasks do not need their keys any more.
CREATE FUNCTION free_unique(p_ids bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  WITH kept AS (UPDATE uniques SET released = true WHERE task = ANY(p_ids) AND until > p_now)
  DELETE FROM uniques WHERE task = ANY(p_ids) AND coalesce(until, 0) <= p_now;
END $$;

-- Takes the unique key again for a task that will wait again. If another task has the key, its id is returned. Fails with
-- lock_not_available if an open transaction has the key locked for longer than `p_patience`.
CREATE FUNCTION take_unique(p_id bigint, p_patience integer, p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  before text := set_patience(p_patience);
  occupant uniques;
BEGIN
  LOOP
    INSERT INTO uniques (type, key, task)
      SELECT c.type, b.unique_key, b.id FROM bodies b JOIN live l ON l.id = b.id JOIN classes c ON c.id = l.class WHERE b.id = p_id
      ON CONFLICT DO NOTHING;
    EXIT WHEN FOUND;
    SELECT u.* INTO occupant FROM bodies b JOIN live l ON l.id = b.id JOIN classes c ON c.id = l.class
      JOIN uniques u ON u.type = c.type AND u.key = b.unique_key WHERE b.id = p_id;
    CONTINUE WHEN NOT FOUND;
    EXIT WHEN occupant.task <> p_id AND NOT (occupant.released AND occupant.until <= p_now);
    UPDATE uniques SET released = false, task = p_id, until = CASE WHEN task = p_id THEN until END
      WHERE type = occupant.type AND key = occupant.key AND task = occupant.task AND released = occupant.released;
    occupant := NULL;
    EXIT WHEN FOUND;
  END LOOP;
  PERFORM set_config('lock_timeout', before, true);
  RETURN occupant.task;
END $$;
