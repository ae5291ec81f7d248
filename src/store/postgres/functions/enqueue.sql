-- Enqueueing. A call on the store's own connection puts a task directly into its lane. Inside a caller's transaction, a task is
-- scheduled for now, and the next claim after the commit puts it into its lane. That transaction may stay open for long, so it
-- locks only its keys, and new queues and classes. A call of the store that waits for one of these locks fails after `p_patience`
-- with lock_not_available (55P03). Then nothing was changed, and the store repeats the call separately from all others.

CREATE TYPE new_task AS (
  g integer, p integer, b text, i boolean, d bigint, da bigint, sa bigint, dl bigint, k text, po text,
  uk text, uw text, uc text, uf bigint
);

-- Limits how long this transaction waits for each lock, in milliseconds; null changes nothing. Answers the limit before, to be set
-- again.
CREATE FUNCTION set_patience(p_patience integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before text := current_setting('lock_timeout');
BEGIN
  IF p_patience IS NOT NULL THEN PERFORM set_config('lock_timeout', p_patience::text, true); END IF;
  RETURN before;
END $$;

-- The class and the lane of new tasks of each (queue, type, category, needs, source). Missing ones are made.
CREATE FUNCTION places_of(p_groups json, p_lanes boolean, p_patience integer, OUT classes integer[], OUT lanes bigint[],
  OUT orders text[], OUT last_keys double precision[], OUT types text[], OUT sources text[])
LANGUAGE plpgsql AS $$
DECLARE
  before text;
BEGIN
  IF p_lanes THEN
    -- The orders of these queues cannot change until this is committed.
    PERFORM pg_advisory_xact_lock_shared(lane_lock() + 2, id) FROM (
      SELECT id FROM queues WHERE name IN (SELECT g ->> 0 FROM json_array_elements(p_groups) g) ORDER BY id) known;
  END IF;
  -- More than twice only if a source begins or ends to ramp meanwhile.
  FOR attempt IN 1..10 LOOP
    SELECT array_agg(c.id ORDER BY g.n), array_agg(l.id ORDER BY g.n), array_agg(q.ordering ORDER BY g.n),
      array_agg(q.last_key ORDER BY g.n), array_agg(g.v ->> 1 ORDER BY g.n), array_agg(g.v ->> 4 ORDER BY g.n)
    INTO classes, lanes, orders, last_keys, types, sources
    FROM json_array_elements(p_groups) WITH ORDINALITY g(v, n)
    LEFT JOIN queues q ON q.name = g.v ->> 0
    -- As joins, these would read all classes of the queue and all lanes of the source for each group.
    LEFT JOIN LATERAL (SELECT id FROM classes c
      WHERE c.queue = q.id AND c.type = g.v ->> 1 AND c.category = g.v ->> 2 AND c.needs = g.v ->> 3 OFFSET 0) c ON true
    LEFT JOIN LATERAL (SELECT id FROM lanes l WHERE p_lanes AND l.source = g.v ->> 4 AND l.class = c.id AND l.track = CASE
      WHEN EXISTS (SELECT 1 FROM source_states s WHERE s.name = g.v ->> 4 AND s.is_ramping) THEN 4 ELSE 0 END OFFSET 0) l ON true;
    EXIT WHEN array_position(classes, NULL) IS NULL AND (NOT p_lanes OR array_position(lanes, NULL) IS NULL);
    before := set_patience(p_patience);
    INSERT INTO queues (name) SELECT DISTINCT g ->> 0 FROM json_array_elements(p_groups) g
      WHERE NOT EXISTS (SELECT 1 FROM queues WHERE name = g ->> 0) ORDER BY 1 ON CONFLICT DO NOTHING;
    INSERT INTO classes (queue, type, category, needs)
      SELECT DISTINCT q.id, g ->> 1, g ->> 2, g ->> 3 FROM json_array_elements(p_groups) g JOIN queues q ON q.name = g ->> 0
      WHERE NOT EXISTS (SELECT 1 FROM classes c
        WHERE c.queue = q.id AND c.type = g ->> 1 AND c.category = g ->> 2 AND c.needs = g ->> 3 OFFSET 0)
      ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING;
    PERFORM set_config('lock_timeout', before, true);
    IF p_lanes THEN
      -- Calls make lanes one after the other, so that new sources of a fair queue get their turns in the order in which they
      -- come. This lock is taken after the queues and classes, so that no call waits for a caller's transaction while it has this
      -- lock.
      PERFORM pg_advisory_xact_lock(lane_lock(), 65);
      PERFORM lane_of(want.class, want.source, new_track_of(want.source)) FROM (
        SELECT c.id AS class, g.v ->> 4 AS source FROM json_array_elements(p_groups) WITH ORDINALITY g(v, n)
        JOIN queues q ON q.name = g.v ->> 0
        CROSS JOIN LATERAL (SELECT id FROM classes c
          WHERE c.queue = q.id AND c.type = g.v ->> 1 AND c.category = g.v ->> 2 AND c.needs = g.v ->> 3 OFFSET 0) c
        ORDER BY CASE WHEN q.fair THEN g.n END, 2, 1) want;
    END IF;
  END LOOP;
END $$;

-- Makes the missing queues and classes of tasks that a caller's transaction is about to enqueue.
CREATE FUNCTION make_places(p_groups json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM places_of(p_groups, false, NULL);
END $$;

-- Records tasks without keys and unique keys, with one statement for all. Answers as `enqueue_tasks`. With `p_payloads`, the tasks
-- differ only in their payloads, which are separated by U+001E, and `p_tasks` has one of them without its payload.
CREATE FUNCTION enqueue_plain(p_groups json, p_tasks json, p_payloads text, p_lanes boolean, p_patience integer,
  p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  place record;
  -- Separate variables, because reading an element of such an array is fast.
  classes_ integer[];
  lanes_ bigint[];
  orders_ text[];
  last_keys_ double precision[];
  sources_ text[];
  ids json;
  woken bigint[];
  keys double precision[];
  seqs bigint[];
BEGIN
  SELECT * INTO place FROM places_of(p_groups, p_lanes, p_patience);
  classes_ := place.classes;
  lanes_ := place.lanes;
  orders_ := place.orders;
  last_keys_ := place.last_keys;
  sources_ := place.sources;
  WITH given AS MATERIALIZED (
    SELECT nextval('bodies_id_seq') AS id, t.*, coalesce(s.payload, t.b) AS payload FROM (
      SELECT sources_[t.g + 1] AS source, classes_[t.g + 1] AS class, lanes_[t.g + 1] AS lane, orders_[t.g + 1] AS ordering,
        last_keys_[t.g + 1] AS last_key, t.p, t.b, t.i, t.dl, t.po, coalesce(t.da, p_now + t.d) AS run_at,
        coalesce(t.sa, p_now) AS submitted_at
      FROM json_populate_recordset(NULL::new_task, p_tasks) t OFFSET 0) t
    LEFT JOIN LATERAL unnest(string_to_array(p_payloads, E'\x1e')) s(payload) ON true),
  wide AS (
    INSERT INTO bodies (id, source, priority, submitted_at, created_at, policy, payload)
    SELECT id, source, p, submitted_at, p_now, po, payload FROM given),
  narrow AS (
    INSERT INTO live (id, class, lane, state, order_key, seq, run_at, deadline, idempotent, since)
    SELECT id, class, lane, CASE WHEN p_lanes AND run_at <= p_now THEN 'ready' ELSE 'scheduled' END,
      order_key(ordering, p, submitted_at, last_key), CASE WHEN ordering = 'lifo' THEN -id ELSE id END, run_at, dl, i, p_now
    FROM given
    RETURNING lane, state, order_key, seq),
  entered AS (SELECT DISTINCT ON (lane) lane, order_key AS key, seq FROM narrow WHERE state = 'ready' ORDER BY lane,
    order_key, seq)
  SELECT (SELECT json_agg(json_build_array(id, true) ORDER BY id) FROM given),
    (SELECT array_agg(lane) FROM entered), (SELECT array_agg(key) FROM entered), (SELECT array_agg(seq) FROM entered)
  INTO ids, woken, keys, seqs;
  -- A claim may follow in this transaction: see `promote`.
  IF woken IS NOT NULL THEN PERFORM set_config('holdfast.woke', 'yes', true); END IF;
  RETURN json_build_object('receipts', coalesce(ids, '[]'), 'woke', wake_lanes(woken, keys, seqs));
END $$;

-- The same for tasks that differ only in their payloads, in the usual case: their queue, type and lane are known, and the queue has
-- no random order. Then few statements are needed. Otherwise it changes nothing and returns null.
CREATE FUNCTION enqueue_alike(p_group json, p_task new_task, p_payloads text, p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  queue_ integer;
  class_ integer;
  lane_ bigint;
  ordering_ text;
  source_ text := p_group ->> 4;
  run_at_ bigint := coalesce(p_task.da, p_now + p_task.d);
  submitted_at_ bigint := coalesce(p_task.sa, p_now);
  key_ double precision;
  ids bigint[];
  woke boolean := false;
BEGIN
  SELECT id INTO queue_ FROM queues WHERE name = p_group ->> 0;
  IF NOT FOUND THEN RETURN NULL; END IF;
  -- Its order cannot change until this is committed. (Without a query if nobody has it locked.)
  IF NOT pg_try_advisory_xact_lock_shared(lane_lock() + 2, queue_) THEN
    PERFORM pg_advisory_xact_lock_shared(lane_lock() + 2, queue_);
  END IF;
  SELECT c.id, l.id, q.ordering INTO class_, lane_, ordering_ FROM classes c JOIN lanes l ON l.class = c.id JOIN queues q ON q.id = c.queue
    WHERE c.queue = queue_ AND c.type = p_group ->> 1 AND c.category = p_group ->> 2 AND c.needs = p_group ->> 3
      AND l.source = source_ AND l.track = 0 AND q.ordering <> 'weighted_random'
      AND NOT EXISTS (SELECT 1 FROM source_states s WHERE s.name = source_ AND s.is_ramping);
  IF NOT FOUND THEN RETURN NULL; END IF;
  key_ := order_key(ordering_, p_task.p, submitted_at_, 0);
  WITH given AS MATERIALIZED (
    SELECT nextval('bodies_id_seq') AS id, payload FROM unnest(string_to_array(p_payloads, E'\x1e')) payload),
  wide AS (
    INSERT INTO bodies (id, source, priority, submitted_at, created_at, policy, payload)
    SELECT id, source_, p_task.p, submitted_at_, p_now, p_task.po, payload FROM given),
  narrow AS (
    INSERT INTO live (id, class, lane, state, order_key, seq, run_at, deadline, idempotent, since)
    SELECT id, class_, lane_, CASE WHEN run_at_ <= p_now THEN 'ready' ELSE 'scheduled' END, key_,
      CASE WHEN ordering_ = 'lifo' THEN -id ELSE id END, run_at_, p_task.dl, p_task.i, p_now
    FROM given)
  SELECT array_agg(id ORDER BY id) INTO ids FROM given;
  IF run_at_ <= p_now THEN
    -- A claim may follow in this transaction: see `promote`.
    PERFORM set_config('holdfast.woke', 'yes', true);
    woke := wake_lane(lane_, key_, CASE WHEN ordering_ = 'lifo' THEN -ids[cardinality(ids)] ELSE ids[1] END, p_now);
  END IF;
  RETURN json_build_object('receipts', ('[[' || array_to_string(ids, ',true],[') || ',true]]')::json, 'woke', woke);
END $$;

-- Takes the free keys and unique keys of these tasks, and returns new ids in the order of the tasks. A task whose key another
-- call has taken gets no id. A task that repeats a key of this call gets an id, but takes no key yet, because the earlier task
-- may not be recorded. All keys are taken before all unique keys, each sorted, so that two calls cannot wait for each other.
CREATE FUNCTION take_keys(p_tasks json, p_types text[], p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  ids bigint[];
  first_ boolean[];
BEGIN
  WITH wanted AS MATERIALIZED (
    SELECT t.n, t.k, p_types[t.g + 1] AS type,
      t.k IS NULL OR row_number() OVER (PARTITION BY t.k, p_types[t.g + 1] ORDER BY t.n) = 1 AS is_first,
      NOT EXISTS (SELECT 1 FROM keys k WHERE k.key = t.k AND k.type = p_types[t.g + 1]) AS is_free
    FROM ROWS FROM (json_populate_recordset(NULL::new_task, p_tasks)) WITH ORDINALITY
      t(g, p, b, i, d, da, sa, dl, k, po, uk, uw, uc, uf, n)),
  given AS MATERIALIZED (
    SELECT n, k, type, is_first, CASE WHEN is_free THEN nextval('bodies_id_seq') END AS id
    FROM (SELECT * FROM wanted ORDER BY n) w),
  taken AS (
    INSERT INTO keys (type, key, task) SELECT type, k, id FROM given WHERE k IS NOT NULL AND id IS NOT NULL AND is_first
    ORDER BY k COLLATE "C", type COLLATE "C" ON CONFLICT DO NOTHING)
  SELECT array_agg(id ORDER BY n), array_agg(is_first ORDER BY n) INTO ids, first_ FROM given;
  INSERT INTO uniques (type, key, task, until)
    SELECT type, uk, id, until FROM (
      SELECT DISTINCT ON (t.uk, p_types[t.g + 1]) p_types[t.g + 1] AS type, t.uk, ids[t.n] AS id, p_now + t.uf AS until
      FROM ROWS FROM (json_populate_recordset(NULL::new_task, p_tasks)) WITH ORDINALITY
        t(g, p, b, i, d, da, sa, dl, k, po, uk, uw, uc, uf, n)
      WHERE t.uk IS NOT NULL AND ids[t.n] IS NOT NULL AND first_[t.n] ORDER BY t.uk, p_types[t.g + 1], t.n) first
    ORDER BY uk COLLATE "C", type COLLATE "C" ON CONFLICT DO NOTHING;
  RETURN ids;
END $$;

-- Records tasks one by one, because others may have the same key or unique key, even in the same call. Answers as `enqueue_tasks`.
CREATE FUNCTION enqueue_keyed(p_groups json, p_tasks json, p_lanes boolean, p_patience integer, p_now bigint) RETURNS json
  LANGUAGE plpgsql AS $$
DECLARE
  place record;
  classes_ integer[];
  lanes_ bigint[];
  orders_ text[];
  last_keys_ double precision[];
  types_ text[];
  sources_ text[];
  task record;
  receipts json[] := '{}';
  before text;
  ids bigint[];
  task_type text;
  task_id bigint;
  occupant bigint;
  is_free boolean;
  known bigint;
  replaced_id bigint;
  replaced_from text;
  standing text;
  task_key double precision;
  task_seq bigint;
  stands text;
  is_held boolean;
  entered bigint[] := '{}';
  existing boolean := false;
  woke boolean;
BEGIN
  SELECT * INTO place FROM places_of(p_groups, p_lanes, p_patience);
  classes_ := place.classes;
  lanes_ := place.lanes;
  orders_ := place.orders;
  last_keys_ := place.last_keys;
  types_ := place.types;
  sources_ := place.sources;
  before := set_patience(p_patience);
  IF p_lanes THEN
    -- Tasks that may be replaced are locked before the keys, because a transaction that has locked them may be about to take
    -- keys.
    PERFORM 1 FROM live WHERE id IN (
      SELECT u.task FROM json_populate_recordset(NULL::new_task, p_tasks) t
      JOIN uniques u ON u.key = t.uk AND u.type = types_[t.g + 1] WHERE t.uc = 'replace') ORDER BY id FOR UPDATE;
  END IF;
  ids := take_keys(p_tasks, types_, p_now);
  FOR task IN
    SELECT t.*, coalesce(t.da, p_now + t.d) AS run_at, coalesce(t.sa, p_now) AS submitted_at
    FROM ROWS FROM (json_populate_recordset(NULL::new_task, p_tasks)) WITH ORDINALITY
      t(g, p, b, i, d, da, sa, dl, k, po, uk, uw, uc, uf, n) ORDER BY t.n
  LOOP
    task_type := types_[task.g + 1];
    replaced_id := NULL;
    replaced_from := NULL;
    is_held := false;
    IF task.k IS NOT NULL THEN
      SELECT k.task INTO known FROM keys k WHERE k.key = task.k AND k.type = task_type;
      IF NOT FOUND THEN
        -- The key was taken, but its task was not recorded or has been removed.
        ids[task.n] := coalesce(ids[task.n], nextval('bodies_id_seq'));
        INSERT INTO keys (type, key, task) VALUES (task_type, task.k, ids[task.n]) ON CONFLICT DO NOTHING;
        SELECT k.task INTO known FROM keys k WHERE k.key = task.k AND k.type = task_type;
      END IF;
      IF known IS DISTINCT FROM ids[task.n] THEN
        DELETE FROM uniques u WHERE u.task = ids[task.n];
        receipts := receipts || json_build_array(known, false);
        existing := true;
        CONTINUE;
      END IF;
    END IF;
    task_id := ids[task.n];
    IF task.uk IS NOT NULL THEN
      LOOP
        INSERT INTO uniques (type, key, task, until) VALUES (task_type, task.uk, task_id, p_now + task.uf) ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        SELECT u.task, u.released AND u.until <= p_now INTO occupant, is_free FROM uniques u
          WHERE u.type = task_type AND u.key = task.uk;
        CONTINUE WHEN NOT FOUND;
        EXIT WHEN occupant = task_id;
        IF is_free THEN
          DELETE FROM uniques u WHERE u.type = task_type AND u.key = task.uk AND u.task = occupant AND u.released;
          CONTINUE;
        END IF;
        IF task.uc = 'reject' THEN
          RAISE EXCEPTION 'unique conflict' USING ERRCODE = 'HF001',
            DETAIL = json_build_object('occupant', occupant, 'type', task_type, 'key', task.uk)::text;
        END IF;
        IF task.uc = 'replace' THEN
          -- A running task is not replaced. It is not locked either: otherwise its worker could not settle it until the caller's
          -- transaction ends.
          SELECT l.id, l.state INTO replaced_id, replaced_from FROM live l WHERE l.id = occupant AND l.state <> 'running'
            FOR UPDATE;
          -- Its state may have changed during the wait.
          CONTINUE WHEN NOT EXISTS (SELECT 1 FROM uniques u WHERE u.type = task_type AND u.key = task.uk AND u.task = occupant);
        END IF;
        EXIT WHEN task.uc = 'ignore' OR replaced_id IS NULL;
        DELETE FROM uniques u WHERE u.task = occupant;
        PERFORM end_task(occupant, 'cancelled', 'unique.superseded', NULL, p_now);
        INSERT INTO acts (task, at, actor, verb, note, from_state, to_state) VALUES (occupant, p_now, 'holdfast', 'supersede',
          'Task #' || task_id || ' has the same unique key and replaces it.', replaced_from, 'cancelled');
        is_held := replaced_from = 'held';
        INSERT INTO uniques (type, key, task, until) VALUES (task_type, task.uk, task_id, p_now + task.uf);
        EXIT;
      END LOOP;
      IF NOT EXISTS (SELECT 1 FROM uniques u WHERE u.task = task_id) THEN
        DELETE FROM keys k WHERE k.task = task_id;
        receipts := receipts || json_build_array(occupant, false);
        existing := true;
        CONTINUE;
      END IF;
    END IF;
    INSERT INTO bodies (id, source, priority, submitted_at, created_at, key, unique_key, unique_while, policy, payload)
      VALUES (task_id, sources_[task.g + 1], task.p, task.submitted_at, p_now, task.k, task.uk, task.uw, task.po, task.b);
    task_key := order_key(orders_[task.g + 1], task.p, task.submitted_at, last_keys_[task.g + 1]);
    task_seq := CASE WHEN orders_[task.g + 1] = 'lifo' THEN -task_id ELSE task_id END;
    standing := CASE WHEN task.run_at <= p_now THEN 'ready' ELSE 'scheduled' END;
    stands := CASE WHEN is_held THEN 'held' WHEN p_lanes THEN standing ELSE 'scheduled' END;
    INSERT INTO live (id, class, lane, state, order_key, seq, run_at, deadline, idempotent, unique_while, since)
      VALUES (task_id, classes_[task.g + 1], lanes_[task.g + 1], stands, task_key, task_seq, task.run_at, task.dl,
        task.i, task.uw, p_now);
    IF is_held THEN
      INSERT INTO acts (task, at, actor, verb, note, from_state, to_state) VALUES (task_id, p_now, 'holdfast', 'hold',
        'It replaces #' || replaced_id || ', which was held.', standing, 'held');
    ELSIF stands = 'ready' THEN
      entered := entered || task_id;
    END IF;
    receipts := receipts || CASE WHEN replaced_id IS NULL THEN json_build_array(task_id, true)
      ELSE json_build_array(task_id, true, replaced_id) END;
  END LOOP;
  PERFORM set_config('lock_timeout', before, true);
  IF existing THEN
    receipts := ARRAY(SELECT CASE WHEN (r ->> 1)::boolean THEN r ELSE json_build_array(r -> 0, false, NULL, (
        SELECT state FROM live WHERE id = (r ->> 0)::bigint UNION ALL SELECT state FROM ended WHERE id = (r ->> 0)::bigint
        UNION ALL SELECT state FROM succeeded WHERE id = (r ->> 0)::bigint LIMIT 1)) END
      FROM unnest(receipts) WITH ORDINALITY given(r, n) ORDER BY n);
  END IF;
  -- A task that was replaced in this call does not exist any more.
  SELECT wake_lanes(array_agg(lane), array_agg(order_key), array_agg(seq)) INTO woke FROM (
    SELECT DISTINCT ON (lane) lane, order_key, seq FROM live WHERE id = ANY(entered) AND state IS NOT DISTINCT FROM 'ready'
    ORDER BY lane, order_key, seq) ready;
  RETURN json_build_object('receipts', array_to_json(receipts), 'woke', woke);
END $$;

-- Records tasks, once for each call however often it is made. Answers a receipt for each, in order, and whether workers may be idle. A
-- receipt is a list: id, created, the replaced task, the state of an existing task.
CREATE FUNCTION enqueue_tasks(p_call uuid, p_groups json, p_tasks json, p_keyed boolean, p_lanes boolean, p_patience integer,
  p_follow_ups json DEFAULT NULL, p_payloads text DEFAULT NULL) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  done json;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  IF p_payloads IS NOT NULL AND p_lanes THEN
    done := enqueue_alike(p_groups -> 0, json_populate_record(NULL::new_task, p_tasks -> 0), p_payloads, now_);
  END IF;
  IF done IS NULL THEN
    done := CASE WHEN p_keyed THEN enqueue_keyed(p_groups, p_tasks, p_lanes, p_patience, now_)
      ELSE enqueue_plain(p_groups, p_tasks, p_payloads, p_lanes, p_patience, now_) END;
  END IF;
  IF p_follow_ups IS NOT NULL THEN PERFORM record_groups(done -> 'receipts', p_follow_ups, now_); END IF;
  -- The caller's transaction has replaced a task of a group, and nobody hears of its commit.
  IF NOT p_lanes AND current_setting('holdfast.group_task', true) = 'ended' THEN PERFORM end_other_groups(); END IF;
  IF p_call IS NOT NULL THEN INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done); END IF;
  IF NOT p_lanes AND current_setting('holdfast.notify', true) IS DISTINCT FROM 'off'
    AND EXISTS (SELECT 1 FROM workers WHERE NOT gone AND lease_until > now_ + lease_for)
  THEN
    -- Such a worker is idle and listens, and would not look for long.
    PERFORM pg_notify('{channel}', 'sql work');
  END IF;
  RETURN done;
END $$;

-- Enqueues in the caller's own transaction, which can continue whatever the result is.
CREATE FUNCTION enqueue_within(p_call json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  conflict text;
BEGIN
  IF (p_call ->> 'epoch')::uuid <> (SELECT epoch FROM meta) THEN RETURN '{"elsewhere":true}'; END IF;
  RETURN json_build_object('receipts',
    enqueue_tasks(NULL, p_call -> 'groups', p_call -> 'tasks', (p_call ->> 'keyed')::boolean, false, NULL,
      p_call -> 'followUps') -> 'receipts');
EXCEPTION WHEN SQLSTATE 'HF001' THEN
  GET STACKED DIAGNOSTICS conflict = PG_EXCEPTION_DETAIL;
  RETURN json_build_object('conflict', conflict::json);
END $$;

-- Ends a live task in this state: moves it out of the live tables.
CREATE FUNCTION end_task(p_id bigint, p_state text, p_reason text, p_result text, p_now bigint) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  is_in_group boolean;
BEGIN
  PERFORM must_be_legal(state, p_state) FROM live WHERE id = p_id;
  SELECT in_group INTO is_in_group FROM live WHERE id = p_id;
  WITH gone AS (DELETE FROM live l WHERE l.id = p_id RETURNING l.*),
  wide AS (DELETE FROM bodies b WHERE b.id = p_id RETURNING b.*),
  done AS (
    SELECT l.id, l.class, b.source, p_state AS state, p_now AS since, l.token, coalesce(p_reason, l.reason) AS reason,
      p_result AS result, b.priority, b.submitted_at, b.created_at, l.run_at, l.deadline, l.idempotent, b.key, b.unique_key,
      b.unique_while, b.policy, b.payload, l.executions, l.round_base, l.first_started_at, l.charged, l.deferrals, l.in_a_row,
      l.deferred_since, l.recoveries, l.suspect, l.error
    FROM gone l JOIN wide b ON b.id = l.id),
  well AS (INSERT INTO succeeded SELECT * FROM done WHERE state = 'succeeded')
  INSERT INTO ended SELECT * FROM done WHERE state <> 'succeeded';
  IF is_in_group THEN PERFORM end_group_tasks(ARRAY[p_id]); END IF;
END $$;
