-- Settling retries: failures that are charged to their tasks, which then wait again. Most settlements of failures are such retries, and most
-- retries of one call have the same failure, so what they have in common comes once.

-- The same as `charged_after`, faster: most tasks were not charged before, or only for the same reason, and then no function in plpgsql is called.
CREATE FUNCTION charged_again(p_charged jsonb, p_reason text, p_kind text, p_delay bigint) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_charged IS NULL
    THEN jsonb_build_array(CASE WHEN p_delay > 0 THEN jsonb_build_object('reason', p_reason, 'kind', p_kind, 'count', 1, 'delayMs', p_delay)
      ELSE jsonb_build_object('reason', p_reason, 'kind', p_kind, 'count', 1) END)
    WHEN p_charged #>> '{0,reason}' = p_reason AND p_charged #>> '{0,kind}' = p_kind
    THEN jsonb_set(CASE WHEN p_delay > 0
        THEN jsonb_set(p_charged, '{0,delayMs}', (coalesce((p_charged #>> '{0,delayMs}')::bigint, 0) + p_delay)::text::jsonb) ELSE p_charged END,
      '{0,count}', ((p_charged #>> '{0,count}')::integer + 1)::text::jsonb)
    ELSE charged_more(p_charged, p_reason, p_kind, p_delay) END
$$;

-- Settles retries. `rest`: those that it did not settle, because the lease is over, the task was changed, or it needs more than most, for
-- example a unique key. All whose lease is still valid are locked, in the order of their ids. The caller wakes the lanes.
CREATE FUNCTION settle_retries(p_retries retries, p_said settlement[], p_becauses text[], p_now bigint,
  OUT rest bigint[], OUT woken bigint[], OUT keys double precision[], OUT seqs bigint[]) LANGUAGE plpgsql AS $$
DECLARE
  -- In a fifo queue the order key of a task that ran follows from the key that it has.
  has_orders boolean := EXISTS (SELECT 1 FROM queues WHERE ordering <> 'fifo' OR reorder_below IS NOT NULL);
  weighted integer[] := '{}';
  -- Of the first task. Mostly all have the same.
  worker_ bigint;
  worker_name text;
  settled bigint[];
BEGIN
  IF has_orders THEN
    weighted := ARRAY(SELECT c.id FROM queues q JOIN classes c ON c.queue = q.id WHERE q.ordering = 'weighted_random');
  END IF;
  SELECT w.id, w.name INTO worker_, worker_name FROM live l JOIN workers w ON w.id = l.worker WHERE l.id = p_retries.id[1];
  WITH held AS MATERIALIZED (
    SELECT g.*, l.* FROM unnest(p_retries.id, p_retries.token, p_retries.execution, p_retries.revision, p_retries.delay, p_retries.said,
      p_retries.because, p_retries.roll) g(id, token, execution, given_revision, delay, said, because, roll)
    -- Not a join, for the same reason as in `settle_plain`.
    CROSS JOIN LATERAL (
      SELECT ctid AS row, since, worker, revision = g.given_revision AND why IS NULL AND NOT suspect
        AND unique_while IS DISTINCT FROM 'waiting' AS is_usual
      FROM live WHERE id = g.id AND executions = g.execution AND token = g.token FOR UPDATE) l),
  again AS (
    UPDATE live l SET
      state = CASE WHEN h.delay > 0 THEN 'scheduled' ELSE 'ready' END,
      lane = (SELECT CASE WHEN a.track = 0 THEN a.id ELSE lane_of(l.class, a.source, 0) END FROM lanes a WHERE a.id = l.lane),
      order_key = CASE WHEN NOT has_orders THEN greatest(l.order_key, h.since + 0.5::double precision)
        WHEN h.delay > 0 AND l.class = ANY(weighted) THEN l.order_key
        ELSE (SELECT order_key(q.ordering, b.priority, b.submitted_at, q.last_key, h.since)
          FROM bodies b, classes c JOIN queues q ON q.id = c.queue WHERE b.id = l.id AND c.id = l.class) END,
      ran_at = h.since, run_at = p_now + h.delay, since = p_now, worker = NULL, token = NULL, lost_by = NULL, cancel = false,
      first_started_at = coalesce(l.first_started_at, h.since),
      charged = charged_again(l.charged, (p_said[h.said]).cr, (p_said[h.said]).ck, h.delay),
      in_a_row = 0, deferred_since = NULL, lost_in_a_row = 0, needs_token = false, verdict = NULL, counted = NULL, counted_queue = NULL,
      is_probe = false, reason = (p_said[h.said]).re, error = (p_said[h.said]).er, failed_as = (p_said[h.said]).fa
    -- One that another transaction changed since the statement began is locked and not found here, so it is left to `settle_items`.
    FROM held h WHERE l.ctid = h.row AND h.is_usual
    RETURNING l.id, l.lane, l.state, l.order_key, l.seq, h.execution, h.token, h.worker, h.since AS started_at, h.delay, h.said, h.because, h.roll),
  told AS (
    INSERT INTO executions (task, execution, token, late, worker, started_at, ended_at, outcome, next, after_ms, charge, failure, message, because)
    SELECT a.id, a.execution, a.token, false, CASE WHEN a.worker = worker_ THEN worker_name
        ELSE coalesce((SELECT name FROM workers w WHERE w.id = a.worker), 'a worker that left') END,
      a.started_at, p_now, (p_said[a.said]).oc, 'scheduled', a.delay, (p_said[a.said]).c, (p_said[a.said]).f, (p_said[a.said]).m,
      p_becauses[2 * a.because - 1] || coalesce(a.roll, '') || p_becauses[2 * a.because]
    FROM again a),
  entered AS (SELECT DISTINCT ON (lane) lane, order_key AS key, seq FROM again WHERE state = 'ready' ORDER BY lane, order_key, seq)
  SELECT (SELECT array_agg(id) FROM again), (SELECT array_agg(lane) FROM entered), (SELECT array_agg(key) FROM entered),
    (SELECT array_agg(seq) FROM entered)
  INTO settled, woken, keys, seqs;
  rest := CASE WHEN cardinality(settled) = cardinality(p_retries.id) THEN '{}'
    ELSE ARRAY(SELECT id FROM unnest(p_retries.id) id WHERE id <> ALL(coalesce(settled, '{}'))) END;
END $$;

-- Those of these retries that have these ids, as items.
CREATE FUNCTION items_of(p_retries retries, p_ids bigint[], p_said settlement[], p_becauses text[]) RETURNS settlement[] LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT ROW(g.id, g.execution, g.token, g.revision, 'scheduled', g.delay, 0, s.c, s.cr, s.ck, false, s.re, s.er, s.fa, NULL, false, s.oc,
      s.f, s.m, p_becauses[2 * g.because - 1] || coalesce(g.roll, '') || p_becauses[2 * g.because], g.ran_for, false, NULL, g.place, 0, NULL)::settlement
    FROM unnest(p_retries.id, p_retries.token, p_retries.execution, p_retries.revision, p_retries.delay, p_retries.said, p_retries.because,
      p_retries.roll, p_retries.ran_for, p_retries.place) g(id, token, execution, revision, delay, said, because, roll, ran_for, place)
    CROSS JOIN LATERAL (SELECT (p_said[g.said]).*) s WHERE g.id = ANY(p_ids));
END $$;
