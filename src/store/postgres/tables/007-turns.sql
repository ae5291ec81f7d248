-- The turns of the sources of fair queues: who was served longest ago comes first. Written by claims under their queue's lock,
-- and once for a source that first has a task there.
CREATE TABLE turns (
  queue integer NOT NULL,
  source text NOT NULL,
  turn bigint NOT NULL,
  PRIMARY KEY (queue, source)
) WITH (fillfactor = 70);
INSERT INTO turns (queue, source, turn)
  SELECT c.queue, l.source, max(l.rank)::bigint FROM lanes l JOIN classes c ON c.id = l.class JOIN queues q ON q.id = c.queue
  WHERE q.fair AND l.has_turn GROUP BY 1, 2;

-- Below which an index holds nothing but dead entries, and until when that is believed: there is a row only where an old snapshot
-- keeps dead entries from being removed, so that reading them takes long.
CREATE TABLE floors (
  name text PRIMARY KEY,
  floor double precision NOT NULL,
  until bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE turns SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 5000,
  vacuum_truncate = off);
