-- How many tasks sources and queues may start now: held sources, probes, paces, concurrency, and the budgets for retries. A claim
-- that takes a task of a limited source has the row of that source locked. It skips a source whose row is already locked, because
-- it must not wait while it has the lock of a queue.

-- How many tasks of a source may start now, and how many that need a token; null: any number. If none may start: why, and when
-- this ends, if it is known. `is_known`: the source has a row.
CREATE TYPE allowance AS (permits integer, tokens integer, is_ramping boolean, backlog_is_next boolean, closed_by text, opens_at bigint,
  is_known boolean);

-- How many starts a pace allows now; null: any number. As in `src/starts.ts`.
CREATE FUNCTION starts_at_pace(p_per_second double precision, p_burst double precision, p_next_start double precision, p_now bigint)
RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_per_second IS NULL THEN NULL WHEN p_next_start > p_now THEN 0
    ELSE least(p_burst, floor((p_now - coalesce(p_next_start, p_now)) * p_per_second / 1000) + 1)::integer END
$$;

-- When it allows the next start after this many.
CREATE FUNCTION after_starts(p_per_second double precision, p_burst double precision, p_next_start double precision, p_count bigint,
  p_now bigint) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_per_second IS NULL THEN p_next_start
    ELSE greatest(coalesce(p_next_start, p_now), p_now - (p_burst - 1) * (1000 / p_per_second)) + p_count * (1000 / p_per_second) END
$$;

-- The pace of a restriction and a limit together: the slower one, with the smaller burst.
CREATE FUNCTION pace_of(s source_states) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT least(s.per_second, s.limit_per_second)
$$;
CREATE FUNCTION burst_of(s source_states) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT least(s.burst, s.limit_burst)
$$;

-- The tokens of a budget at this time.
CREATE FUNCTION tokens_of(s source_states, p_now bigint) RETURNS double precision LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN s.tokens IS NULL THEN budget_full()
    ELSE least(budget_full(), s.tokens + greatest(p_now - s.tokens_at, 0) / budget_refill_every()) END
$$;

-- Whether this row limits starts, or may do so soon.
CREATE FUNCTION is_limiting(s source_states) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT s.restriction IS NOT NULL OR s.closed_by IS NOT NULL OR s.limit_per_second IS NOT NULL OR s.limit_concurrency IS NOT NULL
$$;

CREATE FUNCTION allowance_of(s source_states, p_now bigint) RETURNS allowance LANGUAGE plpgsql AS $$
DECLARE
  found allowance;
  starts integer;
  next_probe bigint;
BEGIN
  found.tokens := floor(tokens_of(s, p_now) + 1e-9);
  found.is_ramping := s.is_ramping;
  found.backlog_is_next := s.backlog_is_next;
  IF s.shut_until > p_now THEN
    found.permits := 0;
    found.closed_by := s.cause;
    found.opens_at := nullif(s.shut_until, 9223372036854775807);
    RETURN found;
  END IF;
  IF s.is_probing THEN
    found.permits := 1;
    next_probe := (SELECT max(since) + probe_holds_for() FROM live WHERE counted = s.name AND state = 'running' AND is_probe);
    IF next_probe > p_now THEN
      found.permits := 0;
      found.closed_by := s.cause;
      found.opens_at := next_probe;
      RETURN found;
    END IF;
  END IF;
  starts := starts_at_pace(pace_of(s), burst_of(s), s.next_start, p_now);
  found.permits := least(found.permits, starts);
  IF starts = 0 THEN
    found.closed_by := CASE WHEN s.limit_per_second = pace_of(s) THEN 'pace' ELSE s.cause END;
    found.opens_at := ceil(s.next_start);
    RETURN found;
  END IF;
  IF s.limit_concurrency IS NOT NULL THEN
    found.permits := least(found.permits, greatest(0, s.limit_concurrency
      - (SELECT count(*) FROM live WHERE counted = s.name AND state = 'running')::integer));
    IF found.permits = 0 THEN found.closed_by := 'concurrency'; END IF;
  END IF;
  RETURN found;
END $$;

-- The allowance of a source by its name, none where it is among those that the claim leaves out.
CREATE FUNCTION allowance_now(p_source text, p_without text[], p_now bigint) RETURNS allowance LANGUAGE plpgsql AS $$
DECLARE
  s source_states;
  found allowance;
BEGIN
  SELECT * INTO s FROM source_states WHERE name = p_source;
  IF s.name IS NULL THEN
    found.tokens := budget_full();
    found.is_known := false;
    IF p_source = ANY(p_without) THEN found.permits := 0; END IF;
    RETURN found;
  END IF;
  found := allowance_of(s, p_now);
  found.is_known := true;
  IF s.closed_by IS NOT NULL OR p_source = ANY(p_without) THEN found.permits := 0; END IF;
  IF s.budget_opens_at IS NOT NULL THEN found.tokens := 0; END IF;
  RETURN found;
END $$;

-- Those of these tasks that their sources let start, in the given order. The rows of these sources are locked; `locked_elsewhere` are those that
-- somebody else has locked, of which nothing is admitted.
CREATE FUNCTION admitted(p_ids bigint[], p_now bigint, OUT ids bigint[], OUT locked_elsewhere text[]) LANGUAGE plpgsql AS $$
DECLARE
  names text[];
  need_tokens text[];
  locked text[] := '{}';
  permits integer[] := '{}';
  tokens integer[] := '{}';
  s source_states;
  found allowance;
  task record;
  place integer;
BEGIN
  ids := '{}';
  SELECT array_agg(DISTINCT a.source), array_agg(DISTINCT a.source) FILTER (WHERE a.track = 1) INTO names, need_tokens
    FROM live l JOIN lanes a ON a.id = l.lane WHERE l.id = ANY(p_ids);
  -- A source with a full budget may have no row. A transaction that makes the row has this lock, and may wait for the lock of the
  -- queue. So this only tries to get it.
  INSERT INTO source_states (name) SELECT w.name FROM unnest(need_tokens) w(name)
    WHERE NOT EXISTS (SELECT 1 FROM source_states o WHERE o.name = w.name)
      AND pg_try_advisory_xact_lock(lane_lock() + 6, hashtext(w.name)) ORDER BY w.name ON CONFLICT DO NOTHING;
  FOR s IN SELECT * FROM source_states o WHERE o.name = ANY(names) AND (is_limiting(o) OR o.name = ANY(need_tokens)) ORDER BY o.name
    FOR UPDATE SKIP LOCKED
  LOOP
    found := allowance_of(s, p_now);
    IF s.closed_by IS NOT NULL THEN found.permits := 0; END IF;
    IF s.budget_opens_at IS NOT NULL THEN found.tokens := 0; END IF;
    locked := locked || s.name;
    permits := permits || found.permits;
    tokens := tokens || found.tokens;
  END LOOP;
  locked_elsewhere := ARRAY(SELECT o.name FROM source_states o WHERE o.name = ANY(names) AND o.name <> ALL(locked)
      AND (is_limiting(o) OR o.name = ANY(need_tokens))
    UNION SELECT name FROM unnest(need_tokens) name WHERE name <> ALL(locked));
  FOR task IN
    SELECT t.id, a.source, a.track FROM unnest(p_ids) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id JOIN lanes a ON a.id = l.lane
    ORDER BY t.n
  LOOP
    CONTINUE WHEN task.source = ANY(locked_elsewhere);
    place := array_position(locked, task.source);
    IF place IS NOT NULL THEN
      CONTINUE WHEN permits[place] = 0 OR task.track = 1 AND tokens[place] = 0;
      permits[place] := permits[place] - 1;
      IF task.track = 1 THEN tokens[place] := tokens[place] - 1; END IF;
    END IF;
    ids := ids || task.id;
  END LOOP;
END $$;

-- Counts the started tasks of the sources whose rows this claim has locked, while they run too if the source is probed or its
-- concurrency is limited, and holds the sources that may start no more.
CREATE FUNCTION note_starts(p_ids bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  started record;
  s source_states;
  closed text[] := '{}';
BEGIN
  UPDATE live l SET counted = o.name, is_probe = o.is_probing FROM lanes a JOIN source_states o ON o.name = a.source
  WHERE l.id = ANY(p_ids) AND a.id = l.lane AND (o.is_probing OR o.limit_concurrency IS NOT NULL);
  FOR started IN
    SELECT a.source, count(*) AS starts, count(*) FILTER (WHERE a.track = 1) AS spent,
      (array_agg(a.track ORDER BY t.n DESC))[1] AS last_track
    FROM unnest(p_ids) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id JOIN lanes a ON a.id = l.lane GROUP BY 1 ORDER BY 1
  LOOP
    SELECT * INTO s FROM source_states o WHERE o.name = started.source AND (is_limiting(o) OR started.spent > 0)
      FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    s.next_start := after_starts(pace_of(s), burst_of(s), s.next_start, started.starts, p_now);
    IF s.is_ramping THEN s.backlog_is_next := started.last_track = 4; END IF;
    IF started.spent > 0 THEN
      s.tokens := greatest(0, tokens_of(s, p_now) - started.spent);
      s.tokens_at := p_now;
    END IF;
    s := closed_if_needed(s, p_now);
    PERFORM save_source(s);
    IF s.closed_by IS NOT NULL OR s.budget_opens_at IS NOT NULL THEN closed := closed || s.name; END IF;
  END LOOP;
  IF closed <> '{}' THEN
    PERFORM rest_lanes(ARRAY(SELECT id FROM lanes WHERE source = ANY(closed) AND active), p_now);
  END IF;
END $$;

-- Marks a source that may start no task now as closed. A source that may start tasks again stays closed until the next claim
-- opens it and its lanes.
CREATE FUNCTION closed_if_needed(s source_states, p_now bigint) RETURNS source_states LANGUAGE plpgsql AS $$
DECLARE
  found allowance;
BEGIN
  -- A slow pace that was set before does not delay starts longer than the present one would.
  s.next_start := CASE WHEN s.next_start > p_now + 1000 / pace_of(s) THEN p_now + 1000 / pace_of(s) WHEN pace_of(s) IS NOT NULL THEN s.next_start END;
  found := allowance_of(s, p_now);
  IF found.permits = 0 THEN
    s.closed_by := found.closed_by;
    s.opens_at := found.opens_at;
  ELSIF s.closed_by IS NOT NULL THEN
    s.opens_at := p_now;
  END IF;
  IF tokens_of(s, p_now) >= budget_full() THEN
    s.tokens := NULL;
    s.tokens_at := NULL;
  END IF;
  IF found.tokens < 1 THEN
    s.budget_opens_at := s.tokens_at + ceil((1 - s.tokens) * budget_refill_every());
  ELSIF s.budget_opens_at IS NOT NULL THEN
    s.budget_opens_at := p_now;
  END IF;
  RETURN s;
END $$;

CREATE FUNCTION save_source(s source_states) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE source_states o SET revision = s.revision, memory = s.memory, written_at = s.written_at, restriction = s.restriction,
    cause = s.cause, shut_until = s.shut_until, is_probing = s.is_probing, per_second = s.per_second, burst = s.burst,
    is_ramping = s.is_ramping, backlog_is_next = s.backlog_is_next, tokens = s.tokens, tokens_at = s.tokens_at,
    limit_per_second = s.limit_per_second, limit_burst = s.limit_burst, limit_concurrency = s.limit_concurrency,
    pace_by = s.pace_by, concurrency_by = s.concurrency_by, next_start = s.next_start, closed_by = s.closed_by, opens_at = s.opens_at, budget_opens_at = s.budget_opens_at
  WHERE o.name = s.name;
END $$;

-- How many tasks of a queue may start now; null: any number. `is_locked`: another transaction is changing the queue, and no task
-- may start until it ends.
CREATE FUNCTION queue_allowance(p_queue integer, p_now bigint, OUT permits integer, OUT is_locked boolean) LANGUAGE plpgsql AS $$
DECLARE
  q queues;
BEGIN
  SELECT * INTO q FROM queues WHERE id = p_queue FOR NO KEY UPDATE SKIP LOCKED;
  is_locked := NOT FOUND;
  IF is_locked THEN
    permits := 0;
    RETURN;
  END IF;
  permits := starts_at_pace(q.per_second, q.burst, q.next_start, p_now);
  IF q.concurrency IS NOT NULL THEN
    permits := least(permits, greatest(0, q.concurrency
      - (SELECT count(*) FROM live WHERE counted_queue = p_queue AND state = 'running')::integer));
  END IF;
END $$;

-- The same for their queues.
CREATE FUNCTION note_queue_starts(p_ids bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE live l SET counted_queue = q.id FROM classes c JOIN queues q ON q.id = c.queue
  WHERE l.id = ANY(p_ids) AND c.id = l.class AND q.concurrency IS NOT NULL;
  UPDATE queues q SET next_start = after_starts(per_second, burst, next_start, started.count, p_now)
  FROM (SELECT c.queue, count(*) AS count FROM live l JOIN classes c ON c.id = l.class WHERE l.id = ANY(p_ids) GROUP BY 1) started
  WHERE q.id = started.queue AND q.per_second IS NOT NULL;
END $$;
