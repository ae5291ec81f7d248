-- Sources that are not in their normal state, or that have limits. A row also keeps the budget for retries while that is not full.
-- Where nothing of a source may be claimed, `closed_by` says why, and a claim opens it again at `opens_at`; null: when an outcome or
-- a person opens it.
CREATE TABLE source_states (
  name text PRIMARY KEY,
  -- The state. Where there is none, `revision` is 0.
  revision bigint NOT NULL DEFAULT 0,
  memory text,
  written_at bigint,
  restriction jsonb,
  cause text,
  -- 9223372036854775807: until the state says otherwise.
  shut_until bigint,
  is_probing boolean NOT NULL DEFAULT false,
  per_second double precision,
  burst double precision,
  -- While it ramps, the next start is one of the backlog where new work waits too.
  is_ramping boolean NOT NULL DEFAULT false,
  backlog_is_next boolean NOT NULL DEFAULT false,
  -- The budget: null is full.
  tokens double precision,
  tokens_at bigint,
  limit_per_second double precision,
  limit_burst double precision,
  limit_concurrency integer,
  -- Who set each: actor, note, origin, at.
  pace_by jsonb,
  concurrency_by jsonb,
  -- When the pace admits the next start.
  next_start double precision,
  closed_by text,
  opens_at bigint,
  -- When the next token is there; null where there is one.
  budget_opens_at bigint
) WITH (fillfactor = 50);
CREATE INDEX source_states_opening ON source_states (opens_at) WHERE closed_by IS NOT NULL;
CREATE INDEX source_states_budget ON source_states (budget_opens_at) WHERE budget_opens_at IS NOT NULL;
CREATE INDEX source_states_remembered ON source_states (name) WHERE revision > 0;
ALTER TABLE source_states SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 1000,
  vacuum_truncate = off);

-- The revision before the first one of a state. A state that is removed raises it, so that the next one has higher numbers.
CREATE SEQUENCE source_life START 1000 INCREMENT 1000;

-- A hold may end by itself.
ALTER TABLE sources ADD COLUMN until bigint;
CREATE INDEX sources_until ON sources (until) WHERE until IS NOT NULL;

-- `counted`: the source that a running task is counted for, where its concurrency is limited or it is probed; the same of its queue.
ALTER TABLE live ADD COLUMN needs_token boolean NOT NULL DEFAULT false;
ALTER TABLE live ADD COLUMN verdict text;
ALTER TABLE live ADD COLUMN counted text;
ALTER TABLE live ADD COLUMN counted_queue integer;
ALTER TABLE live ADD COLUMN is_probe boolean NOT NULL DEFAULT false;
CREATE INDEX live_counted ON live (counted) WHERE counted IS NOT NULL AND state = 'running';
CREATE INDEX live_counted_queue ON live (counted_queue) WHERE counted_queue IS NOT NULL AND state = 'running';

-- Lanes of tasks that wait for a token (1), and of new work while a source ramps (4).
CREATE INDEX lanes_special ON lanes (class, track) WHERE active AND track IN (1, 4);

ALTER TABLE queues ADD COLUMN per_second double precision;
ALTER TABLE queues ADD COLUMN burst double precision;
ALTER TABLE queues ADD COLUMN concurrency integer;
ALTER TABLE queues ADD COLUMN next_start double precision;
CREATE INDEX queues_limited ON queues (id) WHERE per_second IS NOT NULL OR concurrency IS NOT NULL;

CREATE OR REPLACE VIEW holdfast_tasks AS
SELECT l.id, c.type, q.name AS queue, b.source, l.state, b.priority, nullif(c.category, '') AS category,
  nullif(c.needs, '{}') AS needs, b.key, b.unique_key, b.unique_while, b.payload, NULL::text AS result, b.policy,
  coalesce(l.idempotent, true) AS idempotent, b.submitted_at, b.created_at, CASE WHEN l.state = 'scheduled'
    THEN l.run_at END AS due_at,
  l.deadline, NULL::bigint AS ended_at, l.executions, l.charged, l.deferrals, coalesce(cardinality(l.recoveries),
    0) AS recoveries,
  l.suspect, l.reason, h.held_by,
  w.name AS worker, CASE WHEN l.state = 'running' THEN l.since END AS running_since, l.cancel AS cancel_requested,
  CASE WHEN l.suspect THEN greatest(l.lost_in_a_row, 1) ELSE 0 END AS lost_in_a_row, h.held_until
FROM live l JOIN bodies b ON b.id = l.id JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue
LEFT JOIN workers w ON w.id = l.worker LEFT JOIN sources o ON o.name = b.source
LEFT JOIN source_states s ON s.name = b.source
-- The first thing that holds a ready task, and when that ends, if it is known.
LEFT JOIN LATERAL (
  SELECT held_by, held_until FROM (SELECT now_ms() AS now OFFSET 0) t CROSS JOIN LATERAL (VALUES
    (1, 'queue_paused', q.paused_at IS NOT NULL, NULL::bigint),
    (2, 'source_held', o.name IS NOT NULL, o.until),
    (3, s.closed_by, s.closed_by IS NOT NULL, s.opens_at),
    (4, 'budget', s.budget_opens_at IS NOT NULL AND l.needs_token AND NOT l.suspect, s.budget_opens_at),
    (5, 'concurrency', q.concurrency IS NOT NULL AND q.concurrency <= (
      SELECT count(*) FROM live r WHERE r.counted_queue = q.id AND r.state = 'running'), NULL),
    (6, 'pace', q.per_second IS NOT NULL AND q.next_start IS NOT NULL, ceil(q.next_start)::bigint)
  ) causes (n, held_by, applies, held_until)
  WHERE l.state = 'ready' AND applies AND coalesce(held_until > t.now, true) ORDER BY n LIMIT 1) h ON true
UNION ALL
SELECT e.id, c.type, q.name, e.source, e.state, e.priority, nullif(c.category, ''), nullif(c.needs, '{}'), e.key, e.unique_key,
  e.unique_while, e.payload, e.result, e.policy, coalesce(e.idempotent, true), e.submitted_at, e.created_at, NULL, e.deadline,
  CASE WHEN e.state <> 'needs_manual' THEN e.since END, e.executions, e.charged, e.deferrals,
  coalesce(cardinality(e.recoveries), 0), e.suspect, e.reason, NULL, NULL, NULL, false,
  CASE WHEN e.suspect THEN 1 ELSE 0 END, NULL
FROM (SELECT * FROM ended UNION ALL SELECT * FROM succeeded) e JOIN classes c ON c.id = e.class JOIN queues q ON q.id = c.queue;
