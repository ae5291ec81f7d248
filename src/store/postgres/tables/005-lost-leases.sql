-- Leases that were lost: whose they were and under which token, so that a late success can be told from any other word.
CREATE TABLE lost (
  task bigint PRIMARY KEY,
  execution integer NOT NULL,
  token uuid NOT NULL,
  worker text NOT NULL,
  at bigint NOT NULL
);

-- Leases that have run out, as they are watched: since when, by the monotonic clock of a timeline.
CREATE TABLE watches (
  worker bigint NOT NULL,
  timeline text NOT NULL,
  lease_until bigint NOT NULL,
  since double precision NOT NULL,
  PRIMARY KEY (worker, timeline)
);

-- How long a worker's process is respected after its lease, if it is alive. NULL: without end.
ALTER TABLE workers ADD COLUMN may_run_for bigint DEFAULT 0;
