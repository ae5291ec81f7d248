-- Workers, leases that they lost, and waiting tasks whose deadline has passed. Both are leased to a worker that decides about
-- them.

-- The versions of the policies that a worker has, and since when; null if it published none.
CREATE FUNCTION policies_of(p_versions json, p_since bigint) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_versions IS NOT NULL THEN json_build_object('since', p_since, 'of', p_versions)::text END
$$;

CREATE FUNCTION join_worker(p_call uuid, p_worker json) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  done json;
  joined bigint;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done #>> '{}'; END IF;
  PERFORM make_days(now_, 0);
  INSERT INTO workers (name, joined_at, lease_for, lease_until, may_run_for, takes, host, pid, pid_started, boot, pid_space,
    token, policies, program)
  VALUES (p_worker ->> 'name', now_, (p_worker ->> 'leaseFor')::bigint, now_ + (p_worker ->> 'leaseFor')::bigint,
    (p_worker ->> 'mayRunFor')::bigint, p_worker ->> 'takes',
    p_worker ->> 'host', (p_worker ->> 'pid')::integer, p_worker ->> 'pidStarted', p_worker ->> 'boot', p_worker ->> 'pidSpace', p_call,
    policies_of(p_worker -> 'policies', now_), p_worker ->> 'program')
  RETURNING id INTO joined;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, to_json(joined));
  RETURN joined;
END $$;

CREATE FUNCTION publish(p_types json, p_workers bigint[], p_policies json) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  UPDATE workers SET policies = policies_of(p_policies, now_ms()) WHERE id = ANY(p_workers);
  INSERT INTO types (type, published) SELECT key, value FROM json_each_text(p_types) ORDER BY key
  ON CONFLICT (type) DO UPDATE SET published = excluded.published WHERE types.published <> excluded.published
$$;

-- Extends a worker's lease. Returns which of the named leases are lost, and which tasks are to be cancelled. If the worker has
-- had a lease for longer than its length and does not name it, it does not know of it: the answer was lost, or the database went
-- back in time. Leases since its present claim began do not count, because their answer may be on its way: `p_until` is when that was, or
-- when the renewal was asked for, which may be long ago if the server was away. An idle worker that listens
-- gets a long lease, unless others hold tasks that it may have to take over: a user's transaction that enqueues sends a NOTIFY to such
-- workers. `p_probe` is sent to the worker itself, to find out whether it still listens. `p_own`: by this token it joined. After a failover
-- that lost its row, its id may be another worker's.
CREATE FUNCTION renew(p_worker bigint, p_ids bigint[], p_executions integer[], p_tokens uuid[], p_until bigint, p_idle boolean,
  p_listens boolean, p_probe text, p_prune_every bigint, p_own uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  self workers;
  gone json;
  cancelled json;
  is_long boolean := p_idle AND p_listens AND NOT EXISTS (SELECT 1 FROM workers w JOIN workers s ON s.id = p_worker
    WHERE w.id <> p_worker AND (w.lease_for < s.lease_for OR EXISTS (SELECT 1 FROM live l WHERE l.worker = w.id AND l.state = 'running')));
BEGIN
  UPDATE workers SET lease_until = now_ + CASE WHEN is_long THEN 3 ELSE 1 END * lease_for, held_when_lost = NULL
    WHERE id = p_worker AND NOT workers.gone AND coalesce(token = p_own, true) RETURNING * INTO self;
  IF p_probe IS NOT NULL THEN PERFORM pg_notify('{channel}', p_probe); END IF;
  SELECT json_agg(g.n - 1) FILTER (WHERE l.id IS NULL), json_agg(g.n - 1) FILTER (WHERE l.cancel)
  INTO gone, cancelled
  FROM unnest(p_ids, p_executions, p_tokens) WITH ORDINALITY g(id, execution, token, n)
  LEFT JOIN live l ON l.id = g.id AND l.worker = p_worker AND l.executions = g.execution AND l.token = g.token;
  IF self.id IS NOT NULL THEN
    PERFORM lose(ARRAY(
      SELECT l.id FROM live l LEFT JOIN lost x ON x.task = l.id AND x.execution = l.executions AND l.why = 'loss'
      WHERE l.worker = p_worker AND l.state = 'running' AND coalesce(x.at, l.since) < least(now_, p_until) - self.lease_for
        AND NOT EXISTS (SELECT 1 FROM unnest(p_ids, p_executions, p_tokens) g(id, execution, token)
          WHERE g.id = l.id AND g.execution = l.executions AND g.token = l.token)
      ORDER BY l.id FOR UPDATE OF l SKIP LOCKED), 0, NULL, self.name, now_);
  END IF;
  PERFORM end_other_groups();
  RETURN json_build_object('known', self.id IS NOT NULL, 'now', now_, 'lost', gone, 'cancelled', cancelled, 'isLong', is_long, 'leaseFor', self.lease_for,
    'needed', needed_of(self, p_idle, p_prune_every, now_), 'workers', (SELECT count(*) || ' ' || max(id) FROM workers));
END $$;

-- What a worker has to look for: work, if it is idle; what other workers lost; what is done by one worker for all.
CREATE FUNCTION needed_of(p_self workers, p_idle boolean, p_prune_every bigint, p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(
    'work', p_idle AND (EXISTS (SELECT 1 FROM lanes WHERE active) OR least(next_opening(p_now),
      (SELECT least(t.due, t.expiring) FROM next_times(p_now) t)) <= p_now + p_self.lease_for),
    'recovery', EXISTS (SELECT 1 FROM workers w WHERE w.id <> p_self.id AND (w.gone OR w.lease_until <= p_now - 86400000
        OR w.lease_until <= p_now AND EXISTS (SELECT 1 FROM live l WHERE l.worker = w.id AND l.state = 'running')))
      OR EXISTS (SELECT 1 FROM live l WHERE l.state = 'running' AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = l.worker)),
    'chores', NOT EXISTS (SELECT 1 FROM chores WHERE name = 'retention' AND at > p_now - p_prune_every)
      OR EXISTS (SELECT 1 FROM acts WHERE NOT told) OR EXISTS (SELECT 1 FROM redrives WHERE state = 'running')
      OR EXISTS (SELECT 1 FROM schedules WHERE look_at <= p_now + p_self.lease_for));
END $$;

-- What a worker must stop: running tasks that were cancelled, and those of the given tasks, which it has claimed but not begun,
-- whose source is held, down or probed by another task, or whose queue is paused.
CREATE FUNCTION recalls(p_worker bigint, p_waiting bigint[]) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(
    'cancelled', (SELECT json_agg(json_build_object('task', l.id, 'execution', l.executions, 'token', l.token))
      FROM live l WHERE l.worker = p_worker AND l.state = 'running' AND l.cancel),
    'held', (SELECT json_agg(l.id) FROM live l JOIN bodies b ON b.id = l.id JOIN classes c ON c.id = l.class
      JOIN queues q ON q.id = c.queue WHERE l.id = ANY(p_waiting)
      AND (q.paused_at IS NOT NULL OR EXISTS (SELECT 1 FROM sources s WHERE s.name = b.source AND coalesce(s.until > now_ms(), true))
        OR EXISTS (SELECT 1 FROM source_states s WHERE s.name = b.source AND (s.shut_until > now_ms() OR s.is_probing AND NOT l.is_probe)))));
END $$;

-- Ends leases without an outcome. Their tasks are leased to the worker that takes them over, with its token, or to nobody (worker
-- 0), until they are recovered. The token of the execution is kept, even if the task is taken over several times.
CREATE FUNCTION lose(p_ids bigint[], p_taker bigint, p_token uuid, p_lost_by text, p_now bigint,
  p_how text DEFAULT NULL) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO lost AS x (task, execution, token, worker, at)
    SELECT l.id, l.executions, l.token, p_lost_by, p_now FROM live l WHERE l.id = ANY(p_ids) AND l.why IS DISTINCT FROM 'expiry'
    ORDER BY l.id
    ON CONFLICT (task) DO UPDATE SET at = excluded.at, execution = excluded.execution,
      token = CASE WHEN x.execution = excluded.execution THEN x.token ELSE excluded.token END,
      worker = CASE WHEN x.execution = excluded.execution THEN x.worker ELSE excluded.worker END;
  UPDATE live SET worker = p_taker, token = coalesce(p_token, token), why = coalesce(why, 'loss'),
    since = CASE why WHEN 'expiry' THEN p_now ELSE since END,
    lost_by = coalesce(lost_by, p_lost_by), lost_how = CASE WHEN why IS NULL THEN p_how ELSE lost_how END WHERE id = ANY(p_ids);
END $$;

-- The other workers, whether their leases have run out and are watched by this timeline, and whether they have leases.
CREATE FUNCTION others(p_worker bigint, p_timeline text) RETURNS json LANGUAGE sql SET search_path FROM CURRENT AS $$
  SELECT json_build_object('known', EXISTS (SELECT 1 FROM workers WHERE id = p_worker AND NOT gone), 'workers', (
    SELECT json_agg(json_build_object('id', w.id, 'gone', w.gone, 'leaseUntil', w.lease_until, 'leaseFor', w.lease_for,
      'isOver', w.lease_until <= t.now, 'mayRunFor', w.may_run_for,
      'watch', (SELECT json_build_object('leaseUntil', x.lease_until, 'since', x.since) FROM watches x
        WHERE x.worker = w.id AND x.timeline = p_timeline),
      'holds', EXISTS (SELECT 1 FROM live l WHERE l.worker = w.id AND l.state = 'running'), 'host', w.host, 'pid', w.pid, 'pid_started', w.pid_started, 'boot', w.boot,
      'pid_space', w.pid_space) ORDER BY w.id) FROM workers w, (SELECT now_ms() AS now) t WHERE w.id <> p_worker))
$$;

-- How the tasks of a lost worker were lost. When the first worker of a process is found lost, all running tasks of the process
-- are counted, and the number is stored with its workers, because their leases are taken over a few at a time, perhaps by several
-- workers.
CREATE FUNCTION loss_of(p_worker bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  lost workers;
  held integer;
BEGIN
  SELECT * INTO lost FROM workers WHERE id = p_worker;
  IF lost.stopping THEN RETURN 'while_stopping'; END IF;
  held := lost.held_when_lost;
  IF held IS NULL AND EXISTS (SELECT 1 FROM live WHERE worker = p_worker AND state = 'running') THEN
    -- A task that was taken over to be decided about does not run.
    SELECT count(*) INTO held FROM workers w JOIN live l ON l.worker = w.id AND l.state = 'running' AND l.why IS NULL
      WHERE w.host = lost.host AND w.pid = lost.pid AND w.pid_started IS NOT DISTINCT FROM lost.pid_started;
    -- A transaction that has locked one of these rows renews it or takes its tasks over. This does not wait for it.
    UPDATE workers SET held_when_lost = held WHERE id IN (SELECT w.id FROM workers w WHERE w.host = lost.host AND w.pid = lost.pid
      AND w.pid_started IS NOT DISTINCT FROM lost.pid_started FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  RETURN CASE WHEN held = 1 THEN 'alone' ELSE 'beside_others' END;
END $$;

-- Removes a worker without leases, and remembers until when it took its types.
CREATE FUNCTION forget_worker(p_worker bigint, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  gone workers;
  types_ text[];
BEGIN
  DELETE FROM workers w WHERE w.id = p_worker AND NOT EXISTS (SELECT 1 FROM live l WHERE l.worker = w.id AND l.state = 'running')
    RETURNING * INTO gone;
  IF NOT FOUND THEN RETURN; END IF;
  DELETE FROM watches WHERE worker = p_worker;
  types_ := ARRAY(SELECT json_array_elements_text(gone.takes::json -> 'types'));
  PERFORM 1 FROM types WHERE type = ANY(types_) ORDER BY type FOR UPDATE;
  UPDATE types SET worker = gone.name, host = gone.host, program = gone.program, at = least(gone.lease_until, p_now)
    WHERE type = ANY(types_);
END $$;

-- Takes over the tasks of lost workers. Each is named with the end of its lease as it was seen, so a worker that has renewed
-- keeps its tasks. Workers without leases that will not come back are removed. It also takes over tasks whose worker has no row,
-- and waiting tasks whose deadline has passed. Watches that begin now are stored. Without `p_gone` and `p_watches` it takes over
-- only the tasks whose deadline has passed.
CREATE FUNCTION take_over(p_taker bigint, p_gone json, p_watches json, p_limit integer, p_token uuid) RETURNS json
  LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  other record;
  ids bigint[];
  more bigint[];
BEGIN
  -- A second call with the same token waits here for the first one.
  PERFORM 1 FROM workers WHERE id = p_taker AND NOT gone FOR UPDATE;
  IF NOT FOUND THEN RETURN '[]'; END IF;
  -- If the answer of this call was lost, the tasks that it took over are returned once more.
  ids := ARRAY(SELECT id FROM live WHERE worker = p_taker AND state = 'running' AND token = p_token ORDER BY id);
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_token) THEN RETURN taken_over(ids); END IF;
  INSERT INTO watches (worker, timeline, lease_until, since)
    SELECT (x ->> 'worker')::bigint, x ->> 'timeline', (x ->> 'leaseUntil')::bigint, (x ->> 'since')::double precision
    FROM json_array_elements(p_watches) x ORDER BY 1
    ON CONFLICT (worker, timeline) DO UPDATE SET lease_until = excluded.lease_until, since = excluded.since;
  FOR other IN
    SELECT w.*, (g ->> 1)::boolean AS is_dead FROM json_array_elements(p_gone) g JOIN workers w ON w.id = (g ->> 0)::bigint
    WHERE w.gone OR (g ->> 1)::boolean OR w.lease_until = (g ->> 2)::bigint ORDER BY w.id FOR UPDATE OF w
  LOOP
    more := ARRAY(SELECT id FROM live WHERE worker = other.id AND state = 'running'
      ORDER BY id LIMIT p_limit - cardinality(ids) FOR UPDATE SKIP LOCKED);
    PERFORM lose(more, p_taker, p_token, other.name, now_, loss_of(other.id));
    ids := ids || more;
    IF other.gone OR other.is_dead OR now_ - other.lease_until > 86400000 THEN
      PERFORM forget_worker(other.id, now_);
    END IF;
  END LOOP;
  IF p_gone IS NOT NULL THEN
    more := ARRAY(SELECT l.id FROM live l WHERE l.state = 'running' AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = l.worker)
      ORDER BY l.id LIMIT p_limit - cardinality(ids) FOR UPDATE OF l SKIP LOCKED);
    PERFORM lose(more, p_taker, p_token, 'a worker that left', now_);
    ids := ids || more;
  END IF;
  WITH expired AS (
    UPDATE live SET state = 'running', worker = p_taker, token = p_token, why = 'expiry', since = now_, revision = 0
    WHERE id IN (SELECT id FROM live WHERE deadline <= now_ AND deadline IS NOT NULL AND state IN ('scheduled', 'ready')
      ORDER BY deadline, id LIMIT p_limit - cardinality(ids) FOR UPDATE SKIP LOCKED)
    RETURNING id, deadline)
  SELECT array_agg(id ORDER BY deadline, id) INTO more FROM expired;
  IF more IS NOT NULL THEN
    PERFORM free_unique(ARRAY(SELECT l.id FROM live l WHERE l.id = ANY(more) AND l.unique_while = 'waiting'), now_);
    UPDATE live l SET lane = lane_of(l.class, b.source, track_now(l, b.source)) FROM bodies b
      WHERE l.id = ANY(more) AND l.lane IS NULL AND b.id = l.id;
    PERFORM rest_lanes(ARRAY(SELECT DISTINCT lane FROM live WHERE id = ANY(more)), now_);
  END IF;
  ids := ids || coalesce(more, '{}');
  IF ids <> '{}' THEN INSERT INTO calls (id, at, answer) VALUES (p_token, now_, 'null'); END IF;
  RETURN taken_over(ids);
END $$;

-- The data of tasks that were taken over, as their worker gets it.
CREATE FUNCTION taken_over(p_ids bigint[]) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((SELECT json_agg(json_build_array(handed(l, b, p.value), l.why, l.lost_by, t.published, l.lost_how)
    ORDER BY array_position(p_ids, l.id))
    FROM live l JOIN bodies b ON b.id = l.id JOIN classes c ON c.id = l.class LEFT JOIN types t ON t.type = c.type
      LEFT JOIN checkpoints p ON p.task = l.id
    WHERE l.id = ANY(p_ids)), '[]');
END $$;

-- Stores why a worker claims nothing at present; null: it claims again.
CREATE FUNCTION report_trouble(p_worker bigint, p_trouble jsonb) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS $$
  UPDATE workers SET trouble = (p_trouble || jsonb_build_object('since', now_ms()))::text WHERE id = p_worker
$$;

-- Records that a worker is stopping. Tasks that it loses from now on are charged to nobody.
CREATE FUNCTION note_stopping(p_worker bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE workers SET stopping = true WHERE id = p_worker;
END $$;

-- Stores that leased tasks must not run twice, if it is not stored yet whether they may.
CREATE FUNCTION forbid_second_run(p_ids bigint[], p_executions integer[], p_tokens uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM live WHERE id = ANY(p_ids) ORDER BY id FOR UPDATE;
  UPDATE live l SET idempotent = false FROM unnest(p_ids, p_executions, p_tokens) g(id, execution, token)
    WHERE l.id = g.id AND l.executions = g.execution AND l.token = g.token AND l.idempotent IS NULL;
END $$;

-- Removes a worker. Tasks that it still has can be taken over at once.
CREATE FUNCTION leave(p_worker bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE workers SET gone = true WHERE id = p_worker;
  PERFORM 1 FROM workers WHERE id = p_worker FOR UPDATE;
  PERFORM forget_worker(p_worker, now_ms());
END $$;
