-- Each claim begins with the sources that were closed or open again, a bounded number of them: the lanes of a closed source are
-- deactivated; those of a source whose wait is over, whose budget has a token again, or whose hold ends, become active. A source that
-- somebody has locked, or of which somebody has a lane locked, is left to a later claim.

-- Whether any source has a state, a limit, a budget that is not full, or a hold that ends by itself, or any queue a limit.
CREATE FUNCTION has_limits() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM source_states) OR EXISTS (SELECT 1 FROM sources WHERE until IS NOT NULL)
    OR EXISTS (SELECT 1 FROM lanes WHERE active AND track IN (1, 4))
    OR EXISTS (SELECT 1 FROM queues WHERE per_second IS NOT NULL OR concurrency IS NOT NULL);
END $$;

-- When the next of them opens, or the next queue with a pace may start a task.
CREATE FUNCTION next_opening(p_now bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN least((SELECT opens_at FROM source_states WHERE closed_by IS NOT NULL ORDER BY opens_at LIMIT 1),
    (SELECT budget_opens_at FROM source_states WHERE budget_opens_at IS NOT NULL ORDER BY budget_opens_at LIMIT 1),
    (SELECT until FROM sources WHERE until IS NOT NULL ORDER BY until LIMIT 1),
    (SELECT ceil(min(next_start))::bigint FROM queues WHERE per_second IS NOT NULL AND next_start > p_now));
END $$;

-- Deactivates the lanes of at most `p_most` closed sources. Answers whether there may be more. Lanes that somebody has locked stay active
-- until a claim meets them.
CREATE FUNCTION deactivate_closed(p_most integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  closed text[] := ARRAY(SELECT name FROM source_states WHERE closed_by IS NOT NULL AND NOT lanes_inactive LIMIT p_most
    FOR UPDATE SKIP LOCKED);
BEGIN
  IF closed = '{}' THEN RETURN false; END IF;
  UPDATE source_states SET lanes_inactive = true WHERE name = ANY(closed);
  UPDATE lanes SET active = false
    WHERE id IN (SELECT id FROM lanes WHERE source = ANY(closed) AND active FOR NO KEY UPDATE SKIP LOCKED);
  RETURN cardinality(closed) = p_most;
END $$;

-- Opens what is due, at most `p_most` of each kind. Answers when the next is due: at once where too many were, and a little later where
-- somebody has them locked.
CREATE FUNCTION open_sources(p_now bigint, p_most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  s source_states;
  found allowance;
  hold record;
  lanes_ bigint[];
  woken bigint[] := '{}';
  holds integer := 0;
  closed integer := 0;
  budgets integer := 0;
  next_at bigint := next_opening(p_now);
BEGIN
  IF coalesce(next_at > p_now, true) THEN RETURN next_at; END IF;
  FOR hold IN SELECT name FROM sources WHERE until <= p_now ORDER BY until LIMIT p_most FOR UPDATE SKIP LOCKED LOOP
    holds := holds + 1;
    lanes_ := own_lanes(hold.name);
    CONTINUE WHEN lanes_ IS NULL;
    DELETE FROM sources WHERE name = hold.name;
    woken := woken || lanes_;
  END LOOP;
  FOR s IN SELECT * FROM source_states WHERE closed_by IS NOT NULL AND opens_at <= p_now ORDER BY opens_at LIMIT p_most
    FOR UPDATE SKIP LOCKED
  LOOP
    closed := closed + 1;
    found := allowance_of(s, p_now);
    IF found.permits = 0 THEN
      UPDATE source_states SET closed_by = found.closed_by, opens_at = found.opens_at WHERE name = s.name;
      CONTINUE;
    END IF;
    lanes_ := own_lanes(s.name);
    CONTINUE WHEN lanes_ IS NULL;
    UPDATE source_states SET closed_by = NULL, opens_at = NULL, lanes_inactive = false WHERE name = s.name;
    woken := woken || lanes_;
  END LOOP;
  FOR s IN SELECT * FROM source_states WHERE budget_opens_at <= p_now ORDER BY budget_opens_at LIMIT p_most FOR UPDATE SKIP LOCKED LOOP
    budgets := budgets + 1;
    lanes_ := own_lanes(s.name);
    CONTINUE WHEN lanes_ IS NULL;
    UPDATE source_states SET budget_opens_at = NULL WHERE name = s.name;
    woken := woken || lanes_;
  END LOOP;
  IF woken <> '{}' THEN PERFORM wake_all(ARRAY(SELECT DISTINCT id FROM unnest(woken) id)); END IF;
  next_at := next_opening(p_now);
  IF coalesce(next_at > p_now, true) THEN RETURN next_at; END IF;
  RETURN CASE WHEN p_most IN (holds, closed, budgets) THEN p_now ELSE p_now + 20 END;
END $$;

-- Locks and returns the lanes of a source; null if another transaction has one of them locked.
CREATE FUNCTION own_lanes(p_source text) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  own bigint[] := ARRAY(SELECT id FROM lanes WHERE source = p_source FOR NO KEY UPDATE SKIP LOCKED);
BEGIN
  IF EXISTS (SELECT 1 FROM lanes WHERE source = p_source AND id <> ALL(own)) THEN RETURN NULL; END IF;
  RETURN own;
END $$;

-- The states of the sources of these tasks, each with whether it has no ready task left, and which of the tasks are probes.
CREATE FUNCTION states_of_sources(p_ids bigint[], p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object(
    'states', (SELECT json_agg(json_build_array(s.name, s.revision, s.memory, greatest(0, p_now - s.written_at), NOT EXISTS (
        SELECT 1 FROM lanes a CROSS JOIN LATERAL (
          SELECT 1 FROM live t WHERE t.lane = a.id AND t.state = 'ready' LIMIT 1) waiting WHERE a.source = s.name)))
      FROM (SELECT DISTINCT a.source FROM live l JOIN lanes a ON a.id = l.lane WHERE l.id = ANY(p_ids)) t
      JOIN source_states s ON s.name = t.source AND s.revision > 0),
    'probes', (SELECT json_agg(id) FROM live WHERE id = ANY(p_ids) AND is_probe));
END $$;
