-- Workers, the leases that they lost, and waiting tasks whose deadline has passed, which are leased to be decided about.

CREATE FUNCTION join_worker(p_call uuid, p_worker json) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  done json;
  joined bigint;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done #>> '{}'; END IF;
  INSERT INTO workers (name, joined_at, lease_for, lease_until, takes, host, pid, pid_started, boot, pid_space)
  VALUES (p_worker ->> 'name', now_, (p_worker ->> 'leaseFor')::bigint, now_ + (p_worker ->> 'leaseFor')::bigint,
    p_worker ->> 'takes',
    p_worker ->> 'host', (p_worker ->> 'pid')::integer, p_worker ->> 'pidStarted', p_worker ->> 'boot', p_worker ->> 'pidSpace')
  RETURNING id INTO joined;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, to_json(joined));
  RETURN joined;
END $$;

CREATE FUNCTION publish(p_types json) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  INSERT INTO types (type, published) SELECT key, value FROM json_each_text(p_types) ORDER BY key
  ON CONFLICT (type) DO UPDATE SET published = excluded.published WHERE types.published <> excluded.published
$$;

-- Extends a worker's lease. Answers which of the leases that it believes in are gone, and which it is to cancel.
CREATE FUNCTION renew(p_worker bigint, p_ids bigint[], p_executions integer[], p_tokens uuid[]) RETURNS json
  LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  known boolean;
  gone json;
  cancelled json;
BEGIN
  UPDATE workers SET lease_until = now_ + lease_for WHERE id = p_worker AND NOT workers.gone;
  known := FOUND;
  SELECT json_agg(g.n - 1) FILTER (WHERE l.id IS NULL), json_agg(g.n - 1) FILTER (WHERE l.cancel)
  INTO gone, cancelled
  FROM unnest(p_ids, p_executions, p_tokens) WITH ORDINALITY g(id, execution, token, n)
  LEFT JOIN live l ON l.id = g.id AND l.worker = p_worker AND l.executions = g.execution AND l.token = g.token;
  RETURN json_build_object('known', known, 'now', now_, 'lost', gone, 'cancelled', cancelled);
END $$;

-- The workers other than this one, and whether their leases have run out.
CREATE FUNCTION others(p_worker bigint) RETURNS json LANGUAGE sql SET search_path FROM CURRENT AS $$
  SELECT json_build_object('known', EXISTS (SELECT 1 FROM workers WHERE id = p_worker AND NOT gone), 'workers', (
    SELECT json_agg(json_build_object('id', w.id, 'gone', w.gone, 'leaseUntil', w.lease_until, 'leaseFor', w.lease_for,
      'isOver', w.lease_until <= t.now, 'host', w.host, 'pid', w.pid, 'pid_started', w.pid_started, 'boot', w.boot,
      'pid_space', w.pid_space) ORDER BY w.id) FROM workers w, (SELECT now_ms() AS now) t WHERE w.id <> p_worker))
$$;

-- Takes over what workers hold that are gone, each with the end of its lease as it was seen: one that renewed is left alone.
-- Workers that hold nothing and will not come back are forgotten. With them, the waiting tasks whose deadline has passed.
CREATE FUNCTION take_over(p_taker bigint, p_gone json, p_limit integer, p_token uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  lost record;
  ids bigint[];
  more bigint[];
BEGIN
  -- A second call with the same token waits for the first one here.
  PERFORM 1 FROM workers WHERE id = p_taker AND NOT gone FOR UPDATE;
  IF NOT FOUND THEN RETURN '[]'; END IF;
  -- Where the answer to this very call was lost, what it took over is handed out once more.
  ids := ARRAY(SELECT id FROM live WHERE worker = p_taker AND state = 'running' AND token = p_token ORDER BY id);
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_token) THEN RETURN taken_over(ids); END IF;
  FOR lost IN
    SELECT w.*, (g ->> 1)::boolean AS is_dead FROM json_array_elements(p_gone) g JOIN workers w ON w.id = (g ->> 0)::bigint
    WHERE w.gone OR (g ->> 1)::boolean OR w.lease_until = (g ->> 2)::bigint ORDER BY w.id FOR UPDATE OF w
  LOOP
    WITH taken AS (
      UPDATE live SET worker = p_taker, token = p_token, why = coalesce(why, 'loss'), lost_by = coalesce(lost_by, lost.name)
      WHERE id IN (SELECT id FROM live WHERE worker = lost.id AND state = 'running'
        ORDER BY id LIMIT p_limit - cardinality(ids) FOR UPDATE SKIP LOCKED)
      RETURNING id)
    SELECT array_agg(id ORDER BY id) INTO more FROM taken;
    ids := ids || coalesce(more, '{}');
    IF lost.gone OR lost.is_dead OR now_ - lost.lease_until > 86400000 THEN
      DELETE FROM workers w WHERE w.id = lost.id AND NOT EXISTS (SELECT 1 FROM live l WHERE l.worker = w.id
        AND l.state = 'running');
    END IF;
  END LOOP;
  WITH expired AS (
    UPDATE live SET state = 'running', worker = p_taker, token = p_token, why = 'expiry', since = now_, revision = 0
    WHERE id IN (SELECT id FROM live WHERE deadline <= now_ AND deadline IS NOT NULL AND state IN ('scheduled', 'ready')
      ORDER BY deadline, id LIMIT p_limit - cardinality(ids) FOR UPDATE SKIP LOCKED)
    RETURNING id, deadline)
  SELECT array_agg(id ORDER BY deadline, id) INTO more FROM expired;
  IF more IS NOT NULL THEN
    DELETE FROM uniques u USING live l WHERE l.id = ANY(more) AND l.unique_while = 'waiting' AND u.task = l.id;
    UPDATE live l SET lane = lane_of(l.class, b.source, CASE WHEN l.suspect THEN 2 ELSE 0 END) FROM bodies b
      WHERE l.id = ANY(more) AND l.lane IS NULL AND b.id = l.id;
  END IF;
  ids := ids || coalesce(more, '{}');
  IF ids <> '{}' THEN INSERT INTO calls (id, at, answer) VALUES (p_token, now_, 'null'); END IF;
  RETURN taken_over(ids);
END $$;

-- What is handed out of tasks that were taken over.
CREATE FUNCTION taken_over(p_ids bigint[]) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((SELECT json_agg(json_build_array(handed(l, b), l.why, l.lost_by, t.published)
    ORDER BY array_position(p_ids, l.id))
    FROM live l JOIN bodies b ON b.id = l.id JOIN classes c ON c.id = l.class LEFT JOIN types t ON t.type = c.type
    WHERE l.id = ANY(p_ids)), '[]');
END $$;

-- Why a worker claims nothing at present; null: it goes on.
CREATE FUNCTION report_trouble(p_worker bigint, p_trouble jsonb) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  UPDATE workers SET trouble = (p_trouble || jsonb_build_object('since', now_ms()))::text WHERE id = p_worker
$$;

-- A worker leaves. What it still holds can be taken over at once.
CREATE FUNCTION leave(p_worker bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE workers SET gone = true WHERE id = p_worker;
  PERFORM 1 FROM workers WHERE id = p_worker FOR UPDATE;
  DELETE FROM workers w WHERE w.id = p_worker AND NOT EXISTS (SELECT 1 FROM live l WHERE l.worker = w.id AND l.state = 'running');
END $$;
