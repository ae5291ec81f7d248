-- Claiming. A claim reads the heads of lanes, so its cost is that of what it takes, however much waits, is scheduled, has ended,
-- or belongs to a source that is held.

-- A list of texts, if it is one. (Functions in plpgsql keep their plans; those in SQL that are not made part of a statement do not.)
CREATE FUNCTION texts_of(p_list json) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
  IF p_list IS NULL OR json_typeof(p_list) <> 'array' THEN RETURN NULL; END IF;
  RETURN ARRAY(SELECT json_array_elements_text(p_list));
END $$;

-- Whether a worker's capabilities meet these needs. Where a damaged row holds none that can be read, any do: the claim hands the
-- task out, and its worker has a person look at it.
CREATE FUNCTION meets(p_capabilities jsonb, p_needs text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM jsonb_each(p_needs::jsonb) need
    WHERE NOT coalesce(CASE WHEN jsonb_typeof(need.value) = 'number'
      THEN jsonb_typeof(p_capabilities -> need.key) = 'number' AND (p_capabilities -> need.key)::numeric >= need.value::numeric
      ELSE p_capabilities -> need.key = need.value END, false));
EXCEPTION WHEN data_exception THEN
  RETURN true;
END $$;

-- The classes of one queue that a worker may take from.
CREATE TYPE queue_line AS (queue integer, fair boolean, ordering text, classes integer[]);

-- The queues that a worker may take from now, those that are paused left out.
CREATE FUNCTION admitted(p_request json, p_active boolean, p_now bigint) RETURNS SETOF queue_line LANGUAGE plpgsql AS $$
DECLARE
  types text[] := texts_of(p_request -> 'types');
  queues_ text[] := texts_of(p_request -> 'queues');
  categories text[] := texts_of(p_request -> 'categories');
  capabilities jsonb := p_request -> 'capabilities';
BEGIN
  RETURN QUERY SELECT q.id, q.fair, q.ordering, array_agg(c.id) FROM classes c JOIN queues q ON q.id = c.queue
    WHERE q.paused_at IS NULL AND (types IS NULL OR c.type = ANY(types)) AND (queues_ IS NULL OR q.name = ANY(queues_))
      AND (categories IS NULL OR c.category = ANY(categories))
      AND (c.needs = '{}' OR meets(capabilities, c.needs))
      AND (NOT p_active OR EXISTS (SELECT 1 FROM lanes l WHERE l.class = c.id AND l.track IN (0, 2, 3) AND l.active
        AND l.rank >= floor_of('lanes ' || q.id, p_now)))
    GROUP BY q.id, q.fair, q.ordering ORDER BY q.id;
END $$;

-- The lanes of a queue that come first by rank, at most so many of those of suspects and of the others each, and the ranks of the
-- next ones behind them.
CREATE TYPE lane_list AS (ids bigint[], next_rank double precision, next_seq bigint, suspects bigint[],
  next_suspect_rank double precision, next_suspect_seq bigint);
CREATE FUNCTION first_lanes(p_line queue_line, p_tracks integer[], p_most integer, p_now bigint) RETURNS lane_list
LANGUAGE plpgsql AS $$
DECLARE
  blocks bigint := blocks_read('lanes', 'lanes_active');
  low double precision := floor_of('lanes ' || p_line.queue, p_now);
  first lane_list;
  lowest double precision;
BEGIN
  SELECT array_agg(id) FILTER (WHERE n <= p_most AND track = 0), max(rank) FILTER (WHERE n > p_most AND track = 0),
    max(rank_seq) FILTER (WHERE n > p_most AND track = 0), array_agg(id) FILTER (WHERE n <= p_most AND track <> 0),
    max(rank) FILTER (WHERE n > p_most AND track <> 0), max(rank_seq) FILTER (WHERE n > p_most AND track <> 0), min(rank)
  INTO first.ids, first.next_rank, first.next_seq, first.suspects, first.next_suspect_rank, first.next_suspect_seq, lowest
  FROM (
    SELECT x.id, x.track, x.rank, x.rank_seq, row_number() OVER (PARTITION BY x.track ORDER BY x.rank, x.rank_seq) AS n
    FROM unnest(p_line.classes) c(id) CROSS JOIN unnest(p_tracks) t(track) CROSS JOIN LATERAL (
      SELECT l.id, l.track, l.rank, l.rank_seq FROM lanes l
      WHERE l.class = c.id AND l.track = t.track AND l.active AND l.rank >= low
        AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source)
      ORDER BY l.rank, l.rank_seq LIMIT p_most + 1) x) y
  WHERE n <= p_most + 1;
  blocks := blocks_read('lanes', 'lanes_active') - blocks;
  IF blocks > 500 + 4 * coalesce(cardinality(first.ids), 0) THEN
    PERFORM raise_floor('lanes ' || p_line.queue, coalesce(lowest, 'infinity'), blocks, p_now);
  END IF;
  RETURN first;
END $$;

-- What a claim found in one queue: the tasks to lease in their order, the lanes that it read, where each of them goes on behind
-- those tasks if it does, whether there are more lanes than there is room for, and how many blocks were read in vain, if many.
CREATE TYPE picked AS (ids bigint[], lanes bigint[], left_lanes bigint[], left_keys double precision[], left_seqs bigint[],
  has_more boolean, blocks bigint);

-- Finds the next tasks of these tracks of one queue in its exact order, at most so many, and of these at most so many suspects: the first that
-- are met. The caller has the queue's lock. A lane's rank is never above its true place (the key of its first task; in a fair
-- queue the turn of its source), so a task that stands before the rank of the first lane that was not read stands before
-- whatever is in that one.
CREATE FUNCTION pick(p_line queue_line, p_tracks integer[], p_most integer, p_suspects integer, p_except bigint[], p_now bigint)
RETURNS picked LANGUAGE plpgsql AS $$
DECLARE
  room integer := p_most + cardinality(p_except);
  at_once integer := 1;
  first lane_list;
  found picked := ROW(NULL, '{}', NULL, NULL, NULL, false, NULL);
  blocks bigint := blocks_read('live', 'live_ready');
  depth integer;
  met bigint[];
  is_cut boolean;
  count_ integer;
  last_key double precision;
  last_seq bigint;
BEGIN
  -- A turn has pages of its own, so where many lanes wait a source gives some tasks at once.
  IF p_line.fair AND (SELECT count(*) FROM (SELECT 1 FROM lanes l WHERE l.class = ANY(p_line.classes) AND l.track IN (0, 2)
    AND l.active LIMIT 1000) many) >= 1000 THEN
    at_once := 4;
  END IF;
  LOOP
    first := first_lanes(p_line, p_tracks, room, p_now);
    found.lanes := coalesce(first.ids, '{}') || coalesce(first.suspects, '{}');
    found.has_more := found.has_more OR first.next_rank IS NOT NULL OR first.next_suspect_rank IS NOT NULL;
    IF found.lanes = '{}' THEN RETURN found; END IF;
    IF cardinality(found.lanes) = 1 AND first.suspects IS NULL AND NOT found.has_more THEN
      -- One lane, which is the common case: its first tasks.
      SELECT array_agg(t.id ORDER BY t.order_key, t.seq), max(t.order_key) INTO found.ids, last_key FROM (
        SELECT t.id, t.order_key, t.seq FROM live t WHERE t.lane = found.lanes[1] AND t.state = 'ready' AND t.id <> ALL(p_except)
          AND t.order_key >= (SELECT CASE WHEN l.looked_at > p_now THEN l.low_key ELSE '-infinity' END FROM lanes l
            WHERE l.id = found.lanes[1])
        ORDER BY t.order_key, t.seq LIMIT p_most) t;
      IF cardinality(found.ids) = p_most THEN
        found.left_lanes := found.lanes;
        found.left_keys := ARRAY[last_key];
      END IF;
      EXIT;
    END IF;
    depth := least(p_most, 2 * p_most / cardinality(found.lanes) + at_once + 1);
    LOOP
      met := CASE WHEN first.suspects IS NULL THEN '{}'::bigint[] ELSE ARRAY(
        SELECT id FROM heads(p_line, found.lanes, depth, at_once, p_except, NULL, p_now) h WHERE h.is_suspect
        ORDER BY round, turn, order_key, seq LIMIT p_suspects) END;
      WITH ranked AS MATERIALIZED (
        SELECT h.*, CASE WHEN fits THEN row_number() OVER (PARTITION BY fits ORDER BY round, turn, order_key, seq) END AS n
        FROM heads(p_line, found.lanes, depth, at_once, p_except, met, p_now) h),
      left_ AS MATERIALIZED (
        -- The first task behind those that a lane gives. One that gives all that was read of it goes on at the last of these at
        -- the soonest.
        SELECT * FROM (SELECT r.*, coalesce(n <= p_most, false) AS gives,
          lag(coalesce(n <= p_most, false), 1, true) OVER (PARTITION BY lane ORDER BY nth) AS gave FROM ranked r) r
        WHERE gave AND NOT gives OR gives AND nth = depth)
      SELECT (SELECT array_agg(id ORDER BY n) FROM ranked WHERE n <= p_most), (SELECT array_agg(lane) FROM left_),
        (SELECT array_agg(order_key) FROM left_), (SELECT array_agg(seq) FROM left_), (SELECT bool_or(gives) FROM left_),
        l.n, CASE WHEN NOT p_line.fair THEN l.order_key WHEN l.round = 0 THEN l.turn ELSE 'infinity' END,
        CASE WHEN p_line.fair THEN 9223372036854775807 ELSE l.seq END
      INTO found.ids, found.left_lanes, found.left_keys, found.left_seqs, is_cut, count_, last_key, last_seq
      FROM (SELECT 1) one LEFT JOIN (SELECT * FROM ranked WHERE n <= p_most ORDER BY n DESC LIMIT 1) l ON true;
      EXIT WHEN depth >= p_most OR is_cut IS NOT TRUE;
      depth := p_most;
    END LOOP;
    EXIT WHEN (first.next_rank IS NULL OR count_ = p_most AND (last_key, last_seq) <= (first.next_rank, first.next_seq))
      AND (first.next_suspect_rank IS NULL OR cardinality(met) = p_suspects
        OR count_ = p_most AND (last_key, last_seq) <= (first.next_suspect_rank, first.next_suspect_seq));
    room := room * 4;
  END LOOP;
  blocks := blocks_read('live', 'live_ready') - blocks;
  IF blocks > 500 + 8 * (cardinality(found.lanes) + p_most) THEN found.blocks := blocks; END IF;
  RETURN found;
END $$;

-- The first tasks of each of these lanes, `nth` in their lane. Those that fit are tasks that are no suspects, and the suspects of
-- `p_met`; in a fair queue they are in a round of their source's turns.
CREATE FUNCTION heads(p_line queue_line, p_lanes bigint[], p_depth integer, p_at_once integer, p_except bigint[], p_met bigint[],
  p_now bigint) RETURNS TABLE (id bigint, order_key double precision, seq bigint, nth bigint, lane bigint, is_suspect boolean,
  fits boolean, turn double precision, round bigint) LANGUAGE sql STABLE AS $$
  SELECT h.id, h.order_key, h.seq, h.nth, h.lane, h.is_suspect, h.fits, h.turn, CASE WHEN (p_line).fair THEN
    (row_number() OVER (PARTITION BY h.source, h.fits ORDER BY h.order_key, h.seq) - 1) / p_at_once ELSE 0 END
  FROM (
    SELECT t.id, t.order_key, t.seq, t.nth, l.id AS lane, l.track <> 0 AS is_suspect,
      l.track = 0 OR p_met IS NULL OR t.id = ANY(p_met) AS fits, CASE WHEN (p_line).fair THEN l.source END AS source,
      CASE WHEN (p_line).fair THEN coalesce(
        (SELECT u.turn FROM turns u WHERE u.queue = (p_line).queue AND u.source = l.source), l.rank) END AS turn
    FROM unnest(p_lanes) c(id) JOIN lanes l ON l.id = c.id CROSS JOIN LATERAL (
      SELECT t.id, t.order_key, t.seq, row_number() OVER (ORDER BY t.order_key, t.seq) AS nth FROM live t
      WHERE t.lane = l.id AND t.state = 'ready' AND t.id <> ALL(p_except)
        AND t.order_key >= CASE WHEN l.looked_at > p_now THEN l.low_key ELSE '-infinity' END
      ORDER BY t.order_key, t.seq LIMIT p_depth) t) h
$$;

-- How many of the tasks in this order may be claimed: up to the limit, and ahead of it where all up to there are of types that
-- are short, may run twice, have no deadline and are no suspects.
CREATE FUNCTION ahead_of(p_ids bigint[], p_limit integer, p_types text[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  short integer[] := ARRAY(SELECT id FROM classes WHERE type = ANY(p_types));
  unfit integer;
BEGIN
  SELECT min(CASE WHEN l.class <> ALL(short) THEN CASE WHEN t.n <= p_limit THEN 0 ELSE t.n END
    WHEN t.n > p_limit AND (l.idempotent IS FALSE OR l.deadline IS NOT NULL OR l.suspect) THEN t.n END) INTO unfit
  FROM unnest(p_ids) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id;
  RETURN CASE unfit WHEN 0 THEN least(p_limit, cardinality(p_ids)) ELSE coalesce(unfit - 1, cardinality(p_ids)) END;
END $$;

-- Due tasks become ready, the earliest first; those whose lane is not known get it.
CREATE FUNCTION promote(p_now bigint, p_most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  due bigint[];
  mine bigint[];
  woken bigint[];
  keys double precision[];
  seqs bigint[];
BEGIN
  SELECT array_agg(id) INTO due FROM (
    SELECT id FROM live WHERE state = 'scheduled' AND run_at <= p_now AND run_at >= least_time('due', p_now) ORDER BY run_at, id LIMIT p_most
      FOR UPDATE SKIP LOCKED) first;
  IF due IS NULL THEN RETURN; END IF;
  IF EXISTS (SELECT 1 FROM live WHERE id = ANY(due) AND lane IS NULL) THEN
    PERFORM lane_of(missing.class, missing.source, missing.track) FROM (
      SELECT DISTINCT l.class, b.source, track_of(lost_of(l)) AS track
      FROM live l JOIN bodies b ON b.id = l.id WHERE l.id = ANY(due) AND l.lane IS NULL ORDER BY 2, 1, 3) missing;
    -- Its queue may have got another order since it was enqueued.
    UPDATE live l SET lane = (SELECT a.id FROM lanes a
        WHERE a.source = b.source AND a.class = l.class AND a.track = track_of(lost_of(l))),
      order_key = order_key(q.ordering, b.priority, b.submitted_at, q.last_key, l.ran_at),
      seq = CASE WHEN q.ordering = 'lifo' THEN -l.id ELSE l.id END
      FROM bodies b, classes c, queues q
      WHERE l.id = ANY(due) AND l.lane IS NULL AND b.id = l.id AND c.id = l.class AND q.id = c.queue;
  END IF;
  IF current_setting('holdfast.woke', true) = 'yes' THEN
    -- This transaction holds lanes, so it may wait for no others: what stands in those is left to the next claim.
    SELECT array_agg(id) INTO mine FROM (
      SELECT id FROM lanes WHERE id IN (SELECT lane FROM live WHERE id = ANY(due)) FOR NO KEY UPDATE SKIP LOCKED) own;
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
END $$;

-- What an execution of a task saved for later ones. (A function of its own: with a query in it, `handed` would not be made part of
-- statements.)
CREATE FUNCTION checkpoint_of(p_task bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT value FROM checkpoints WHERE task = p_task);
END $$;

-- Saves it. False where the lease is over, or was handed out only to decide about the task.
CREATE FUNCTION save_checkpoint(p_task bigint, p_execution integer, p_token uuid, p_text text) RETURNS boolean
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM live WHERE id = p_task AND executions = p_execution AND token = p_token AND why IS NULL FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO checkpoints (task, value) VALUES (p_task, p_text) ON CONFLICT (task) DO UPDATE SET value = excluded.value;
  RETURN true;
END $$;

-- What is handed out with a lease, as a list; what is remembered of the task last, and only where there is anything.
CREATE FUNCTION handed(l live, b bodies) RETURNS json LANGUAGE sql AS $$
  SELECT json_build_array(l.id, l.executions, l.class, b.source, b.priority, b.submitted_at, b.payload, l.revision, l.since,
    l.deadline, l.idempotent, b.key, b.policy, l.cancel,
    CASE WHEN l.executions > 1 OR l.why IS NOT NULL OR l.reason IS NOT NULL OR l.error IS NOT NULL OR l.charged IS NOT NULL OR l.deferrals > 0 OR l.suspect
      THEN json_build_object('round_base', l.round_base, 'first_started_at', l.first_started_at, 'charged', l.charged,
        'in_a_row', l.in_a_row, 'deferred_since', l.deferred_since, 'recoveries', l.recoveries, 'lost', lost_of(l),
        'error', l.error, 'expired', l.why = 'expiry', 'checkpoint', checkpoint_of(l.id)) END)
$$;

-- The tasks that were asked for by id, as far as the worker may have them, locked.
CREATE FUNCTION pick_only(p_request json) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  except_ bigint[] := coalesce(texts_of(p_request -> 'except')::bigint[], '{}');
  classes_ integer[];
  suspects integer := (p_request ->> 'suspects')::integer;
  task record;
  picked bigint[] := '{}';
BEGIN
  SELECT array_agg(class) INTO classes_ FROM admitted(p_request, false, 0) a, unnest(a.classes) class;
  FOR task IN
    SELECT l.id, lost_of(l) AS lost FROM json_array_elements_text(p_request -> 'only') WITH ORDINALITY o(id, n)
    JOIN live l ON l.id = o.id::bigint JOIN lanes a ON a.id = l.lane
    WHERE l.state IS NOT DISTINCT FROM 'ready' AND l.class = ANY(classes_) AND l.id <> ALL(except_)
      AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = a.source)
    ORDER BY o.n FOR UPDATE OF l SKIP LOCKED
  LOOP
    EXIT WHEN cardinality(picked) = (p_request ->> 'limit')::integer;
    IF task.lost > 1 THEN
      CONTINUE WHEN picked <> '{}' OR NOT (p_request ->> 'alone')::boolean;
      RETURN ARRAY[task.id];
    END IF;
    CONTINUE WHEN task.lost = 1 AND suspects <= 0;
    suspects := suspects - task.lost;
    picked := picked || task.id;
  END LOOP;
  RETURN picked;
END $$;

-- Leases those of these tasks that are still ready and that nobody else has locked, and answers them in the given order; none where
-- the worker is gone, or has given this claim up.
CREATE FUNCTION lease(p_ids bigint[], p_request json, p_token uuid, p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  worker_ bigint := p_request ->> 'worker';
  -- The classes whose tasks must not run twice.
  once integer[] := '{}';
  mine bigint[] := ARRAY(SELECT id FROM live WHERE id = ANY(p_ids) AND state IS NOT DISTINCT FROM 'ready'
    AND (deadline IS NULL OR deadline > p_now) FOR UPDATE SKIP LOCKED);
  leased bigint[];
  are_unique boolean;
BEGIN
  IF mine = '{}' THEN RETURN '{}'; END IF;
  PERFORM 1 FROM workers WHERE id = worker_ AND NOT gone FOR KEY SHARE;
  IF NOT FOUND OR NOT (p_request ->> 'again')::boolean AND EXISTS (SELECT 1 FROM calls WHERE id = p_token) THEN
    RETURN '{}';
  END IF;
  IF p_request ->> 'notIdempotent' IS NOT NULL THEN
    once := ARRAY(SELECT id FROM classes WHERE type = ANY(texts_of(p_request -> 'notIdempotent')));
  END IF;
  WITH changed AS (
    UPDATE live l SET state = 'running', since = p_now, worker = worker_, token = p_token, revision = 0, cancel = false,
      why = NULL, lost_by = NULL, executions = l.executions + 1,
      idempotent = CASE WHEN l.idempotent IS NULL AND l.class = ANY(once) THEN false ELSE l.idempotent END
    WHERE l.id = ANY(mine) RETURNING l.id, l.unique_while)
  SELECT array_agg(id ORDER BY array_position(p_ids, id)), bool_or(unique_while = 'waiting') INTO leased, are_unique FROM changed;
  IF are_unique THEN
    DELETE FROM uniques u USING live l WHERE l.id = ANY(leased) AND l.unique_while = 'waiting' AND u.task = l.id;
  END IF;
  RETURN leased;
END $$;

-- Leases the next tasks of one queue, whose lock the caller has: at most so many, and ahead of these some more. Where a suspect
-- that must run alone may come and stands before all of them, it is leased by itself.
CREATE FUNCTION take(p_line queue_line, p_request json, p_most integer, p_ahead integer, p_suspects integer, p_alone boolean,
  p_token uuid, p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  except_ bigint[] := coalesce(texts_of(p_request -> 'except')::bigint[], '{}');
  found picked;
  apart picked;
  wanted bigint[];
  taken bigint[] := '{}';
  got bigint[];
  is_exact boolean;
BEGIN
  -- A task that somebody else has locked is about to be cancelled or held: then the next one is taken instead.
  FOR attempt IN 1..3 LOOP
    found := pick(p_line, CASE WHEN p_suspects > 0 THEN '{0,2}' ELSE '{0}' END::integer[], p_most + p_ahead, p_suspects, except_,
      p_now);
    IF p_alone THEN
      apart := pick(p_line, '{3}', 1, 1, except_, p_now);
      IF apart.ids IS NOT NULL AND (found.ids IS NULL OR place_of(p_line, apart.ids[1]) < place_of(p_line, found.ids[1])) THEN
        -- Nothing is claimed ahead behind it.
        IF p_most = 0 THEN RETURN taken; END IF;
        found := apart;
        p_most := 1;
        p_ahead := 0;
      ELSIF cardinality(apart.lanes) > coalesce(cardinality(apart.left_lanes), 0) THEN
        PERFORM rest_lanes(ARRAY(SELECT unnest(apart.lanes) EXCEPT SELECT unnest(apart.left_lanes)), p_now);
      END IF;
    END IF;
    EXIT WHEN found.lanes = '{}';
    wanted := coalesce(found.ids, '{}');
    IF cardinality(wanted) > p_most THEN
      wanted := wanted[1 : ahead_of(wanted, p_most, coalesce(texts_of(p_request -> 'aheadTypes'), '{}'))];
    END IF;
    got := lease(wanted, p_request, p_token, p_now);
    IF got <> '{}' AND (p_line.fair OR p_line.ordering = 'weighted_random') THEN PERFORM serve(p_line, got); END IF;
    is_exact := except_ = '{}' AND cardinality(got) = coalesce(cardinality(found.ids), 0);
    IF is_exact AND (found.has_more OR found.blocks IS NOT NULL) THEN PERFORM rank_lanes(p_line, found, p_now); END IF;
    IF cardinality(found.lanes) > coalesce(cardinality(found.left_lanes), 0) THEN
      PERFORM rest_lanes(ARRAY(SELECT unnest(found.lanes) EXCEPT SELECT unnest(found.left_lanes)), p_now);
    END IF;
    taken := taken || got;
    EXIT WHEN cardinality(got) = cardinality(wanted);
    except_ := except_ || wanted;
    p_most := p_most - cardinality(got);
    p_suspects := p_suspects - suspects_of(got);
  END LOOP;
  RETURN taken;
END $$;

-- Where a task stands in its queue, to be compared with others of the same queue.
CREATE FUNCTION place_of(p_line queue_line, p_id bigint) RETURNS record LANGUAGE sql STABLE AS $$
  SELECT ROW(CASE WHEN (p_line).fair THEN coalesce((SELECT u.turn FROM turns u WHERE u.queue = (p_line).queue
    AND u.source = l.source), l.rank) ELSE 0 END, t.order_key, t.seq)
  FROM live t JOIN lanes l ON l.id = t.lane WHERE t.id = p_id
$$;

CREATE FUNCTION suspects_of(p_ids bigint[]) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT count(*)::integer FROM live WHERE id = ANY(p_ids) AND suspect
$$;

-- Notes what the order of a queue must know of a claim: the last key of a weighted one, and in a fair one whose turn it was.
CREATE FUNCTION serve(p_line queue_line, p_taken bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  served text[];
BEGIN
  IF p_line.ordering = 'weighted_random' THEN
    UPDATE queues q SET last_key = greatest(q.last_key, (SELECT max(order_key) FROM live WHERE id = ANY(p_taken)))
    WHERE q.id = (SELECT id FROM queues WHERE id = p_line.queue FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  IF p_line.fair THEN
    served := ARRAY(SELECT a.source FROM unnest(p_taken) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id
      JOIN lanes a ON a.id = l.lane GROUP BY a.source ORDER BY max(t.n));
    -- A source has a turn since it was first there, but for one that came when the queue became fair: it may just be getting one.
    IF NOT pg_try_advisory_xact_lock(lane_lock() + 5, p_line.queue) THEN
      served := ARRAY(SELECT source FROM unnest(served) WITH ORDINALITY s(source, n)
        WHERE EXISTS (SELECT 1 FROM turns t WHERE t.queue = p_line.queue AND t.source = s.source) ORDER BY n);
    END IF;
    INSERT INTO turns (queue, source, turn) SELECT p_line.queue, source, nextval('turn') FROM unnest(served) source
    ON CONFLICT (queue, source) DO UPDATE SET turn = excluded.turn;
  END IF;
END $$;

-- After a claim that took everything that it found: where lanes stand behind those that were read, these get the ranks that they
-- have now. Ranks are not written where all lanes are read anyway, for each write leaves a dead entry at the head of an index. A
-- lane that somebody else has locked is left as it is: then its rank is too low.
CREATE FUNCTION rank_lanes(p_line queue_line, p_found picked, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  WITH place AS MATERIALIZED (
    -- In a queue in the order of time no rank is raised to the last second: what is committed late may stand there.
    SELECT id, key, CASE WHEN p_line.fair THEN (SELECT t.turn FROM lanes l JOIN turns t ON t.queue = p_line.queue
        AND t.source = l.source WHERE l.id = g.id) WHEN p_line.ordering = 'fifo' THEN least(key, p_now - 1000) ELSE key END AS rank,
      CASE WHEN p_line.fair THEN id WHEN p_line.ordering = 'fifo' AND key > p_now - 1000 THEN 0 ELSE seq END AS seq
    FROM unnest(p_found.left_lanes, p_found.left_keys, p_found.left_seqs) g(id, key, seq)),
  own AS MATERIALIZED (
    SELECT l.id, p.key, p.rank, p.seq FROM place p JOIN lanes l ON l.id = p.id
    WHERE l.active AND (p_found.blocks IS NOT NULL OR (l.rank, l.rank_seq) < (p.rank, p.seq)) FOR NO KEY UPDATE OF l SKIP LOCKED)
  UPDATE lanes l SET rank = CASE WHEN p_found.has_more THEN greatest(l.rank, own.rank) ELSE l.rank END,
    rank_seq = CASE WHEN p_found.has_more AND own.rank > l.rank THEN own.seq
      WHEN p_found.has_more AND own.rank = l.rank THEN greatest(l.rank_seq, own.seq) ELSE l.rank_seq END,
    low_key = CASE WHEN p_found.blocks IS NULL THEN l.low_key ELSE own.key END,
    looked_at = coalesce(believed_until(p_found.blocks, p_now), l.looked_at)
  FROM own WHERE l.id = own.id;
END $$;

-- Puts lanes to rest that have nothing to give, as far as nobody else has them locked or is about to put a task into them. One in
-- which many dead entries were read stays active, with a floor above them: they would be read again when it is woken.
CREATE FUNCTION rest_lanes(p_lanes bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  lane_ bigint;
  blocks bigint;
BEGIN
  FOREACH lane_ IN ARRAY ARRAY(SELECT id FROM lanes WHERE id = ANY(p_lanes) AND active AND looked_at <= p_now
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) LOOP
    -- Who is about to add a task holds the bucket; then the lane stays active, and a later claim looks again.
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(lane_lock(), (lane_ % 64)::integer);
    blocks := blocks_read('live', 'live_ready');
    CONTINUE WHEN EXISTS (SELECT 1 FROM live t WHERE t.lane = lane_ AND t.state = 'ready');
    blocks := blocks_read('live', 'live_ready') - blocks;
    IF blocks < 200 THEN
      UPDATE lanes SET active = false WHERE id = lane_;
    ELSE
      UPDATE lanes SET low_key = 'infinity', looked_at = believed_until(blocks, p_now) WHERE id = lane_;
    END IF;
  END LOOP;
END $$;

-- Since when scheduled tasks may be due ('due'), or waiting ones past their deadline ('deadline').
CREATE FUNCTION least_time(p_name text, p_now bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT floor::bigint FROM floors WHERE name = p_name AND until > p_now), -9223372036854775808)
$$;

-- When the next scheduled task falls due.
CREATE FUNCTION next_due(p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  blocks bigint := blocks_read('live', 'live_scheduled');
  due bigint;
BEGIN
  SELECT run_at INTO due FROM live WHERE state = 'scheduled' AND run_at >= least_time('due', p_now) ORDER BY run_at, id LIMIT 1;
  blocks := blocks_read('live', 'live_scheduled') - blocks;
  IF blocks > 500 THEN PERFORM raise_floor('due', least(due, p_now), blocks, p_now); END IF;
  RETURN due;
END $$;

-- When the next waiting task meets its deadline.
CREATE FUNCTION next_deadline(p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  blocks bigint := blocks_read('live', 'live_deadline');
  next_ bigint;
BEGIN
  SELECT deadline INTO next_ FROM live WHERE deadline IS NOT NULL AND state IN ('scheduled', 'ready')
    AND deadline >= least_time('deadline', p_now) ORDER BY deadline, id LIMIT 1;
  blocks := blocks_read('live', 'live_deadline') - blocks;
  IF blocks > 500 THEN PERFORM raise_floor('deadline', least(next_, p_now), blocks, p_now); END IF;
  RETURN next_;
END $$;

-- The next tasks over all queues that the worker may take from: a fair share of each, then whatever is left, then ahead.
CREATE FUNCTION take_next(p_request json, p_token uuid, p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  lines queue_line[] := ARRAY(SELECT a FROM admitted(p_request, true, p_now) a);
  limit_ integer := (p_request ->> 'limit')::integer;
  ahead integer := coalesce((p_request ->> 'ahead')::integer, 0);
  suspects integer := (p_request ->> 'suspects')::integer;
  alone boolean := (p_request ->> 'alone')::boolean;
  rotation integer := (p_request ->> 'rotation')::integer;
  count_ integer := coalesce(cardinality(lines), 0);
  taken bigint[] := '{}';
  line queue_line;
  got bigint[];
BEGIN
  -- Claims of one queue pick one after the other, each in the exact order of what is left.
  PERFORM pg_advisory_xact_lock(lane_lock() + 4, l.queue) FROM unnest(lines) l;
  IF count_ = 1 THEN RETURN take(lines[1], p_request, limit_, ahead, suspects, alone, p_token, p_now); END IF;
  FOR pass IN 1..3 LOOP
    EXIT WHEN pass = 3 AND (ahead = 0 OR cardinality(taken) < limit_
      OR ahead_of(taken, limit_ - 1, coalesce(texts_of(p_request -> 'aheadTypes'), '{}')) < limit_);
    FOR i IN 0..count_ - 1 LOOP
      line := lines[1 + (rotation + i) % count_];
      got := take(line, p_request,
        CASE pass WHEN 1 THEN least(limit_ - cardinality(taken), ceil(limit_::numeric / count_)::integer)
          WHEN 2 THEN limit_ - cardinality(taken) ELSE 0 END,
        CASE pass WHEN 3 THEN limit_ + ahead - cardinality(taken) ELSE 0 END,
        suspects, alone AND taken = '{}', p_token, p_now);
      IF alone AND taken = '{}' AND got <> '{}' AND (SELECT lost_of(l) > 1 FROM live l WHERE id = got[1]) THEN RETURN got; END IF;
      taken := taken || got;
      IF suspects > 0 THEN suspects := suspects - suspects_of(got); END IF;
      EXIT WHEN pass < 3 AND cardinality(taken) = limit_ OR cardinality(taken) = limit_ + ahead;
    END LOOP;
  END LOOP;
  RETURN taken;
END $$;

-- Leases the next ready tasks to a worker. Answers what it handed out, and when the next one falls due.
CREATE FUNCTION claim(p_request json, p_token uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  worker_ bigint := (p_request ->> 'worker')::bigint;
  taken bigint[];
  due bigint;
  expiring bigint;
  tasks json;
  had_deadline boolean;
BEGIN
  PERFORM 1 FROM workers WHERE id = worker_ AND NOT gone;
  IF NOT FOUND THEN RETURN json_build_object('known', false, 'now', now_, 'expired', false); END IF;
  IF (p_request ->> 'again')::boolean THEN
    -- The answer to this very claim was lost: what it leased is handed out once more. It may be at work still, and then has
    -- this worker locked.
    PERFORM 1 FROM workers WHERE id = worker_ FOR UPDATE;
    -- Or it may come yet, and then finds that it was given up.
    INSERT INTO calls (id, at, answer) VALUES (p_token, now_, 'null') ON CONFLICT DO NOTHING;
    SELECT json_agg(handed(l, b) ORDER BY l.order_key, l.seq) INTO tasks
    FROM live l JOIN bodies b ON b.id = l.id WHERE l.worker = worker_ AND l.state = 'running' AND l.token = p_token;
    IF tasks IS NOT NULL THEN RETURN json_build_object('known', true, 'now', now_, 'expired', false, 'tasks', tasks,
      'next', now_); END IF;
  END IF;
  due := next_due(now_);
  expiring := next_deadline(now_);
  -- First some of what has expired is taken over, and then this is called once more, which hands out what has not expired.
  IF expiring <= now_ AND p_request ->> 'late' IS NULL THEN
    RETURN json_build_object('known', true, 'now', now_, 'next', least(due, expiring), 'expired', true);
  END IF;
  IF due <= now_ THEN PERFORM promote(now_, 1000); END IF;
  taken := CASE WHEN p_request ->> 'only' IS NULL THEN take_next(p_request, p_token, now_)
    ELSE lease(pick_only(p_request), p_request, p_token, now_) END;
  IF taken <> '{}' THEN
    SELECT json_agg(handed(l, b) ORDER BY t.n), bool_or(l.deadline IS NOT NULL) INTO tasks, had_deadline
    FROM unnest(taken) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id JOIN bodies b ON b.id = t.id;
  END IF;
  IF due <= now_ THEN due := next_due(now_); END IF;
  IF had_deadline THEN expiring := next_deadline(now_); END IF;
  RETURN json_build_object('known', true, 'now', now_, 'expired', tasks IS NULL AND coalesce(expiring <= now_, false),
    'tasks', tasks,
    'next', least(due, expiring));
END $$;
