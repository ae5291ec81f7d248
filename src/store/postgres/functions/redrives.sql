-- Redrives: which ended tasks are put back, and their outcomes since. The next step of a redrive is decided outside of the
-- database.

-- A member of a stored failure; null if there is none, or the row is damaged.
CREATE FUNCTION failure_member(p_failure text, p_name text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN p_failure::json ->> p_name;
EXCEPTION WHEN invalid_text_representation OR invalid_parameter_value THEN
  RETURN NULL;
END $$;

-- The last execution of a task that decided something, or the last one that failed.
CREATE FUNCTION last_execution(p_task bigint, p_failed boolean) RETURNS executions LANGUAGE plpgsql STABLE AS $$
DECLARE
  found_ executions;
BEGIN
  SELECT * INTO found_ FROM (SELECT * FROM executions UNION ALL SELECT * FROM old_executions) x
    WHERE x.task = p_task AND NOT x.late AND (NOT p_failed OR x.failure IS NOT NULL) ORDER BY x.id DESC LIMIT 1;
  RETURN found_;
END $$;

-- The fingerprint of the last failure of a task.
CREATE FUNCTION last_fingerprint(p_task bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN failure_member((last_execution(p_task, true)).failure, 'fingerprint');
END $$;

-- Whether the effect of an execution may have happened although no answer came.
CREATE FUNCTION may_have_happened(p_execution executions) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce(p_execution.outcome = 'loss' OR failure_member(p_execution.failure, 'ambiguous') = 'true', false)
$$;

-- The last id of the next slice of tasks in these states; null if the rest fits into one slice.
CREATE FUNCTION redrive_slice(p_filter json, p_after bigint, p_size integer) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  state_ text;
  last bigint;
  lowest bigint;
BEGIN
  FOR state_ IN SELECT json_array_elements_text(p_filter -> 'states') LOOP
    SELECT e.id INTO last FROM ended e WHERE e.state = state_ AND e.id > p_after ORDER BY e.id LIMIT 1 OFFSET p_size - 1;
    lowest := least(lowest, last);
  END LOOP;
  RETURN lowest;
END $$;

-- What a name must be LIKE, of a filter or of what it excludes; null if the filter does not name it.
CREATE FUNCTION wanted_names(p_traits json, p_name text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_traits -> p_name IS NOT NULL THEN ARRAY(
    SELECT regexp_replace(value, '([\\%_])', '\\\1', 'g') FROM json_array_elements_text(p_traits -> p_name)
    UNION ALL SELECT replace(regexp_replace(value, '([\\%_])', '\\\1', 'g'), '*', '%')
      FROM json_array_elements_text(p_traits -> 'like' -> p_name)) END
$$;

-- The same of reasons and their families.
CREATE FUNCTION wanted_reasons(p_traits json) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_traits -> 'reasons' IS NOT NULL OR p_traits -> 'families' IS NOT NULL THEN
    wanted_names(p_traits, 'reasons') || wanted_names(p_traits, 'families')
    || ARRAY(SELECT family || '.%' FROM unnest(wanted_names(p_traits, 'families')) family) END
$$;

-- Whether an error contains one of these texts. Only ASCII letters are the same in capitals.
CREATE FUNCTION error_contains(p_error text, p_texts json) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT EXISTS (SELECT FROM json_array_elements_text(p_texts)
    WHERE strpos(lower(p_error COLLATE "C"), lower(value COLLATE "C")) > 0)
$$;

-- How many failures were charged to a task in this round.
CREATE FUNCTION charged_count(p_charged jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(sum((x ->> 'count')::bigint), 0)::bigint FROM jsonb_array_elements(p_charged) x
$$;

-- Whether a number is in one of these ranges, of a filter or of what it excludes; null if the filter does not name it.
CREATE FUNCTION in_ranges(p_number bigint, p_traits json, p_name text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_traits -> p_name IS NOT NULL THEN EXISTS (SELECT FROM json_array_elements(p_traits -> p_name) r
    WHERE p_number BETWEEN coalesce((r ->> 'from')::bigint, 0) AND coalesce((r ->> 'to')::bigint, p_number)) END
$$;

-- The tasks of a slice that match a filter and had ended by this time.
CREATE FUNCTION redrivable(p_filter json, p_until bigint, p_after bigint, p_last bigint)
  RETURNS TABLE (id bigint, idempotent boolean) LANGUAGE plpgsql STABLE AS $$
DECLARE
  except_ json := p_filter -> 'not';
  types text[] := wanted_names(p_filter, 'types');
  queues_ text[] := wanted_names(p_filter, 'queues');
  sources_ text[] := wanted_names(p_filter, 'sources');
  reasons text[] := wanted_reasons(p_filter);
  prints text[] := wanted_names(p_filter, 'fingerprints');
  not_types text[] := wanted_names(except_, 'types');
  not_queues text[] := wanted_names(except_, 'queues');
  not_sources text[] := wanted_names(except_, 'sources');
  not_reasons text[] := wanted_reasons(except_);
  not_prints text[] := wanted_names(except_, 'fingerprints');
BEGIN
  RETURN QUERY SELECT e.id, coalesce(e.idempotent, true) FROM ended e JOIN classes c ON c.id = e.class JOIN queues q ON q.id = c.queue
    WHERE e.id > p_after AND e.id <= coalesce(p_last, 9223372036854775807) AND e.since <= p_until
      AND e.state = ANY(ARRAY(SELECT json_array_elements_text(p_filter -> 'states')))
      AND (types IS NULL OR c.type LIKE ANY(types)) AND (not_types IS NULL OR c.type NOT LIKE ALL(not_types))
      AND (queues_ IS NULL OR q.name LIKE ANY(queues_)) AND (not_queues IS NULL OR q.name NOT LIKE ALL(not_queues))
      AND (sources_ IS NULL OR e.source LIKE ANY(sources_)) AND (not_sources IS NULL OR e.source NOT LIKE ALL(not_sources))
      AND (reasons IS NULL OR e.reason LIKE ANY(reasons))
      AND (not_reasons IS NULL OR coalesce(e.reason, '') NOT LIKE ALL(not_reasons))
      AND e.since >= coalesce((p_filter ->> 'endedFrom')::bigint, e.since)
      AND e.since < coalesce((p_filter ->> 'endedBefore')::bigint, e.since + 1)
      AND (p_filter -> 'errors' IS NULL OR error_contains(e.error, p_filter -> 'errors'))
      AND (except_ -> 'errors' IS NULL OR NOT error_contains(e.error, except_ -> 'errors'))
      AND coalesce(in_ranges(charged_count(e.charged), p_filter, 'attempts'), true)
      AND coalesce(NOT in_ranges(charged_count(e.charged), except_, 'attempts'), true)
      AND coalesce(in_ranges(e.executions, p_filter, 'executions'), true)
      AND coalesce(NOT in_ranges(e.executions, except_, 'executions'), true)
      AND coalesce(in_ranges(e.priority, p_filter, 'priority'), true)
      AND coalesce(NOT in_ranges(e.priority, except_, 'priority'), true)
      AND (prints IS NULL OR last_fingerprint(e.id) LIKE ANY(prints))
      AND (not_prints IS NULL OR coalesce(last_fingerprint(e.id), '') NOT LIKE ALL(not_prints));
END $$;

CREATE FUNCTION redrive_start(p_call uuid, p_redrive json) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  done json;
  started bigint;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done::text::bigint; END IF;
  INSERT INTO redrives (filter, actor, note, per_second, accept_duplicate, started_at, state, since)
    VALUES (p_redrive ->> 'filter', p_redrive ->> 'actor', p_redrive ->> 'note', (p_redrive ->> 'perSecond')::double precision,
      (p_redrive ->> 'acceptDuplicate')::boolean, now_, 'running', now_)
    RETURNING id INTO started;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, to_json(started));
  RETURN started;
END $$;

-- Selects the tasks of the next slice. True if there may be more.
CREATE FUNCTION redrive_select(p_id bigint, p_size integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  redrive redrives;
  last bigint;
  found_ bigint;
BEGIN
  SELECT * INTO redrive FROM redrives WHERE id = p_id FOR UPDATE;
  IF redrive.selected_to IS NULL OR redrive.state NOT IN ('running', 'paused') THEN RETURN false; END IF;
  last := redrive_slice(redrive.filter::json, redrive.selected_to, p_size);
  INSERT INTO redrive_tasks (redrive, task)
    SELECT p_id, t.id FROM redrivable(redrive.filter::json, redrive.started_at, redrive.selected_to, last) t;
  GET DIAGNOSTICS found_ = ROW_COUNT;
  UPDATE redrives SET selected = selected + found_, selected_to = last WHERE id = p_id;
  RETURN last IS NOT NULL;
END $$;

CREATE FUNCTION redrive_preview(p_filter json, p_after bigint, p_size integer) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  last bigint := redrive_slice(p_filter, p_after, p_size);
BEGIN
  RETURN (SELECT json_build_object('matches', count(*), 'mayHaveHappened', count(*) FILTER (WHERE t.happened),
      'mustNotRunTwice', count(*) FILTER (WHERE t.happened AND NOT t.idempotent), 'next', last)
    FROM (SELECT r.idempotent, may_have_happened(last_execution(r.id, false)) AS happened
      FROM redrivable(p_filter, now_ms(), p_after, last) r) t);
END $$;

-- Pauses, resumes or cancels a redrive. False if it is not in one of these states.
CREATE FUNCTION redrive_change(p_call uuid, p_id bigint, p_to text, p_from text[], p_actor text, p_note text)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN true; END IF;
  UPDATE redrives SET state = p_to, since = now_, by_actor = p_actor, by_note = p_note WHERE id = p_id AND state = ANY(p_from);
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, 'true');
  RETURN true;
END $$;

-- The first outcome of a task since it was put back: its first failure, or a loss that was charged to it; otherwise its end. Null
-- if there is none yet.
CREATE FUNCTION redrive_outcome(p_task redrive_tasks) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  first_ executions;
  fingerprint_ text;
BEGIN
  SELECT * INTO first_ FROM executions x WHERE x.task = p_task.task AND NOT x.late AND x.execution > p_task.after_execution
    AND (x.outcome = 'failure' OR x.outcome = 'loss' AND x.charge = 'recoveries') ORDER BY x.id LIMIT 1;
  IF first_.outcome = 'loss' THEN
    RETURN CASE WHEN p_task.reason LIKE 'worker.%' THEN 'failed_again' ELSE 'ended_otherwise' END;
  ELSIF first_.outcome = 'failure' THEN
    fingerprint_ := failure_member(first_.failure, 'fingerprint');
    RETURN CASE WHEN failure_member(first_.failure, 'reason') IS NOT DISTINCT FROM p_task.reason
        AND coalesce(fingerprint_, p_task.fingerprint) IS NOT DISTINCT FROM coalesce(p_task.fingerprint, fingerprint_)
      THEN 'failed_again' ELSE 'ended_otherwise' END;
  ELSIF EXISTS (SELECT 1 FROM succeeded s WHERE s.id = p_task.task) THEN RETURN 'succeeded';
  ELSIF EXISTS (SELECT 1 FROM ended e WHERE e.id = p_task.task) THEN RETURN 'ended_otherwise';
  END IF;
  RETURN NULL;
END $$;

-- Claims a redrive for a process, or extends its claim, and records the outcomes of its tasks. Null if the redrive does not run,
-- or another process has it.
CREATE FUNCTION redrive_advance(p_id bigint, p_driver text, p_claim_for bigint, p_stages integer) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  redrive redrives;
  decided record;
  still_open bigint;
  stages_ json;
BEGIN
  SELECT * INTO redrive FROM redrives WHERE id = p_id FOR UPDATE;
  IF redrive.state IS DISTINCT FROM 'running' OR redrive.driver <> p_driver AND redrive.driver_until > now_ THEN RETURN NULL; END IF;
  WITH outcomes AS (
    SELECT t.task, redrive_outcome(t) AS outcome FROM redrive_tasks t
    WHERE t.redrive = p_id AND t.stage IS NOT NULL AND t.outcome IS NULL),
  written AS (
    UPDATE redrive_tasks t SET outcome = o.outcome FROM outcomes o
    WHERE t.redrive = p_id AND t.task = o.task AND o.outcome IS NOT NULL RETURNING t.outcome)
  SELECT count(*) FILTER (WHERE outcome = 'succeeded') AS succeeded, count(*) FILTER (WHERE outcome = 'failed_again') AS failed_again,
    count(*) FILTER (WHERE outcome = 'ended_otherwise') AS ended_otherwise, count(*) AS n INTO decided FROM written;
  SELECT count(*) INTO still_open FROM redrive_tasks t WHERE t.redrive = p_id AND t.stage IS NOT NULL AND t.outcome IS NULL;
  UPDATE redrives SET driver = p_driver,
    driver_until = CASE WHEN driver = p_driver AND driver_until > now_ + p_claim_for / 2 THEN driver_until ELSE now_ + p_claim_for END,
    succeeded = succeeded + decided.succeeded, failed_again = failed_again + decided.failed_again,
    -- Tasks that were removed meanwhile are missing here.
    ended_otherwise = ended_otherwise + decided.ended_otherwise
      + put_back - succeeded - failed_again - ended_otherwise - decided.n - still_open
  WHERE id = p_id RETURNING * INTO redrive;
  SELECT json_agg(s) INTO stages_ FROM (
    SELECT t.stage, count(*) AS "putBack", count(*) FILTER (WHERE t.outcome IS NULL) AS undecided,
      count(*) FILTER (WHERE t.outcome = 'failed_again') AS "failedAgain"
    FROM redrive_tasks t WHERE t.redrive = p_id AND t.stage IS NOT NULL AND t.stage > p_stages * -1 + (
      SELECT m.stage FROM redrive_tasks m WHERE m.redrive = p_id AND m.stage IS NOT NULL ORDER BY m.stage DESC LIMIT 1)
    GROUP BY t.stage ORDER BY t.stage) s;
  RETURN json_build_object('row', row_to_json(redrive), 'stages', stages_, 'now', now_);
END $$;

-- A selected task as it is now: why it cannot be put back, or the failure with which its outcome will be compared.
CREATE FUNCTION redrive_candidate(p_redrive redrives, p_task bigint, p_now bigint) RETURNS redrive_tasks LANGUAGE plpgsql STABLE AS $$
DECLARE
  task ended;
  last executions;
  skip text;
BEGIN
  SELECT * INTO task FROM ended e WHERE e.id = p_task;
  last := last_execution(p_task, false);
  IF task.id IS NULL THEN
    skip := CASE WHEN EXISTS (SELECT 1 FROM live l WHERE l.id = p_task) OR EXISTS (SELECT 1 FROM succeeded s WHERE s.id = p_task)
      THEN 'changed' ELSE 'missing' END;
  ELSIF task.since > p_redrive.started_at
      OR task.state <> ALL(ARRAY(SELECT json_array_elements_text(p_redrive.filter::json -> 'states'))) THEN
    skip := 'changed';
  ELSIF NOT p_redrive.accept_duplicate AND NOT coalesce(task.idempotent, true) AND may_have_happened(last) THEN
    skip := 'may_have_happened';
  END IF;
  RETURN ROW(p_redrive.id, p_task, NULL, skip, p_now, task.executions,
    coalesce(failure_member(last.failure, 'reason'), task.reason), failure_member(last.failure, 'fingerprint'), NULL)::redrive_tasks;
END $$;

-- Puts back the next tasks of a redrive and returns how many. Tasks that cannot be put back are skipped, up to a limit.
CREATE FUNCTION redrive_put_back(p_call uuid, p_id bigint, p_driver text, p_stage integer, p_count integer, p_skips integer,
  p_next_in double precision) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  answer_ json;
  redrive redrives;
  looked_at bigint[];
  candidates redrive_tasks[];
  chosen bigint[];
  moved json := '[]';
  done bigint[];
  reached bigint;
  ran_out boolean;
  skipped_ bigint;
BEGIN
  SELECT answer INTO answer_ FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN answer_::text::integer; END IF;
  SELECT * INTO redrive FROM redrives WHERE id = p_id FOR UPDATE;
  IF redrive.state IS DISTINCT FROM 'running' OR redrive.driver IS DISTINCT FROM p_driver OR redrive.driver_until <= now_ THEN
    RETURN 0;
  END IF;
  looked_at := ARRAY(SELECT t.task FROM redrive_tasks t WHERE t.redrive = p_id AND t.task > redrive.put_back_to
    ORDER BY t.task LIMIT p_count + p_skips);
  candidates := ARRAY(SELECT redrive_candidate(redrive, id, now_) FROM unnest(looked_at) id ORDER BY id);
  chosen := ARRAY(SELECT c.task FROM unnest(candidates) c WHERE c.skipped IS NULL ORDER BY c.task LIMIT p_count);
  reached := CASE WHEN cardinality(chosen) = p_count THEN chosen[p_count] ELSE looked_at[cardinality(looked_at)] END;
  -- Tasks are locked before the rows of the redrive, in the same order as when they are removed.
  IF cardinality(chosen) > 0 THEN
    moved := move_tasks(gen_random_uuid(), chosen, json_build_object('verb', 'redrive', 'actor', redrive.actor,
      'note', 'Redrive ' || p_id || ': ' || redrive.note));
  END IF;
  done := ARRAY(SELECT (m ->> 'id')::bigint FROM json_array_elements(moved) m WHERE (m ->> 'moved')::boolean);
  UPDATE redrive_tasks t SET at = now_, stage = CASE WHEN t.task = ANY(done) THEN p_stage END,
    skipped = CASE WHEN t.task <> ALL(done) THEN coalesce(c.skipped, (
      SELECT CASE WHEN m -> 'occupiedBy' IS NULL THEN 'changed' ELSE 'unique_key' END FROM json_array_elements(moved) m
      WHERE (m ->> 'id')::bigint = t.task), 'changed') END,
    after_execution = c.after_execution, reason = c.reason, fingerprint = c.fingerprint
  FROM unnest(candidates) c WHERE t.redrive = p_id AND t.task = c.task AND c.task <= reached;
  GET DIAGNOSTICS skipped_ = ROW_COUNT;
  skipped_ := skipped_ - cardinality(done);
  -- If no task is left, those that were removed since they were selected count as skipped.
  ran_out := cardinality(looked_at) < p_count + p_skips AND reached IS NOT DISTINCT FROM looked_at[cardinality(looked_at)];
  UPDATE redrives SET put_back = put_back + cardinality(done), put_back_to = coalesce(reached, put_back_to),
    next_at = now_ + p_next_in,
    skipped = CASE WHEN ran_out THEN selected - put_back - cardinality(done) ELSE skipped + skipped_ END
  WHERE id = p_id;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, to_json(cardinality(done)));
  RETURN cardinality(done);
END $$;

-- Ends a redrive. False unless it runs and this process has it.
CREATE FUNCTION redrive_end(p_call uuid, p_id bigint, p_driver text, p_state text, p_because text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN true; END IF;
  UPDATE redrives SET state = p_state, since = now_, because = p_because, by_actor = NULL, by_note = NULL, driver = NULL
    WHERE id = p_id AND state = 'running' AND driver = p_driver AND driver_until > now_;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, 'true');
  RETURN true;
END $$;

CREATE FUNCTION redrive_release(p_driver text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE redrives SET driver = NULL WHERE id IN (
    SELECT id FROM redrives WHERE state = 'running' AND driver = p_driver ORDER BY id FOR UPDATE);
END $$;

-- Removes a redrive that ended long ago: first its tasks, in batches. Returns how many rows were removed.
CREATE FUNCTION forget_redrive(p_before bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  old bigint;
  forgotten integer;
BEGIN
  SELECT id INTO old FROM redrives WHERE state IN ('stopped', 'done', 'cancelled') AND since < p_before
    ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  DELETE FROM redrive_tasks WHERE redrive = old AND task IN (
    SELECT task FROM redrive_tasks WHERE redrive = old ORDER BY task LIMIT 1000);
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  IF forgotten = 0 THEN DELETE FROM redrives WHERE id = old; forgotten := 1; END IF;
  RETURN forgotten;
END $$;
