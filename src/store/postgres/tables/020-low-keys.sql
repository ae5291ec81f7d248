-- Below which keys lanes have no ready task: for each queue its lanes, sorted, and a key for each. Beside an old snapshot, a claim
-- starts to read after the dead entries below this key. They are in one row, because a row per lane leaves so many dead rows
-- that all claims and enqueues get slower. (The columns `low_key` and `looked_at` of `lanes` were used for this before.)
CREATE TABLE low_keys (
  queue integer PRIMARY KEY,
  lanes bigint[] NOT NULL,
  keys double precision[] NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 50);
