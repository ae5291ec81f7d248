-- Importing tasks from another queue.

CREATE TYPE imported_task AS (
  stands text, executions integer, charged jsonb, deferrals integer, in_a_row integer, reason text, error text, result text,
  ended_at bigint, actor text, note text, imported text
);

-- Records tasks of another queue with their states and counts. Keys mean the same as for new tasks: if a key is known, the id of
-- its task is returned, and that task stays as it is. Imported tasks have no unique key.
CREATE FUNCTION import_tasks(p_call uuid, p_groups json, p_tasks json, p_imported json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  place record;
  classes_ integer[];
  lanes_ bigint[];
  orders_ text[];
  last_keys_ double precision[];
  types_ text[];
  sources_ text[];
  before text;
  ids bigint[];
  done json;
  is_lost boolean;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  PERFORM must_be_legal('elsewhere', stands) FROM (
    SELECT DISTINCT stands FROM json_populate_recordset(NULL::imported_task, p_imported) WHERE stands <> 'waiting') states;
  PERFORM make_days(now_, 0);
  PERFORM pg_advisory_xact_lock_shared(lane_lock(), import_lock());
  SELECT * INTO place FROM places_of(p_groups, true, 500);
  classes_ := place.classes;
  lanes_ := place.lanes;
  orders_ := place.orders;
  last_keys_ := place.last_keys;
  types_ := place.types;
  sources_ := place.sources;
  before := set_patience(500);
  ids := take_keys(p_tasks, types_, now_);
  PERFORM set_config('lock_timeout', before, true);

  WITH given AS MATERIALIZED (
    SELECT t.*, ids[t.n] AS id, classes_[t.g + 1] AS class, lanes_[t.g + 1] AS lane, sources_[t.g + 1] AS source,
      coalesce(t.da, now_ + t.d) AS run_at, coalesce(t.sa, now_) AS submitted,
      CASE WHEN t.in_a_row > 0 THEN now_ END AS deferred_since
    FROM ROWS FROM (json_populate_recordset(NULL::new_task, p_tasks), json_populate_recordset(NULL::imported_task, p_imported))
      WITH ORDINALITY t(g, p, b, i, d, da, sa, dl, k, po, uk, uw, uc, uf, stands, executions, charged, deferrals, in_a_row, reason, error,
        result, ended_at, actor, note, imported, n)),
  met AS MATERIALIZED (
    SELECT g.*, CASE WHEN g.k IS NULL THEN g.id
      ELSE (SELECT k.task FROM keys k WHERE k.key = g.k AND k.type = types_[g.g + 1]) END AS known
    FROM given g),
  fresh AS MATERIALIZED (
    SELECT m.*, CASE WHEN m.stands <> 'waiting' THEN m.stands WHEN m.run_at <= now_ THEN 'ready' ELSE 'scheduled' END AS state
    FROM met m WHERE m.known = m.id),
  wide AS (
    INSERT INTO bodies (id, source, priority, submitted_at, created_at, key, policy, payload)
    SELECT id, source, p, submitted, now_, k, po, b FROM fresh WHERE state IN ('ready', 'scheduled', 'held')),
  narrow AS (
    INSERT INTO live (id, class, lane, state, order_key, seq, run_at, deadline, idempotent, since, executions, charged, deferrals,
      in_a_row, deferred_since, reason, error)
    SELECT id, class, lane, state, order_key(orders_[g + 1], p, submitted, last_keys_[g + 1]),
      CASE WHEN orders_[g + 1] = 'lifo' THEN -id ELSE id END, run_at, dl, i, now_, executions, nullif(charged, '[]'), deferrals,
      in_a_row, deferred_since, reason, error
    FROM fresh WHERE state IN ('ready', 'scheduled', 'held')),
  well AS (
    INSERT INTO succeeded (id, class, source, state, since, result, priority, submitted_at, created_at, run_at, deadline, idempotent,
      key, policy, payload, executions, charged, deferrals, in_a_row, deferred_since, error)
    SELECT id, class, source, state, coalesce(ended_at, now_), result, p, submitted, now_, run_at, dl, i,
      k, po, b, executions, nullif(charged, '[]'), deferrals, in_a_row, deferred_since, error FROM fresh WHERE state = 'succeeded'),
  others AS (
    INSERT INTO ended (id, class, source, state, since, reason, priority, submitted_at, created_at, run_at, deadline, idempotent,
      key, policy, payload, executions, charged, deferrals, in_a_row, deferred_since, error)
    SELECT id, class, source, state, CASE WHEN state = 'needs_manual' THEN now_ ELSE coalesce(ended_at, now_) END, reason, p, submitted,
      now_, run_at, dl, i, k, po, b, executions, nullif(charged, '[]'), deferrals, in_a_row, deferred_since, error
    FROM fresh WHERE state IN ('needs_manual', 'dead', 'cancelled')),
  acted AS (
    INSERT INTO acts (task, at, actor, verb, told, note, from_state, to_state, brought)
    SELECT id, now_, actor, 'imported', true, note, 'elsewhere', state, imported FROM fresh ORDER BY n)
  SELECT json_agg(json_build_array(known, known IS NOT DISTINCT FROM id) ORDER BY n), bool_or(known IS NULL)
  INTO done, is_lost FROM met;
  IF is_lost THEN
    -- A key was taken, and its task was removed a moment later. When the call is repeated, it takes the key.
    RAISE EXCEPTION 'A task was removed while its key was looked up.' USING ERRCODE = 'serialization_failure';
  END IF;
  PERFORM wake_lanes(array_agg(lane), array_agg(order_key), array_agg(seq)) FROM (
    SELECT DISTINCT ON (lane) lane, order_key, seq FROM live WHERE id = ANY(ids) AND state IS NOT DISTINCT FROM 'ready'
    ORDER BY lane, order_key, seq) ready;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done);
  RETURN done;
END $$;
