-- Redrives, and the tasks that each has selected. They are put back in the order of their ids: those up to `put_back_to` were put
-- back, and have a stage, or were skipped. `selected_to` is NULL once all are selected. A redrive is driven by the process `driver`
-- until its claim ends.
CREATE TABLE redrives (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  filter text NOT NULL,
  actor text NOT NULL,
  note text NOT NULL,
  per_second double precision NOT NULL,
  accept_duplicate boolean NOT NULL,
  started_at bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('running', 'paused', 'stopped', 'done', 'cancelled')),
  since bigint NOT NULL,
  by_actor text,
  by_note text,
  because text,
  selected_to bigint DEFAULT 0,
  selected bigint NOT NULL DEFAULT 0,
  put_back bigint NOT NULL DEFAULT 0,
  skipped bigint NOT NULL DEFAULT 0,
  succeeded bigint NOT NULL DEFAULT 0,
  failed_again bigint NOT NULL DEFAULT 0,
  ended_otherwise bigint NOT NULL DEFAULT 0,
  put_back_to bigint NOT NULL DEFAULT 0,
  next_at double precision NOT NULL DEFAULT 0,
  driver text,
  driver_until bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX redrives_running ON redrives (id) WHERE state = 'running';

CREATE TABLE redrive_tasks (
  redrive bigint NOT NULL,
  task bigint NOT NULL,
  stage integer,
  skipped text,
  at bigint,
  after_execution integer,
  reason text,
  fingerprint text,
  outcome text,
  PRIMARY KEY (redrive, task)
);
CREATE INDEX redrive_tasks_task ON redrive_tasks (task);
CREATE INDEX redrive_tasks_stage ON redrive_tasks (redrive, stage) WHERE stage IS NOT NULL;
CREATE INDEX redrive_tasks_undecided ON redrive_tasks (redrive) WHERE stage IS NOT NULL AND outcome IS NULL;
CREATE INDEX redrive_tasks_skipped ON redrive_tasks (redrive) WHERE skipped IS NOT NULL;
