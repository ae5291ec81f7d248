    task AS MATERIALIZED (
      SELECT t.*, l.id AS lane, l.track IN (2, 3) AS is_suspect, l.turn, CASE WHEN p_queue.fair THEN l.source END AS source,
        0::bigint AS nth_of_source
      FROM lane l CROSS JOIN LATERAL (
        SELECT t.id, t.order_key, t.seq, row_number() OVER (ORDER BY t.order_key, t.seq) AS nth FROM live t
        WHERE t.lane = l.id AND t.state = 'ready' AND t.order_key >= l.low_key AND (p_except = '{}' OR t.id NOT IN (SELECT unnest(p_except)))
        ORDER BY t.order_key, t.seq LIMIT (SELECT most FROM deep)) t
      WHERE l.n <= lanes_most),
