-- Claiming, from the top down: `claim` calls `take_next`, which asks each queue in turn by `take`. `take` finds the next tasks of
-- one queue in its exact order (`pick_next`: by `pick_single` if one lane is active, else by `pick` of pick.sql, or by `pick_limited`
-- where lanes of limited sources are met), leases them (`lease`), counts their starts for limits, and deactivates the empty lanes that were read.
--
-- A lane has the ready tasks of one class, source and track in their order. Its rank is at most the place of its first task: a
-- claim reads the first lanes by rank and the first tasks of each, and merges them. So its cost depends on how many tasks it
-- takes, not on how many wait, are scheduled, have ended, or belong to held sources.

-- A queue from which a worker may claim: the classes of its tasks that fit the worker, and the rank at which reading its lanes
-- begins (`low_rank`).
CREATE TYPE claimable AS (queue integer, fair boolean, ordering text, classes integer[], low_rank double precision);

-- The tasks that a claim took. `is_unfinished`: it ended early, to keep its transaction short, or because limits were set
-- meanwhile. `is_blocked`: the row of a source or queue was locked. `is_limited`: as in `picked`.
CREATE TYPE taken AS (taken bigint[], is_unfinished boolean, is_blocked boolean, is_limited boolean);

-- The result of a pick. `ids`: the next tasks in order. `going_on`: the lanes with more tasks, with the key and seq of their next
-- task (or lower). `drained`: the lanes without more tasks. `has_more`: there are more lanes than were read. `suspects`: how many
-- of the tasks are suspects. `blocks`: how many blocks of dead entries were read, if many. `is_blocked`: a source was left out
-- because its row is locked. `is_limited`: a task needs a token, or its source has a row in `source_states`. `alike`: the class of all
-- these tasks, if nothing but their type decides whether they may be claimed ahead.
CREATE TYPE picked AS (ids bigint[], lanes_left bigint[], next_keys double precision[], next_seqs bigint[], empty_lanes bigint[],
  has_more boolean, suspects integer, blocks bigint, is_blocked boolean, is_limited boolean, alike integer);

-- Leases the next ready tasks to a worker. Returns them, and when the next task is due. `expired`: the deadline of some tasks has
-- passed, and the worker must recover them first. `unfinished`: the claim ended early, to keep its transaction short, and must be
-- repeated.
CREATE FUNCTION claim(p_request json, p_token uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  now_ bigint := now_ms();
  worker_ bigint := (p_request ->> 'worker')::bigint;
  due bigint;
  expiring bigint;
  taken bigint[];
  tasks json;
  has_left boolean := false;
  had_deadline boolean;
  took record;
  is_limited boolean;
  has_long_lease boolean;
  opens_at bigint;
BEGIN
  IF (p_request ->> 'few')::boolean AND NOT (p_request ->> 'again')::boolean THEN
    tasks := claim_few(p_request, p_token, now_);
    IF tasks IS NOT NULL THEN RETURN tasks; END IF;
  END IF;
  -- The same as `has_limits`, because the call of a function would take as long as the rest of the claim.
  SELECT EXISTS (SELECT 1 FROM source_states) OR EXISTS (SELECT 1 FROM sources WHERE until IS NOT NULL)
    OR EXISTS (SELECT 1 FROM lanes WHERE active AND track IN (1, 4))
    OR EXISTS (SELECT 1 FROM queues WHERE per_second IS NOT NULL OR concurrency IS NOT NULL), lease_until > now_ + lease_for
  INTO is_limited, has_long_lease FROM workers WHERE id = worker_ AND NOT gone;
  IF NOT FOUND THEN RETURN json_build_object('known', false, 'now', now_, 'expired', false); END IF;
  IF (p_request ->> 'again')::boolean THEN
    tasks := leased_before(worker_, p_token, now_);
    IF tasks IS NOT NULL THEN
      RETURN json_build_object('known', true, 'now', now_, 'expired', false, 'tasks', tasks, 'next', now_,
        'sources', states_of_sources(ARRAY(SELECT (task ->> 0)::bigint FROM json_array_elements(tasks) task), now_));
    END IF;
  END IF;
  SELECT t.due, t.expiring INTO due, expiring FROM next_times(now_) t;
  IF p_request ->> 'late' IS NULL THEN expiring := deadline_in_reach(expiring, now_); END IF;
  IF expiring <= now_ AND p_request ->> 'late' IS NULL THEN
    RETURN json_build_object('known', true, 'now', now_, 'expired', true, 'next', least(due, expiring));
  END IF;
  IF due <= now_ THEN
    has_left := promote(now_, 1000);
    is_limited := is_limited OR has_limits();
  END IF;
  IF is_limited THEN
    IF deactivate_closed(200) THEN
      -- More sources were held than one transaction can deactivate. The next claim continues with them.
      RETURN json_build_object('known', true, 'now', now_, 'next', now_, 'expired', false, 'unfinished', true);
    END IF;
    opens_at := open_sources(now_, 100);
  END IF;
  IF p_request ->> 'only' IS NULL THEN
    took := take_next(p_request, is_limited, p_token, now_);
  ELSE
    took := take_only(p_request, is_limited, p_token, now_);
  END IF;
  taken := took.taken;
  IF taken <> '{}' THEN
    -- It was idle.
    IF has_long_lease THEN UPDATE workers SET lease_until = now_ + lease_for WHERE id = worker_; END IF;
    SELECT json_agg(handed_now(l, b, c.value) ORDER BY t.n), bool_or(l.deadline IS NOT NULL) INTO tasks, had_deadline
    FROM unnest(taken) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id JOIN bodies b ON b.id = t.id
      LEFT JOIN LATERAL (SELECT value FROM checkpoints WHERE task = l.id AND l.executions > 1 OFFSET 0) c ON true;
  END IF;
  IF due <= now_ OR expiring <= now_ OR had_deadline THEN
    SELECT due_in_reach(t.due, now_), deadline_in_reach(t.expiring, now_) INTO due, expiring FROM next_times(now_) t;
    IF has_left THEN due := greatest(due, now_ + 100); END IF;
  END IF;
  -- Another transaction has the row of a source or queue locked.
  IF took.is_blocked THEN opens_at := least(opens_at, now_ + 20); END IF;
  IF took.is_limited THEN opens_at := least(opens_at, next_opening(now_)); END IF;
  due := least(due, opens_at);
  RETURN json_build_object('known', true, 'now', now_, 'tasks', tasks, 'next', least(due, expiring),
    'sources', CASE WHEN took.is_limited AND tasks IS NOT NULL THEN states_of_sources(taken, now_) END,
    'expired', tasks IS NULL AND coalesce(expiring <= now_, false), 'unfinished', tasks IS NULL AND took.is_unfinished);
END $$;

-- The tasks that a claim with this token leased; its answer was lost. If that claim still runs, it has the worker's row locked,
-- so this waits for it. If it comes later, it finds the token in `calls` and leases nothing.
CREATE FUNCTION leased_before(p_worker bigint, p_token uuid, p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM workers WHERE id = p_worker FOR UPDATE;
  INSERT INTO calls (id, at, answer) VALUES (p_token, p_now, 'null') ON CONFLICT DO NOTHING;
  RETURN (SELECT json_agg(handed(l, b, c.value) ORDER BY l.order_key, l.seq)
    FROM live l JOIN bodies b ON b.id = l.id LEFT JOIN checkpoints c ON c.task = l.id WHERE l.worker = p_worker AND l.state = 'running' AND l.token = p_token);
END $$;

-- Leases the next tasks of all queues from which the worker may claim: first an equal share of each queue, then the rest, then
-- tasks that are claimed ahead. Claims of one queue wait for each other here, so that each takes the exact next tasks.
CREATE FUNCTION take_next(p_request json, p_limited boolean, p_token uuid, p_now bigint) RETURNS taken LANGUAGE plpgsql AS $$
DECLARE
  done taken := ROW('{}'::bigint[], false, false, false);
  queues_ claimable[] := ARRAY(SELECT c FROM claimable_queues(p_request, true, p_limited, p_now) c);
  count_ integer := cardinality(queues_);
  most integer := (p_request ->> 'limit')::integer;
  most_ahead integer := coalesce((p_request ->> 'ahead')::integer, 0);
  suspects integer := 0;
  alone boolean := false;
  slots integer;
  ahead integer;
  got record;
BEGIN
  PERFORM pg_advisory_xact_lock(lane_lock() + 4, q.queue) FROM unnest(queues_) q;
  -- Most claims find no suspect.
  IF EXISTS (SELECT 1 FROM lanes WHERE active AND track IN (2, 3)) THEN
    suspects := (p_request ->> 'suspects')::integer;
    alone := (p_request ->> 'alone')::boolean;
  END IF;
  FOR pass IN 1..3 LOOP
    EXIT WHEN pass = 2 AND count_ = 1;
    EXIT WHEN pass = 3 AND (most_ahead = 0 OR count_ = 1 OR cardinality(done.taken) < most
      OR ahead_of(done.taken, most - 1, coalesce(texts_of(p_request -> 'aheadTypes'), '{}')) < most);
    FOR i IN 0..count_ - 1 LOOP
      slots := CASE pass WHEN 3 THEN 0 WHEN 2 THEN most - cardinality(done.taken)
        ELSE least(most - cardinality(done.taken), ceil(most::numeric / count_)::integer) END;
      ahead := CASE WHEN pass = 3 THEN most + most_ahead - cardinality(done.taken) WHEN count_ = 1 THEN most_ahead ELSE 0 END;
      got := take(queues_[1 + ((p_request ->> 'rotation')::integer + i) % count_], p_request, slots, ahead,
        suspects, alone AND done.taken = '{}', p_limited, p_token, p_now);
      done.taken := done.taken || got.taken;
      done.is_unfinished := done.is_unfinished OR got.is_unfinished;
      done.is_blocked := done.is_blocked OR got.is_blocked;
      done.is_limited := done.is_limited OR got.is_limited;
      IF got.is_alone THEN RETURN done; END IF;
      suspects := suspects - got.suspects;
      EXIT WHEN cardinality(done.taken) >= CASE pass WHEN 3 THEN most + most_ahead ELSE most END;
    END LOOP;
  END LOOP;
  RETURN done;
END $$;

-- The queues from which a worker may claim, without paused ones. With `p_active` only those that have an active lane.
CREATE FUNCTION claimable_queues(p_request json, p_active boolean, p_limited boolean, p_now bigint) RETURNS SETOF claimable LANGUAGE plpgsql AS $$
DECLARE
  types text[] := texts_of(p_request -> 'types');
  queues_ text[] := texts_of(p_request -> 'queues');
  categories text[] := texts_of(p_request -> 'categories');
  capabilities jsonb := p_request -> 'capabilities';
BEGIN
  RETURN QUERY SELECT q.id, q.fair, q.ordering, q.classes, coalesce(f.floor, '-infinity')
    FROM (SELECT q.id, q.fair, q.ordering, array_agg(c.id) AS classes FROM classes c JOIN queues q ON q.id = c.queue
      WHERE q.paused_at IS NULL AND (types IS NULL OR c.type = ANY(types)) AND (queues_ IS NULL OR q.name = ANY(queues_))
        AND (categories IS NULL OR c.category = ANY(categories))
        AND (c.needs = '{}' OR meets(capabilities, c.needs))
      GROUP BY q.id) q
    LEFT JOIN floors f ON f.name = 'lanes ' || q.id AND f.until > p_now
    -- This stops at the first active lane.
    WHERE NOT p_active
      OR EXISTS (SELECT 1 FROM unnest(q.classes) c(id) JOIN lanes l ON l.class = c.id AND l.track IN (0, 2, 3) AND l.active
        AND l.rank >= coalesce(f.floor, '-infinity'))
      OR p_limited AND EXISTS (SELECT 1 FROM lanes l WHERE l.class = ANY(q.classes) AND l.track IN (1, 4) AND l.active)
    ORDER BY q.id;
END $$;

-- Whether a worker's capabilities meet these needs. If the needs of a damaged row cannot be read, any worker meets them: it gets
-- the task, and then asks a person.
CREATE FUNCTION meets(p_capabilities jsonb, p_needs text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN NOT EXISTS (SELECT 1 FROM jsonb_each(p_needs::jsonb) need
    WHERE NOT coalesce(CASE WHEN jsonb_typeof(need.value) = 'number'
      THEN jsonb_typeof(p_capabilities -> need.key) = 'number' AND (p_capabilities -> need.key)::numeric >= need.value::numeric
      ELSE p_capabilities -> need.key = need.value END, false));
EXCEPTION WHEN data_exception THEN
  RETURN true;
END $$;

-- Leases the next tasks of one queue, whose lock the caller has: at most `p_most`, and up to `p_ahead` more ahead. A suspect that
-- must run alone is leased as the only task, if `p_alone` allows it and it is the very first task. Tasks that another transaction
-- has locked, for example to cancel them, are skipped, as far as they are among the first 10,000 of the queue. Tasks that their
-- source or queue may not start now are skipped too. The size of the payloads of one claim is limited.
CREATE FUNCTION take(p_queue claimable, p_request json, p_most integer, p_ahead integer, p_suspects integer, p_alone boolean,
  p_limited boolean, p_token uuid, p_now bigint, OUT taken bigint[], OUT suspects integer, OUT is_alone boolean, OUT is_unfinished boolean,
  OUT is_blocked boolean, OUT is_limited boolean)
LANGUAGE plpgsql AS $$
DECLARE
  has_limit boolean := p_limited AND EXISTS (
    SELECT 1 FROM queues WHERE id = p_queue.queue AND (per_second IS NOT NULL OR concurrency IS NOT NULL));
  queue_permits integer;
  except_ bigint[] := coalesce(texts_of(p_request -> 'except')::bigint[], '{}');
  most integer := p_most;
  -- How many tasks to check for locks, once the first pick has met a locked task.
  to_check integer;
  locked bigint[] := '{}';
  -- The lanes that are read: see `track_of`.
  tracks integer[] := CASE WHEN p_limited THEN '{0,1,4}' ELSE '{0}' END;
  has_lone_suspects boolean := p_alone AND EXISTS (SELECT 1 FROM lanes WHERE class = ANY(p_queue.classes) AND track = 3 AND active);
  found picked;
  wanted bigint[];
  got bigint[];
  is_large boolean := (p_request ->> 'limit')::integer + coalesce((p_request ->> 'ahead')::integer, 0) > 8;
BEGIN
  taken := '{}';
  suspects := 0;
  is_unfinished := false;
  is_alone := false;
  is_blocked := false;
  is_limited := has_limit;
  IF has_limit THEN
    SELECT q.permits, q.is_locked INTO queue_permits, is_blocked FROM queue_allowance(p_queue.queue, p_now) q;
    most := least(most, queue_permits);
    p_ahead := 0;
    IF most = 0 THEN RETURN; END IF;
  END IF;
  IF p_suspects > 0 THEN tracks := tracks || 2; END IF;
  FOREACH to_check IN ARRAY '{0,100,1000,10000}'::integer[] LOOP
    IF to_check > 0 THEN
      found := pick_next(p_queue, CASE WHEN has_lone_suspects THEN tracks || 3 ELSE tracks END, to_check, to_check, except_, p_limited, p_now);
      locked := ARRAY(SELECT unnest(found.ids) EXCEPT SELECT unnest(lockable(found.ids, p_now)));
    END IF;
    IF has_lone_suspects AND taken = '{}' THEN
      found := pick_next(p_queue, tracks || 3, 1, 1, except_ || locked, p_limited, p_now);
      is_alone := EXISTS (SELECT 1 FROM live l WHERE l.id = found.ids[1] AND lost_of(l) > 1);
      IF is_alone AND most = 0 THEN
        -- No task is claimed ahead after such a suspect.
        is_alone := false;
        RETURN;
      END IF;
      IF NOT is_alone THEN PERFORM rest_lanes(found.empty_lanes, p_now); END IF;
    END IF;
    IF NOT is_alone THEN
      found := pick_next(p_queue, tracks, most + p_ahead, p_suspects - suspects, except_ || locked, p_limited, p_now);
    END IF;
    is_blocked := is_blocked OR coalesce(found.is_blocked, false);
    is_limited := is_limited OR coalesce(found.is_limited, false);
    EXIT WHEN found IS NULL;
    wanted := coalesce(found.ids, '{}');
    IF cardinality(wanted) > most AND NOT are_short(found.alike, p_request -> 'aheadTypes') THEN
      wanted := wanted[1 : ahead_of(wanted, most, coalesce(texts_of(p_request -> 'aheadTypes'), '{}'))];
    END IF;
    IF wanted <> '{}' AND is_large THEN wanted := wanted[1 : fitting(wanted, (p_request ->> 'worker')::bigint, p_token)]; END IF;
    got := lease(wanted, p_request, p_token, p_limited, p_now);
    IF got IS NULL THEN
      is_unfinished := true;
      RETURN;
    END IF;
    IF got <> '{}' AND found.is_limited THEN PERFORM note_starts(got, p_now); END IF;
    IF got <> '{}' AND has_limit THEN PERFORM note_queue_starts(got, p_now); END IF;
    IF got <> '{}' AND (p_queue.fair OR p_queue.ordering = 'weighted_random') THEN PERFORM note_served(p_queue, got); END IF;
    IF to_check = 0 AND except_ = '{}' AND cardinality(got) = coalesce(cardinality(found.ids), 0)
        AND (found.has_more OR found.blocks IS NOT NULL) THEN
      PERFORM rank_lanes(p_queue, found, p_now);
    END IF;
    PERFORM rest_lanes(found.empty_lanes, p_now);
    taken := taken || got;
    most := most - cardinality(got);
    IF found.suspects > 0 THEN suspects := suspects + (SELECT count(*) FROM live WHERE id = ANY(got) AND suspect); END IF;
    is_unfinished := found.ids IS NULL AND found.has_more;
    EXIT WHEN is_alone AND got <> '{}' OR cardinality(got) = cardinality(wanted);
  END LOOP;
  is_alone := is_alone AND taken <> '{}';
END $$;

-- Finds the next tasks of these tracks of a queue, at most `p_most`, with at most `p_suspects` suspects. With `p_limited`, only
-- tasks that their sources may start now; the rows of limited sources are then locked. If a source may start fewer tasks than the
-- pick assumed, it picks again.
CREATE FUNCTION pick_next(p_queue claimable, p_tracks integer[], p_most integer, p_suspects integer, p_except bigint[],
  p_limited boolean, p_now bigint) RETURNS picked LANGUAGE plpgsql AS $$
DECLARE
  found picked;
  passed record;
  without text[] := '{}';
  is_blocked boolean := false;
BEGIN
  IF p_tracks = '{0}' AND p_except = '{}' AND p_most > 0 AND NOT p_limited AND NOT p_queue.fair THEN
    found := pick_single(p_queue, p_most, p_now);
    IF found.has_more IS NOT NULL THEN RETURN found; END IF;
  END IF;
  -- The lanes that are read first are usually not of limited sources.
  found := pick(p_queue, p_tracks, p_most, p_suspects, p_except, '{}', p_now);
  IF NOT p_limited OR NOT EXISTS (SELECT 1 FROM lanes a WHERE a.id = ANY(found.lanes_left || found.empty_lanes)
    AND (a.track = 1 OR EXISTS (SELECT 1 FROM source_states s WHERE s.name = a.source)))
  THEN
    RETURN found;
  END IF;
  FOR attempt IN 1..4 LOOP
    found := pick_limited(p_queue, p_tracks, p_most, p_suspects, p_except, without, p_now);
    EXIT WHEN found.ids IS NULL OR NOT found.is_limited;
    passed := admitted(found.ids, p_now);
    is_blocked := is_blocked OR passed.locked_elsewhere <> '{}';
    IF cardinality(passed.ids) = cardinality(found.ids) THEN EXIT; END IF;
    without := without || passed.locked_elsewhere;
    IF attempt = 4 THEN
      found.ids := nullif(passed.ids, '{}');
      -- No rank may be raised past a task that was not taken.
      found.lanes_left := NULL;
    END IF;
  END LOOP;
  IF NOT found IS NULL OR is_blocked THEN found.is_blocked := is_blocked; END IF;
  RETURN found;
END $$;

-- The same as `pick` if only one lane is active, in which case no lanes have to be merged. Null if there are several, or none.
CREATE FUNCTION pick_single(p_queue claimable, p_most integer, p_now bigint) RETURNS picked LANGUAGE plpgsql AS $$
DECLARE
  found picked;
  lane_ record;
  low double precision;
  is_alike boolean;
  blocks bigint := blocks_read('lanes', 'lanes_active');
BEGIN
  SELECT count(*) AS lanes, min(id) AS id, min(class) AS class, min(rank) AS rank INTO lane_ FROM (
    SELECT x.* FROM unnest(p_queue.classes) c(id) CROSS JOIN LATERAL (
      SELECT l.id, l.class, l.rank FROM lanes l WHERE l.class = c.id AND l.track = 0 AND l.active AND l.rank >= p_queue.low_rank
        AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = l.source)
      ORDER BY l.rank, l.rank_seq LIMIT 2) x LIMIT 2) first;
  IF lane_.lanes <> 1 THEN RETURN NULL; END IF;
  blocks := blocks_read('lanes', 'lanes_active') - blocks;
  IF blocks > 504 THEN PERFORM raise_floor('lanes ' || p_queue.queue, lane_.rank, blocks, p_now); END IF;
  low := coalesce((SELECT low_key_in(lanes, keys, lane_.id) FROM low_keys WHERE queue = p_queue.queue AND until > p_now), '-infinity');
  blocks := blocks_read('live', 'live_ready');
  SELECT array_agg(id), ARRAY[max(order_key)], (array_agg(seq))[count(*) :], bool_and(is_plain)
  INTO found.ids, found.next_keys, found.next_seqs, is_alike FROM (
    SELECT id, order_key, seq, idempotent IS NOT FALSE AND deadline IS NULL AND NOT suspect AND NOT needs_token AS is_plain FROM live
    WHERE lane = lane_.id AND state = 'ready' AND order_key >= low ORDER BY order_key, seq LIMIT p_most) task;
  blocks := blocks_read('live', 'live_ready') - blocks;
  IF blocks > 500 + 8 * (1 + p_most) THEN found.blocks := blocks; END IF;
  IF is_alike THEN found.alike := lane_.class; END IF;
  IF cardinality(found.ids) = p_most THEN
    found.lanes_left := ARRAY[lane_.id];
  ELSIF lane_.rank > kept_active_since(p_now) OR low > '-infinity' THEN
    found.lanes_left := ARRAY[lane_.id];
    found.next_keys := ARRAY['infinity'::double precision];
    found.next_seqs := ARRAY[0::bigint];
  ELSE
    found.empty_lanes := ARRAY[lane_.id];
    found.next_keys := NULL;
    found.next_seqs := NULL;
  END IF;
  found.has_more := false;
  found.suspects := 0;
  found.is_limited := false;
  RETURN found;
END $$;

-- Locks and returns those of these tasks that may still be leased, and that no other transaction has locked.
CREATE FUNCTION lockable(p_ids bigint[], p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT id FROM live WHERE id = ANY(p_ids) AND state IS NOT DISTINCT FROM 'ready' AND (deadline IS NULL OR deadline > p_now)
    FOR UPDATE SKIP LOCKED);
END $$;

-- Whether all tasks of a class may be claimed ahead, as far as its type decides it. Null is no class.
CREATE FUNCTION are_short(p_class integer, p_types json) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN p_class IS NOT NULL AND (SELECT type FROM classes WHERE id = p_class) = ANY(coalesce(texts_of(p_types), '{}'));
END $$;

-- How many of these tasks may be claimed, in their order: up to the limit, and beyond it only while all tasks are of short types,
-- may run twice, have no deadline, are no suspects, and have sources without a state or limit.
CREATE FUNCTION ahead_of(p_ids bigint[], p_limit integer, p_types text[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  short integer[] := ARRAY(SELECT id FROM classes WHERE type = ANY(p_types));
  has_states boolean := EXISTS (SELECT 1 FROM source_states);
  unfit integer;
BEGIN
  SELECT min(CASE WHEN l.class <> ALL(short) THEN CASE WHEN t.n <= p_limit THEN 0 ELSE t.n END
    WHEN t.n > p_limit AND (l.idempotent IS FALSE OR l.deadline IS NOT NULL OR l.suspect OR l.needs_token
      OR has_states AND EXISTS (SELECT 1 FROM lanes a JOIN source_states s ON s.name = a.source WHERE a.id = l.lane)) THEN t.n END)
  INTO unfit FROM unnest(p_ids) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id;
  RETURN CASE unfit WHEN 0 THEN least(p_limit, cardinality(p_ids)) ELSE coalesce(unfit - 1, cardinality(p_ids)) END;
END $$;

-- How many of these tasks fit into one answer, together with those that this claim has already leased: at most 64 MiB of
-- payloads, but always at least one task. As JSON inside of JSON they may be twice as long, and Node cannot read an answer of 512
-- MiB.
CREATE FUNCTION fitting(p_ids bigint[], p_worker bigint, p_token uuid) RETURNS integer LANGUAGE plpgsql STABLE AS $$
DECLARE
  leased bigint;
BEGIN
  -- Most tasks are small. Then nothing else is read.
  IF (SELECT sum(octet_length(payload)) FROM bodies WHERE id = ANY(p_ids)) <= 4194304 THEN RETURN cardinality(p_ids); END IF;
  SELECT coalesce(sum(octet_length(b.payload)), 0) INTO leased FROM live l JOIN bodies b ON b.id = l.id
    WHERE l.worker = p_worker AND l.state = 'running' AND l.token = p_token;
  RETURN (SELECT greatest(CASE leased WHEN 0 THEN 1 ELSE 0 END, count(*)) FROM (
    SELECT sum(octet_length(b.payload)) OVER (ORDER BY t.n) AS size
    FROM unnest(p_ids) WITH ORDINALITY t(id, n) JOIN bodies b ON b.id = t.id) sizes WHERE size <= 67108864 - leased);
END $$;

-- Leases those of these tasks that are still ready and that no other transaction has locked, and returns them in the given order;
-- none if the worker is gone, or has given up this claim. Null if a limit was set since a claim without `p_limited` began: then
-- the claim is repeated. (Setting a limit counts the tasks that are leased, and waits for the claims that have the lock of a
-- queue.)
CREATE FUNCTION lease(p_ids bigint[], p_request json, p_token uuid, p_limited boolean, p_now bigint)
  RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  worker_ bigint := p_request ->> 'worker';
  -- The classes whose tasks must not run twice.
  once integer[] := '{}';
  leased bigint[];
  are_unique boolean;
  is_sure boolean;
BEGIN
  IF p_ids = '{}' THEN RETURN '{}'; END IF;
  SELECT p_limited OR NOT EXISTS (SELECT 1 FROM source_states)
    AND NOT EXISTS (SELECT 1 FROM queues WHERE per_second IS NOT NULL OR concurrency IS NOT NULL)
  INTO is_sure FROM workers WHERE id = worker_ AND NOT gone FOR KEY SHARE;
  IF NOT is_sure THEN RETURN NULL; END IF;
  IF NOT FOUND OR NOT (p_request ->> 'again')::boolean AND EXISTS (SELECT 1 FROM calls WHERE id = p_token) THEN
    RETURN '{}';
  END IF;
  IF p_request ->> 'notIdempotent' IS NOT NULL THEN
    once := ARRAY(SELECT id FROM classes WHERE type = ANY(texts_of(p_request -> 'notIdempotent')));
  END IF;
  WITH changed AS (
    -- The rows that were locked are updated where they are, without a second search by id. One that another transaction changed since
    -- the statement began is locked and not found there, so it is not leased.
    UPDATE live l SET state = 'running', since = p_now, worker = worker_, token = p_token, revision = 0, cancel = false,
      why = NULL, lost_by = NULL, executions = l.executions + 1, counted = NULL, counted_queue = NULL, is_probe = false,
      idempotent = CASE WHEN l.idempotent IS NULL AND l.class = ANY(once) THEN false ELSE l.idempotent END
    WHERE l.ctid = ANY(ARRAY(SELECT ctid FROM live WHERE id = ANY(p_ids) AND state IS NOT DISTINCT FROM 'ready'
      AND (deadline IS NULL OR deadline > p_now) FOR UPDATE SKIP LOCKED))
    RETURNING l.id, l.unique_while)
  SELECT array_agg(id), bool_or(unique_while = 'waiting') INTO leased, are_unique FROM changed;
  leased := CASE WHEN cardinality(leased) = cardinality(p_ids) THEN p_ids
    ELSE ARRAY(SELECT t.id FROM unnest(p_ids) WITH ORDINALITY t(id, n) WHERE t.id = ANY(leased) ORDER BY t.n) END;
  IF are_unique THEN
    PERFORM free_unique(ARRAY(SELECT l.id FROM live l WHERE l.id = ANY(leased) AND l.unique_while = 'waiting'), p_now);
  END IF;
  RETURN leased;
END $$;

-- Records for the order of a queue what a claim took: the last key of a weighted queue, and the turns of the sources of a fair
-- one.
CREATE FUNCTION note_served(p_queue claimable, p_taken bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  served text[];
BEGIN
  IF p_queue.ordering = 'weighted_random' THEN
    UPDATE queues q SET last_key = greatest(q.last_key, (SELECT max(order_key) FROM live WHERE id = ANY(p_taken)))
    WHERE q.id = (SELECT id FROM queues WHERE id = p_queue.queue FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  IF p_queue.fair THEN
    served := ARRAY(SELECT a.source FROM unnest(p_taken) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id
      JOIN lanes a ON a.id = l.lane GROUP BY a.source ORDER BY max(t.n));
    -- A source gets its turn when its first task comes. If the queue becomes fair at the same time, that transaction may not be
    -- committed yet.
    IF NOT pg_try_advisory_xact_lock(lane_lock() + 5, p_queue.queue) THEN
      served := ARRAY(SELECT source FROM unnest(served) WITH ORDINALITY s(source, n)
        WHERE EXISTS (SELECT 1 FROM turns t WHERE t.queue = p_queue.queue AND t.source = s.source) ORDER BY n);
    END IF;
    INSERT INTO turns (queue, source, turn) SELECT p_queue.queue, source, nextval('turn') FROM unnest(served) source
    ON CONFLICT (queue, source) DO UPDATE SET turn = excluded.turn;
  END IF;
END $$;

-- Leases the tasks that were asked for by id, if the worker may have them.
CREATE FUNCTION take_only(p_request json, p_limited boolean, p_token uuid, p_now bigint) RETURNS taken LANGUAGE plpgsql AS $$
DECLARE
  done taken := ROW('{}'::bigint[], false, false, p_limited);
  queues_ claimable[] := ARRAY(SELECT c FROM claimable_queues(p_request, false, p_limited, p_now) c);
  queue_ claimable;
  most integer := (p_request ->> 'limit')::integer;
  passed record;
  picked bigint[];
  of_queue bigint[];
BEGIN
  -- As in other claims: setting a limit waits for this lock.
  PERFORM pg_advisory_xact_lock(lane_lock() + 4, q.queue) FROM unnest(queues_) q;
  -- More than the limit, because some sources may not start their tasks now.
  picked := pick_only(p_request, queues_, CASE WHEN p_limited THEN json_array_length(p_request -> 'only') ELSE most END,
    (p_request ->> 'alone')::boolean);
  IF p_limited THEN
    passed := admitted(picked, p_now);
    IF passed.ids = '{}' AND (p_request ->> 'alone')::boolean THEN
      passed := admitted(pick_only(p_request, queues_, json_array_length(p_request -> 'only'), false), p_now);
    END IF;
    picked := passed.ids;
    done.is_blocked := passed.locked_elsewhere <> '{}';
  END IF;
  FOR queue_ IN
    SELECT q.* FROM unnest(queues_) q JOIN queues l ON l.id = q.queue
    WHERE p_limited AND (l.per_second IS NOT NULL OR l.concurrency IS NOT NULL) ORDER BY q.queue
  LOOP
    of_queue := ARRAY(SELECT t.id FROM unnest(picked) WITH ORDINALITY t(id, n) JOIN live l ON l.id = t.id
      WHERE l.class = ANY(queue_.classes) ORDER BY t.n);
    CONTINUE WHEN of_queue = '{}';
    of_queue := of_queue[1 + coalesce((SELECT permits FROM queue_allowance(queue_.queue, p_now)), cardinality(of_queue)) :];
    picked := ARRAY(SELECT t.id FROM unnest(picked) WITH ORDINALITY t(id, n) WHERE t.id <> ALL(of_queue) ORDER BY t.n);
  END LOOP;
  picked := picked[1 : most];
  done.taken := lease(picked[1 : fitting(picked, (p_request ->> 'worker')::bigint, p_token)], p_request, p_token, p_limited, p_now);
  done.is_unfinished := done.taken IS NULL;
  done.taken := coalesce(done.taken, '{}');
  IF p_limited AND done.taken <> '{}' THEN
    PERFORM note_starts(done.taken, p_now);
    PERFORM note_queue_starts(done.taken, p_now);
  END IF;
  RETURN done;
END $$;

-- Locks and returns the tasks that were asked for by id, if the worker may have them: at most `p_most`.
CREATE FUNCTION pick_only(p_request json, p_queues claimable[], p_most integer, p_alone boolean) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  except_ bigint[] := coalesce(texts_of(p_request -> 'except')::bigint[], '{}');
  classes_ integer[];
  suspects integer := (p_request ->> 'suspects')::integer;
  task record;
  picked bigint[] := '{}';
BEGIN
  SELECT array_agg(class) INTO classes_ FROM unnest(p_queues) q, unnest(q.classes) class;
  FOR task IN
    SELECT l.id, lost_of(l) AS lost FROM json_array_elements_text(p_request -> 'only') WITH ORDINALITY o(id, n)
    JOIN live l ON l.id = o.id::bigint JOIN lanes a ON a.id = l.lane
    WHERE l.state IS NOT DISTINCT FROM 'ready' AND l.class = ANY(classes_) AND l.id <> ALL(except_)
      AND NOT EXISTS (SELECT 1 FROM sources s WHERE s.name = a.source)
    ORDER BY o.n FOR UPDATE OF l SKIP LOCKED
  LOOP
    EXIT WHEN cardinality(picked) = p_most;
    IF task.lost > 1 THEN
      CONTINUE WHEN picked <> '{}' OR NOT p_alone;
      RETURN ARRAY[task.id];
    END IF;
    CONTINUE WHEN task.lost = 1 AND suspects <= 0;
    suspects := suspects - task.lost;
    picked := picked || task.id;
  END LOOP;
  RETURN picked;
END $$;
