-- Settling writes decisions. Each decision is written only if its lease still belongs to the worker and the task still has the
-- revision from which the decision was made. A decision contains changes, such as one more charge, not new totals.

CREATE TYPE settlement AS (
  id bigint, x integer, t uuid, r integer, n text, a bigint, s integer, c text, cr text, ck text, u boolean, re text,
  er text, fa text, rs text, pl boolean, oc text, f text, m text, b text, rf bigint, nt boolean, vd text, so integer, sr bigint, sc json
);

-- Retries as columns, sorted by id. `said`: the place of what each has in common with others in the list of `settlement`s. `because`: the
-- place of its explanation; `roll`: its random number there, if it has one. `ran_for` and `place` are only needed if a retry is settled as
-- an item.
CREATE TYPE retries AS (
  id bigint[], token uuid[], execution integer[], revision integer[], delay bigint[], said integer[], because integer[], roll text[],
  ran_for bigint[], place integer[]
);

-- Charges of one reason and kind, and the sum of the waits after them; the sum is left out if it is 0.
CREATE FUNCTION charged_as(p_reason text, p_kind text, p_count integer, p_delay bigint) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object('reason', p_reason, 'kind', p_kind, 'count', p_count,
    'delayMs', CASE WHEN p_delay > 0 THEN p_delay END))
$$;

-- Adds a charge under a reason and a kind, and the wait after it, to a task that has charges.
CREATE FUNCTION charged_more(p_charged jsonb, p_reason text, p_kind text, p_delay bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  before jsonb;
BEGIN
  FOR place IN 0..jsonb_array_length(p_charged) - 1 LOOP
    before := p_charged -> place;
    IF before ->> 'reason' = p_reason AND before ->> 'kind' = p_kind THEN
      RETURN jsonb_set(p_charged, ARRAY[place::text], charged_as(p_reason, p_kind, (before ->> 'count')::integer + 1,
        coalesce((before ->> 'delayMs')::bigint, 0) + coalesce(p_delay, 0)));
    END IF;
  END LOOP;
  RETURN p_charged || charged_as(p_reason, p_kind, 1, p_delay);
END $$;

-- The charges of a task after one more, and the wait after it. Most tasks have none before, or one of the same reason.
CREATE FUNCTION charged_after(p_charged jsonb, p_charge text, p_reason text, p_kind text, p_delay bigint) RETURNS jsonb
  LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_charge <> 'task' THEN p_charged
    WHEN p_charged IS NULL THEN jsonb_build_array(charged_as(p_reason, p_kind, 1, p_delay))
    ELSE charged_more(p_charged, p_reason, p_kind, p_delay) END
$$;

-- Settles successes of first executions, sorted by id. They need only a check of the lease, and leave no history. Returns the ids
-- that it did not settle: also those of tasks of groups.
CREATE FUNCTION settle_plain(p_ids bigint[], p_tokens uuid[], p_results text[], p_differing bigint[], p_now bigint) RETURNS bigint[]
  LANGUAGE plpgsql AS $$
DECLARE
  settled bigint[];
BEGIN
  WITH gone AS (
    -- Not a join: if `live` was nearly empty when it was planned, the plan would read all of `live` from then on.
    DELETE FROM live l WHERE l.id = ANY(p_ids) AND l.token = p_tokens[width_bucket(l.id, p_ids)]
      AND l.executions = 1 AND l.unique_while IS DISTINCT FROM 'unfinished' AND l.in_group IS NULL AND l.id <> ALL(p_differing)
    RETURNING l.id, l.class, l.token, l.run_at, l.deadline, l.idempotent, l.charged, l.deferrals, l.error),
  kept AS (
    INSERT INTO succeeded (id, class, source, state, since, token, result, priority, submitted_at, created_at, run_at, deadline,
      idempotent, key, unique_key, unique_while, policy, executions, charged, deferrals, error)
    SELECT l.id, l.class, b.source, 'succeeded', p_now, l.token, p_results[width_bucket(l.id, p_ids)], b.priority, b.submitted_at,
      b.created_at, l.run_at, l.deadline, l.idempotent, b.key, b.unique_key, b.unique_while, b.policy, 1, l.charged, l.deferrals, l.error
    FROM gone l JOIN bodies b ON b.id = l.id
    RETURNING id)
  SELECT array_agg(id) INTO settled FROM kept;
  IF cardinality(settled) = cardinality(p_ids) THEN RETURN '{}'; END IF;
  RETURN ARRAY(SELECT id FROM unnest(p_ids) id WHERE id <> ALL(coalesce(settled, '{}')));
END $$;

-- Settles tasks, each at most once per call. Returns a list for each: its new state, or why it was not changed. `p_differing` are
-- tasks whose source was changed meanwhile. The caller wakes the lanes.
CREATE FUNCTION settle_items(p_items settlement[], p_have_keys boolean, p_differing bigint[], p_patience integer, p_now bigint,
  OUT answers json[], OUT answered bigint[], OUT changed bigint[],
  OUT woken bigint[], OUT keys double precision[], OUT seqs bigint[]) LANGUAGE plpgsql AS $$
DECLARE
  item record;
  weighted integer[] := ARRAY(SELECT c.id FROM queues q JOIN classes c ON c.queue = q.id WHERE q.ordering = 'weighted_random');
  yielding bigint[] := '{}';
  yielded_to bigint[] := '{}';
  occupant bigint;
  of_groups bigint[];
BEGIN
  FOR item IN
    SELECT l.id, l.unique_while, i.n FROM unnest(p_items) i JOIN live l ON l.id = i.id
    WHERE p_have_keys AND l.unique_while IS NOT NULL AND l.executions = i.x AND l.token = i.t
      AND (i.n = 'succeeded' OR l.revision = i.r) AND i.id <> ALL(p_differing)
    ORDER BY l.id FOR UPDATE OF l
  LOOP
    IF item.n = 'scheduled' THEN
      IF item.unique_while = 'waiting' THEN
        occupant := take_unique(item.id, p_patience, p_now);
        IF occupant IS NOT NULL THEN
          yielding := yielding || item.id;
          yielded_to := yielded_to || occupant;
        END IF;
      END IF;
    ELSIF item.n <> 'needs_manual' OR item.unique_while = 'waiting' THEN
      PERFORM free_unique(ARRAY[item.id], p_now);
    END IF;
  END LOOP;

  WITH held AS MATERIALIZED (
    SELECT i.*, l.state AS standing, l.class, l.lane, l.revision, l.since, l.worker, l.lost_by,
      l.executions, l.in_group, i.n <> 'succeeded' AND l.revision <> i.r OR i.id = ANY(p_differing) AS differs, i.id = ANY(yielding) AS yields
    -- Not a join, for the same reason as in `settle_plain`. The items are sorted by id, or all tasks are locked already.
    FROM unnest(p_items) i CROSS JOIN LATERAL (
      SELECT * FROM live WHERE id = i.id AND executions = i.x AND token = i.t FOR UPDATE) l),
  fit AS MATERIALIZED (SELECT h.* FROM held h WHERE NOT h.differs),
  again AS (
    UPDATE live l SET
      state = CASE WHEN h.a > 0 THEN 'scheduled' ELSE 'ready' END,
      lane = (SELECT CASE WHEN a.track = x.track THEN l.lane ELSE lane_of(l.class, a.source, x.track) END FROM lanes a CROSS JOIN LATERAL (
        -- A task that was handed back before it began is still new work if its source ramps.
        SELECT CASE WHEN track_of(h.s, h.nt) = 0 AND l.ran_at IS NULL AND (h.u OR l.why = 'expiry') THEN new_track_of(a.source)
          ELSE track_of(h.s, h.nt) END AS track) x WHERE a.id = l.lane),
      -- A subquery, because a function would start its own query for each task.
      order_key = CASE WHEN CASE WHEN l.class = ANY(weighted) THEN h.a > 0 ELSE h.u OR l.why = 'expiry' END THEN l.order_key
        ELSE (SELECT order_key(q.ordering, b.priority, b.submitted_at, q.last_key, l.since)
          FROM bodies b, classes c JOIN queues q ON q.id = c.queue WHERE b.id = l.id AND c.id = l.class) END,
      ran_at = CASE WHEN h.u OR l.why = 'expiry' THEN l.ran_at ELSE l.since END,
      run_at = p_now + h.a, since = p_now, worker = NULL, token = NULL, why = NULL, lost_by = NULL, cancel = false,
      first_started_at = CASE WHEN h.u OR l.why = 'expiry' THEN l.first_started_at ELSE coalesce(l.first_started_at, l.since) END,
      charged = charged_after(l.charged, h.c, h.cr, h.ck, h.a),
      deferrals = l.deferrals + CASE WHEN h.c = 'deferrals' THEN 1 ELSE 0 END,
      in_a_row = CASE h.c WHEN 'task' THEN 0 WHEN 'deferrals' THEN l.in_a_row + 1 ELSE l.in_a_row END,
      deferred_since = CASE h.c WHEN 'task' THEN NULL WHEN 'deferrals' THEN coalesce(l.deferred_since, p_now)
        ELSE l.deferred_since END,
      recoveries = CASE WHEN h.c = 'recoveries' THEN l.recoveries || p_now ELSE l.recoveries END,
      suspect = h.s > 0, lost_in_a_row = h.s, needs_token = coalesce(h.nt, false), verdict = h.vd, counted = NULL, counted_queue = NULL,
      is_probe = false, reason = h.re, error = coalesce(h.er, l.error), failed_as = coalesce(h.fa, l.failed_as)
    FROM fit h WHERE l.id = h.id AND h.n = 'scheduled' AND NOT h.yields
    RETURNING l.id, l.lane, l.state, l.order_key, l.seq),
  gone AS (
    DELETE FROM live l USING fit h WHERE l.id = h.id AND (h.n <> 'scheduled' OR h.yields)
    RETURNING l, h.n, h.c, h.cr, h.ck, h.re, h.er, h.rs, h.u, h.yields, h.pl),
  wide AS (
    DELETE FROM bodies b USING gone g WHERE b.id = (g.l).id
    RETURNING (g.l).id, (g.l).class, b.source, CASE WHEN g.yields THEN 'cancelled' ELSE g.n END AS state, p_now AS since,
      CASE WHEN NOT g.yields THEN (g.l).token END AS token,
      CASE WHEN g.yields THEN 'unique.superseded' WHEN g.n = 'succeeded' THEN NULL ELSE g.re END AS reason, g.rs AS result,
      b.priority, b.submitted_at, b.created_at, (g.l).run_at, (g.l).deadline, (g.l).idempotent, b.key, b.unique_key,
      b.unique_while, b.policy, b.payload, (g.l).executions, (g.l).round_base,
      CASE WHEN g.u OR (g.l).why = 'expiry' THEN (g.l).first_started_at ELSE coalesce((g.l).first_started_at,
        (g.l).since) END AS first_started_at,
      charged_after((g.l).charged, g.c, g.cr, g.ck, 0) AS charged,
      (g.l).deferrals + CASE WHEN g.c = 'deferrals' THEN 1 ELSE 0 END AS deferrals,
      CASE g.c WHEN 'task' THEN 0 WHEN 'deferrals' THEN (g.l).in_a_row + 1 ELSE (g.l).in_a_row END AS in_a_row,
      CASE g.c WHEN 'task' THEN NULL WHEN 'deferrals' THEN coalesce((g.l).deferred_since, p_now)
        ELSE (g.l).deferred_since END AS deferred_since,
      CASE WHEN g.c = 'recoveries' THEN (g.l).recoveries || p_now ELSE (g.l).recoveries END AS recoveries,
      false AS suspect, coalesce(g.er, (g.l).error) AS error),
  well AS (INSERT INTO succeeded SELECT * FROM wide WHERE state = 'succeeded'),
  ill AS (INSERT INTO ended SELECT * FROM wide WHERE state <> 'succeeded'),
  acted AS (
    INSERT INTO acts (task, at, actor, verb, note, told, from_state, to_state)
    SELECT y.id, p_now, 'holdfast', 'supersede', 'Task #' || y.by || ' has the same unique key and replaces it.',
      true, 'running', 'cancelled'
    FROM unnest(yielding, yielded_to) y(id, by)),
  told AS (
    INSERT INTO executions (task, execution, token, late, worker, started_at, ended_at, outcome, next, after_ms, charge,
      failure, message, because)
    SELECT h.id, h.x, h.t, false, coalesce(h.lost_by, w.name, 'a worker that left'), h.since, p_now, h.oc, h.n,
      CASE WHEN h.n = 'scheduled' THEN h.a END, h.c, h.f, h.m, h.b
    FROM fit h LEFT JOIN workers w ON w.id = h.worker WHERE NOT h.pl),
  entered AS (SELECT DISTINCT ON (lane) lane, order_key AS key, seq FROM again WHERE state = 'ready' ORDER BY lane,
    order_key, seq)
  SELECT
    (SELECT array_agg(json_build_array(h.id, 'settled', CASE WHEN h.yields THEN 'cancelled' WHEN h.n <> 'scheduled'
      THEN h.n WHEN h.a > 0 THEN 'scheduled' ELSE 'ready' END)) FROM fit h),
    (SELECT array_agg(h.id) FROM held h), (SELECT array_agg(h.id) FROM held h WHERE h.differs),
    (SELECT array_agg(h.id) FROM fit h WHERE h.in_group AND (h.yields OR h.n NOT IN ('scheduled', 'needs_manual'))),
    (SELECT array_agg(lane) FROM entered), (SELECT array_agg(key) FROM entered), (SELECT array_agg(seq) FROM entered)
  INTO answers, answered, changed, of_groups, woken, keys, seqs;
  IF of_groups IS NOT NULL THEN PERFORM end_group_tasks(of_groups); END IF;
END $$;

-- Says of these tasks that they, or their sources, were changed since the decision: with the new facts and the new states of the sources.
CREATE FUNCTION changed_answers(p_ids bigint[], p_now bigint) RETURNS json[] LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT json_build_array(l.id, 'changed', handed(l, b, c.value), state_of(b.source, p_now))
    FROM live l JOIN bodies b ON b.id = l.id LEFT JOIN checkpoints c ON c.task = l.id
    WHERE l.id = ANY(p_ids));
END $$;

-- The tasks whose charges these settlements refund.
CREATE FUNCTION refunded_by(p_items settlement[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT (refund ->> 'task')::bigint FROM unnest(p_items) i CROSS JOIN LATERAL json_array_elements(i.sc -> 'refunds') refund);
END $$;

-- Settles a batch: plain successes by their ids, tokens and results, retries as columns, others as items. Returns lists of id, answer and
-- more; plain successes and retries that were written are left out. `p_said`: what retries have in common, and the two parts of their
-- explanations, as in `retries`. Fails as a whole, with lock_not_available, if an open transaction has the unique key
-- of a task that will wait again locked for longer than `p_patience` milliseconds. `p_changes`: some items change their source or
-- name a state of it. `p_places`: the places of plain successes in the call; -1 for those that do not concern their source.
-- `p_counts`: a list of keys and how many of these settlements are counted under each. `p_counted`: of each settlement, in the order
-- of ids, retries and items, the place of its key, from 1 on. `p_seen`: what they say of groups of failures.
CREATE FUNCTION settle(p_ids bigint[], p_tokens uuid[], p_places integer[], p_results json, p_plain json, p_retries retries,
  p_said json, p_item_ids bigint[], p_items json, p_changes boolean, p_counts json, p_counted integer[], p_seen json, p_patience integer) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  items settlement[] := '{}';
  said settlement[];
  becauses text[];
  -- All, in the order of `p_counted`.
  ids bigint[] := p_ids || p_retries.id || p_item_ids;
  have_keys boolean := false;
  rest bigint[];
  retried record;
  settled record;
  woken bigint[];
  keys double precision[];
  seqs bigint[];
  answers json[];
  item settlement;
  -- Whether any of their sources has a row, or may get one.
  has_states boolean;
  -- Whether any of them counts against the limit of its queue.
  frees_queue boolean;
  sources_ record;
  differing bigint[] := '{}';
  refunded bigint[];
  ends_groups boolean;
  -- Whether each of them was written.
  are_settled boolean := true;
BEGIN
  -- Each statement costs as much as a settlement or two, so the usual call makes few.
  SELECT EXISTS (SELECT 1 FROM source_states) OR p_changes, EXISTS (SELECT 1 FROM queues WHERE concurrency IS NOT NULL)
  INTO has_states, frees_queue;
  IF frees_queue THEN
    frees_queue := EXISTS (SELECT 1 FROM live WHERE id = ANY(ids) AND counted_queue IS NOT NULL);
  END IF;
  IF p_items IS NOT NULL THEN
    items := ARRAY(SELECT i FROM json_populate_recordset(NULL::settlement, p_items) i);
    have_keys := EXISTS (SELECT 1 FROM live WHERE id = ANY(p_item_ids) AND unique_while IS NOT NULL);
  END IF;
  IF has_states AND NOT p_changes THEN
    has_states := EXISTS (SELECT 1 FROM (SELECT DISTINCT lane FROM live WHERE id = ANY(ids)) t
      JOIN lanes a ON a.id = t.lane JOIN source_states s ON s.name = a.source);
  END IF;
  IF has_states OR have_keys OR (cardinality(p_ids) > 0)::integer + (p_items IS NOT NULL)::integer + (p_retries.id IS NOT NULL)::integer > 1 THEN
    -- If several statements will lock these tasks, all are locked here in one order, so that two of these calls cannot wait for
    -- each other.
    refunded := CASE WHEN p_changes THEN refunded_by(items) END;
    PERFORM 1 FROM live WHERE id = ANY(ids || refunded) ORDER BY id FOR UPDATE;
    PERFORM 1 FROM ended WHERE id = ANY(refunded) ORDER BY id FOR UPDATE;
  END IF;
  IF p_retries.id IS NOT NULL THEN
    said := ARRAY(SELECT i FROM json_populate_recordset(NULL::settlement, p_said -> 0) i);
    becauses := texts_of(p_said -> 1);
    IF has_states THEN
      rest := p_retries.id;
    ELSE
      retried := settle_retries(p_retries, said, becauses, now_);
      rest := retried.rest;
      woken := retried.woken;
      keys := retried.keys;
      seqs := retried.seqs;
    END IF;
    IF rest <> '{}' THEN
      have_keys := true;
      items := items || items_of(p_retries, rest, said, becauses);
    END IF;
  END IF;
  IF has_states THEN
    sources_ := settle_sources(p_ids, p_tokens, p_places, items, now_);
    differing := sources_.differing;
  END IF;
  IF cardinality(p_ids) > 0 THEN
    rest := settle_plain(p_ids, p_tokens, texts_of(p_results), differing, now_);
    IF rest <> '{}' THEN
      have_keys := true;
      items := items || ARRAY(SELECT json_populate_record(NULL::settlement, json_build_object('id', g.id, 'x', 1, 't', g.token, 'r', 0,
          'n', 'succeeded', 'c', 'nobody', 'rs', p_results ->> (g.n - 1)::integer, 'pl', true, 'oc', 'success',
          'b', p_plain -> 0 ->> (p_plain -> 1 ->> (2 * g.n - 2)::integer)::integer, 'rf', p_plain -> 1 -> (2 * g.n - 1)::integer))
        FROM unnest(p_ids, p_tokens) WITH ORDINALITY g(id, token, n) WHERE g.id = ANY(rest));
    END IF;
  END IF;
  IF cardinality(items) > 0 THEN
    settled := settle_items(items, have_keys, differing, p_patience, now_);
    IF settled.woken IS NOT NULL THEN
      -- Of each lane the first. All lanes are woken in one order, so that two calls cannot wait for each other.
      SELECT array_agg(lane), array_agg(key), array_agg(seq) INTO woken, keys, seqs FROM (
        SELECT DISTINCT ON (lane) lane, key, seq FROM unnest(woken || settled.woken, keys || settled.keys, seqs || settled.seqs) w(lane, key, seq)
        ORDER BY lane, key, seq) first;
    END IF;
  END IF;
  IF woken IS NOT NULL THEN
    IF cardinality(woken) = 1 THEN PERFORM wake_lane(woken[1], keys[1], seqs[1], now_); ELSE PERFORM wake_lanes(woken, keys, seqs); END IF;
    PERFORM set_config('holdfast.woke', 'yes', true);
  END IF;
  IF cardinality(items) > 0 THEN
    IF has_states THEN PERFORM refund(sources_.refunds, now_); END IF;
    answers := settled.answers;
    IF settled.changed IS NOT NULL THEN
      are_settled := false;
      answers := answers || changed_answers(settled.changed, now_);
    END IF;
    IF cardinality(items) > coalesce(cardinality(settled.answered), 0) THEN
      are_settled := false;
      FOREACH item IN ARRAY items LOOP
        CONTINUE WHEN item.id = ANY(settled.answered);
        answers := answers || settle_late(item, now_);
      END LOOP;
    END IF;
  END IF;
  IF p_counts IS NOT NULL THEN
    INSERT INTO counter_entries (at, counts, unwritten) VALUES (now_, p_counts, CASE WHEN NOT are_settled THEN
      (SELECT array_agg(c.place) FROM unnest(answers) a JOIN unnest(ids, p_counted) c(id, place)
        ON c.id = (a ->> 0)::bigint WHERE a ->> 1 <> 'settled') END);
  END IF;
  IF p_seen IS NOT NULL THEN
    INSERT INTO failure_entries (at, seen, unwritten)
    VALUES (now_, p_seen, CASE WHEN NOT are_settled THEN
      (SELECT array_agg((a ->> 0)::bigint) FROM unnest(answers) a WHERE a ->> 1 <> 'settled') END);
  END IF;
  -- Set by `end_group_tasks`.
  ends_groups := nullif(current_setting('holdfast.group_task', true), '') IS NOT NULL;
  IF NOT has_states THEN
    RETURN json_build_object('now', now_, 'answers', array_to_json(answers), 'opens', frees_queue, 'endsGroups', ends_groups);
  END IF;
  RETURN json_build_object('now', now_, 'answers', array_to_json(answers), 'opens', sources_.opens OR frees_queue,
    'shuts', sources_.shuts, 'endsGroups', ends_groups);
END $$;
