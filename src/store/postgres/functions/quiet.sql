-- Claims while few tasks are ready, as for an idle worker. Then all of them are taken, in the order of the queues, so nothing is merged, ranked or
-- deactivated: few statements are needed. Everything unusual is left to the usual claim.

-- The ready tasks that a claim may take, at most 8, and the queues that they are in; `next`: when another task is due or reaches its
-- deadline. Null ids if it needs the usual claim: more tasks are ready, a source or queue has a state, limit or order of its own, a
-- lane is to be deactivated, a task is due, or many dead entries were read, which only the usual claim prevents for the next claims.
CREATE FUNCTION few_ready(p_request json, p_now bigint, OUT ids bigint[], OUT queues integer[], OUT next bigint, OUT has_long_lease boolean)
LANGUAGE plpgsql AS $$
DECLARE
  types_ text[] := texts_of(p_request -> 'types');
  queues_ text[] := texts_of(p_request -> 'queues');
  categories_ text[] := texts_of(p_request -> 'categories');
  most integer := least((p_request ->> 'limit')::integer, 8);
  are_few boolean;
  blocks bigint := blocks_read('live', 'live_ready') + blocks_read('live_scheduled', 'live_deadline') + blocks_read('lanes', 'lanes_active');
BEGIN
  SELECT r.are_few, r.ids, r.queues, w.lease_until > p_now + w.lease_for, least(
    (SELECT run_at FROM live WHERE state = 'scheduled' ORDER BY run_at, id LIMIT 1),
    (SELECT deadline FROM live WHERE deadline IS NOT NULL AND state IN ('scheduled', 'ready') ORDER BY deadline, id LIMIT 1))
  INTO are_few, ids, queues, has_long_lease, next
  FROM workers w CROSS JOIN (
    SELECT count(DISTINCT a.id) <= 16 AND count(t.id) <= most AND coalesce(bool_and(NOT a.is_mine OR a.track = 0 AND a.ordering = 'fifo'
        AND NOT a.fair AND a.needs = '{}' AND a.rank > kept_active_since(p_now) AND t.deadline IS NULL), true) AS are_few,
      array_agg(t.id ORDER BY t.order_key, t.seq) FILTER (WHERE t.id IS NOT NULL) AS ids,
      array_agg(DISTINCT a.queue) FILTER (WHERE t.id IS NOT NULL) AS queues
    FROM (
      SELECT l.id, l.track, l.rank, c.queue, c.needs, q.ordering, q.fair, q.paused_at IS NULL AND (types_ IS NULL OR c.type = ANY(types_))
        AND (queues_ IS NULL OR q.name = ANY(queues_)) AND (categories_ IS NULL OR c.category = ANY(categories_)) AS is_mine
      FROM (SELECT id, class, track, rank FROM lanes WHERE active LIMIT 17) l
      JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue) a
    LEFT JOIN LATERAL (SELECT id, order_key, seq, deadline FROM live
      WHERE a.is_mine AND lane = a.id AND state = 'ready' ORDER BY order_key, seq LIMIT most + 1) t ON true) r
  WHERE w.id = (p_request ->> 'worker')::bigint AND NOT w.gone
    AND NOT EXISTS (SELECT 1 FROM source_states) AND NOT EXISTS (SELECT 1 FROM sources) AND NOT EXISTS (SELECT 1 FROM low_keys)
    AND NOT EXISTS (SELECT 1 FROM floors f WHERE f.until > p_now)
    AND NOT EXISTS (SELECT 1 FROM queues x WHERE x.per_second IS NOT NULL OR x.concurrency IS NOT NULL);
  blocks := blocks_read('live', 'live_ready') + blocks_read('live_scheduled', 'live_deadline') + blocks_read('lanes', 'lanes_active') - blocks;
  IF NOT FOUND OR NOT are_few OR next <= p_now OR blocks > 200 THEN ids := NULL;
  ELSE ids := coalesce(ids, '{}');
  END IF;
END $$;

-- A claim that takes all tasks that are ready, if they are few. Null if it needs the usual claim; then it has locked nothing.
CREATE FUNCTION claim_few(p_request json, p_token uuid, p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  ready record;
  queue_ integer;
  taken bigint[] := '{}';
  tasks json;
BEGIN
  SELECT * INTO ready FROM few_ready(p_request, p_now);
  IF ready.ids IS NULL THEN RETURN NULL; END IF;
  IF ready.ids <> '{}' THEN
    -- As in other claims: setting a limit waits for these locks. They are taken in one order.
    FOREACH queue_ IN ARRAY ready.queues LOOP
      PERFORM pg_advisory_xact_lock(lane_lock() + 4, queue_);
    END LOOP;
    taken := lease(ready.ids, p_request, p_token, false, p_now);
    IF taken IS NULL THEN
      RETURN json_build_object('known', true, 'now', p_now, 'next', p_now, 'expired', false, 'unfinished', true);
    END IF;
  END IF;
  IF taken <> '{}' THEN
    IF ready.has_long_lease THEN UPDATE workers SET lease_until = p_now + lease_for WHERE id = (p_request ->> 'worker')::bigint; END IF;
    SELECT json_agg(handed_now(l, b, c.value) ORDER BY t.n) INTO tasks
    FROM unnest(taken) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id JOIN bodies b ON b.id = t.id
      LEFT JOIN LATERAL (SELECT value FROM checkpoints WHERE task = l.id AND l.executions > 1 OFFSET 0) c ON true;
  END IF;
  RETURN json_build_object('known', true, 'now', p_now, 'tasks', tasks, 'next', ready.next, 'expired', false);
END $$;

-- Records tasks that the worker may start now, as running: an idle worker of the process that enqueues them gets them, and they
-- are never put into a lane. Only while nothing else is ready for this worker, so that it starts nothing out of order. They differ only
-- in their payloads. Returns the answers of `enqueue_tasks` and `claim`, or null if it needs the usual way; then nothing was changed.
CREATE FUNCTION start_new(p_call uuid, p_group json, p_task new_task, p_payloads text, p_request json, p_token uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  worker_ bigint := (p_request ->> 'worker')::bigint;
  payloads text[] := string_to_array(p_payloads, E'\x1e');
  types_ text[] := texts_of(p_request -> 'types');
  queues_ text[] := texts_of(p_request -> 'queues');
  categories_ text[] := texts_of(p_request -> 'categories');
  submitted_at_ bigint := coalesce(p_task.sa, now_);
  run_at_ bigint := coalesce(p_task.da, now_ + p_task.d);
  source_ text := p_group ->> 4;
  queue_ integer;
  class_ integer;
  lane_ bigint;
  ready record;
  answer json;
BEGIN
  IF run_at_ > now_ OR p_task.dl IS NOT NULL OR p_task.po IS NOT NULL OR p_task.i IS NOT TRUE OR p_group ->> 3 <> '{}'
    OR cardinality(payloads) > least((p_request ->> 'limit')::integer, 8) OR types_ IS NOT NULL AND p_group ->> 1 <> ALL(types_)
    OR queues_ IS NOT NULL AND p_group ->> 0 <> ALL(queues_) OR categories_ IS NOT NULL AND p_group ->> 2 <> ALL(categories_)
  THEN
    RETURN NULL;
  END IF;
  SELECT id INTO queue_ FROM queues WHERE name = p_group ->> 0;
  -- Its order cannot change until this is committed.
  IF NOT FOUND OR NOT pg_try_advisory_xact_lock_shared(lane_lock() + 2, queue_) THEN RETURN NULL; END IF;
  SELECT * INTO ready FROM few_ready(p_request, now_);
  IF ready.ids IS DISTINCT FROM '{}' THEN RETURN NULL; END IF;
  SELECT c.id, l.id INTO class_, lane_ FROM classes c JOIN lanes l ON l.class = c.id JOIN queues q ON q.id = c.queue
    WHERE c.queue = queue_ AND c.type = p_group ->> 1 AND c.category = p_group ->> 2 AND c.needs = '{}' AND l.source = source_ AND l.track = 0
      AND q.ordering = 'fifo' AND NOT q.fair AND q.paused_at IS NULL AND NOT EXISTS (SELECT 1 FROM calls WHERE id IN (p_call, p_token));
  -- As in other claims: setting a limit waits for this lock. If it is taken, the usual claim waits for it.
  IF NOT FOUND OR NOT pg_try_advisory_xact_lock(lane_lock() + 4, queue_) THEN RETURN NULL; END IF;
  PERFORM 1 FROM workers WHERE id = worker_ AND NOT gone AND NOT EXISTS (SELECT 1 FROM source_states)
    AND NOT EXISTS (SELECT 1 FROM queues WHERE id = queue_ AND paused_at IS NOT NULL OR per_second IS NOT NULL OR concurrency IS NOT NULL) FOR KEY SHARE;
  IF NOT FOUND OR EXISTS (SELECT 1 FROM calls WHERE id = p_token) THEN
    -- Something was changed in this moment. The usual way may wait for another transaction that waits for the lock that this one has, so the
    -- call is repeated.
    RAISE EXCEPTION 'a limit was set, or the worker was removed' USING ERRCODE = 'serialization_failure';
  END IF;
  PERFORM must_be_legal('ready', 'running');
  WITH given AS MATERIALIZED (SELECT nextval('bodies_id_seq') AS id, payload FROM unnest(payloads) payload),
  wide AS (
    INSERT INTO bodies (id, source, priority, submitted_at, created_at, payload)
    SELECT id, source_, p_task.p, submitted_at_, now_, payload FROM given),
  narrow AS (
    INSERT INTO live (id, class, lane, state, order_key, seq, run_at, idempotent, since, worker, token, executions)
    SELECT id, class_, lane_, 'running', order_key('fifo', p_task.p, submitted_at_, 0), id, run_at_, true, now_, worker_, p_token, 1 FROM given),
  noted AS (
    INSERT INTO calls (id, at, answer)
    SELECT p_call, now_, json_build_object('receipts', json_agg(json_build_array(id, true) ORDER BY id), 'woke', false) FROM given
    RETURNING calls.answer)
  SELECT json_build_array(noted.answer, json_build_object('known', true, 'now', now_, 'next', ready.next, 'expired', false, 'tasks',
    (SELECT json_agg(json_build_array(id, class_, source_, p_task.p, submitted_at_, payload) ORDER BY id) FROM given)))
  INTO answer FROM noted;
  IF ready.has_long_lease THEN UPDATE workers SET lease_until = now_ + lease_for WHERE id = worker_; END IF;
  RETURN answer;
END $$;

-- Enqueues tasks as `enqueue_tasks`, and claims for an idle worker of the same process. Returns both answers.
CREATE FUNCTION enqueue_and_claim(p_call uuid, p_groups json, p_tasks json, p_keyed boolean, p_lanes boolean, p_patience integer,
  p_follow_ups json, p_payloads text, p_request json, p_token uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  answers json;
BEGIN
  IF p_payloads IS NOT NULL AND (p_request ->> 'few')::boolean AND NOT (p_request ->> 'again')::boolean THEN
    answers := start_new(p_call, p_groups -> 0, json_populate_record(NULL::new_task, p_tasks -> 0), p_payloads, p_request, p_token);
  END IF;
  -- The claim sees the tasks only if it is evaluated after them.
  IF answers IS NULL THEN
    answers := enqueue_tasks(p_call, p_groups, p_tasks, p_keyed, p_lanes, p_patience, p_follow_ups, p_payloads);
    answers := json_build_array(answers, claim(p_request, p_token));
  END IF;
  RETURN answers;
END $$;
