-- Functions that people call from SQL. They are in the schema of the tables, and use the functions of the newest version.

-- For other languages: enqueues in the caller's own transaction. It runs with the rights of its owner, so that a role that only
-- enqueues needs no rights on tables.
CREATE OR REPLACE FUNCTION enqueue(
  type text, payload jsonb, queue text DEFAULT NULL, source text DEFAULT NULL, priority integer DEFAULT 0,
  key text DEFAULT NULL, delay interval DEFAULT NULL, category text DEFAULT NULL, needs jsonb DEFAULT NULL,
    deadline timestamptz DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  sorted text;
  unfit text;
BEGIN
  IF type IS NULL OR type = '' OR length(type) > 256 THEN
    RAISE EXCEPTION 'enqueue needs a type: a name of 1 to 256 characters.' USING ERRCODE = '22023';
  END IF;
  IF length(queue) NOT BETWEEN 1 AND 256 OR length(source) NOT BETWEEN 1 AND 256 OR length(key) NOT BETWEEN 1 AND 256
    OR length(category) NOT BETWEEN 1 AND 256 THEN
    RAISE EXCEPTION 'queue, source, key and category must be names of 1 to 256 characters.' USING ERRCODE = '22023';
  END IF;
  IF payload IS NULL THEN RAISE EXCEPTION 'enqueue needs a payload; null in JSON is written ''null''.'
    USING ERRCODE = '22023'; END IF;
  IF octet_length(payload::text) > 1048576 THEN
    RAISE EXCEPTION 'The payload has % bytes, and a task takes 1048576 at most. Store it elsewhere, and enqueue where it is.',
      octet_length(payload::text) USING ERRCODE = '22023';
  END IF;
  IF coalesce(priority, 0) NOT BETWEEN 0 AND 4095 THEN
    RAISE EXCEPTION 'priority must be from 0 to 4095, got %.', priority USING ERRCODE = '22023';
  END IF;
  IF delay < interval '0' THEN RAISE EXCEPTION 'delay must not be negative, got %.', delay USING ERRCODE = '22023'; END IF;
  -- The same limit as in the library. JavaScript dates end in the year 275760.
  IF delay > interval '3650 days' THEN RAISE EXCEPTION 'delay must be at most ten years, got %.', delay USING ERRCODE = '22023'; END IF;
  IF NOT isfinite(deadline) OR deadline NOT BETWEEN '0001-01-01' AND '200000-01-01' THEN
    RAISE EXCEPTION 'deadline must be a moment of the years 1 to 200000, got %.', deadline USING ERRCODE = '22023';
  END IF;
  IF needs IS NOT NULL AND jsonb_typeof(needs) <> 'object' THEN
    RAISE EXCEPTION 'needs must be an object such as {"cpu": 2}, got %.', left(needs::text, 100) USING ERRCODE = '22023';
  END IF;
  SELECT n.key INTO unfit FROM jsonb_each(needs) n WHERE length(n.key) NOT BETWEEN 1 AND 256 OR NOT CASE jsonb_typeof(n.value)
    WHEN 'number' THEN abs(n.value::numeric) < 1e308 WHEN 'string' THEN length(n.value #>> '{}') BETWEEN 1 AND 256
    WHEN 'boolean' THEN true ELSE false END LIMIT 1;
  IF unfit IS NOT NULL THEN
    RAISE EXCEPTION 'needs must give each name a number below 1e308, a text of 1 to 256 characters, or true or false; % is not so.',
      quote_literal(left(unfit, 100)) USING ERRCODE = '22023';
  END IF;
  IF (SELECT count(*) FROM jsonb_each(needs)) > 64 THEN
    RAISE EXCEPTION 'needs may name at most 64 capabilities.' USING ERRCODE = '22023';
  END IF;
  SELECT coalesce('{' || string_agg(to_json(n.key)::text || ':' || n.value::text, ',' ORDER BY n.key COLLATE "C") || '}',
    '{}') INTO sorted
  FROM jsonb_each(needs) n;
  RETURN enqueue_tasks(NULL,
    json_build_array(json_build_array(coalesce(queue, 'default'), type, coalesce(category, ''), sorted, coalesce(source, type))),
    json_build_array(json_build_object('g', 0, 'p', coalesce(priority, 0), 'b', payload::text, 'k', key,
      'd', coalesce(floor(extract(epoch FROM delay) * 1000)::bigint, 0), 'dl', floor(extract(epoch
        FROM deadline) * 1000)::bigint)),
    key IS NOT NULL, false, NULL) -> 'receipts' -> 0 ->> 0;
END $$;

-- Roles that could insert tasks before keep this right. Other roles need a grant.
DO $$
DECLARE
  grantee_ text;
BEGIN
  REVOKE ALL ON FUNCTION enqueue FROM PUBLIC;
  FOR grantee_ IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'live'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> c.relowner
  LOOP
    EXECUTE 'GRANT EXECUTE ON FUNCTION enqueue TO ' || grantee_;
  END LOOP;
END $$;

-- Call it once after a backup was restored. It ends all leases of workers that used the database before.
CREATE OR REPLACE FUNCTION restored() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE live SET token = gen_random_uuid() WHERE state = 'running';
  UPDATE workers SET gone = true WHERE NOT gone;
  UPDATE meta SET epoch = gen_random_uuid();
END $$;
