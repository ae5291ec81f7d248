-- The tasks of groups. `follow_up`: the task that waits until each of them has ended once; `ended`: how.
CREATE TABLE group_tasks (
  task bigint PRIMARY KEY,
  follow_up bigint NOT NULL,
  ended text
);
CREATE INDEX group_tasks_follow_up ON group_tasks (follow_up, ended);

-- Only tasks of groups have it. Null is no.
ALTER TABLE live ADD COLUMN in_group boolean;

-- A person answered a task of a group that needed one, or it was removed meanwhile. A trigger of `ended` calls it, so that this also
-- happens for functions of former versions. It changes only the row of this task, so it waits for nobody: `end_groups` does the rest.
CREATE FUNCTION note_answer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  state_ text;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM group_tasks WHERE task = OLD.id AND ended IS NULL) THEN RETURN NULL; END IF;
  UPDATE live SET in_group = true WHERE id = OLD.id;
  IF FOUND THEN RETURN NULL; END IF;
  SELECT state INTO state_ FROM ended WHERE id = OLD.id;
  IF NOT FOUND THEN SELECT 'succeeded' INTO state_ FROM succeeded WHERE id = OLD.id; END IF;
  IF state_ = 'needs_manual' THEN RETURN NULL; END IF;
  -- Without a state it was removed.
  UPDATE group_tasks SET ended = coalesce(state_, 'dead') WHERE task = OLD.id;
  PERFORM set_config('holdfast.group_task', 'ended', true);
  RETURN NULL;
END $$;
CREATE TRIGGER group_task_answered AFTER UPDATE OR DELETE ON ended FOR EACH ROW WHEN (OLD.state = 'needs_manual')
  EXECUTE FUNCTION note_answer();
