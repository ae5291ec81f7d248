-- Schedules: tasks that are enqueued by the clock. What is due is decided outside of the database.

-- Records a schedule, or replaces the definition of the one that has this revision (0: there is none). Answers whether it did. A
-- pause stays.
CREATE FUNCTION schedule_define(p_call uuid, p_schedule json, p_expected bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN true; END IF;
  IF p_expected = 0 THEN
    INSERT INTO schedules (name, definition, origin, progress, look_at, revision, created_at)
      VALUES (p_schedule ->> 'name', p_schedule ->> 'definition', p_schedule ->> 'origin', p_schedule ->> 'progress',
        (p_schedule ->> 'lookAt')::bigint, 1, now_) ON CONFLICT (name) DO NOTHING;
  ELSE
    UPDATE schedules SET definition = p_schedule ->> 'definition', origin = p_schedule ->> 'origin',
      progress = p_schedule ->> 'progress', revision = revision + 1,
      look_at = CASE WHEN paused_at IS NULL THEN (p_schedule ->> 'lookAt')::bigint END
      WHERE name = p_schedule ->> 'name' AND revision = p_expected;
  END IF;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_, 'true');
  RETURN true;
END $$;

CREATE FUNCTION schedule_remove(p_call uuid, p_name text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN true; END IF;
  DELETE FROM schedules WHERE name = p_name;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_ms(), 'true');
  RETURN true;
END $$;

-- Keeps who paused it first. Answers whether there is such a schedule.
CREATE FUNCTION schedule_pause(p_call uuid, p_name text, p_actor text, p_note text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN true; END IF;
  UPDATE schedules SET paused_at = coalesce(paused_at, now_ms()), paused_by = coalesce(paused_by, p_actor),
    pause_note = CASE WHEN paused_at IS NULL THEN p_note ELSE pause_note END, look_at = NULL, revision = revision + 1
    WHERE name = p_name;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_ms(), 'true');
  RETURN true;
END $$;

-- Ends the pause of a schedule that has this revision. Answers whether it did.
CREATE FUNCTION schedule_resume(p_call uuid, p_name text, p_revision bigint, p_progress text, p_look_at bigint) RETURNS boolean
  LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM calls WHERE id = p_call) THEN RETURN true; END IF;
  UPDATE schedules SET paused_at = NULL, paused_by = NULL, pause_note = NULL, progress = p_progress, look_at = p_look_at,
    revision = revision + 1 WHERE name = p_name AND revision = p_revision AND paused_at IS NOT NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_ms(), 'true');
  RETURN true;
END $$;

-- The schedules to look at now, and how long until the next one.
CREATE FUNCTION schedules_due(p_limit integer) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  now_ bigint := now_ms();
BEGIN
  RETURN json_build_object(
    'rows', (SELECT json_agg(d ORDER BY d.look_at, d.name) FROM (
      SELECT * FROM schedules WHERE look_at <= now_ ORDER BY look_at, name LIMIT p_limit) d),
    'nextIn', (SELECT min(look_at) - now_ FROM schedules WHERE look_at > now_));
END $$;

-- A step of a schedule that has this revision and is not paused: enqueues its tasks and writes its progress. `p_otherwise` is the
-- step if a task was not recorded because its key was taken. Null: it has another revision, so nothing was written.
CREATE FUNCTION schedule_turn(p_call uuid, p_name text, p_revision bigint, p_groups json, p_tasks json, p_keyed boolean,
  p_then json, p_otherwise json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  done json;
  enqueued json := '{"receipts":[],"woke":false}';
  step json := p_then;
BEGIN
  SELECT answer INTO done FROM calls WHERE id = p_call;
  IF FOUND THEN RETURN done; END IF;
  UPDATE schedules SET revision = revision + 1 WHERE name = p_name AND revision = p_revision AND paused_at IS NULL;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF json_array_length(p_tasks) > 0 THEN enqueued := enqueue_tasks(NULL, p_groups, p_tasks, p_keyed, true, NULL); END IF;
  IF p_otherwise IS NOT NULL
    AND EXISTS (SELECT 1 FROM json_array_elements(enqueued -> 'receipts') r WHERE NOT (r ->> 1)::boolean)
  THEN
    step := p_otherwise;
  END IF;
  UPDATE schedules SET progress = step ->> 'progress', look_at = (step ->> 'lookAt')::bigint, last_task = coalesce((
      SELECT max((r ->> 0)::bigint) FROM json_array_elements(enqueued -> 'receipts') r WHERE (r ->> 1)::boolean), last_task)
    WHERE name = p_name;
  INSERT INTO calls (id, at, answer) VALUES (p_call, now_ms(), enqueued);
  RETURN enqueued;
END $$;
