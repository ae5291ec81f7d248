    -- The tasks that their sources may start now, without the sources of `p_without`. While a source ramps, new work and backlog
    -- take turns. The task with the turn takes the place of the first task of both.
    limited AS (
      SELECT t.*, l.id AS lane, l.track, l.turn, l.source, r.allowance FROM lane l
      CROSS JOIN LATERAL (SELECT allowance_now(l.source, p_without, p_now) AS allowance OFFSET 0) r
      CROSS JOIN LATERAL (
        SELECT t.id, t.order_key, t.seq, row_number() OVER (ORDER BY t.order_key, t.seq) AS nth FROM live t
        WHERE t.lane = l.id AND t.state = 'ready' AND t.order_key >= l.low_key AND (p_except = '{}' OR t.id NOT IN (SELECT unnest(p_except)))
        ORDER BY t.order_key, t.seq
        LIMIT least((SELECT most FROM deep), (r.allowance).permits, CASE WHEN l.track = 1 THEN (r.allowance).tokens END)) t
      WHERE l.n <= lanes_most),
    ordered AS (
      SELECT t.*, count(*) FILTER (WHERE track NOT IN (2, 3)) OVER its_source
          + least(count(*) FILTER (WHERE track IN (2, 3)) OVER its_source, p_suspects) AS nth_of_source,
        count(*) FILTER (WHERE track = 1) OVER its_source AS nth_with_token,
        CASE WHEN (allowance).is_ramping THEN min(ARRAY[order_key, seq]) OVER (PARTITION BY source ORDER BY pair, is_second, order_key, seq
          ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) ELSE ARRAY[order_key, seq] END AS place
      FROM (SELECT t.*, CASE WHEN (allowance).is_ramping
            THEN row_number() OVER (PARTITION BY source, track = 4 ORDER BY order_key, seq) END AS pair,
          (allowance).is_ramping AND (track = 4) = (allowance).backlog_is_next AS is_second
        FROM limited t) t
      WINDOW its_source AS (PARTITION BY source ORDER BY pair, is_second, order_key, seq ROWS UNBOUNDED PRECEDING)),
    task AS MATERIALIZED (
      SELECT t.id, t.place[1] AS order_key, t.place[2]::bigint AS seq, t.nth, t.lane, t.track IN (2, 3) AS is_suspect, t.turn,
        CASE WHEN p_queue.fair THEN t.source END AS source, t.nth_of_source, (t.allowance).is_known OR t.track = 1 AS is_limited
      FROM ordered t WHERE coalesce(nth_of_source <= (allowance).permits, true) AND (track <> 1 OR nth_with_token <= (allowance).tokens)),
