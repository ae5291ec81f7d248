-- What an execution saves of its task: a checkpoint for later executions, and its progress for people.

-- Saves what is not null. Returns false if the lease is over, or is only for deciding about the task.
CREATE FUNCTION save_values(p_task bigint, p_execution integer, p_token uuid, p_checkpoint text, p_progress text) RETURNS boolean
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM live WHERE id = p_task AND executions = p_execution AND token = p_token AND why IS NULL FOR SHARE;
  IF NOT FOUND THEN RETURN false; END IF;
  INSERT INTO checkpoints AS c (task, value, progress, progress_at)
    VALUES (p_task, p_checkpoint, p_progress, CASE WHEN p_progress IS NOT NULL THEN now_ms() END)
    ON CONFLICT (task) DO UPDATE SET value = coalesce(excluded.value, c.value),
      progress = coalesce(excluded.progress, c.progress), progress_at = coalesce(excluded.progress_at, c.progress_at);
  RETURN true;
END $$;
