-- What happened to sources and queues: changes of the state of a source, and actions of people.
CREATE TABLE changes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  kind text NOT NULL,
  name text NOT NULL,
  facts json NOT NULL
);
CREATE INDEX changes_of ON changes (kind, name, id);
