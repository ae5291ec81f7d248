-- `definition`, `origin` and `progress` are JSON of the engine. `look_at` is null for a schedule that is paused or has no other time.
CREATE TABLE schedules (
  name text PRIMARY KEY,
  definition text NOT NULL,
  origin text NOT NULL,
  progress text NOT NULL,
  look_at bigint,
  revision bigint NOT NULL,
  paused_at bigint,
  paused_by text,
  pause_note text,
  last_task bigint,
  created_at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX schedules_look ON schedules (look_at) WHERE look_at IS NOT NULL;
