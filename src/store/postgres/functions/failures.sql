-- Groups of failures.

-- The oldest entries, and the revision of the groups.
CREATE FUNCTION failure_entries_of(p_most integer) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN json_build_object('revision', (SELECT revision FROM failure_revision), 'entries',
    (SELECT json_agg(e ORDER BY e.id) FROM (SELECT id, at, seen, unwritten FROM failure_entries ORDER BY id LIMIT p_most) e));
END $$;

-- The groups with these ids, or all, those that failed last first.
CREATE FUNCTION failure_groups_of(p_ids text[]) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  IF p_ids IS NULL THEN RETURN (SELECT json_agg(data ORDER BY last_at DESC, id) FROM failure_groups); END IF;
  RETURN (SELECT json_agg(data ORDER BY last_at DESC, id) FROM failure_groups WHERE id = ANY(p_ids));
END $$;

-- Writes groups and removes the entries that were added to them, unless somebody else has written groups meanwhile.
CREATE FUNCTION write_failures(p_revision bigint, p_entries bigint[], p_groups json, p_most integer) RETURNS boolean
  LANGUAGE plpgsql AS $$
BEGIN
  UPDATE failure_revision SET revision = revision + 1 WHERE revision = p_revision;
  IF NOT FOUND THEN RETURN false; END IF;
  DELETE FROM failure_entries WHERE id = ANY(p_entries);
  INSERT INTO failure_groups AS t (id, last_at, data)
  SELECT g ->> 'id', (g ->> 'lastAt')::bigint, g FROM json_array_elements(p_groups) g
  ON CONFLICT (id) DO UPDATE SET last_at = excluded.last_at, data = excluded.data;
  DELETE FROM failure_groups WHERE id IN (SELECT id FROM failure_groups ORDER BY last_at DESC, id OFFSET p_most);
  RETURN true;
END $$;
