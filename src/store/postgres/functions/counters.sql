-- Counting settlements.

-- Each key of an entry with its count.
CREATE FUNCTION counted_in(p_counts json, p_unwritten integer[], OUT counted_as text, OUT count bigint) RETURNS SETOF record
  LANGUAGE sql STABLE AS $$
  SELECT c.value ->> 0, (c.value ->> 1)::bigint - (SELECT count(*) FROM unnest(p_unwritten) u WHERE u = c.ordinality)
  FROM json_array_elements(p_counts) WITH ORDINALITY c
$$;

-- Adds the counts of some settle calls to the counters of their minutes. Returns whether there are more.
CREATE FUNCTION gather_counts(p_minute integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  gathered integer;
BEGIN
  WITH taken AS (
    DELETE FROM counter_entries WHERE id = ANY(ARRAY(SELECT id FROM counter_entries ORDER BY id LIMIT 500 FOR UPDATE SKIP LOCKED))
    RETURNING at, counts, unwritten),
  added AS (
    INSERT INTO counters AS t (span, at, counted_as, count, first_at)
    SELECT p_minute, e.at - e.at % p_minute, c.counted_as, sum(c.count), min(e.at) FROM taken e, counted_in(e.counts, e.unwritten) c
    WHERE c.count > 0 GROUP BY 2, 3 ORDER BY 2, 3
    ON CONFLICT (span, at, counted_as)
      DO UPDATE SET count = t.count + excluded.count, first_at = least(t.first_at, excluded.first_at))
  SELECT count(*) INTO gathered FROM taken;
  RETURN gathered = 500;
END $$;

-- Adds the counters of one old period to those of the next longer one. Returns whether it found any.
-- `p_periods` is a list of lengths, with how long their counters are kept. The keys begin with type and source.
CREATE FUNCTION roll_up_counters(p_periods json, p_most_sources integer, p_other text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  period record;
  oldest bigint;
BEGIN
  FOR period IN
    SELECT (value ->> 'span')::bigint AS span, now_ms() - (value ->> 'keptFor')::bigint AS ends,
      (p_periods -> ordinality::integer ->> 'span')::bigint AS longer
    FROM json_array_elements(p_periods) WITH ORDINALITY
  LOOP
    EXIT WHEN period.longer IS NULL;
    SELECT min(at) INTO oldest FROM counters WHERE span = period.span;
    oldest := oldest - oldest % period.longer;
    CONTINUE WHEN oldest IS NULL OR oldest + period.longer > period.ends;
    WITH gone AS (
      DELETE FROM counters WHERE span = period.span AND at < oldest + period.longer RETURNING counted_as, count, first_at),
    totals AS (
      SELECT *, counted_as::json ->> 0 AS type, counted_as::json ->> 1 AS source,
        sum(count) OVER (PARTITION BY counted_as::json ->> 0, counted_as::json ->> 1) AS total FROM gone),
    ranked AS (SELECT *, dense_rank() OVER (PARTITION BY type ORDER BY total DESC, source) AS place FROM totals)
    INSERT INTO counters AS t (span, at, counted_as, count, first_at)
    SELECT period.longer, oldest,
      CASE WHEN place > p_most_sources THEN jsonb_set(counted_as::jsonb, '{1}', to_jsonb(p_other))::text ELSE counted_as END,
      sum(count), min(first_at)
    FROM ranked GROUP BY 3 ORDER BY 3
    ON CONFLICT (span, at, counted_as)
      DO UPDATE SET count = t.count + excluded.count, first_at = least(t.first_at, excluded.first_at);
    RETURN true;
  END LOOP;
  RETURN false;
END $$;

-- What is counted and not gathered yet since a time.
CREATE FUNCTION pending_counters(p_since bigint, p_minute integer,
  OUT at bigint, OUT counted_as text, OUT count bigint, OUT first_at bigint) RETURNS SETOF record LANGUAGE sql STABLE AS $$
  SELECT e.at - e.at % p_minute, i.counted_as, i.count, e.at FROM counter_entries e, counted_in(e.counts, e.unwritten) i
  WHERE i.count > 0 AND e.at - e.at % p_minute + p_minute > p_since
$$;

-- The counters since a time. For each span by itself, so that the index gives only counters since then. Of days that began at `p_day` or
-- later not the hours are read, but their sums. `p_spans`: all but an hour.
CREATE FUNCTION read_counters(p_since bigint, p_minute integer, p_spans bigint[], p_hour bigint, p_day bigint) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT json_agg(json_build_array(k.counted_as, k.count, k.first_at)) FROM (
    SELECT c.counted_as, sum(c.count) AS count, min(c.first_at) AS first_at FROM (
      SELECT t.counted_as, t.count, t.first_at FROM unnest(p_spans) s (span)
        CROSS JOIN LATERAL (SELECT * FROM counters x WHERE x.span = s.span AND x.at > p_since - s.span) t
      UNION ALL SELECT t.counted_as, t.count, t.first_at FROM counters t WHERE t.span = p_hour AND t.at > p_since - p_hour AND t.at < p_day
      UNION ALL SELECT t.counted_as, t.count, t.first_at FROM counter_days t WHERE t.at >= p_day
      UNION ALL SELECT t.counted_as, t.count, t.first_at FROM pending_counters(p_since, p_minute) t) c
    GROUP BY c.counted_as) k);
END $$;

-- The same by the periods of the counters. Their keys are long, and sorting them takes longer than a table in memory.
CREATE FUNCTION read_counter_periods(p_since bigint, p_minute integer, p_spans bigint[]) RETURNS json LANGUAGE plpgsql
  SET enable_sort = off SET work_mem = '64MB' AS $$
BEGIN
  RETURN (SELECT json_agg(json_build_array(k.counted_as, k.span, k.count, k.first_at, k.at, k.counted)) FROM (
    SELECT c.counted_as, c.span, sum(c.count) AS count, min(c.first_at) AS first_at, array_agg(c.at) AS at, array_agg(c.count) AS counted FROM (
      SELECT t.at, t.span, t.counted_as, t.count, t.first_at FROM unnest(p_spans) s (span)
        CROSS JOIN LATERAL (SELECT * FROM counters x WHERE x.span = s.span AND x.at > p_since - s.span) t
      UNION ALL SELECT t.at, p_minute, t.counted_as, t.count, t.first_at FROM pending_counters(p_since, p_minute) t) c
    GROUP BY c.counted_as, c.span) k);
END $$;
