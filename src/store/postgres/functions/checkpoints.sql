-- Checkpoints: a text that an execution of a task saved for later executions.

-- The last saved text, or null. (`handed` calls this function, because a function with a subquery is not inlined.)
CREATE FUNCTION checkpoint_of(p_task bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT value FROM checkpoints WHERE task = p_task);
END $$;

-- Saves a text. Returns false if the lease is over, or is only for deciding about the task.
CREATE FUNCTION save_checkpoint(p_task bigint, p_execution integer, p_token uuid, p_text text) RETURNS boolean
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM live WHERE id = p_task AND executions = p_execution AND token = p_token AND why IS NULL FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO checkpoints (task, value) VALUES (p_task, p_text) ON CONFLICT (task) DO UPDATE SET value = excluded.value;
  RETURN true;
END $$;
