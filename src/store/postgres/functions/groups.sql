-- Groups of tasks, and the follow-up of each: a task that is scheduled for {when_group_ends} until its group has ended.

-- Records the groups among new tasks. Each of `p_groups` is a list: the place of its follow-up among the receipts, and how many
-- receipts before it are of its tasks.
CREATE FUNCTION record_groups(p_receipts json, p_groups json, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  receipts json[] := ARRAY(SELECT r FROM json_array_elements(p_receipts) WITH ORDINALITY given(r, n) ORDER BY n);
  group_ json;
  at_ integer;
  follow_up_ bigint;
  tasks bigint[];
BEGIN
  FOR group_ IN SELECT * FROM json_array_elements(p_groups) LOOP
    at_ := (group_ ->> 0)::integer + 1;
    CONTINUE WHEN NOT (receipts[at_] ->> 1)::boolean;
    follow_up_ := receipts[at_] ->> 0;
    tasks := ARRAY(SELECT (r ->> 0)::bigint FROM unnest(receipts[at_ - (group_ ->> 1)::integer:at_ - 1]) r WHERE (r ->> 1)::boolean);
    -- A later task of the call may have replaced one of them.
    INSERT INTO group_tasks (task, follow_up, ended)
      SELECT id, follow_up_, (SELECT state FROM ended e WHERE e.id = t.id) FROM unnest(tasks) t(id);
    UPDATE live SET in_group = true WHERE id = ANY(tasks);
    UPDATE live SET run_at = p_now WHERE id = follow_up_
      AND NOT EXISTS (SELECT 1 FROM group_tasks WHERE follow_up = follow_up_ AND ended IS NULL);
  END LOOP;
END $$;

-- These tasks of groups have ended. It changes only their own rows, so it waits for nobody: `end_groups` does the rest.
CREATE FUNCTION end_group_tasks(p_tasks bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE group_tasks g SET ended = coalesce((SELECT state FROM ended e WHERE e.id = g.task), 'succeeded')
    WHERE g.task = ANY(p_tasks) AND g.ended IS NULL;
  PERFORM set_config('holdfast.group_task', 'ended', true);
END $$;

-- Makes the follow-ups due whose groups have ended: of the groups of these tasks. Called in a transaction of its own, after the one
-- that ended the tasks: of several that end the last tasks of a group at the same time, the last one finds all of them ended.
-- Returns whether there were any.
CREATE FUNCTION end_groups(p_tasks bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  UPDATE live SET run_at = now_ms() WHERE id IN (
    SELECT l.id FROM live l WHERE l.id IN (SELECT follow_up FROM group_tasks WHERE task = ANY(p_tasks))
      AND l.run_at = {when_group_ends} AND NOT EXISTS (SELECT 1 FROM group_tasks g WHERE g.follow_up = l.id AND g.ended IS NULL)
    ORDER BY l.id FOR UPDATE);
  RETURN FOUND;
END $$;

-- The same for all groups: for those whose last task was replaced in somebody's transaction or by a schedule, or was ended by a process
-- that was killed before it called `end_groups`. Each worker calls it when it renews. Does not wait for others.
CREATE FUNCTION end_other_groups() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE live SET run_at = now_ms() WHERE id IN (
    SELECT l.id FROM live l WHERE l.state = 'scheduled' AND l.run_at = {when_group_ends}
      AND NOT EXISTS (SELECT 1 FROM group_tasks g WHERE g.follow_up = l.id AND g.ended IS NULL)
    ORDER BY l.id FOR UPDATE SKIP LOCKED);
END $$;
