-- Due tasks: when the next task is due or reaches its deadline, and how due tasks become ready.

-- When the next scheduled task is due, and when the next waiting task reaches its deadline. If an old snapshot keeps so many dead
-- index entries that this reads many blocks, it writes a floor, and the next calls start reading after them.
CREATE FUNCTION next_times(p_now bigint, OUT due bigint, OUT expiring bigint) LANGUAGE plpgsql AS $$
DECLARE
  least_due bigint := floor_at('due', p_now);
  least_deadline bigint := floor_at('deadline', p_now);
  blocks bigint := blocks_read('live', 'live_scheduled');
BEGIN
  SELECT run_at INTO due FROM live WHERE state = 'scheduled' AND run_at >= least_due ORDER BY run_at, id LIMIT 1;
  blocks := blocks_read('live', 'live_scheduled') - blocks;
  IF blocks > 500 THEN PERFORM raise_floor('due', least(due, p_now), blocks, p_now); END IF;
  blocks := blocks_read('live', 'live_deadline');
  SELECT deadline INTO expiring FROM live WHERE deadline IS NOT NULL AND state IN ('scheduled', 'ready')
    AND deadline >= least_deadline ORDER BY deadline, id LIMIT 1;
  blocks := blocks_read('live', 'live_deadline') - blocks;
  IF blocks > 500 THEN PERFORM raise_floor('deadline', least(expiring, p_now), blocks, p_now); END IF;
END $$;

-- When a claim can make more scheduled tasks ready; the earliest is due at `p_due`. If another transaction has locked all tasks
-- that are due now, this is a little later, because that transaction may stay open for long.
CREATE FUNCTION due_in_reach(p_due bigint, p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF p_due IS NULL OR p_due > p_now THEN RETURN p_due; END IF;
  PERFORM 1 FROM live WHERE state = 'scheduled' AND run_at <= p_now AND run_at >= floor_at('due', p_now)
    ORDER BY run_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN RETURN p_due; END IF;
  RETURN (SELECT least(p_now + 100, min(run_at)) FROM live WHERE state = 'scheduled' AND run_at > p_now);
END $$;

-- The same for waiting tasks that reach their deadline, the earliest at `p_deadline`.
CREATE FUNCTION deadline_in_reach(p_deadline bigint, p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF p_deadline IS NULL OR p_deadline > p_now THEN RETURN p_deadline; END IF;
  PERFORM 1 FROM live WHERE deadline IS NOT NULL AND deadline <= p_now AND deadline >= floor_at('deadline', p_now)
    AND state IN ('scheduled', 'ready') ORDER BY deadline, id LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN RETURN p_deadline; END IF;
  RETURN (SELECT least(p_now + 100, min(deadline)) FROM live
    WHERE deadline IS NOT NULL AND deadline > p_now AND state IN ('scheduled', 'ready'));
END $$;

-- Makes at most `p_most` due tasks ready, the earliest first. Tasks that were enqueued without a lane get one, and the key for
-- the present order of their queue. Returns whether it left tasks to a later claim because the settings of their queue are being
-- changed.
CREATE FUNCTION promote(p_now bigint, p_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  -- The classes of queues whose settings are being changed.
  changing integer[] := '{}';
  more integer[];
  due bigint[];
  are_new boolean;
  mine bigint[];
  woken bigint[];
  keys double precision[];
  seqs bigint[];
BEGIN
  LOOP
    SELECT array_agg(id), bool_or(lane IS NULL) INTO due, are_new FROM (
      SELECT id, lane FROM live WHERE state = 'scheduled' AND run_at <= p_now AND run_at >= floor_at('due', p_now)
        AND (lane IS NOT NULL OR class <> ALL(changing)) ORDER BY run_at, id LIMIT p_most FOR UPDATE SKIP LOCKED) first;
    IF due IS NULL THEN RETURN changing <> '{}'; END IF;
    EXIT WHEN NOT are_new;
    -- The settings of their queues cannot change until this is committed. It does not wait for these locks, because it has locked
    -- tasks.
    more := ARRAY(SELECT c.id FROM (SELECT DISTINCT c.queue FROM live l JOIN classes c ON c.id = l.class
        WHERE l.id = ANY(due) AND l.lane IS NULL ORDER BY 1) q JOIN classes c ON c.queue = q.queue
      WHERE NOT pg_try_advisory_xact_lock_shared(lane_lock() + 2, q.queue));
    EXIT WHEN more = '{}';
    changing := changing || more;
  END LOOP;
  IF are_new THEN
    PERFORM lane_of(missing.class, missing.source, missing.track) FROM (
      SELECT DISTINCT l.class, b.source, track_now(l, b.source) AS track
      FROM live l JOIN bodies b ON b.id = l.id WHERE l.id = ANY(due) AND l.lane IS NULL ORDER BY 2, 1, 3) missing;
    UPDATE live l SET lane = coalesce((SELECT a.id FROM lanes a
          WHERE a.source = b.source AND a.class = l.class AND a.track = track_now(l, b.source)),
        -- A source has begun or ended to ramp since the last statement.
        lane_of(l.class, b.source, track_now(l, b.source))),
      order_key = order_key(q.ordering, b.priority, b.submitted_at, q.last_key, l.ran_at),
      seq = CASE WHEN q.ordering = 'lifo' THEN -l.id ELSE l.id END
      FROM bodies b, classes c, queues q
      WHERE l.id = ANY(due) AND l.lane IS NULL AND b.id = l.id AND c.id = l.class AND q.id = c.queue;
  END IF;
  IF EXISTS (SELECT 1 FROM source_states WHERE is_ramping) THEN
    -- While a source ramps, tasks before their first execution are new work.
    UPDATE live l SET lane = lane_of(l.class, a.source, track_now(l, a.source)) FROM lanes a
      WHERE l.id = ANY(due) AND l.lane IS NOT NULL AND a.id = l.lane AND a.track <> track_now(l, a.source);
  END IF;
  IF current_setting('holdfast.woke', true) = 'yes' THEN
    -- This transaction has locked lanes already and must not wait for other locks. The next claim takes the other tasks. A hold that
    -- is being released is locked, and its release waits for the lanes of its source.
    SELECT array_agg(id) INTO mine FROM (
      SELECT id FROM lanes l WHERE id IN (SELECT lane FROM live WHERE id = ANY(due))
        AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source) FOR NO KEY UPDATE SKIP LOCKED) own;
    due := ARRAY(SELECT id FROM live WHERE id = ANY(due) AND lane = ANY(mine));
  END IF;
  WITH risen AS (
    UPDATE live l SET state = 'ready', since = p_now,
      order_key = CASE WHEN q.ordering = 'weighted_random' THEN order_key(q.ordering, b.priority, b.submitted_at,
        q.last_key) ELSE l.order_key END
    FROM classes c, queues q, bodies b
    WHERE l.id = ANY(due) AND c.id = l.class AND q.id = c.queue AND b.id = l.id
    RETURNING l.lane, l.order_key, l.seq),
  entered AS (SELECT DISTINCT ON (lane) lane, order_key AS key, seq FROM risen ORDER BY lane, order_key, seq)
  SELECT array_agg(lane), array_agg(key), array_agg(seq) INTO woken, keys, seqs FROM entered;
  PERFORM wake_lanes(woken, keys, seqs);
  RETURN changing <> '{}';
END $$;
