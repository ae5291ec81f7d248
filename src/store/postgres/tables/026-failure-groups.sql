-- Groups of failures, as JSON. Each settle call with failures appends a row to `failure_entries`: what happened, and the tasks whose
-- settlements were not written. These are added to the groups later, each time with a new revision.
CREATE TABLE failure_entries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  seen json NOT NULL,
  unwritten bigint[]
);
CREATE TABLE failure_groups (
  id text PRIMARY KEY,
  last_at bigint NOT NULL,
  data json NOT NULL
);
CREATE TABLE failure_revision (
  id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  revision bigint NOT NULL
);
INSERT INTO failure_revision (revision) VALUES (0);
