-- Claiming. A claim reads the heads of lanes, so its cost is that of what it takes, however much waits, is scheduled, has ended,
-- or belongs to a source that is held.

-- A list of texts, if it is one. (Functions in plpgsql keep their plans; those in SQL that are not made part of a statement do not.)
CREATE FUNCTION texts_of(p_list json) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
  IF p_list IS NULL OR json_typeof(p_list) <> 'array' THEN RETURN NULL; END IF;
  RETURN ARRAY(SELECT json_array_elements_text(p_list));
END $$;

-- The lanes that come first, at most so many, or of so many sources in a fair queue; and where the next one behind them stands. Those that others hold are left out
-- where they are asked for spared; then all are locked.
CREATE FUNCTION first_lanes(p_classes integer[], p_fair boolean, p_most integer, p_spared boolean, OUT lanes_ bigint[],
  OUT next_rank double precision, OUT next_seq bigint)
LANGUAGE plpgsql AS $$
BEGIN
  IF p_spared THEN
    SELECT array_agg(x.id ORDER BY x.rank, x.rank_seq) INTO lanes_ FROM unnest(p_classes) c(id) CROSS JOIN LATERAL (
      SELECT l.id, l.rank, l.rank_seq FROM lanes l WHERE l.class = c.id AND l.track = 0 AND l.active
        AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source)
      ORDER BY l.rank, l.rank_seq LIMIT p_most FOR NO KEY UPDATE OF l SKIP LOCKED) x;
    RETURN;
  END IF;
  SELECT array_agg(id ORDER BY n) FILTER (WHERE n <= p_most), max(rank) FILTER (WHERE n > p_most),
    max(rank_seq) FILTER (WHERE n > p_most)
  INTO lanes_, next_rank, next_seq FROM (
    SELECT x.id, x.rank, x.rank_seq, CASE WHEN p_fair THEN dense_rank() OVER (ORDER BY x.rank)
      ELSE row_number() OVER (ORDER BY x.rank, x.rank_seq) END AS n FROM unnest(p_classes) c(id) CROSS JOIN LATERAL (
      SELECT l.id, l.rank, l.rank_seq FROM lanes l WHERE l.class = c.id AND l.track = 0 AND l.active
        AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source)
      ORDER BY l.rank, l.rank_seq LIMIT p_most + 1) x) first
  WHERE n <= p_most + 1;
END $$;

-- The tasks that a worker may take from one queue, at most so many, in the queue's order, locked; not yet leased. What the
-- same claim picked before counts as a turn of its source.
CREATE FUNCTION pick(p_classes integer[], p_fair boolean, p_most integer, p_suspects integer, p_except bigint[], p_picked bigint[],
  p_now bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  room integer := p_most + cardinality(p_except);
  found record;
  candidates bigint[];
  suspects bigint[];
  spared boolean := false;
  picked bigint[];
  used bigint[];
  mine bigint[];
  each integer;
  is_cut boolean;
  is_beyond boolean;
  at_once integer := 1;
  taken bigint[] := '{}';
  more bigint[];
  lane_ bigint;
BEGIN
  IF p_most <= 0 THEN RETURN '{}'; END IF;
  IF p_suspects > 0 THEN
    SELECT array_agg(l.id) INTO suspects FROM unnest(p_classes) c(id) CROSS JOIN LATERAL (
      SELECT l.id FROM lanes l WHERE l.class = c.id AND l.track = 2 AND l.active
        AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source)
      ORDER BY l.rank, l.rank_seq LIMIT p_suspects + cardinality(p_except)) l;
  END IF;
  IF p_fair AND (SELECT count(*) FROM (SELECT 1 FROM lanes l WHERE l.class = ANY(p_classes) AND l.track IN (0, 2)
    AND l.active LIMIT 1000) many) >= 1000 THEN
    at_once := 4;
  END IF;
  LOOP
    found := first_lanes(p_classes, p_fair, room, spared);
    candidates := coalesce(found.lanes_, '{}') || coalesce(suspects, '{}');
    IF p_fair AND found.lanes_ IS NOT NULL THEN
      -- All lanes of a source have its turn together.
      SELECT array_agg(l.id) || coalesce(suspects, '{}') INTO candidates FROM lanes l
      WHERE l.source = ANY(ARRAY(SELECT f.source FROM lanes f WHERE f.id = ANY(found.lanes_))) AND l.class = ANY(p_classes)
        AND l.track = 0 AND l.active;
    END IF;
    IF candidates = '{}' THEN
      EXIT WHEN spared;
      RETURN '{}';
    END IF;
    IF cardinality(candidates) = 1 AND suspects IS NULL AND (room > 1 OR p_fair) THEN
      -- One lane, which is the common case: its first tasks that nobody else is taking.
      PERFORM 1 FROM lanes WHERE id = candidates[1] AND active FOR NO KEY UPDATE SKIP LOCKED;
      SELECT array_agg(id ORDER BY order_key, seq) INTO more FROM (
        SELECT t.id, t.order_key, t.seq FROM live t WHERE t.lane = candidates[1] AND t.state = 'ready'
          AND t.order_key >= (SELECT CASE WHEN l.looked_at > p_now - 1000 THEN l.low_key ELSE '-infinity' END FROM lanes l
            WHERE l.id = candidates[1])
          AND t.id <> ALL(p_except)
        ORDER BY t.order_key, t.seq LIMIT p_most FOR UPDATE SKIP LOCKED) first;
      IF more IS NULL THEN
        PERFORM rest_lanes(candidates, p_now);
        IF found.next_rank IS NOT NULL THEN
          room := room * 4;
          CONTINUE;
        END IF;
      END IF;
      RETURN coalesce(more, '{}');
    END IF;
    each := least(p_most, 2 * p_most / cardinality(candidates) + at_once + 1);
    LOOP
      WITH served_before AS MATERIALIZED (
        SELECT l.source, count(*) AS count FROM live t JOIN lanes l ON l.id = t.lane
          WHERE t.id = ANY(p_picked) AND t.class = ANY(p_classes) GROUP BY l.source),
      heads AS MATERIALIZED (
        SELECT t.id, t.order_key, t.seq, l.id AS lane, l.track, l.source, l.rank,
          row_number() OVER (PARTITION BY l.track = 2 ORDER BY CASE WHEN p_fair THEN l.rank END, t.order_key, t.seq) AS nth
        FROM unnest(candidates) c(id) JOIN lanes l ON l.id = c.id CROSS JOIN LATERAL (
          SELECT t.id, t.order_key, t.seq FROM live t WHERE t.lane = l.id AND t.state = 'ready'
            AND t.order_key >= CASE WHEN l.looked_at > p_now - 1000 THEN l.low_key ELSE '-infinity' END AND t.id <> ALL(p_except)
          ORDER BY t.order_key, t.seq LIMIT CASE l.track WHEN 2 THEN p_suspects ELSE each END) t),
      turns AS (
        SELECT h.*, CASE WHEN p_fair THEN row_number() OVER (PARTITION BY h.source ORDER BY h.order_key, h.seq) - 1
          + coalesce((SELECT b.count FROM served_before b WHERE b.source = h.source), 0) END AS place
        FROM heads h WHERE h.track <> 2 OR h.nth <= p_suspects),
      first AS MATERIALIZED (
        SELECT id, lane, order_key, seq, track,
          row_number() OVER (ORDER BY place / at_once, CASE WHEN p_fair THEN rank END, place, order_key, seq) AS n
        FROM turns ORDER BY n LIMIT p_most),
      by_lane AS (SELECT lane, count(*) AS count FROM first WHERE track <> 2 GROUP BY lane)
      SELECT (SELECT array_agg(id ORDER BY n) FROM first), (SELECT array_agg(DISTINCT lane) FROM first),
        (SELECT bool_or(count >= each) FROM by_lane),
        NOT p_fair AND ((SELECT count(*) FROM first) < p_most
          OR (SELECT (order_key, seq) > (found.next_rank, found.next_seq) FROM first ORDER BY n DESC LIMIT 1))
      INTO picked, used, is_cut, is_beyond;
      -- A lane that gave all that was read of it might have given more: then all are read as deep as can matter.
      EXIT WHEN each >= p_most OR is_cut IS NOT TRUE;
      each := p_most;
    END LOOP;
    -- A lane further behind may stand before these, where the ranks of the first ones were too low.
    IF found.next_rank IS NOT NULL AND (is_beyond OR picked IS NULL) THEN
      room := room * 4;
      CONTINUE;
    END IF;
    IF picked IS NULL THEN
      PERFORM rest_lanes(candidates, p_now);
      EXIT WHEN spared;
      RETURN '{}';
    END IF;
    SELECT array_agg(id) INTO mine FROM (SELECT id FROM lanes WHERE id = ANY(used) AND active FOR NO KEY UPDATE SKIP LOCKED) own;
    IF cardinality(mine) = cardinality(used) THEN
      SELECT array_agg(id ORDER BY array_position(picked, id)) INTO taken FROM (
        SELECT id FROM live WHERE id = ANY(picked) AND state IS NOT DISTINCT FROM 'ready' FOR UPDATE SKIP LOCKED) own;
      taken := coalesce(taken, '{}');
      IF cardinality(taken) = cardinality(picked) THEN RETURN taken; END IF;
      EXIT;
    END IF;
    EXIT WHEN spared;
    -- Somebody else is at some of these lanes: those behind them serve as well.
    spared := true;
  END LOOP;
  -- Others take from the same lanes at this moment: what they leave is taken, wherever it stands.
  FOREACH lane_ IN ARRAY coalesce((first_lanes(p_classes, p_fair, 4 * room + 100, false)).lanes_, '{}') LOOP
    EXIT WHEN cardinality(taken) >= p_most;
    SELECT array_agg(id ORDER BY order_key, seq) INTO more FROM (
      SELECT t.id, t.order_key, t.seq FROM live t WHERE t.lane = lane_ AND t.state = 'ready' AND t.id <> ALL(p_except || taken)
      ORDER BY t.order_key, t.seq LIMIT p_most - cardinality(taken) FOR UPDATE SKIP LOCKED) t;
    taken := taken || coalesce(more, '{}');
  END LOOP;
  RETURN taken;
END $$;

-- Puts lanes to rest that have nothing to give, as far as nobody else is at them.
CREATE FUNCTION rest_lanes(p_lanes bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  mine bigint[];
BEGIN
  SELECT array_agg(id) INTO mine FROM (SELECT id FROM lanes WHERE id = ANY(p_lanes) AND active FOR NO KEY UPDATE SKIP LOCKED) own;
  IF mine IS NULL THEN RETURN; END IF;
  PERFORM settle_lanes(mine, array_fill('-infinity'::double precision, ARRAY[cardinality(mine)]), p_now);
END $$;

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
    SELECT id FROM live WHERE state = 'scheduled' AND run_at <= p_now ORDER BY run_at, id LIMIT p_most
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

-- The classes that a worker may take from, by queue; those of paused queues are left out.
CREATE TYPE queue_line AS (queue integer, fair boolean, classes integer[]);
CREATE FUNCTION admitted(p_request json, p_active boolean) RETURNS SETOF queue_line LANGUAGE plpgsql AS $$
DECLARE
  types text[] := texts_of(p_request -> 'types');
  queues_ text[] := texts_of(p_request -> 'queues');
  categories text[] := texts_of(p_request -> 'categories');
  capabilities jsonb := p_request -> 'capabilities';
BEGIN
  RETURN QUERY SELECT q.id, q.fair, array_agg(c.id) FROM classes c JOIN queues q ON q.id = c.queue
    WHERE q.paused_at IS NULL AND (types IS NULL OR c.type = ANY(types)) AND (queues_ IS NULL OR q.name = ANY(queues_))
      AND (categories IS NULL OR c.category = ANY(categories))
      AND (c.needs = '{}' OR NOT EXISTS (SELECT 1 FROM jsonb_each(c.needs::jsonb) need
        WHERE NOT coalesce(CASE WHEN jsonb_typeof(need.value) = 'number'
          THEN jsonb_typeof(capabilities -> need.key) = 'number' AND (capabilities -> need.key)::numeric >= need.value::numeric
          ELSE capabilities -> need.key = need.value END, false)))
      AND (NOT p_active OR EXISTS (SELECT 1 FROM lanes l WHERE l.class = c.id AND l.active))
    GROUP BY q.id, q.fair ORDER BY q.id;
END $$;

-- The task that must run alone and stands first among its like in a queue, locked, if it stands before the one that would be
-- given first.
CREATE FUNCTION pick_apart(p_classes integer[], p_fair boolean, p_except bigint[], p_first bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  found bigint;
BEGIN
  SELECT x.id INTO found FROM (
    SELECT t.id, l.rank, t.order_key, t.seq FROM unnest(p_classes) c(id) CROSS JOIN LATERAL (
      SELECT o.id, CASE WHEN p_fair THEN o.rank END AS rank FROM lanes o WHERE o.class = c.id AND o.track = 3 AND o.active
        AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = o.source)
      ORDER BY o.rank, o.rank_seq LIMIT 1 + cardinality(p_except)) l
    CROSS JOIN LATERAL (
      SELECT t.id, t.order_key, t.seq FROM live t WHERE t.lane = l.id AND t.state = 'ready' AND t.id <> ALL(p_except)
      ORDER BY t.order_key, t.seq LIMIT 1) t
    ORDER BY l.rank, t.order_key, t.seq LIMIT 1) x
  WHERE p_first IS NULL OR (coalesce(x.rank, 0), x.order_key, x.seq) < (
    SELECT CASE WHEN p_fair THEN l.rank ELSE 0 END, t.order_key, t.seq FROM live t JOIN lanes l ON l.id = t.lane WHERE t.id = p_first);
  IF found IS NULL THEN RETURN NULL; END IF;
  RETURN (SELECT id FROM live WHERE id = found AND state IS NOT DISTINCT FROM 'ready' FOR UPDATE SKIP LOCKED);
END $$;

-- The tasks that were asked for by id, as far as the worker may have them, locked.
CREATE FUNCTION pick_only(p_request json, p_except bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  classes_ integer[];
  suspects integer := (p_request ->> 'suspects')::integer;
  task record;
  picked bigint[] := '{}';
BEGIN
  SELECT array_agg(class) INTO classes_ FROM admitted(p_request, false) a, unnest(a.classes) class;
  FOR task IN
    SELECT l.id, lost_of(l) AS lost FROM json_array_elements_text(p_request -> 'only') WITH ORDINALITY o(id, n)
    JOIN live l ON l.id = o.id::bigint JOIN lanes a ON a.id = l.lane
    WHERE l.state IS NOT DISTINCT FROM 'ready' AND l.class = ANY(classes_) AND l.id <> ALL(p_except)
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

-- The tasks that come next, over all queues that the worker may take from: a fair share of each, then whatever is left.
CREATE FUNCTION pick_next(p_request json, p_except bigint[], p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  lines queue_line[] := ARRAY(SELECT a FROM admitted(p_request, true) a);
  limit_ integer := (p_request ->> 'limit')::integer;
  ahead integer := coalesce((p_request ->> 'ahead')::integer, 0);
  short text[] := coalesce(texts_of(p_request -> 'aheadTypes'), '{}');
  suspects integer := (p_request ->> 'suspects')::integer;
  alone boolean := (p_request ->> 'alone')::boolean;
  apart bigint;
  rotation integer := (p_request ->> 'rotation')::integer;
  picked bigint[] := '{}';
  more bigint[];
  place queue_line;
  room integer;
  fitting integer;
BEGIN
  IF cardinality(lines) = 1 THEN
    picked := pick(lines[1].classes, lines[1].fair, limit_ + ahead, suspects, p_except, '{}', p_now);
    IF alone AND limit_ > 0 THEN
      apart := pick_apart(lines[1].classes, lines[1].fair, p_except, picked[1]);
      IF apart IS NOT NULL THEN RETURN ARRAY[apart]; END IF;
    END IF;
    RETURN CASE WHEN cardinality(picked) <= limit_ THEN picked ELSE picked[1 : ahead_of(picked, limit_, short)] END;
  END IF;
  FOR pass IN 1..3 LOOP
    EXIT WHEN pass = 3 AND (ahead = 0 OR cardinality(picked) < limit_ OR ahead_of(picked, limit_ - 1, short) < limit_);
    FOR i IN 0..coalesce(cardinality(lines), 0) - 1 LOOP
      place := lines[1 + (rotation + i) % cardinality(lines)];
      room := CASE pass WHEN 1 THEN least(limit_ - cardinality(picked), ceil(limit_::numeric / cardinality(lines))::integer)
        WHEN 2 THEN limit_ - cardinality(picked) ELSE limit_ + ahead - cardinality(picked) END;
      CONTINUE WHEN room <= 0;
      more := pick(place.classes, place.fair, room, CASE WHEN pass < 3 THEN suspects ELSE 0 END, p_except || picked, picked, p_now);
      IF suspects > 0 THEN suspects := suspects - (SELECT count(*) FROM live WHERE id = ANY(more) AND suspect); END IF;
      IF alone AND picked = '{}' THEN
        apart := pick_apart(place.classes, place.fair, p_except, more[1]);
        IF apart IS NOT NULL THEN RETURN ARRAY[apart]; END IF;
      END IF;
      IF pass < 3 THEN
        picked := picked || more;
      ELSE
        fitting := ahead_of(picked || more, limit_, short);
        picked := (picked || more)[1 : fitting];
      END IF;
    END LOOP;
  END LOOP;
  RETURN picked;
END $$;

-- Leases the next ready tasks to a worker. Answers what it handed out, and when the next one falls due.
CREATE FUNCTION claim(p_request json, p_token uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  worker_ bigint := (p_request ->> 'worker')::bigint;
  excepted bigint[] := coalesce(texts_of(p_request -> 'except')::bigint[], '{}');
  due bigint;
  expiring bigint;
  ids bigint[];
  tasks json;
  lanes_ bigint[];
  last_keys double precision[];
  mine bigint[];
  are_unique boolean;
  had_deadline boolean := false;
  has_expired boolean := false;
  -- The classes whose tasks must not run twice.
  once integer[] := '{}';
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
  SELECT run_at INTO due FROM live WHERE state = 'scheduled' ORDER BY run_at, id LIMIT 1;
  SELECT deadline INTO expiring FROM live WHERE deadline IS NOT NULL AND state IN ('scheduled', 'ready') ORDER BY deadline,
    id LIMIT 1;
  -- First some of what has expired is taken over, and then this is called once more, which hands out what has not expired.
  IF expiring <= now_ AND p_request ->> 'late' IS NULL THEN
    RETURN json_build_object('known', true, 'now', now_, 'next', least(due, expiring), 'expired', true);
  END IF;
  IF due <= now_ THEN PERFORM promote(now_, 1000); END IF;

  ids := CASE WHEN p_request ->> 'only' IS NULL THEN pick_next(p_request, excepted, now_) ELSE pick_only(p_request, excepted) END;
  IF cardinality(ids) > 0 THEN
    PERFORM 1 FROM workers WHERE id = worker_ AND NOT gone FOR KEY SHARE;
    IF NOT FOUND THEN RETURN json_build_object('known', false, 'now', now_, 'expired', false); END IF;
    IF NOT (p_request ->> 'again')::boolean AND EXISTS (SELECT 1 FROM calls WHERE id = p_token) THEN
      RETURN json_build_object('known', true, 'now', now_, 'expired', false);
    END IF;
    IF p_request ->> 'notIdempotent' IS NOT NULL THEN
      once := ARRAY(SELECT id FROM classes WHERE type = ANY(texts_of(p_request -> 'notIdempotent')));
    END IF;
    WITH leased AS MATERIALIZED (
      UPDATE live l SET state = 'running', since = now_, worker = worker_, token = p_token, revision = 0, cancel = false,
        why = NULL, lost_by = NULL, executions = l.executions + 1,
        idempotent = CASE WHEN l.idempotent IS NULL AND l.class = ANY(once) THEN false ELSE l.idempotent END
      -- One whose deadline has passed may have come since that was looked for.
      WHERE l.id = ANY(ids) AND (l.deadline IS NULL OR l.deadline > now_) RETURNING l),
    by_lane AS (SELECT (l).lane, max((l).order_key) AS key FROM leased GROUP BY 1)
    SELECT (SELECT json_agg(handed(d.l, b) ORDER BY array_position(ids, b.id)) FROM leased d JOIN bodies b ON b.id = (d.l).id),
      (SELECT bool_or((l).unique_while = 'waiting') FROM leased), (SELECT bool_or((l).deadline IS NOT NULL) FROM leased),
      (SELECT count(*) < cardinality(ids) FROM leased),
      array_agg(lane), array_agg(key)
    INTO tasks, are_unique, had_deadline, has_expired, lanes_, last_keys FROM by_lane;
    IF are_unique THEN
      DELETE FROM uniques u USING live l WHERE l.id = ANY(ids) AND l.unique_while = 'waiting' AND u.task = l.id;
    END IF;
    PERFORM served(ids, lanes_, now_);
    SELECT array_agg(id) INTO mine FROM (SELECT id FROM lanes WHERE id = ANY(lanes_)
      AND active FOR NO KEY UPDATE SKIP LOCKED) own;
    IF mine IS NOT NULL THEN
      -- What was passed over may be taken later, so nothing is known of where a lane begins then.
      PERFORM settle_lanes(mine, (SELECT array_agg(CASE WHEN cardinality(excepted) > 0 OR p_request ->> 'only' IS NOT NULL
        THEN '-infinity' ELSE last_keys[array_position(lanes_, m)] END ORDER BY n) FROM unnest(mine) WITH ORDINALITY o(m,
          n)), now_);
    END IF;
  END IF;
  IF due <= now_ THEN SELECT run_at INTO due FROM live WHERE state = 'scheduled' ORDER BY run_at, id LIMIT 1; END IF;
  IF had_deadline THEN
    SELECT deadline INTO expiring FROM live WHERE deadline IS NOT NULL AND state IN ('scheduled', 'ready')
      ORDER BY deadline, id LIMIT 1;
  END IF;
  RETURN json_build_object('known', true, 'now', now_, 'expired', has_expired, 'tasks', tasks, 'next', least(due, expiring));
END $$;

-- Notes what the order of queues must know of a claim: the last key of weighted ones, and in fair ones whose turn it was.
CREATE FUNCTION served(p_ids bigint[], p_lanes bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  queue_ record;
  sources_ text[];
BEGIN
  FOR queue_ IN
    SELECT q.id, q.fair, q.ordering FROM queues q WHERE (q.fair OR q.ordering = 'weighted_random')
      AND EXISTS (SELECT 1 FROM unnest(p_lanes) p(lane) JOIN lanes l ON l.id = p.lane JOIN classes c ON c.id = l.class
        WHERE c.queue = q.id)
    ORDER BY q.id
  LOOP
    IF queue_.ordering = 'weighted_random' THEN
      -- Where somebody else is at it, that one notes a key as good as this.
      UPDATE queues q SET last_key = greatest(q.last_key, (SELECT max(t.order_key) FROM live t JOIN classes c ON c.id = t.class
        WHERE t.id = ANY(p_ids) AND c.queue = queue_.id))
      WHERE q.id = (SELECT id FROM queues WHERE id = queue_.id FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    IF queue_.fair THEN
      SELECT array_agg(x.source ORDER BY x.last) INTO sources_ FROM (
        SELECT a.source, max(i.n) AS last FROM unnest(p_ids) WITH ORDINALITY i(id, n) JOIN live t ON t.id = i.id
          JOIN lanes a ON a.id = t.lane
        JOIN classes c ON c.id = a.class WHERE c.queue = queue_.id GROUP BY a.source) x;
      WITH turns AS MATERIALIZED (SELECT source, nextval('turn') AS next FROM unnest(sources_) source),
      own AS MATERIALIZED (
        SELECT l.id, t.next FROM turns t JOIN lanes l ON l.source = t.source JOIN classes c ON c.id = l.class
        WHERE c.queue = queue_.id FOR NO KEY UPDATE OF l SKIP LOCKED)
      UPDATE lanes l SET rank = own.next, rank_seq = l.id FROM own WHERE l.id = own.id;
    END IF;
  END LOOP;
END $$;
