-- How a claim finds the next tasks of a queue. Two functions are made from this text: `pick` reads the tasks of lanes without
-- limits (pick-any.sql), and `pick_limited` reads them with the limits of their sources (pick-limited.sql). If there were one
-- function, each claim would pay for the larger plan.

-- Finds the next tasks of these tracks of a queue: at most `p_most`, with at most `p_suspects` suspects, which are the first ones
-- in order. Null if there are no lanes. It reads the first lanes and the first tasks of each. If a lane or task that was not read
-- could come before the last task that it found, it reads more. It deactivates empty lanes; after many of them it ends without a
-- task, so that no transaction gets long.
CREATE FUNCTION {name}(p_queue claimable, p_tracks integer[], p_most integer, p_suspects integer, p_except bigint[],
  p_without text[], p_now bigint)
RETURNS picked LANGUAGE plpgsql AS $$
DECLARE
  found picked;
  is_exact boolean;
  lowest double precision;
  lanes_read integer;
  lane_blocks bigint := blocks_read('lanes', 'lanes_active');
  task_blocks bigint := blocks_read('live', 'live_ready');
  lanes_most integer := 2 * p_most + cardinality(p_except) + 8;
  tasks_most integer;
  turn_length integer := 1;
  rested integer;
  rested_in_all integer := 0;
BEGIN
  -- Each turn changes database pages of its own, so if many lanes wait, a turn is several tasks.
  IF p_queue.fair AND (SELECT count(*) FROM (SELECT 1 FROM lanes l WHERE l.class = ANY(p_queue.classes) AND l.track IN (0, 2)
    AND l.active AND l.rank >= p_queue.low_rank LIMIT 1000) many) >= 1000 THEN
    turn_length := 4;
  END IF;
  LOOP
    -- (Adding nothing to a large array reads it from its storage once, and not for each lane.)
    WITH low AS MATERIALIZED (
      SELECT lanes || '{}' AS lanes, keys || '{}' AS keys FROM low_keys WHERE queue = p_queue.queue AND until > p_now),
    lane AS MATERIALIZED (
      SELECT x.*, row_number() OVER (PARTITION BY x.track ORDER BY x.rank, x.rank_seq) AS n,
        -- A source without a turn comes first, and then gets one.
        CASE WHEN p_queue.fair THEN coalesce((SELECT u.turn FROM turns u WHERE u.queue = p_queue.queue AND u.source = x.source),
          0) END AS turn,
        low_key_in(low.lanes, low.keys, x.id) AS low_key
      FROM unnest(p_queue.classes) c(id) CROSS JOIN unnest(p_tracks) t(track) CROSS JOIN LATERAL (
        SELECT l.id, l.track, l.source, l.rank, l.rank_seq FROM lanes l WHERE l.class = c.id AND l.track = t.track AND l.active AND l.rank >= p_queue.low_rank
          AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source)
        ORDER BY l.rank, l.rank_seq LIMIT lanes_most + 1) x LEFT JOIN low ON true),
    deep AS MATERIALIZED (
      SELECT coalesce(tasks_most, least(p_most, 2 * p_most / greatest(count(*), 1) + turn_length + 1)) AS most FROM lane),
{tasks}    met AS MATERIALIZED (
      SELECT id FROM (SELECT t.*, (row_number() OVER (PARTITION BY source ORDER BY order_key, seq, nth_of_source) - 1) / turn_length AS round
        FROM task t WHERE EXISTS (SELECT 1 FROM lane WHERE lane.track IN (2, 3))) t
      WHERE is_suspect ORDER BY CASE WHEN p_queue.fair THEN round END, turn, order_key, seq, nth_of_source LIMIT p_suspects),
    placed AS (
      SELECT t.id, t.lane, t.order_key, t.seq, t.nth, t.turn, t.nth_of_source, CASE WHEN p_queue.fair
        THEN (row_number() OVER (PARTITION BY t.source ORDER BY t.order_key, t.seq, t.nth_of_source) - 1) / turn_length END AS round
      FROM task t WHERE NOT t.is_suspect OR t.id IN (SELECT id FROM met)),
    given AS MATERIALIZED (
      SELECT p.*, row_number() OVER (ORDER BY round, turn, order_key, seq, nth_of_source) AS n FROM placed p
      ORDER BY n LIMIT p_most),
    last AS MATERIALIZED (SELECT * FROM given ORDER BY n DESC LIMIT 1),
    left_over AS MATERIALIZED (
      -- The next task of each lane: the first one that was not taken, or the last one that was read.
      SELECT t.lane, min(t.order_key) AS key, min(t.seq) AS seq FROM task t, deep
      WHERE t.nth = deep.most OR t.id NOT IN (SELECT id FROM given) GROUP BY t.lane),
    next AS MATERIALIZED (
      SELECT * FROM left_over UNION ALL
      SELECT id, 'infinity', 0 FROM lane WHERE {may_stay} AND (rank > kept_active_since(p_now) OR low_key > '-infinity')
        AND id NOT IN (SELECT lane FROM left_over)
        AND NOT EXISTS (SELECT 1 FROM lane WHERE n > lanes_most))
    SELECT (SELECT array_agg(id ORDER BY n) FROM given),
      (SELECT array_agg(lane) FROM next), (SELECT array_agg(key) FROM next), (SELECT array_agg(seq) FROM next),
      (SELECT array_agg(id) FROM lane WHERE n <= lanes_most AND id NOT IN (SELECT lane FROM next)),
      (SELECT bool_or(n > lanes_most) FROM lane), (SELECT count(*) FROM met), NULL, NULL, {is_limited},
      -- No lane that was not read, and no task that was not read, can come before the last task that was found.
      NOT EXISTS (SELECT 1 FROM lane l WHERE l.n > lanes_most AND (l.track NOT IN (2, 3) OR (SELECT count(*) FROM met) < p_suspects)
          AND NOT coalesce((SELECT n = p_most AND CASE WHEN p_queue.fair THEN round = 0 AND turn < l.rank
            ELSE (order_key, seq) < (l.rank, l.rank_seq) END FROM last), false))
        AND NOT EXISTS (SELECT 1 FROM given g, deep WHERE g.nth = deep.most AND g.nth < p_most
          AND g.n < greatest(p_most, (SELECT n FROM last))),
      (SELECT min(rank) FROM lane), (SELECT count(*) FROM lane)
    INTO found.ids, found.lanes_left, found.next_keys, found.next_seqs, found.empty_lanes, found.has_more, found.suspects, found.blocks, found.is_blocked,
      found.is_limited, is_exact, lowest, lanes_read;
    EXIT WHEN is_exact OR lanes_read = 0;
    rested := rest_lanes(found.empty_lanes, p_now);
    rested_in_all := rested_in_all + rested;
    IF rested_in_all >= 500 THEN
      -- The tasks that were found are not taken, so no rank may be raised past them.
      found := NULL;
      found.has_more := true;
      EXIT;
    END IF;
    lanes_most := CASE WHEN rested > 0 THEN least(4 * lanes_most, greatest(lanes_most, 500)) ELSE 4 * lanes_most END;
    tasks_most := p_most;
  END LOOP;
  lane_blocks := blocks_read('lanes', 'lanes_active') - lane_blocks;
  IF lane_blocks > 500 + 4 * lanes_read THEN
    PERFORM raise_floor('lanes ' || p_queue.queue, coalesce(lowest, 'infinity'), lane_blocks, p_now);
  END IF;
  IF lanes_read = 0 THEN RETURN NULL; END IF;
  task_blocks := blocks_read('live', 'live_ready') - task_blocks;
  IF task_blocks > 500 + 8 * (lanes_read + p_most) THEN found.blocks := task_blocks; END IF;
  RETURN found;
END $$;
