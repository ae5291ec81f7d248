-- Changes of the states of sources. A settlement names the revision of the state from which it was made. If this is not the
-- current one, the answer is `changed`. Locks are taken in one order: tasks by id, then sources by name, then lanes.

-- The state of a source, as a claim or settlement gets it.
CREATE FUNCTION state_of(p_source text, p_now bigint) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT json_build_array(s.revision, s.memory, greatest(0, p_now - s.written_at)) FROM source_states s
    WHERE s.name = p_source AND s.revision > 0);
END $$;

-- The row of a source, locked; made if it is missing.
CREATE FUNCTION own_source(p_source text) RETURNS source_states LANGUAGE plpgsql AS $$
DECLARE
  s source_states;
BEGIN
  SELECT * INTO s FROM source_states WHERE name = p_source FOR NO KEY UPDATE;
  IF FOUND THEN RETURN s; END IF;
  -- A claim never waits for such a row: it makes one only if it gets this lock.
  PERFORM pg_advisory_xact_lock(lane_lock() + 6, hashtext(p_source));
  INSERT INTO source_states (name) VALUES (p_source) ON CONFLICT DO NOTHING;
  SELECT * INTO s FROM source_states WHERE name = p_source FOR NO KEY UPDATE;
  RETURN s;
END $$;

CREATE FUNCTION with_tokens(s source_states, p_added double precision, p_now bigint) RETURNS source_states LANGUAGE plpgsql AS $$
BEGIN
  IF s.tokens IS NOT NULL THEN
    s.tokens := least(budget_full(), tokens_of(s, p_now) + p_added);
    s.tokens_at := p_now;
  END IF;
  RETURN s;
END $$;

-- A source after a change of its state.
CREATE FUNCTION with_change(s source_states, p_change json, p_now bigint) RETURNS source_states LANGUAGE plpgsql AS $$
DECLARE
  restriction_ jsonb := p_change -> 'restriction';
BEGIN
  s := with_tokens(s, (p_change ->> 'tokens')::double precision, p_now);
  s.memory := p_change ->> 'memory';
  IF s.memory IS NULL THEN
    -- The next state begins with a higher revision.
    LOOP
      EXIT WHEN nextval('source_life') > s.revision;
    END LOOP;
    s.revision := 0;
    s.written_at := NULL;
  ELSE
    s.revision := CASE s.revision WHEN 0 THEN nextval('source_life') ELSE s.revision END + 1;
    s.written_at := p_now;
  END IF;
  s.restriction := restriction_;
  s.cause := restriction_ ->> 'cause';
  s.shut_until := CASE restriction_ ->> 'shutFor' WHEN 'released' THEN 9223372036854775807
    ELSE p_now + ceil((restriction_ ->> 'shutFor')::double precision)::bigint END;
  s.is_probing := coalesce((restriction_ ->> 'probing')::boolean, false);
  s.per_second := (restriction_ #>> '{pace,perSecond}')::double precision;
  s.burst := (restriction_ #>> '{pace,burst}')::double precision;
  s.is_ramping := coalesce((restriction_ ->> 'ramping')::boolean, false);
  s.backlog_is_next := s.is_ramping AND s.backlog_is_next;
  RETURN s;
END $$;

-- Refunds charges, each once, if the task has not ended and is still in the round of that execution. Its retry needs no token any more. The
-- tasks are locked.
CREATE FUNCTION refund(p_refunds json, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  given record;
  failed record;
  spared bigint[];
BEGIN
  FOR given IN
    SELECT t.* FROM (SELECT DISTINCT (r ->> 'task')::bigint AS id, (r ->> 'execution')::integer AS execution
      FROM json_array_elements(p_refunds) r) g CROSS JOIN LATERAL (
        SELECT l.id, g.execution, true AS is_live FROM live l WHERE l.id = g.id AND l.round_base < g.execution
        UNION ALL SELECT e.id, g.execution, false FROM ended e
          WHERE e.id = g.id AND e.round_base < g.execution AND e.state = 'needs_manual') t ORDER BY 1, 2
  LOOP
    UPDATE executions SET charge = 'refunded'
      WHERE task = given.id AND execution = given.execution AND charge = 'task' AND NOT late AND failure IS NOT NULL
      RETURNING failure::json ->> 'reason' AS reason, failure::json ->> 'kind' AS kind, after_ms AS delay INTO failed;
    CONTINUE WHEN NOT FOUND;
    IF given.is_live THEN
      UPDATE live SET charged = charged_less(charged, failed.reason, failed.kind, failed.delay), revision = revision + 1, verdict = NULL
        WHERE id = given.id;
      IF EXISTS (SELECT 1 FROM live WHERE id = given.id AND needs_token) THEN spared := spared || given.id; END IF;
    ELSE
      UPDATE ended SET charged = charged_less(charged, failed.reason, failed.kind, failed.delay) WHERE id = given.id;
    END IF;
  END LOOP;
  IF spared IS NOT NULL THEN PERFORM spare_tokens(spared); END IF;
END $$;

-- The next claims of these tasks take no token. Those that wait move to another lane of their source; it is made where it is missing.
CREATE FUNCTION spare_tokens(p_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  woken bigint[];
  keys double precision[];
  seqs bigint[];
BEGIN
  UPDATE live SET needs_token = false WHERE id = ANY(p_ids);
  WITH moved AS (
    UPDATE live l SET lane = lane_of(l.class, a.source, 0) FROM lanes a
    WHERE l.id = ANY(p_ids) AND l.state IN ('scheduled', 'ready') AND a.id = l.lane AND a.track = 1
    RETURNING l.lane, l.state, l.order_key, l.seq),
  entered AS (SELECT DISTINCT ON (lane) lane, order_key, seq FROM moved WHERE state = 'ready' ORDER BY lane, order_key, seq)
  SELECT array_agg(lane), array_agg(order_key), array_agg(seq) INTO woken, keys, seqs FROM entered;
  PERFORM wake_lanes(woken, keys, seqs);
END $$;

-- Removes one charge under a reason and a kind, and the wait after it.
CREATE FUNCTION charged_less(p_charged jsonb, p_reason text, p_kind text, p_delay bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT jsonb_agg(CASE WHEN v ->> 'reason' = p_reason AND v ->> 'kind' = p_kind
      THEN charged_as(p_reason, p_kind, (v ->> 'count')::integer - 1, coalesce((v ->> 'delayMs')::bigint, 0) - coalesce(p_delay, 0))
      ELSE v END ORDER BY n)
    FROM jsonb_array_elements(p_charged) WITH ORDINALITY c(v, n)
    WHERE NOT (v ->> 'reason' = p_reason AND v ->> 'kind' = p_kind AND (v ->> 'count')::integer <= 1));
END $$;

-- Whether refunding these charges changes a task.
CREATE FUNCTION is_refunded(p_task bigint, p_refunds json[]) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM unnest(p_refunds) r JOIN live l ON l.id = p_task AND l.round_base < (r ->> 'execution')::integer
    JOIN executions e ON e.task = p_task AND e.execution = (r ->> 'execution')::integer AND e.charge = 'task' AND NOT e.late
      AND e.failure IS NOT NULL
    WHERE (r ->> 'task')::bigint = p_task);
END $$;

-- What one settlement says about its source. `p`: its place in the call. `is_outdated`: it was made from old facts of its task.
CREATE TYPE source_word AS (source text, id bigint, p bigint, revision bigint, change json, is_success boolean, is_outdated boolean);

-- Checks and changes the states of the sources of a batch of settlements. Returns which of them get the answer `changed`, the
-- refunds to be made, whether tasks may start now (`opens`), and whether a source was held (`shuts`). All these tasks are locked.
-- `p_ids` are plain successes. They were decided without a state of the source, except those whose place is -1, which do not
-- concern their source.
CREATE FUNCTION settle_sources(p_ids bigint[], p_tokens uuid[], p_places integer[], p_items settlement[], p_now bigint,
  OUT differing bigint[], OUT refunds json, OUT opens boolean, OUT shuts boolean) LANGUAGE plpgsql AS $$
DECLARE
  word record;
  s source_states;
  source_ text;
  names text[];
  states source_states[] := '{}';
  expected bigint[] := '{}';
  is_broken boolean[];
  is_changed boolean[];
  n integer;
  frees boolean;
  successes bigint;
  refunds_ json[] := '{}';
  words source_word[];
  counted_ text[];
BEGIN
  differing := '{}';
  opens := false;
  shuts := false;
  -- A settlement whose lease is over changes nothing, and one that was made from old facts neither; but if that one names another
  -- revision of its source, the later ones of this source get the answer `changed` too. A loss or hand-back says nothing about the
  -- source.
  words := ARRAY(
    SELECT (b.source, l.id, g.place, 0, NULL, true, false)::source_word FROM unnest(p_ids, p_tokens, p_places) g(id, token, place)
      JOIN live l ON l.id = g.id AND l.token = g.token AND l.executions = 1 JOIN bodies b ON b.id = l.id
      WHERE g.place >= 0
    UNION ALL
    SELECT (b.source, l.id, i.so, i.sr, i.sc, i.n = 'succeeded', i.n <> 'succeeded' AND l.revision <> i.r)::source_word
      FROM unnest(p_items) i
      JOIN live l ON l.id = i.id AND l.executions = i.x AND l.token = i.t JOIN bodies b ON b.id = l.id
      WHERE i.sr IS NOT NULL);
  counted_ := ARRAY(SELECT DISTINCT counted FROM live WHERE counted IS NOT NULL AND state = 'running' AND id IN (
    SELECT unnest(p_ids) UNION SELECT i.id FROM unnest(p_items) i));
  names := ARRAY(SELECT w.source FROM unnest(words) w UNION SELECT unnest(counted_) ORDER BY 1);
  FOREACH source_ IN ARRAY names LOOP
    IF EXISTS (SELECT 1 FROM unnest(words) w WHERE w.source = source_ AND w.change IS NOT NULL) THEN
      s := own_source(source_);
    ELSIF source_ = ANY(counted_) THEN
      SELECT * INTO s FROM source_states WHERE name = source_ FOR NO KEY UPDATE;
    ELSE
      SELECT * INTO s FROM source_states WHERE name = source_;
    END IF;
    states := states || s;
    expected := expected || coalesce(s.revision, 0);
  END LOOP;
  is_broken := array_fill(false, ARRAY[cardinality(names)]);
  is_changed := is_broken;
  -- In the order of the call: a refund is seen by the later settlements, of whatever source.
  FOR word IN SELECT * FROM unnest(words) w ORDER BY w.p LOOP
    n := array_position(names, word.source);
    IF is_broken[n] OR word.revision <> expected[n] THEN
      is_broken[n] := true;
      differing := differing || word.id;
    ELSIF word.is_outdated OR NOT word.is_success AND cardinality(refunds_) > 0 AND is_refunded(word.id, refunds_) THEN
      -- Its task was changed since its decision, or is changed here by a refund.
      differing := differing || word.id;
    ELSIF word.change IS NOT NULL THEN
      states[n] := with_change(states[n], word.change, p_now);
      IF word.change -> 'facts' IS NOT NULL THEN PERFORM record_change('source', word.source, (word.change ->> 'facts')::json, p_now); END IF;
      expected[n] := expected[n] + 1;
      is_changed[n] := true;
      -- Charges of later settlements of this call do not exist yet, unless their lease is over: then they charge nothing.
      refunds_ := refunds_ || ARRAY(SELECT given FROM json_array_elements(word.change -> 'refunds') given WHERE NOT EXISTS (
        SELECT 1 FROM unnest(p_items) i JOIN live l ON l.id = i.id AND l.executions = i.x AND l.token = i.t
        WHERE i.id = (given ->> 'task')::bigint AND i.x = (given ->> 'execution')::integer AND i.so > word.p));
    END IF;
  END LOOP;
  FOR n IN 1..coalesce(cardinality(names), 0) LOOP
    source_ := names[n];
    s := states[n];
    frees := source_ = ANY(counted_);
    IF NOT is_broken[n] AND NOT is_changed[n] AND s.tokens IS NOT NULL THEN
      -- Successes add to a budget that is not full. If its row is locked by others, this is skipped.
      successes := (SELECT count(*) FROM unnest(words) w WHERE w.source = source_ AND w.is_success);
      IF frees THEN s := with_tokens(s, successes * budget_per_success(), p_now); ELSE PERFORM add_tokens(source_, successes, p_now); END IF;
    END IF;
    CONTINUE WHEN NOT is_changed[n] AND NOT frees OR s.name IS NULL;
    s := closed_if_needed(s, p_now);
    -- The settled tasks still count as running here, so the next claim checks again what may start.
    IF frees AND s.closed_by IS NOT NULL AND (s.opens_at IS NULL OR s.is_probing) AND coalesce(s.shut_until, 0) <= p_now THEN s.opens_at := p_now; END IF;
    PERFORM save_source(s);
    opens := opens OR s.closed_by IS NULL OR s.opens_at <= p_now;
    shuts := shuts OR is_changed[n] AND (s.shut_until > p_now OR s.is_probing);
  END LOOP;
  IF cardinality(refunds_) > 0 THEN refunds := array_to_json(refunds_); END IF;
END $$;

-- Adds the tokens of successes to a budget that is not full, unless its row is locked.
CREATE FUNCTION add_tokens(p_source text, p_successes bigint, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s source_states;
BEGIN
  IF p_successes = 0 THEN RETURN; END IF;
  SELECT * INTO s FROM source_states WHERE name = p_source FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN PERFORM save_source(closed_if_needed(with_tokens(s, p_successes * budget_per_success(), p_now), p_now)); END IF;
END $$;

-- Changes the state of a source as a settlement does. Returns whether the revision was the current one, and the same `opens` and
-- `shuts`.
CREATE FUNCTION change_source(p_call uuid, p_source text, p_revision bigint, p_change json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  done json;
  s source_states;
  refunded bigint[];
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  IF p_change IS NULL THEN
    RETURN json_build_object('changed', p_revision = coalesce((SELECT revision FROM source_states WHERE name = p_source), 0));
  END IF;
  refunded := ARRAY(SELECT (r ->> 'task')::bigint FROM json_array_elements(p_change -> 'refunds') r);
  PERFORM 1 FROM live WHERE id = ANY(refunded) ORDER BY id FOR UPDATE;
  PERFORM 1 FROM ended WHERE id = ANY(refunded) ORDER BY id FOR UPDATE;
  s := own_source(p_source);
  IF s.revision <> p_revision THEN RETURN json_build_object('changed', false); END IF;
  s := closed_if_needed(with_change(s, p_change, now_), now_);
  IF p_change -> 'facts' IS NOT NULL THEN PERFORM record_change('source', p_source, (p_change ->> 'facts')::json, now_); END IF;
  PERFORM save_source(s);
  PERFORM refund(p_change -> 'refunds', now_);
  done := json_build_object('changed', true, 'opens', s.closed_by IS NULL OR coalesce(s.opens_at <= now_, false),
    'shuts', coalesce(s.shut_until > now_, false) OR s.is_probing);
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, done);
  RETURN done;
END $$;

-- Sets limits of a source: `pace` and `concurrency`, if they are named; null removes one. A limit of the configuration does not
-- replace one of a person.
CREATE FUNCTION limit_source(p_call uuid, p_source text, p_limits jsonb, p_by jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  by_ jsonb := p_by || jsonb_build_object('at', now_);
  is_person boolean := p_by ->> 'origin' = 'person';
  s source_states;
BEGIN
  IF NOT is_first(p_call) THEN RETURN; END IF;
  IF is_person THEN PERFORM record_action('source', p_source, 'limit', p_by::json, jsonb_build_object('limits', p_limits)); END IF;
  -- Tasks are locked before sources.
  PERFORM 1 FROM live WHERE id = ANY(running_of_source(p_source)) ORDER BY id FOR UPDATE;
  s := own_source(p_source);
  IF p_limits ? 'pace' AND (is_person OR s.pace_by ->> 'origin' IS DISTINCT FROM 'person') THEN
    s.limit_per_second := (p_limits #>> '{pace,perSecond}')::double precision;
    s.limit_burst := (p_limits #>> '{pace,burst}')::double precision;
    s.pace_by := CASE WHEN s.limit_per_second IS NOT NULL THEN by_ END;
  END IF;
  IF p_limits ? 'concurrency' AND (is_person OR s.concurrency_by ->> 'origin' IS DISTINCT FROM 'person') THEN
    s.limit_concurrency := (p_limits ->> 'concurrency')::integer;
    s.concurrency_by := CASE WHEN s.limit_concurrency IS NOT NULL THEN by_ END;
  END IF;
  IF s.limit_concurrency IS NOT NULL THEN
    -- After this lock no claim is running, and later claims see the limit. Tasks that started before are counted from now on.
    PERFORM save_source(s);
    PERFORM pg_advisory_xact_lock(lane_lock() + 4, id) FROM (SELECT id FROM queues ORDER BY id) q;
    UPDATE live SET counted = p_source WHERE id IN (
      SELECT id FROM live WHERE id = ANY(running_of_source(p_source)) AND counted IS NULL FOR UPDATE SKIP LOCKED);
  END IF;
  s := closed_if_needed(s, now_);
  PERFORM save_source(s);
END $$;

CREATE FUNCTION running_of_source(p_source text) RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY(SELECT l.id FROM live l JOIN lanes a ON a.id = l.lane WHERE l.state = 'running' AND l.worker IS NOT NULL
    AND l.why IS DISTINCT FROM 'expiry'
    AND a.source = p_source ORDER BY l.id);
END $$;

-- Removes rows of sources that are in their normal state.
CREATE FUNCTION forget_sources(p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM source_states WHERE name IN (
    SELECT s.name FROM source_states s WHERE s.revision = 0 AND NOT is_limiting(s) AND s.budget_opens_at IS NULL
      AND tokens_of(s, p_now) >= budget_full() ORDER BY s.name LIMIT 1000 FOR UPDATE SKIP LOCKED);
END $$;

-- The state of a source as a caller gets it.
CREATE FUNCTION state_of_source(p_source text) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN state_of(p_source, now_ms());
END $$;
