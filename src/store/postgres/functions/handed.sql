-- The data of a leased task that a worker gets.

-- A JSON list as an array of texts; null for anything else. (It is in plpgsql, which keeps plans; SQL functions that are not
-- inlined are planned at each call.)
CREATE FUNCTION texts_of(p_list json) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
  IF p_list IS NULL OR json_typeof(p_list) <> 'array' THEN RETURN NULL; END IF;
  RETURN ARRAY(SELECT json_array_elements_text(p_list));
END $$;

-- A leased task as a list, with its last checkpoint. The last element has the facts about earlier executions; it is null if there are none.
-- (The caller reads the checkpoint, because a function with a subquery is not inlined.)
CREATE FUNCTION handed(l live, b bodies, p_checkpoint text) RETURNS json LANGUAGE sql AS $$
  SELECT json_build_array(l.id, l.executions, l.class, b.source, b.priority, b.submitted_at, b.payload, l.revision, l.since,
    l.deadline, l.idempotent, b.key, b.policy, l.cancel,
    CASE WHEN l.executions > 1 OR l.why IS NOT NULL OR l.reason IS NOT NULL OR l.error IS NOT NULL OR l.charged IS NOT NULL OR l.deferrals > 0 OR l.suspect OR l.verdict IS NOT NULL
      THEN json_build_array(l.round_base, l.first_started_at, l.charged, l.in_a_row, l.deferred_since, l.recoveries, lost_of(l),
        l.verdict, l.error, l.failed_as, l.why = 'expiry', p_checkpoint, l.key_from) END)
$$;

-- The same of a task that was leased now. Of one that has no value besides those of every task, these are a shorter list; and of one that has
-- besides them only what its failures left.
CREATE FUNCTION handed_now(l live, b bodies, p_checkpoint text) RETURNS json LANGUAGE sql AS $$
  SELECT CASE WHEN l.deadline IS NOT NULL OR NOT coalesce(l.idempotent, false) OR b.key IS NOT NULL OR b.policy IS NOT NULL OR l.why IS NOT NULL
      OR l.deferrals > 0 OR l.suspect OR l.verdict IS NOT NULL THEN handed(l, b, p_checkpoint)
    WHEN l.executions = 1 AND l.reason IS NULL AND l.error IS NULL AND l.charged IS NULL
      THEN json_build_array(l.id, l.class, b.source, b.priority, b.submitted_at, b.payload)
    WHEN l.executions > 1 AND l.round_base = 0 AND l.in_a_row = 0 AND l.deferred_since IS NULL AND l.recoveries IS NULL AND l.key_from IS NULL
        AND p_checkpoint IS NULL
      THEN json_build_array(l.id, l.class, b.source, b.priority, b.submitted_at, b.payload, l.executions, l.first_started_at, l.charged, l.error, l.failed_as)
    ELSE handed(l, b, p_checkpoint) END
$$;
