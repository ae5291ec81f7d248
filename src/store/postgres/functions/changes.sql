-- What happened to sources and queues.

CREATE FUNCTION record_change(p_kind text, p_name text, p_facts json, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO changes (at, kind, name, facts) VALUES (p_now, p_kind, p_name, p_facts);
END $$;

-- An action of a person.
CREATE FUNCTION record_action(p_kind text, p_name text, p_change text, p_by json, p_more jsonb DEFAULT '{}') RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM record_change(p_kind, p_name, (jsonb_strip_nulls(jsonb_build_object('change', p_change, 'by', p_by)) || p_more)::json, now_ms());
END $$;

-- The newest first.
CREATE FUNCTION changes_of(p_kind text, p_name text, p_since bigint, p_before bigint, p_actions boolean, p_limit integer) RETURNS json
  LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT json_agg(json_build_object('id', c.id, 'at', c.at, 'kind', c.kind, 'name', c.name, 'facts', c.facts::text) ORDER BY c.id DESC)
    FROM (SELECT * FROM changes WHERE (p_kind IS NULL OR kind = p_kind) AND (p_name IS NULL OR name = p_name) AND at >= p_since
      AND (p_before IS NULL OR id < p_before) AND (NOT p_actions OR facts -> 'by' IS NOT NULL)
      ORDER BY id DESC LIMIT p_limit) c);
END $$;

-- Removes some old changes, and returns how many.
CREATE FUNCTION forget_changes(p_before bigint, p_most bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  forgotten integer;
BEGIN
  DELETE FROM changes WHERE id IN (SELECT id FROM changes ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED)
    AND (at < p_before OR id <= (SELECT max(id) FROM changes) - p_most);
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END $$;
